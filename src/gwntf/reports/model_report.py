"""The report of a model: its clusters, parts and embedding, and what it makes of samples."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gwntf._version import __version__
from gwntf.backends import to_host
from gwntf.core import Status
from gwntf.estimators.records import SESSION
from gwntf.evaluation import clustering_scores
from gwntf.plots import (
    flatten_embedding,
    plot_components,
    plot_embedding,
    plot_objective,
    plot_reconstructions,
    principal_plane,
    require_matplotlib,
)
from gwntf.readers import Samples
from gwntf.reports.members import draw_members, members_height
from gwntf.reports.page import cell, html_table, page, paragraph, picture, preformatted, section

_COMPONENTS = 40
_SHOWN = 10
_POINTS = 3000
_DEFAULTS = "Parameters that differ from the defaults of the method."
_LONGEST, _LONGEST_CELL = 24, 41
"""Letters of the name of a class in a picture, and in a table."""


def model_report(model: Any, title: str, samples: Samples | None = None) -> str:
    """Return the report as one self-contained HTML document.

    Parameters
    ----------
    model : fitted factorization
        Any of the library.
    title : str
        What the model is of; text, as everything that comes from data.
    samples : Samples, optional
        The data of the fit, or other samples of their shape: some are shown beside their reconstructions. Those of
        the fit are also shown by cluster, and their known classes beside the clusters.
    """
    require_matplotlib()
    fitted = samples is not None and samples.X.shape[0] == model.embedding_.shape[0]
    known = samples.labels if samples is not None and fitted else None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # letters that the font of the pictures lacks
        sections = [
            paragraph(_headline(model)),
            *_clusters(model, samples if fitted else None, known),
            section("Components", *_components(model)),
            *(
                []
                if samples is None
                else [section("Samples and their reconstructions", _pairs(model, samples))]
            ),
            section("Embedding", _embedding(model, known)),
            section("Objective", _objective(model)),
            section("Settings", paragraph(_DEFAULTS), preformatted(_settings(model))),
        ]
    return page(title, sections)


def ending(model: Any) -> str:
    """Say why a fit ended."""
    if model.status_ is Status.MAX_ITER and model.tol == 0:
        return "All iterations were run, as `tol` is 0."
    return str(model.status_.message)


def _headline(model: Any) -> str:
    n_samples, rank = model.embedding_.shape
    shape = "x".join(map(str, model.sample_shape_))
    return (
        f"{type(model).__name__} of rank {rank}, fitted to {n_samples} samples of {shape} in {model.n_iter_} "
        f"iterations. {ending(model)} Relative reconstruction error: {model.reconstruction_err_:.3f}."
    )


# --- clusters ----------------------------------------------------------------------------------------------


def _clusters(model: Any, samples: Samples | None, known: NDArray[Any] | None) -> list[str]:
    """Sizes of the clusters and, with the samples of the fit, typical members; nothing without clusters."""
    found = getattr(model, "labels_", None)
    if found is None:
        return []
    parts = []
    if known is not None:
        scores = clustering_scores(known, found)
        told = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores.items())
        parts.append(paragraph(f"Against the known classes: {told}."))
    if samples is not None and len(model.sample_shape_) in (2, 3):
        caption = (
            "Each row is a cluster, the largest first (number: samples); its most typical members come first."
        )
        parts.append(
            picture(
                lambda figure: draw_members(figure, model, samples.X, found),
                caption,
                size=(9.5, members_height(model, found)),
            )
        )
    parts.append(_sizes(found, known))
    return [section("Clusters", *parts)]


def _sizes(found: NDArray[np.int_], known: NDArray[Any] | None) -> str:
    rows = []
    for label, count in zip(*np.unique(found, return_counts=True), strict=True):
        row = [cell(str(label)), cell(str(count)), cell(f"{100 * count / len(found):.1f} %")]
        if known is not None:
            names, counts = np.unique(known[found == label], return_counts=True)
            top = int(counts.argmax())
            row += [cell(_cut(str(names[top]), _LONGEST_CELL)), cell(f"{100 * counts[top] / count:.0f} %")]
        rows.append(row)
    head = ["cluster", "samples", "share"] + ([] if known is None else ["commonest class", "its share"])
    return html_table(head, rows)


# --- the model ---------------------------------------------------------------------------------------------


def _components(model: Any) -> list[str]:
    rank = model.embedding_.shape[1]
    shape = tuple(model.sample_shape_)
    along = len(shape) > 2 and not (len(shape) == 3 and shape[-1] == 3)
    count = min(rank, 12 if along else _COMPONENTS)
    rest = "" if count == rank else f" The {count} of greatest mass, of {rank}."
    caption = (
        f"The parts that samples are sums of; above each its number and its share of the model's mass.{rest}"
    )
    if along:
        size, columns = (9.5, 1.05 * count + 0.5), None
    elif len(shape) == 1:
        columns = min(count, 5)
        size = (9.5, 1.15 * math.ceil(count / columns) + 0.5)
    else:
        columns = min(count, _SHOWN)
        size = (9.5, 0.95 * _ratio(shape) * math.ceil(count / columns) + 0.9)

    def draw(figure: Any) -> None:
        plot_components(model, count, columns=columns, ax=figure.subplots())

    return [picture(draw, caption, size=size)]


def _pairs(model: Any, samples: Samples) -> str:
    """Draw samples spread over the data, above what the model makes of them."""
    places = np.unique(np.linspace(0, samples.X.shape[0] - 1, _SHOWN).astype(int))
    few = samples.X[places]
    few = few.toarray() if hasattr(few, "toarray") else np.asarray(few)
    shape = tuple(model.sample_shape_)
    columns = 5 if len(shape) == 1 else _SHOWN
    rows = 2 * math.ceil(len(places) / columns)
    height = (1.15 if len(shape) == 1 else 0.95 * _ratio(shape)) * rows + 0.9
    which = ", ".join(str(place) if samples.names is None else samples.names[place] for place in places)
    caption = f"Samples, and below each its reconstruction with the relative error. From the left: {which}."

    def draw(figure: Any) -> None:
        panels = plot_reconstructions(model, few, columns=min(columns, len(places)), ax=figure.subplots())
        for panel, place in zip(panels[0], places, strict=True):
            panel.set_title(f"sample {place}", fontsize="x-small", pad=2)

    return picture(draw, caption, size=(9.5, height))


def _ratio(shape: tuple[int, ...]) -> float:
    return min(max(shape[0] / shape[1], 0.4), 2.5)


def _embedding(model: Any, known: NDArray[Any] | None) -> str:
    """Draw the samples in the plane, by cluster and by class, as far as they are known."""
    embedding = np.asarray(to_host(model.embedding_), dtype=np.float64)
    places = np.linspace(0, len(embedding) - 1, min(len(embedding), _POINTS)).astype(int)
    how, project = (
        ("t-SNE", flatten_embedding) if len(places) >= 10 else ("principal components", principal_plane)
    )
    points = project(embedding[places])
    found = getattr(model, "labels_", None)
    panels = [("cluster", found)] if found is not None else []
    panels += [("known class", _short(known))] if known is not None else []
    panels = panels or [("", None)]

    def draw(figure: Any) -> None:
        for ax, (name, labels) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            shown = None if labels is None else labels[places]
            plot_embedding(embedding[places], shown, projection=lambda _: points, ax=ax)
            ax.set_title(f"coloured by {name}" if name else "samples")

    part = "" if len(places) == len(embedding) else f" {len(places)} of {len(embedding)} samples."
    caption = f"Each point is a sample; near points have similar embeddings ({how}).{part}"
    return picture(draw, caption, size=(9.5, 4.4) if len(panels) > 1 else (7, 4.6))


def _short(labels: NDArray[Any]) -> NDArray[Any]:
    """Cut long names of classes, and keep them apart by their number."""
    names, codes = np.unique(labels, return_inverse=True)
    texts = ["".join(c if c.isprintable() else "?" for c in str(name)) for name in names]
    cut = [t if len(t) <= _LONGEST else f"{k}: {_cut(t, _LONGEST - 5)}" for k, t in enumerate(texts)]
    return np.array(cut)[codes]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _objective(model: Any) -> str:
    curve = model.objective_curve_
    caption = f"From {curve[0]:.6g} at the start to {curve[-1]:.6g}."
    return picture(lambda figure: plot_objective(model, ax=figure.subplots()), caption, size=(7, 3.2))


def _settings(model: Any) -> str:
    """Return the parameters that were set; arrays by their shape."""
    params = {
        name: value if isinstance(value, str | int | float | bool | type(None)) else _brief(value)
        for name, value in set_parameters(model).items()
    }
    return json.dumps({"gwntf": __version__, "method": type(model).__name__, **params}, indent=1)


def set_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that differ from the defaults of its class."""
    defaults = type(model)().get_params()
    own = {name: v for name, v in model.get_params().items() if name not in SESSION}
    return {name: value for name, value in own.items() if repr(value) != repr(defaults[name])}


def _brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return repr(value)[:200] if shape is None else f"{type(value).__name__} of shape {shape}"
