"""Checks of models, samples and choices of components that are to be drawn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf.backends import to_host
from gwntf.core import FloatArray, InputError
from gwntf.data import as_real_array, masked_to_nan
from gwntf.plots.frames import check_axes


def check_model(model: Any, ax: Any = None) -> None:
    """Raise unless the model is a fitted factorization and `ax` can be drawn on."""
    check_axes(ax)
    if not hasattr(model, "components_"):
        raise InputError("model", f"{type(model).__name__}, which is not fitted", "a fitted factorization")


def _as_array(model: Any, values: Any, name: str) -> NDArray[Any]:
    return as_real_array(masked_to_nan(to_host(values), missing=model.missing, name=name), name)


def check_samples(model: Any, X: Any, name: str = "X") -> FloatArray:
    """Return samples in the layout of the X of `fit`, as float64; missing entries are NaN."""
    values = _as_array(model, X, name)
    layouts = {tuple(model.sample_shape_), (model.components_.shape[1],)}
    if values.ndim < 2 or values.shape[1:] not in layouts or len(values) == 0:
        allowed = " or ".join(f"(n, {', '.join(map(str, layout))})" for layout in sorted(layouts, key=len)[::-1])
        raise InputError(name, f"shape {values.shape}", f"samples of shape {allowed}")
    floats: FloatArray = values.astype(np.float64)
    return floats.reshape(len(floats), *to_host(model.inverse_transform(model.embedding_[:1])).shape[1:])


def check_sample(model: Any, sample: Any) -> FloatArray:
    """Return one sample as an X of one sample, in the layout of the X of `fit`."""
    values = _as_array(model, sample, "sample")
    shape = tuple(model.sample_shape_)
    if values.shape not in {shape, (model.components_.shape[1],)}:
        raise InputError("sample", f"shape {values.shape}", f"one sample, of shape {shape}")
    return check_samples(model, values[None], "sample")


def component_masses(model: Any) -> FloatArray:
    """Return the mass of every component: the sum of all entries of its tensor."""
    embedding, components = to_host(model.embedding_), to_host(model.components_)
    masses: FloatArray = embedding.sum(axis=0, dtype=np.float64) * components.sum(axis=1)
    return masses


def choose_components(model: Any, components: Any) -> NDArray[np.int_]:
    """Return indices of components by decreasing mass: all, a number of them, or a sequence of given ones."""
    rank = model.components_.shape[0]
    order = np.argsort(-component_masses(model), kind="stable")
    if components is None:
        return order
    if isinstance(components, int | np.integer) and not isinstance(components, bool):
        if not 1 <= components <= rank:
            raise InputError("components", str(components), f"a number from 1 to {rank}")
        return order[: int(components)]
    allowed = "a number of components or a sequence of their indices"
    chosen = as_real_array(components, "components", allowed)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or chosen.size == 0:
        raise InputError("components", repr(components), allowed)
    outside = chosen[(chosen < 0) | (chosen >= rank)]
    if outside.size:
        raise InputError("components", f"the index {outside[0]}", f"indices from 0 to {rank - 1}")
    return order[np.isin(order, chosen)]
