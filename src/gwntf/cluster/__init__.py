"""The fit on a cluster: blocks of samples stay on their workers, and only small matrices travel.

May import `solvers` and everything below it. Start with `steps`, which gives the outer loop of `solvers` its
iterations; `transport` and `least_squares` say what an iteration is under each loss, and send what is in `work` and in
`transport_work`, `squares_work` and `neighbors` to the workers; `samples` holds the sample factor in blocks with the
rows that blocks lend each other, `data` is the way of the data to the workers, `homes` says which has which.
"""

from gwntf.cluster.data import as_cluster_tensor
from gwntf.cluster.steps import on_cluster

__all__ = ["as_cluster_tensor", "on_cluster"]
