"""
Out-of-core data: Dask clusters and mini-batches
================================================

What if the data do not fit into memory, or arrive in batches? The same digits are fitted in three ways: as one array,
as blocks on the workers of a Dask cluster, and as a stream of batches. The cluster gives the same model up to
rounding. The stream gives a different model and needs fewer passes over the data, because the shared factors are
updated with every batch: three epochs are about the work of 30 iterations on all data.
"""

import warnings

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from gwntf import GWNTF, MiniBatchGWNTF
from gwntf.datasets import load_digits_tensor

X, _ = load_digits_tensor()
settings = {"n_components": 10, "costs": (None, "grid", "grid"), "reg": 0.05, "random_state": 0}
whole = GWNTF(graph_reg=0, max_iter=40, tol=0, **settings).fit(X)

# %%
# Four blocks of samples on two workers. A Dask array is processed by the workers of the current client. Only the shared
# factors and their numerators are sent; the blocks and their part of the embedding stay on the workers.

blocks = da.from_array(X, chunks=(450, -1, -1))
with (
    LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
    Client(cluster),
):
    distributed = GWNTF(graph_reg=0, max_iter=40, tol=0, **settings).fit(blocks)
apart = max(np.abs(a - b).max() for a, b in zip(whole.factors_, distributed.factors_, strict=True))
print(f"largest difference of the factors: {apart:.1e}")

# %%
# The stream: batches of 100 digits in random order, three epochs. The reconstruction error on all samples is computed
# after every sixth batch.

stream = MiniBatchGWNTF(**settings)
order = np.random.default_rng(0).permutation(len(X))
errors, seen = [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # new samples that have not fully converged
    for start in range(0, 3 * len(X), 100):
        places = order[np.arange(start, start + 100) % len(X)]
        stream.partial_fit(X[places])
        if start % 600 == 0:
            errors.append(-stream.score(X))
            seen.append(start + 100)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(whole.objective_curve_, label="one array")
left.plot(distributed.objective_curve_, "--", label="four blocks on two workers")
left.set(xlabel="iteration", ylabel="objective F", title="Dask cluster")
left.legend()
right.plot(seen, errors, marker="o", markersize=3, label="batches of 100")
right.axhline(whole.reconstruction_err_, color="C1", linestyle="--", label="40 iterations on all data")
right.set(xlabel="digits seen", ylabel="|X - X^| / |X|", title="mini-batches")
right.legend()
plt.show()
