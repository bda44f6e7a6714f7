"""How commands read data: what is printed about them, and which entries are refused."""

from pathlib import Path
from typing import Any

import numpy as np

from gwntf.cli.output import Output, format_shape
from gwntf.core import InputError
from gwntf.readers import Samples, Summary, default_memory, read_data, summarise


def load_samples(output: Output, path: Path, options: Any, model: Any = None) -> Samples:
    """Read data, print a summary, and check that a fit, or the model, can use them."""
    samples = read_samples(path, options, model)
    found = summarise(samples.X)
    print_summary(output, path, samples, found)
    check_values(path, found, options.missing if model is None else model.missing)
    return samples


def read_samples(path: Path, options: Any, model: Any = None) -> Samples:
    """Read data as the options say; for a model, rows are folded and images resized to the shape of its samples."""
    layout = () if model is None else sample_layout(model)
    is_folder = path.is_dir() and path.suffix.lower() != ".zarr"
    size: Any = options.size or (layout[:2] if is_folder and len(layout) > 1 else None)
    if size is not None and len(size) != 2:
        raise InputError("size", format_shape(size), "a height and a width, as in 32x32")
    limit = default_memory() if options.max_memory is None else options.max_memory
    large = path.suffix.lower() == ".npy" and path.is_file() and path.stat().st_size > limit

    def read(sample_shape: tuple[int, ...] | None) -> Samples:
        return read_data(
            path,
            key=options.key,
            labels=options.labels,
            id_column=options.id_column,
            label_column=options.label_column,
            columns=options.columns,
            sample_shape=sample_shape,
            sample_axis=options.sample_axis,
            size=size,
            color=options.color or (is_folder and len(layout) == 3 and layout[-1] == 3),
            lazy=large and sample_shape is None and options.sample_axis == 0,
            max_bytes=options.max_memory,
        )

    samples = read(options.sample_shape)
    rows = len(samples.X.shape) == 2 and not hasattr(samples.X, "tocsr")
    if rows and not is_folder and len(layout) > 1 and options.sample_shape is None:
        return read(layout)
    return samples


def sample_layout(model: Any) -> tuple[int, ...]:
    """Return the shape of one sample as the model takes it in X."""
    return tuple(np.shape(model.inverse_transform(model.embedding_[:1]))[1:])


def check_values(path: Path, found: Summary, missing: str | None) -> None:
    """Raise if the data contain entries that no method accepts; the message names options of the command line."""
    if len(found.shape) < 2 or 0 in found.shape:
        given = f"an array of shape {format_shape(found.shape)}"
        raise InputError(str(path), given, "samples first and at least one more axis")
    if found.negative:
        given = f"{found.negative} negative entries (smallest {found.smallest:g})"
        raise InputError(str(path), given, "nonnegative numbers: shift or clip them first")
    if found.infinite:
        raise InputError(str(path), f"{found.infinite} infinite entries", "finite numbers")
    if found.missing and missing != "ignore":
        raise InputError(str(path), f"{found.missing} NaN entries", "numbers, or --missing ignore")
    if not found.largest > 0:
        raise InputError(str(path), "only zeros", "data with some positive entries")


def print_summary(output: Output, path: Path, samples: Samples, found: Summary) -> None:
    """Print shape, type and range of the data, the number of known classes, and remarks of the reader."""
    share = 100 * found.zeros / max(1, found.entries)
    kind = f"sparse {found.dtype}" if found.sparse else found.dtype
    missing = f", {found.missing} missing" if found.missing else ""
    classes = None if samples.labels is None else len(set(samples.labels.tolist()))
    text = (
        f"{path}: {found.shape[0]} samples of {format_shape(found.shape[1:])}, {kind}, "
        f"{found.smallest:g} to {found.largest:g}, {share:.1f} % zeros{missing}"
    )
    data = {"path": str(path), "classes": classes, "note": samples.note, **vars(found)}
    output.line("data", text, data=data)
    if classes is not None:
        output.line("classes", f"{classes} known; not used in the fit")
    if samples.names is not None and path.is_file():
        ends = dict.fromkeys((samples.names[0], samples.names[-1]))
        output.line("ids", " to ".join(ends))
    if samples.note:
        output.line("note", samples.note)
