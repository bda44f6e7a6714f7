"""The report of a model: its clusters, components and embedding, and reconstructions of samples."""

import json
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from gwntf import plots
from gwntf._version import __version__
from gwntf.backends import to_host
from gwntf.core import FloatArray, Status
from gwntf.estimators.records import SESSION
from gwntf.evaluation import clustering_scores
from gwntf.plots.panels import mosaic
from gwntf.plots.samples import as_picture, check_kind
from gwntf.readers import Samples
from gwntf.reports.page import cell, html_table, new_figure, page, paragraph, picture, preformatted, section

_MAX_COMPONENTS, _MAX_SAMPLES, _MAX_POINTS, _MAX_CLUSTERS, _MAX_MEMBERS = 40, 10, 3000, 30, 14
_MAX_NAME, _MAX_CELL_NAME = 24, 41  # length of the name of a class in a picture, and in a table
_GAP = 0.06  # gap between images of members, as a share of their side


def model_report(model: Any, title: str, samples: Samples | None = None) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    model : fitted factorization
        Any of the library.
    title : str
        Title of the page; text, as everything that comes from data.
    samples : Samples, optional
        The data of the fit, or other samples of their shape: some are shown with their reconstructions. Those of
        the fit are also shown by cluster, and their known classes beside the clusters.
    """
    plots.require_matplotlib()
    of_fit = samples is not None and samples.X.shape[0] == model.embedding_.shape[0]
    known = samples.labels if samples is not None and of_fit else None
    (n_samples, rank), shape = model.embedding_.shape, "x".join(map(str, model.sample_shape_))
    headline = (
        f"{type(model).__name__} of rank {rank}, fitted to {n_samples} samples of {shape} in {model.n_iter_} "
        f"iterations. {ending(model)} Relative reconstruction error: {model.reconstruction_err_:.3f}."
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # letters that the font of the pictures lacks
        sections = [paragraph(headline)]
        if hasattr(model, "labels_"):
            sections.append(section("Clusters", *_clusters(model, samples if of_fit else None, known)))
        sections.append(section("Components", _components(model)))
        if samples is not None:
            sections.append(section("Samples and their reconstructions", _reconstructions(model, samples)))
        sections.append(section("Embedding", _embedding(model, known)))
        curve, figure = model.objective_curve_, new_figure(7, 3.2)
        plots.plot_objective(model, ax=figure.subplots())
        sections.append(section("Objective", picture(figure, f"From {curve[0]:.6g} at the start to {curve[-1]:.6g}.")))
        differ = paragraph("Parameters that differ from the defaults of the method.")
        sections.append(section("Settings", differ, preformatted(_settings(model))))
    return page(title, sections)


def ending(model: Any) -> str:
    """Return a sentence that says why a fit ended."""
    if model.status_ is Status.MAX_ITER and model.tol == 0:
        return "All iterations were run, as `tol` is 0."
    return str(model.status_.message)


def set_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that differ from the defaults of its class."""
    defaults = type(model)().get_params()
    own = {name: v for name, v in model.get_params().items() if name not in SESSION}
    return {name: value for name, value in own.items() if repr(value) != repr(defaults[name])}


def _clusters(model: Any, samples: Samples | None, known: NDArray[Any] | None) -> list[str]:
    """Return scores, with the samples of the fit typical members, and the sizes of the clusters."""
    found, parts = model.labels_, []
    if known is not None:
        scores = clustering_scores(known, found).items()
        text = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores)
        parts.append(paragraph(f"Against the known classes: {text}."))
    if samples is not None and len(model.sample_shape_) in (2, 3):
        parts.append(_members(model, samples.X))
    rows = []
    for label, count in zip(*np.unique(found, return_counts=True), strict=True):
        row = [str(label), str(count), f"{100 * count / len(found):.1f} %"]
        if known is not None:
            names, counts = np.unique(known[found == label], return_counts=True)
            top = int(counts.argmax())
            row += [_shorten(str(names[top]), _MAX_CELL_NAME), f"{100 * counts[top] / count:.0f} %"]
        rows.append([cell(text) for text in row])
    head = ["cluster", "samples", "share"] + ([] if known is None else ["commonest class", "its share"])
    return [*parts, html_table(head, rows)]


def _members(model: Any, X: Any) -> str:
    """Return a picture with one row of images for each cluster, the nearest to its mean direction first."""
    names, sizes = np.unique(model.labels_, return_counts=True)
    order = np.argsort(-sizes, kind="stable")[:_MAX_CLUSTERS]
    directions = normalize(np.asarray(to_host(model.embedding_), dtype=np.float64))
    rows = []
    for k in order:
        indices = np.flatnonzero(model.labels_ == names[k])
        cosines = directions[indices] @ directions[indices].mean(axis=0)
        typical = indices[np.argsort(-cosines, kind="stable")[:_MAX_MEMBERS]]
        rows.append([_image(X[index], tuple(model.sample_shape_)) for index in typical])
    height, width = model.sample_shape_[:2]
    gap = (max(1, round(_GAP * height)), max(1, round(_GAP * width)))
    inches = 8.6 / _MAX_MEMBERS * min(height / width, 3.0) * len(rows) + 0.3
    figure = new_figure(9.5, float(min(40.0, max(1.2, inches))))
    ax = figure.subplots()
    aspect = "auto" if height > 3 * width else "equal"
    canvas = mosaic(rows, _MAX_MEMBERS, gap=gap, fill=1.0)
    ax.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect=aspect)
    middles = np.arange(len(rows)) * (height + gap[0]) + height / 2
    ax.set_yticks(middles, [f"{names[k]}: {sizes[k]}" for k in order], fontsize="small")
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    caption = "Each row is a cluster, the largest first (number: samples); its most typical members come first."
    return picture(figure, caption)


def _image(sample: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return one sample as an image between 0 and 1, in colour if its last axis has three entries."""
    dense = sample.toarray() if hasattr(sample, "toarray") else sample
    values = np.nan_to_num(np.asarray(dense, dtype=np.float64)).reshape(1, *shape)
    image = as_picture(values, check_kind(None, shape))[0]
    return np.asarray(image / (image.max() or 1.0))


def _components(model: Any) -> str:
    rank, shape = model.embedding_.shape[1], tuple(model.sample_shape_)
    kind = check_kind(None, shape, along_axes=True)
    count = min(rank, 12 if kind == "modes" else _MAX_COMPONENTS)
    rest = "" if count == rank else f" The {count} of largest mass, of {rank}."
    columns = min(count, 5 if kind == "curve" else 10)
    rows = math.ceil(count / columns)
    figure = new_figure(9.5, 1.05 * count + 0.5 if kind == "modes" else _height(shape, rows))
    plots.plot_components(model, count, columns=columns, ax=figure.subplots())
    what = "Components, whose weighted sums approximate the samples"
    return picture(figure, f"{what}; above each its index and its share of the model's mass.{rest}")


def _reconstructions(model: Any, samples: Samples) -> str:
    """Return a picture of samples at equal distances in the data, above their reconstructions."""
    indices = np.unique(np.linspace(0, samples.X.shape[0] - 1, _MAX_SAMPLES).astype(int))
    few, shape = samples.X[indices], tuple(model.sample_shape_)
    few = few.toarray() if hasattr(few, "toarray") else np.asarray(few)
    columns = min(len(indices), 5 if len(shape) == 1 else 10)
    figure = new_figure(9.5, _height(shape, 2 * math.ceil(len(indices) / columns)))
    panels = plots.plot_reconstructions(model, few, columns=columns, ax=figure.subplots())
    for panel, index in zip(panels[0], indices, strict=True):
        panel.set_title(f"sample {index}", fontsize="x-small", pad=2)
    names = ", ".join(str(index) if samples.names is None else samples.names[index] for index in indices)
    caption = f"Samples, and below each its reconstruction with the relative error. From the left: {names}."
    return picture(figure, caption)


def _height(shape: tuple[int, ...], rows: int) -> float:
    """Return the height in inches of rows of samples of that shape."""
    row = 1.15 if len(shape) == 1 else 0.95 * min(max(shape[0] / shape[1], 0.4), 2.5)
    return row * rows + 0.9


def _embedding(model: Any, known: NDArray[Any] | None) -> str:
    """Return a picture of the samples in two dimensions, coloured by cluster and by class, if there are any."""
    embedding = np.asarray(to_host(model.embedding_), dtype=np.float64)
    indices = np.linspace(0, len(embedding) - 1, min(len(embedding), _MAX_POINTS)).astype(int)
    few = len(indices) < 10
    points = (plots.principal_plane if few else plots.flatten_embedding)(embedding[indices])
    colours = {"coloured by cluster": getattr(model, "labels_", None)}
    colours["coloured by known class"] = None if known is None else _short_names(known)
    panels = [(name, labels[indices]) for name, labels in colours.items() if labels is not None]
    figure = new_figure(9.5, 4.4) if len(panels) > 1 else new_figure(7, 4.6)
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    for ax, (title, labels) in zip(axes, panels or [("samples", None)], strict=True):
        plots.plot_embedding(embedding[indices], labels, projection=lambda _: points, ax=ax).set_title(title)
    part = "" if len(indices) == len(embedding) else f" {len(indices)} of {len(embedding)} samples."
    how = "principal components" if few else "t-SNE"
    return picture(figure, f"Each point is a sample; near points have similar embeddings ({how}).{part}")


def _short_names(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels with long names shortened, and numbered so that they stay different."""
    names, codes = np.unique(labels, return_inverse=True)
    texts = ["".join(c if c.isprintable() else "?" for c in str(name)) for name in names]
    short = [t if len(t) <= _MAX_NAME else f"{k}: {_shorten(t, _MAX_NAME - 5)}" for k, t in enumerate(texts)]
    return np.array(short)[codes]


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _settings(model: Any) -> str:
    """Return the parameters that were set as JSON, arrays by their shape."""
    settings: dict[str, Any] = {"gwntf": __version__, "method": type(model).__name__}
    for name, value in set_parameters(model).items():
        if isinstance(value, str | int | float | bool | None):
            settings[name] = value
        else:
            shape = getattr(value, "shape", None)
            settings[name] = repr(value)[:200] if shape is None else f"{type(value).__name__} of shape {shape}"
    return json.dumps(settings, indent=1)
