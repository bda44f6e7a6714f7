"""Random tensors with known factors."""

from collections.abc import Sequence
from typing import Any

from sklearn.utils import check_random_state

from gwntf.core import FloatArray, InputError
from gwntf.data import reconstruct


def make_kruskal_tensor(
    shape: Sequence[int], n_components: int, *, density: float = 0.5, noise: float = 0.0, random_state: Any = None
) -> tuple[FloatArray, list[FloatArray]]:
    """Generate a random nonnegative tensor of known rank.

    Parameters
    ----------
    shape : sequence of int
        Shape of the tensor, two axes or more, samples first.
    n_components : int
        Rank of the tensor.
    density : float in (0, 1]
        Expected fraction of nonzero entries in every factor; each column has at least one.
    noise : float
        Standard deviation of the relative error of every entry: X = X^ * exp(noise * normal).
    random_state : int, RandomState or None
        Seed or generator of the random numbers.

    Returns
    -------
    X : ndarray of that shape
    factors : list of (I_n, n_components) arrays

    Examples
    --------
    >>> from gwntf.datasets import make_kruskal_tensor
    >>> X, factors = make_kruskal_tensor((20, 6, 5), 3, random_state=0)
    >>> X.shape, [factor.shape for factor in factors]
    ((20, 6, 5), [(20, 3), (6, 3), (5, 3)])
    """
    if len(shape) < 2 or min(shape) < 1:
        raise InputError("shape", str(tuple(shape)), "two positive sizes or more")
    if n_components < 1:
        raise InputError("n_components", str(n_components), "an integer of at least 1")
    if not 0 < density <= 1:
        raise InputError("density", str(density), "a number above 0 and up to 1")
    if not noise >= 0:
        raise InputError("noise", str(noise), "a nonnegative number")
    rng = check_random_state(random_state)
    factors = []
    for size in shape:
        factor = rng.gamma(2.0, 1.0, (size, n_components))
        factor *= rng.random_sample(factor.shape) < density
        factor[rng.randint(size, size=n_components), range(n_components)] += 1.0
        factors.append(factor)
    model = reconstruct(factors)
    if noise > 0:
        model = model * rng.lognormal(0.0, noise, model.shape)
    return model, factors
