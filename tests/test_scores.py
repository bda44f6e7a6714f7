"""Clustering scores against brute force and entropies written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwntf.evaluation import clustering_accuracy, clustering_scores, purity

labels = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def entropy(counts):
    p = np.array([c for c in counts if c], float) / sum(counts)
    return -(p * np.log(p)).sum()


@given(labels)
def test_scores_equal_their_definitions(pairs):
    true, found = np.array(pairs).T
    size = len(pairs)
    table = np.array([[((true == i) & (found == j)).sum() for j in range(4)] for i in range(4)])
    best = max(sum(table[i, p[i]] for i in range(4)) for p in itertools.permutations(range(4)))
    h_true, h_found = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    mutual = h_true + h_found - entropy(table.ravel())
    scores = clustering_scores(true, found)
    assert math.isclose(scores["ACC"], best / size)
    assert math.isclose(scores["Purity"], table.max(axis=0).sum() / size)
    if h_true > 0 and h_found > 0:
        assert math.isclose(scores["NMI"], mutual / math.sqrt(h_true * h_found), abs_tol=1e-9)
        assert math.isclose(scores["MI"], mutual / max(h_true, h_found), abs_tol=1e-9)


def test_accuracy_with_more_clusters_than_classes():
    assert clustering_accuracy([0, 0, 0, 1], [5, 5, 7, 9]) == 0.75
    assert purity([0, 0, 0, 1], [5, 5, 7, 9]) == 1


def test_lengths_must_match():
    with pytest.raises(ValueError, match="y_pred: got shape"):
        clustering_accuracy([0, 1], [0])
