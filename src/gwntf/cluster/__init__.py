"""The fit on a cluster: blocks of samples stay on their workers, and only small matrices travel.

May import `solvers` and everything below it. Start with `steps`, which gives the outer loop of `solvers` its
iterations; `transport` and `least_squares` say what an iteration is under each loss, `work` holds what the workers do,
`samples` the sample factor in blocks with the rows that blocks lend each other, `data` the way of the data to the
workers.
"""

from gwntf.cluster.data import as_cluster_tensor
from gwntf.cluster.steps import on_cluster

__all__ = ["as_cluster_tensor", "on_cluster"]
