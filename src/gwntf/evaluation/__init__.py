"""Clustering scores of the paper: ACC, NMI, MI and purity, each between 0 and 1.

May import the subpackages below `estimators`. Start with `clustering_scores`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from gwntf.core import InputError

__all__ = [
    "SCORES",
    "clustering_accuracy",
    "clustering_scores",
    "mutual_information",
    "normalized_mutual_information",
    "purity",
]


def clustering_accuracy(y_true: Any, y_pred: Any) -> float:
    """ACC: fraction of samples that are correct under the best one-to-one matching of clusters to classes.

    Examples
    --------
    >>> from gwntf.evaluation import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 1])
    0.75
    """
    table = _table(y_true, y_pred)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def normalized_mutual_information(y_true: Any, y_pred: Any) -> float:
    """NMI: mutual information divided by the geometric mean of the two entropies.

    Examples
    --------
    >>> from gwntf.evaluation import normalized_mutual_information
    >>> normalized_mutual_information([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    _table(y_true, y_pred)
    return float(normalized_mutual_info_score(y_true, y_pred, average_method="geometric"))


def mutual_information(y_true: Any, y_pred: Any) -> float:
    """MI: mutual information divided by the larger of the two entropies.

    Examples
    --------
    >>> from gwntf.evaluation import mutual_information
    >>> round(mutual_information([0, 0, 1, 1], [0, 1, 2, 3]), 6)
    0.5
    """
    _table(y_true, y_pred)
    return float(normalized_mutual_info_score(y_true, y_pred, average_method="max"))


def purity(y_true: Any, y_pred: Any) -> float:
    """Purity: fraction of samples that belong to the most frequent class of their cluster.

    Examples
    --------
    >>> from gwntf.evaluation import purity
    >>> purity([0, 0, 1, 1], [0, 1, 2, 3])
    1.0
    """
    table = _table(y_true, y_pred)
    return float(table.max(axis=0).sum() / table.sum())


SCORES: dict[str, Callable[[Any, Any], float]] = {
    "ACC": clustering_accuracy,
    "NMI": normalized_mutual_information,
    "MI": mutual_information,
    "Purity": purity,
}
"""The four scores in the order of the tables in the paper."""


def clustering_scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Return all four scores by name.

    Examples
    --------
    >>> from gwntf.evaluation import clustering_scores
    >>> clustering_scores([0, 0, 1, 1], [1, 1, 0, 0])
    {'ACC': 1.0, 'NMI': 1.0, 'MI': 1.0, 'Purity': 1.0}
    """
    return {name: score(y_true, y_pred) for name, score in SCORES.items()}


def _table(y_true: Any, y_pred: Any) -> Any:
    """Return the contingency table: classes in rows, clusters in columns."""
    true, found = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != found.shape or true.size == 0:
        allowed = f"a nonempty vector of labels as long as y_true, {true.shape}"
        raise InputError("y_pred", f"shape {found.shape}", allowed)
    return contingency_matrix(true, found)
