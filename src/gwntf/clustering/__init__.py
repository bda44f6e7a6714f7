"""Cluster labels from embeddings and graphs, and the choice of a graph metric.

May import `geometry` and everything below it. Start with `labels`, for embeddings; `graph_cut` is for graphs.
"""

from gwntf.clustering.graph_cut import choose_graph, clearest, cut, modularity, start_from_cut
from gwntf.clustering.labels import ASSIGN_LABELS, assign, check_clusters, nearest_label
