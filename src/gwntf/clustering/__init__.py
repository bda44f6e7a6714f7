"""From an embedding or a graph to clusters: labels, cuts of the graph, and the choice of its metric.

May import `geometry` and everything below it. Pure functions: start with `labels`, from embeddings; `graph_cut` is for
graphs.
"""

from gwntf.clustering.graph_cut import choose_graph, clearest, cut, modularity, start_from_cut
from gwntf.clustering.labels import ASSIGN_LABELS, assign, check_clusters, nearest_label
