"""
Fitting on a GPU
================

``device="cuda"`` runs the whole fit on a GPU, and a tensor on a GPU is not copied to the host. Without a GPU, as
possibly on the machine that built this page, torch uses the CPU. All engines start from the same random numbers and
perform the same iterations, so their results can be compared.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from gwntf import GWNTF
from gwntf.datasets import load_digits_tensor

device = "cuda" if torch.cuda.is_available() else "cpu"
print(f"torch on {device}")

X, _ = load_digits_tensor()
X = X[:300]
settings = {
    "n_components": 10,
    "costs": (None, "grid", "grid"),
    "graph_reg": 10,
    "max_iter": 30,
    "tol": 0,
    "random_state": 0,
}
reference = GWNTF(engine="numpy", dtype="float64", **settings).fit(X)
single = GWNTF(device=device, **settings).fit(torch.as_tensor(X, device=device))  # float32, the default of torch
double = GWNTF(device=device, dtype="float64", **settings).fit(torch.as_tensor(X, device=device))
print(type(single.embedding_).__name__, tuple(single.embedding_.shape), single.embedding_.device)

# %%
# Left: the objective of all three fits. Right: the relative difference from the reference at each iteration. In float64
# the engines differ only by rounding.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, model, style in (
    ("NumPy, float64", reference, "-"),
    ("torch, float32", single, "--"),
    ("torch, float64", double, ":"),
):
    left.plot(model.objective_curve_, style, label=name)
    if model is not reference:
        apart = np.abs(model.objective_curve_ / reference.objective_curve_ - 1)
        right.semilogy(np.maximum(apart, 1e-17), style, label=name, color="C1" if model is single else "C2")
left.set(xlabel="iteration", ylabel="objective F", title="convergence")
right.set(xlabel="iteration", ylabel="relative difference", title="difference from the reference")
left.legend()
right.legend()
plt.show()
