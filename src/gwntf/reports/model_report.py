"""The report of a model or a clusterer: clusters, components, embedding, and reconstructions of samples."""

import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from gwntf import plots
from gwntf._version import __version__
from gwntf.backends import to_host
from gwntf.core import FloatArray
from gwntf.estimators import TensorClustering
from gwntf.evaluation import clustering_scores
from gwntf.plots.embedding import MAX_LEGEND
from gwntf.plots.frames import divide
from gwntf.plots.panels import mosaic
from gwntf.plots.samples import as_picture, check_kind, draw
from gwntf.readers import Samples
from gwntf.reports.facts import describe, ending, factorization_of, set_parameters
from gwntf.reports.page import cell, html_table, new_figure, page, pair, paragraph, picture, preformatted, section

_MAX_COMPONENTS, _MAX_SAMPLES, _MAX_POINTS, _MAX_CLUSTERS, _MAX_MEMBERS = 40, 10, 3000, 30, 14
_MAX_NAME, _MAX_CELL_NAME = 24, 41  # length of the name of a class in a figure, and in a table
_GAP = 0.06  # gap between images of members, as a share of their side
_ALIKE = 0.4  # reconstructions whose differences are below this share of those between samples are not drawn
_PHONE = 5.5  # width in inches of figures that fit on a phone
_AXES = {
    "curve": " Horizontal axis: index of the feature, from 0.",
    "modes": " Horizontal axis: index along that axis, from 0.",
}
_SCORES = (
    "ACC: share of samples in the class of their cluster, each cluster being matched with one class. NMI and "
    "MI: how much the clusters say about the classes, from 0 % (nothing) to 100 %. Purity: share of samples in the "
    "most common class of their cluster."
)


def model_report(estimator: Any, title: str, samples: Samples | None = None) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    estimator : fitted factorization or TensorClustering
        The report of a clusterer also shows its clusters.
    title : str
        Title of the page; text, like everything that comes from data.
    samples : Samples, optional
        The data of the fit, or other samples of their shape: some are shown with their reconstructions. Those of
        the fit are also shown by cluster, and the clusters are compared with their known classes.
    """
    plots.require_matplotlib()
    model = factorization_of(estimator)
    of_fit = samples is not None and samples.X.shape[0] == model.embedding_.shape[0]
    known = samples.labels if samples is not None and of_fit else None
    n_samples, shape = model.embedding_.shape[0], "x".join(map(str, model.sample_shape_))
    headline = (
        f"{describe(estimator)}, fitted to {n_samples} samples of {shape} values in {model.n_iter_} iterations. "
        f"{ending(model)} Relative reconstruction error: {model.reconstruction_err_:.3f} (0 is exact)."
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # characters that the font of the figures lacks
        sections = [paragraph(headline)]
        labels = estimator.labels_ if isinstance(estimator, TensorClustering) else None
        if labels is not None:
            sections.append(section("Clusters", *_clusters(model, labels, samples if of_fit else None, known)))
        kept = 1.0 if samples is None else _kept_differences(model, _few(samples)[1])
        if kept >= _ALIKE or not _is_product(model):
            sections.append(section("Components", _components(model)))
        if kept < _ALIKE:
            heading = "Components and reconstructions" if _is_product(model) else "Reconstructions"
            sections.append(section(heading, paragraph(_left_out(model, kept))))
        elif samples is not None:
            sections.append(section("Samples and their reconstructions", _reconstructions(model, samples)))
        sections.append(section("Embedding", _embedding(model, labels, known)))
        curve, figure = model.objective_curve_, new_figure(_PHONE, 3.2)
        plots.plot_objective(model, ax=figure.subplots())
        what = f"The function that the fit minimises: {curve[0]:.6g} at the start, {curve[-1]:.6g} at the end."
        sections.append(section("Objective", picture(figure, what)))
        differ = paragraph("Parameters that differ from the defaults of the method.")
        sections.append(section("Settings", differ, preformatted(_settings(estimator))))
    return page(title, sections)


def _clusters(model: Any, found: NDArray[np.int_], samples: Samples | None, known: NDArray[Any] | None) -> list[str]:
    """Return scores, typical members (with the samples of the fit) and the sizes of the clusters, largest first."""
    parts = []
    if known is not None:
        scores = clustering_scores(known, found).items()
        text = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores)
        parts += [paragraph(f"Compared with the known classes: {text}."), paragraph(_SCORES)]
    names, sizes = np.unique(found, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    titles = {names[k]: f"{names[k]}: {sizes[k]}" for k in order[:_MAX_CLUSTERS]}
    shown = "" if len(titles) == len(names) else f" Only the {len(titles)} largest of {len(names)} clusters are drawn."
    typical = {label: _typical(model, np.flatnonzero(found == label)) for label in titles}
    if samples is not None and len(model.sample_shape_) == 1:
        what = "Each panel is a cluster, the largest first (number: samples): typical members in grey, and their mean."
        parts.append(picture(_member_curves(model, samples.X, titles, typical), what + _AXES["curve"] + shown))
    elif samples is not None and len(model.sample_shape_) in (2, 3):
        what = "Each row is a cluster, the largest first (number: samples); its most typical members come first."
        parts.append(picture(_member_images(model, samples.X, titles, typical), what + shown))
    rows = []
    for label, count in zip(names[order], sizes[order], strict=True):
        row = [str(label), str(count), f"{100 * count / len(found):.1f} %"]
        if known is not None:
            classes, counts = np.unique(known[found == label], return_counts=True)
            top = int(counts.argmax())
            row += [_shorten(str(classes[top]), _MAX_CELL_NAME), f"{100 * counts[top] / count:.0f} %"]
        rows.append([cell(text) for text in row])
    head = ["cluster", "samples", "share of all"] + ([] if known is None else ["most common class", "its share"])
    return [*parts, html_table(head, rows)]


def _typical(model: Any, members: NDArray[np.int_]) -> NDArray[np.int_]:
    """Return the members of a cluster that are nearest to its mean direction in the embedding."""
    directions = normalize(np.asarray(to_host(model.embedding_), dtype=np.float64)[members])
    return members[np.argsort(-(directions @ directions.mean(axis=0)), kind="stable")[:_MAX_MEMBERS]]


Members = Mapping[Any, NDArray[np.int_]]


def _member_curves(model: Any, X: Any, titles: Mapping[Any, str], typical: Members) -> Any:
    """Return a figure with typical members of every cluster and their mean."""
    columns = min(len(titles), 5)
    rows = math.ceil(len(titles) / columns)
    figure = new_figure(9.5, _height(tuple(model.sample_shape_), rows))
    panels = divide(figure.subplots(), rows, columns, range(len(titles)), ("feature", "value"))
    for panel, (label, title) in zip(panels, titles.items(), strict=True):
        members = _dense(X[typical[label]])
        mean = np.ma.masked_invalid(members).mean(axis=0).filled(np.nan)
        draw(panel, mean, "curve", title, top=float(np.nanmax(members)), cmap="gray")
        panel.plot(members.T, color="0.7", linewidth=0.5, zorder=0)
    return figure


def _member_images(model: Any, X: Any, titles: Mapping[Any, str], typical: Members) -> Any:
    """Return a figure with one row of images for each cluster, the nearest to its mean direction first."""
    shape = tuple(model.sample_shape_)
    rows = [[_image(X[index], shape) for index in typical[label]] for label in titles]
    height, width = shape[:2]
    gap = (max(1, round(_GAP * height)), max(1, round(_GAP * width)))
    inches = 8.6 / _MAX_MEMBERS * min(height / width, 3.0) * len(rows) + 0.3
    figure = new_figure(9.5, float(min(40.0, max(1.2, inches))))
    ax = figure.subplots()
    aspect = "auto" if height > 3 * width else "equal"
    canvas = mosaic(rows, _MAX_MEMBERS, gap=gap, fill=1.0)
    ax.imshow(canvas, cmap="gray", vmin=0, vmax=1, interpolation="nearest", aspect=aspect)
    middles = np.arange(len(rows)) * (height + gap[0]) + height / 2
    ax.set_yticks(middles, list(titles.values()), fontsize="small")
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return figure


def _image(sample: Any, shape: tuple[int, ...]) -> FloatArray:
    """Return one sample as an image between 0 and 1, in colour if its last axis has three entries."""
    values = np.nan_to_num(_dense(sample)).reshape(1, *shape)
    image = as_picture(values, check_kind(None, shape))[0]
    return np.asarray(image / (image.max() or 1.0))


def _dense(values: Any) -> FloatArray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)


def _few(samples: Samples) -> tuple[NDArray[np.int_], FloatArray]:
    """Return indices of samples at equal distances in the data, and these samples."""
    indices = np.unique(np.linspace(0, samples.X.shape[0] - 1, _MAX_SAMPLES).astype(int))
    return indices, _dense(samples.X[indices])


def _kept_differences(model: Any, few: FloatArray) -> float:
    """Return how much reconstructions of samples differ from each other, relative to the samples."""
    rebuilt = np.asarray(to_host(model.reconstruct(few)), dtype=np.float64)
    both = [np.ma.masked_invalid(values.reshape(len(few), -1)) for values in (rebuilt, few)]
    rebuilt_spread, spread = (float(((values - values.mean(axis=0)) ** 2).filled(0).sum()) ** 0.5 for values in both)
    return rebuilt_spread / spread if spread > 0 else 1.0


def _is_product(model: Any) -> bool:
    """Return whether a component is the product of one profile for each axis of a sample."""
    return len(model.factors_) > 2


def _left_out(model: Any, kept: float) -> str:
    """Return why reconstructions are not drawn, and how to obtain a model that has them."""
    graph_reg, rank = getattr(model, "graph_reg", 0), model.embedding_.shape[1]
    text = (
        "The reconstructions are not drawn, because they look alike: the differences between them are "
        f"{100 * kept:.0f} % of those between the samples. "
    )
    if _is_product(model):
        text += "The components are not drawn either, because in such a model single ones have little meaning. "
    if graph_reg:
        return (
            f"{text}The graph (`graph_reg={graph_reg}`) makes the embeddings of neighbouring samples similar, which "
            "helps to find clusters and removes other differences. To see components and reconstructions, fit another "
            "model with a weak graph or none, and with enough iterations: "
            f"`gwntf fit DATA --rank {rank} --graph-reg 0 -o MODEL.gwntf`."
        )
    return f"{text}More iterations (`max_iter`) or more components (`n_components`) may help."


def _components(model: Any) -> str:
    rank, shape = model.embedding_.shape[1], tuple(model.sample_shape_)
    kind = check_kind(None, shape, along_axes=True)
    count = min(rank, 12 if kind == "modes" else _MAX_COMPONENTS)
    rest = "" if count == rank else f" The {count} components of largest mass out of {rank}."
    columns = min(count, 5 if kind == "curve" else 10)
    rows = math.ceil(count / columns)
    figure = new_figure(9.5, 1.05 * count + 0.5 if kind == "modes" else _height(shape, rows))
    frame = figure.subplots()
    plots.plot_components(model, count, columns=columns, ax=frame)
    frame.set_title("")  # it is in the caption
    what = "Components, whose weighted sums approximate the samples; above each its index and its share of the mass."
    if kind == "image" and _is_product(model):
        what += " Each is the product of a column and a row, and therefore consists of rectangles."
    return picture(figure, f"{what}{_AXES.get(kind, '')}{rest}")


def _reconstructions(model: Any, samples: Samples) -> str:
    """Return a picture of samples at equal distances in the data, above their reconstructions."""
    (indices, few), shape = _few(samples), tuple(model.sample_shape_)
    columns = min(len(indices), 5 if len(shape) == 1 else 10)
    figure = new_figure(9.5, _height(shape, 2 * math.ceil(len(indices) / columns)))
    frame = figure.subplots()
    panels = plots.plot_reconstructions(model, few, columns=columns, ax=frame)
    frame.set_title("")
    names = [str(index) if samples.names is None else samples.names[index] for index in indices]
    plain = samples.names is not None and all(re.fullmatch(r"[\w. -]{1,14}", name) for name in names)
    for panel, index, name in zip(panels[0], indices, names, strict=True):
        panel.set_title(name if plain else f"sample {index}", fontsize="x-small", pad=2)
    caption = "Samples, and below each its reconstruction with the relative error."
    listed = "" if plain else f" From the left: {', '.join(names)}."
    return picture(figure, caption + _AXES.get(check_kind(None, shape), "") + listed)


def _height(shape: tuple[int, ...], rows: int) -> float:
    """Return the height in inches of rows of samples of that shape."""
    row = 1.45 if len(shape) == 1 else 0.95 * min(max(shape[0] / shape[1], 0.4), 2.5)
    return row * rows + 0.9


def _embedding(model: Any, found: NDArray[Any] | None, known: NDArray[Any] | None) -> str:
    """Return a picture of the samples in two dimensions, coloured by cluster and by class, if there are any."""
    embedding = np.asarray(to_host(model.embedding_), dtype=np.float64)
    indices = np.linspace(0, len(embedding) - 1, min(len(embedding), _MAX_POINTS)).astype(int)
    few = len(indices) < 10
    points = (plots.principal_plane if few else plots.flatten_embedding)(embedding[indices])
    colours = {
        "coloured by cluster": found,
        "coloured by known class": None if known is None else _short_names(known),
    }
    panels = [(name, labels[indices]) for name, labels in colours.items() if labels is not None]
    part = "" if len(indices) == len(embedding) else f" {len(indices)} of {len(embedding)} samples."
    how = "principal components" if few else "t-SNE"
    pictures = []
    for title, labels in panels or [("samples", None)]:
        figure = new_figure(_PHONE, 4.4)
        plots.plot_embedding(embedding[indices], labels, projection=lambda _: points, ax=figure.subplots())
        many = labels is not None and len(np.unique(labels)) > MAX_LEGEND
        unnamed = f" There are more than {MAX_LEGEND} colours, too many for a legend." if many else ""
        what = f"Samples, {title}" if panels else "Samples"
        caption = f"{what}. Near points have similar embeddings ({how}); the axes have no meaning.{unnamed}{part}"
        pictures.append(picture(figure, caption))
    return pair(*pictures)


def _short_names(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels with long names shortened, and numbered so that they remain distinct."""
    names, codes = np.unique(labels, return_inverse=True)
    texts = ["".join(c if c.isprintable() else "?" for c in str(name)) for name in names]
    short = [t if len(t) <= _MAX_NAME else f"{k}: {_shorten(t, _MAX_NAME - 5)}" for k, t in enumerate(texts)]
    return np.array(short)[codes]


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _settings(estimator: Any) -> str:
    """Return the parameters that were set as JSON."""
    settings = {"gwntf": __version__, "method": type(estimator).__name__, **set_parameters(estimator)}
    return json.dumps(settings, indent=1)
