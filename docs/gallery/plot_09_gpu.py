"""
The same fit on a GPU
=====================

``device="cuda"`` runs the whole fit on a GPU, and a tensor on a GPU stays there. Where there is none, as perhaps on the machine that built this page, torch
works on the CPU. All engines start from the same random numbers and take the same steps, so that their results can be compared.
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
# Left: the objective of all three. Right: how far they are from the reference at each iteration. In float64 the engines differ by rounding alone.

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
left.set(xlabel="iteration", ylabel="objective F", title="the same path")
right.set(xlabel="iteration", ylabel="relative difference", title="from the reference")
left.legend()
right.legend()
plt.show()
