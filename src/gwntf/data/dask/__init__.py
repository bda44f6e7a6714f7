"""Blocks of samples on the workers of a Dask cluster: data stay there, and small matrices travel.

The only place that imports dask. Start with `blocks`: what `gwntf.data.blocks.Blocks` asks for, as tasks; `work` has
the functions that run on workers, `cluster` brings data there, `assignment` says which worker has which block, `tasks`
speaks to the scheduler.
"""

from gwntf.data.dask.cluster import Cluster

__all__ = ["Cluster"]
