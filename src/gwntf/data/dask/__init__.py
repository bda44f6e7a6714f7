"""Blocks of samples on the workers of a Dask cluster: data stay on the workers, and only small matrices are sent.

Dask is imported only in this folder. Start with `blocks`, which implements `gwntf.data.blocks.Blocks` by tasks; `work`
has the functions that run on workers, `cluster` moves data there, `tasks` assigns blocks to workers and submits tasks.
"""

from gwntf.data.dask.cluster import Cluster
from gwntf.data.dask.tasks import current_client

__all__ = ["Cluster", "current_client"]
