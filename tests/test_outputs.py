"""Files, the overview of a model and the command line."""

from __future__ import annotations

import stat

import matplotlib as mpl
import numpy as np
import pytest

from gwntf import GWNTF
from gwntf.cli import main
from gwntf.io import atomic_path, remove_leftovers
from gwntf.plots import overview

mpl.use("Agg")


@pytest.fixture(scope="module")
def model():
    return GWNTF(4, max_iter=3, tol=0, random_state=0).fit(np.random.default_rng(0).random((12, 5, 6)))


def test_a_file_is_written_atomically(tmp_path):
    target = tmp_path / "file.txt"
    with atomic_path(target) as path:
        path.write_text("new")
        assert not target.exists()
        assert path.suffix == ".txt"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
    assert stat.S_IMODE(target.stat().st_mode) & stat.S_IRUSR


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write_half():
        with atomic_path(target) as path:
            path.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_only_temporary_files_of_killed_processes_are_removed(tmp_path):
    kept = ["run.ckpt", ".run.ckpt.0123456789ab.txt", ".other.ckpt.0123456789ab.ckpt", ".run.ckpt.mine.ckpt"]
    for name in [*kept, ".run.ckpt.0123456789ab.ckpt"]:
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path / "run.ckpt")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
    with atomic_path(tmp_path / "run.ckpt") as aside:
        pass
    aside.write_text("as if it had been killed")
    remove_leftovers(tmp_path / "run.ckpt")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_file_has_the_permissions_of_any_new_file(tmp_path):
    with atomic_path(tmp_path / "ours") as path:
        path.write_text("")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_overview_has_three_panels(model, rng):
    figure = overview(model, rng.random((3, 5, 6)), title="headline")
    assert len(figure.axes) == 3
    assert figure.get_suptitle() == "headline"


def test_demo_prints_a_table_of_all_methods_and_writes_the_figure(tmp_path, capsys):
    assert main(["demo", "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    names = [
        "k-means",
        "spectral clustering",
        "NMF",
        "GNMF",
        "SDNMF",
        "NCP",
        "GNCP",
        "SWIFT",
        "GWNTF",
        "GWNTF, tuned",
    ]
    lines = {name: next(line for line in printed.splitlines() if line.startswith(f"{name} ")) for name in names}
    accuracy = {name: float(line[len(name) :].split()[0].strip("*")) for name, line in lines.items()}
    assert accuracy["GWNTF, tuned"] == max(accuracy.values())
    assert accuracy["GNMF"] > accuracy["NMF"]
    assert (tmp_path / "out" / "digits.png").stat().st_size > 10_000


def test_demo_without_matplotlib_says_what_to_install(tmp_path, capsys, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["demo", "-o", str(tmp_path)]) == 1
    assert "pip install 'gwntf[plots]'" in capsys.readouterr().err


def test_command_line_errors_are_printed_not_raised(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["demo", "-o", str(blocked / "out")]) == 1
    assert capsys.readouterr().err.startswith("gwntf: ")
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert "gwntf 0" in capsys.readouterr().out
