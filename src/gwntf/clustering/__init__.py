"""Cluster labels from embeddings and graphs, and the choice of a graph metric.

May import `geometry` and everything below it. Start with `labels`, for embeddings; `graph_labels` is for graphs.
"""

from gwntf.clustering.graph_labels import choose_graph, modularity, most_modular, spectral_labels, start_from_labels
from gwntf.clustering.labels import ASSIGN_LABELS, assign, check_clusters, nearest_label
