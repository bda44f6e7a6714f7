"""Blocks of samples on the workers of a Dask cluster: data stay there, and only small matrices are sent.

The only place that imports dask. Start with `blocks`: the methods of `gwntf.data.blocks.Blocks` as tasks; `work` has
the functions that run on workers, `cluster` brings data there, `tasks` assigns blocks to workers and calls the
scheduler.
"""

from gwntf.data.dask.cluster import Cluster
from gwntf.data.dask.tasks import current_client

__all__ = ["Cluster", "current_client"]
