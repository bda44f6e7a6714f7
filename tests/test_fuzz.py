"""Damaged files of every format raise errors of the library only; `make fuzz` tries many more."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mutations import ISOLATED, TARGETS, Seed

OUTCOMES = {"read", "DataError", "InputError", "ModelFileError", "GwntfError", "MissingLibraryError"}
EDITS = st.lists(
    st.tuples(st.integers(0, 59), st.floats(0, 1, exclude_max=True), st.integers(0, 2**32 - 1)),
    min_size=1,
    max_size=6,
)


def check(target, folder, examples):
    seed = Seed.written(target, folder)
    assert seed.target.read(seed.path) == "read"

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(which=st.integers(0, 20), edits=EDITS)
    def damaged(which, edits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert seed.try_edits(which, edits) in OUTCOMES

    damaged()


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_raise_errors_of_the_library_only(name, tmp_path):
    check(TARGETS[name], tmp_path, 40)


@pytest.mark.parametrize("name", ISOLATED)
def test_damaged_files_read_in_a_child_process_raise_errors_of_the_library_only(name, tmp_path):
    check(ISOLATED[name], tmp_path, 3)
