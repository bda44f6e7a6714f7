"""Compiled code on disk: damaged files are replaced, and a fit does not depend on a disk that can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numba
import numpy as np
import pytest

from gwntf import GWNTF
from gwntf.backends.cpu import backend as backend_module
from gwntf.backends.cpu.cache import CheckedFiles, cached_njit

LIMIT = 600

PROGRAM = f"""
import io, json, logging, resource, sys
from numba.core import caching

if "no folder" in sys.argv:
    caching.CompileResultCacheImpl._locator_classes = caching.CompileResultCacheImpl._locator_classes[:1]
if "full disk" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

from tests.faults.test_compile_cache import result
from gwntf.backends.cpu import backend
from gwntf.backends.cpu.entrywise import ratio_and_kl

backend._DELAY = 0.001
log = io.StringIO()
logging.basicConfig(stream=log)
found = result()
print(json.dumps([found, sum(ratio_and_kl.stats.cache_hits.values()), log.getvalue()]))
"""


def result() -> str:
    """Digest of a fit whose step is compiled."""
    X = np.random.default_rng(0).random((8, 600))
    model = GWNTF(3, costs=(None, None), graph_reg=0, max_iter=3, tol=0, random_state=0)
    return sha256(model.fit(X).embedding_.tobytes()).hexdigest()


def fit_with(cache: Path, case: str = ""):
    """Fit in a new process; give the digest, how often code was read from disk, and what was logged."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PROGRAM, case]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def files(folder: Path):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_truncated_files_are_replaced_and_the_notice_is_of_compilations_alone(tmp_path):
    found, hits, log = fit_with(tmp_path)
    assert (found, hits) == (result(), 0)
    assert "compiling the KL divergence" in log
    assert "it is cached on disk" in log
    for path in files(tmp_path):
        os.truncate(path, path.stat().st_size // 2)
    again, hits, log = fit_with(tmp_path)
    assert (again, hits) == (found, 0)
    assert "compiling" in log
    last, hits, log = fit_with(tmp_path)
    assert (last, hits) == (found, 1)
    assert log == ""


def test_on_a_full_disk_the_fit_goes_on_and_the_log_says_what_to_do(tmp_path):
    found, _, log = fit_with(tmp_path, "full disk")
    assert found == result()
    assert "File too large" in log
    assert "set NUMBA_CACHE_DIR" in log
    assert all(path.stat().st_size <= LIMIT for path in files(tmp_path))


def test_without_a_folder_for_compiled_code_the_fit_compiles_in_memory(tmp_path):
    (tmp_path / "file").write_text("no folder")
    found, _, log = fit_with(tmp_path / "file", "no folder")
    assert found == result()
    assert "in every process: set NUMBA_CACHE_DIR" in log
    assert (tmp_path / "file").read_text() == "no folder"


# --- a small function: every damage, in this process ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def compiled():
    """Return a function that has not been compiled in this process."""

    @cached_njit()
    def half(x):
        return x / 2 if x > 0 else x * 2

    return half


def counts(function):
    """How often it was read from disk, and how often it was compiled."""
    return sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values())


DAMAGE = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[:-1],
    "cut in the middle": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + b"\0",
    "zeros": lambda content: bytes(len(content)),
    "text": lambda content: b"no code",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_compiled_and_written_again(damage, folder):
    compiled()(3.0)
    (path,) = files(folder)
    path.write_bytes(damage(path.read_bytes()))
    second, third = compiled(), compiled()
    assert second(3.0) == 1.5
    assert counts(second) == (0, 1)
    assert third(3.0) == 1.5
    assert counts(third) == (1, 0)
    assert files(folder) == [path]


def test_a_file_with_any_byte_changed_is_not_read(folder):
    function = compiled()
    function(3.0)
    (path,), kept = files(folder), function._cache._cache_file
    key = function._cache._index_key(function.signatures[0], function.targetctx.codegen())
    content = path.read_bytes()
    assert kept.load(key) is not None
    for place in {*range(100), *range(0, len(content), 97), len(content) - 1}:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert kept.load(key) is None


def test_code_of_other_types_or_sources_is_not_run(folder, monkeypatch):
    function = compiled()
    function(3.0)
    (of_floats,) = files(folder)
    function(7)
    (of_ints,) = {*files(folder)} - {of_floats}
    of_ints.write_bytes(of_floats.read_bytes())
    second = compiled()
    assert second(7) == 3.5
    assert counts(second) == (0, 1)
    locator = type(second._cache._impl.locator)
    monkeypatch.setattr(locator, "get_source_stamp", lambda _: "of other sources")
    third = compiled()
    assert third(7) == 3.5
    assert counts(third) == (0, 1)
    assert len(files(folder)) == 2  # written over the outdated one


def test_a_file_that_cannot_be_written_is_logged_and_the_code_runs(folder, caplog):
    compiled()(3.0)
    (path,) = files(folder)
    path.unlink()
    path.mkdir()  # also for a user who may write everything
    function = compiled()
    assert function(3.0) == 1.5
    assert str(folder) in caplog.text
    assert "set NUMBA_CACHE_DIR" in caplog.text
    assert files(folder) == []


def test_compilations_are_announced_and_slow_reading_is_not(folder, caplog, monkeypatch):
    monkeypatch.setattr(backend_module, "_DELAY", 0.001)
    load = CheckedFiles.load

    def slow(kept, key):
        time.sleep(0.2)
        return load(kept, key)

    monkeypatch.setattr(CheckedFiles, "load", slow)
    for expected in (True, False):
        function = compiled()
        caplog.clear()
        with backend_module.announced(function, "a test"):
            function(3.0)
        assert ("compiling a test" in caplog.text) is expected
    monkeypatch.setattr(backend_module, "_DELAY", 60.0)
    with backend_module.announced(function, "a test"):
        function(7)
    assert counts(function) == (1, 1)
    assert caplog.text == ""  # compiled at once
