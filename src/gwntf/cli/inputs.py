"""From the options of a command to samples and to an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gwntf.cli.voice import Voice, complain, times
from gwntf.core import GwntfError, InputError
from gwntf.estimators.files import KNOWN
from gwntf.readers import Samples, Summary, default_memory, read_data

PARAMETERS = (
    *(
        "n_components",
        "costs",
        "reg",
        "graph_reg",
        "n_neighbors",
        "graph_metric",
        "graph_weight",
        "init",
        "n_init",
    ),
    *("inner_iter", "max_iter", "tol", "sample_norm", "missing", "engine", "device", "dtype", "n_clusters"),
    *("random_state", "checkpoint"),
)
"""Parameters of estimators that have an option."""


def read_samples(path: Path, options: Any, **known: Any) -> Samples:
    """Read data as the options say; `known` fills in what they leave out."""
    size = options.size or known.get("size")
    if size is not None and len(size) != 2:
        raise InputError("size", times(size), "a height and a width, as in 32x32")
    sample_shape = options.sample_shape or known.get("sample_shape")
    return read_data(
        path,
        key=options.key,
        labels=options.labels,
        sample_shape=sample_shape,
        sample_axis=options.sample_axis,
        size=size,
        color=options.color or known.get("color", False),
        lazy=sample_shape is None and options.sample_axis == 0 and _beyond(path, options.max_memory),
        max_bytes=options.max_memory,
    )


def _beyond(path: Path, most: int | None) -> bool:
    """Whether this is a file that can be read block by block and would take more memory than is allowed."""
    limit = default_memory() if most is None else most
    return path.suffix.lower() == ".npy" and path.is_file() and path.stat().st_size > limit


def read_like(path: Path, options: Any, model: Any) -> Samples:
    """Read data in the layout that a model was fitted to: rows are folded and images resized as they were then."""
    layout = tuple(model._layout)
    if path.is_dir() and path.suffix.lower() != ".zarr":
        colour = len(layout) == 3 and layout[-1] == 3
        return read_samples(path, options, size=layout[:2] if len(layout) > 1 else None, color=colour)
    samples = read_samples(path, options)
    if len(samples.X.shape) == 2 and len(layout) > 1 and not hasattr(samples.X, "tocsr"):
        return read_samples(path, options, sample_shape=layout)
    return samples


def check_values(path: Path, found: Summary, missing: str | None) -> None:
    """Refuse entries that no method takes, in the words of the command line."""
    if len(found.shape) < 2 or 0 in found.shape:
        allowed = "samples first and at least one axis more"
        raise InputError(str(path), f"an array of shape {times(found.shape)}", allowed)
    if found.negative:
        given = f"{found.negative} negative entries (smallest {found.smallest:g})"
        raise InputError(str(path), given, "nonnegative numbers: shift or clip them first")
    if found.infinite:
        raise InputError(str(path), f"{found.infinite} infinite entries", "finite numbers")
    if found.missing and missing != "ignore":
        raise InputError(str(path), f"{found.missing} NaN entries", "numbers, or --missing ignore")
    if not found.largest > 0:
        raise InputError(str(path), "only zeros", "data with some mass")


def tell_data(voice: Voice, path: Path, samples: Samples, found: Summary) -> None:
    """Say what was read."""
    share = 100 * found.zeros / max(1, found.entries)
    kind = f"sparse {found.dtype}" if found.sparse else found.dtype
    missing = f", {found.missing} missing" if found.missing else ""
    classes = None if samples.labels is None else len(set(samples.labels.tolist()))
    text = (
        f"{path}: {found.shape[0]} samples of {times(found.shape[1:])}, {kind}, "
        f"{found.smallest:g} to {found.largest:g}, {share:.1f} % zeros{missing}"
    )
    facts = {"path": str(path), "classes": classes, "note": samples.note, **vars(found)}
    voice.say("data", text, data=facts)
    if classes is not None:
        voice.say("classes", f"{classes} known; no fit ever sees them")
    if samples.note:
        voice.say("note", samples.note)


def given_parameters(options: Any) -> dict[str, Any]:
    """Return what the user set."""
    given = {name: getattr(options, name, None) for name in PARAMETERS}
    found = {name: value for name, value in given.items() if value is not None}
    if found.get("sample_norm") == "none":
        found["sample_norm"] = None
    return found


def build(method: str, given: dict[str, Any]) -> Any:
    """Return an estimator; an option that the method does not know is refused."""
    cls: Any = KNOWN[method]
    unknown = sorted(set(given) - set(cls().get_params()))
    if unknown:
        raise InputError(unknown[0], repr(given[unknown[0]]), f"nothing: {method} has no such parameter")
    return checked(cls(**given))


def checked(model: Any) -> Any:
    """Return an estimator whose parameters are valid; scikit-learn's word on others becomes an error of ours."""
    try:
        model._validate_params()
    except ValueError as error:
        raise GwntfError(str(error)) from error
    return model


@contextmanager
def warnings_told(*known: str) -> Iterator[None]:
    """Tell warnings of the library on standard error, each in one line, but for what is told elsewhere."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        if message not in known:
            complain(message)
