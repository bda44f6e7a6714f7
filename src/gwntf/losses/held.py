"""Held components: the leading columns of all factors but that of the samples, which a fit does not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gwntf.core import Array


def with_held(xp: Any, new: Array, old: Array, held: int) -> Array:
    """Return a factor with its first `held` columns taken back from the old one, to the bit."""
    return new if held == 0 else xp.concat([old[:, :held], new[:, held:]], axis=1)


def all_with_held(xp: Any, new: Sequence[Array], old: Sequence[Array], held: int) -> list[Array]:
    """Return several factors, each as by `with_held`."""
    return [with_held(xp, one, other, held) for one, other in zip(new, old, strict=True)]


def without_held(xp: Any, gradient: Array, held: int) -> Array:
    """Return a gradient whose first `held` columns are zero."""
    return with_held(xp, gradient, xp.zeros_like(gradient), held)
