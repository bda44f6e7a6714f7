"""A data file that shrinks, changes or is removed while a fit reads it: an error that names it, or no harm."""

from __future__ import annotations

import os

import numpy as np
import pytest

from gwntf import NCP, DataError
from gwntf.data import sources

SHAPE = (60, 6, 5)


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 8 * 16 * 30)
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 0)
    path = tmp_path / "samples.bin"
    np.random.default_rng(0).random(SHAPE).tofile(path)
    return np.memmap(path, dtype=np.float64, mode="r", shape=SHAPE)


def fit_while(harm, X):
    def strike(news):
        if news.iteration == 2:
            harm(X.filename)

    return NCP(3, max_iter=4, tol=0, random_state=0, callbacks=[strike]).fit(X)


def shorten(path):
    os.truncate(path, 8 * 30 * 20)


def write(path):
    with open(path, "r+b") as file:
        file.write(np.ones(5).tobytes())
    os.utime(path, ns=(0, 0))


@pytest.mark.parametrize("harm", [shorten, write])
def test_a_file_that_changes_under_a_fit_ends_it_with_an_error_that_names_it(harm, mapped):
    with pytest.raises(DataError, match=r"samples\.bin has changed since it was first read"):
        fit_while(harm, mapped)


def test_a_file_that_loses_its_name_under_a_fit_is_read_to_the_end(mapped):
    expected = fit_while(lambda path: None, mapped)
    found = fit_while(os.remove, mapped)
    np.testing.assert_array_equal(found.embedding_, expected.embedding_)


def test_a_small_file_is_read_once_and_may_then_change(mapped, monkeypatch):
    monkeypatch.setattr(sources, "MAX_IN_MEMORY_BYTES", 2**26)
    expected = fit_while(lambda path: None, mapped)
    found = fit_while(shorten, mapped)
    np.testing.assert_array_equal(found.embedding_, expected.embedding_)
