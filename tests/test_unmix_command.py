"""`gwntf unmix`: both layouts of tables, every option, the written files, and what is refused before any work."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from gwntf import Unmixer
from gwntf.cli import main
from gwntf.cli import unmix as command
from gwntf.core import DataError
from gwntf.datasets import load_example_spectra
from gwntf.readers import read_spectra

PROTONS = [3.0, 2.0, 6.0, 1.0]


@pytest.fixture(scope="module")
def example():
    return load_example_spectra()


def write_rows(path, positions, values, names=None, title="name", extra=None):
    """Write one spectrum per row; `extra` is a column with its name."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        own = [] if extra is None else [extra[0]]
        table.writerow([*([] if names is None else [title]), *own, *positions])
        for k, row in enumerate(values):
            cells = [] if extra is None else [extra[1][k]]
            table.writerow([*([] if names is None else [names[k]]), *cells, *row.tolist()])
    return path


def write_columns(path, positions, values, names, extra=None, delimiter=",", comma=False):
    """Write one spectrum per column; `extra` is a row with its name."""
    text = (lambda value: str(value).replace(".", ",")) if comma else str
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=delimiter)
        table.writerow(["ppm", *names])
        if extra is not None:
            table.writerow([extra[0], *extra[1]])
        for place, column in zip(positions, values.T, strict=True):
            table.writerow([text(place), *map(text, column.tolist())])
    return path


def run(example, *arguments, mixtures=None, references=None):
    """Run the command on the example or on other files; return its exit code."""
    files = [str(mixtures or example.mixtures_file), "--references", str(references or example.references_file)]
    return main(["unmix", *files, *map(str, arguments)])


def refused(capsys, *arguments, **files):
    assert run(None, *arguments, **files) == 1
    return capsys.readouterr().err


def expected(example, level=0.9, X=None, step=1, **options):
    unmixer = Unmixer(example.references[:, ::step], positions=example.ppm[::step], random_state=0, **options)
    X = example.mixtures[:, ::step] if X is None else X
    return unmixer.fit(X).unmix(X, level)


def read_shares(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=np.float64)


def check_file(path, found, samples, parts):
    """The file has exactly the numbers of the result."""
    header, names, values = read_shares(path)
    columns = [f"{part} {what}" for part in parts for what in ("share", "lower", "upper", "displacement")]
    assert header == ["sample", *columns, "unexplained", "goodness", "calibration"]
    assert names == list(samples)
    by_part = np.stack([found.shares, found.lower, found.upper, found.displacement], axis=2)
    np.testing.assert_array_equal(values[:, :-3], by_part.reshape(len(names), -1))
    np.testing.assert_array_equal(values[:, -3:].T, [found.unexplained, found.goodness, found.calibration])


# --- results ---------------------------------------------------------------------------------------------------


def test_file_has_exactly_what_unmix_returns(example, tmp_path, capsys):
    target = tmp_path / "shares.csv"
    assert run(example, "--axis", "ppm", "--drift", 0.05, "--level", 0.8, "-o", target) == 0
    check_file(target, expected(example, 0.8, drift=0.05), example.samples, example.names)
    printed = capsys.readouterr().out
    assert "12 spectra in rows, 300 positions from 0.5 to 9.47 in the header, names in the column 'name'" in printed
    assert "drift      0.05 ppm" in printed
    assert f"written    {target}" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["shares.csv"]


@pytest.mark.parametrize("layout", ["columns", "semicolons", "tabs", "decimal commas", "descending", "unnamed"])
def test_layouts_give_the_same_shares(layout, example, tmp_path, capsys):
    ppm, target = example.ppm, tmp_path / "shares.csv"
    known, mixed = tmp_path / "known.csv", tmp_path / "mixed.csv"
    samples = example.samples
    if layout == "unnamed":
        write_rows(mixed, ppm, example.mixtures)
        write_rows(known, ppm, example.references, example.names, title="")
        samples = [f"mixture {k + 1}" for k in range(12)]
    elif layout == "descending":  # and the references in the opposite order, in the other layout
        write_columns(mixed, ppm[::-1], example.mixtures[:, ::-1], samples)
        write_rows(known, ppm, example.references, example.names)
    else:
        form = {"delimiter": {"columns": ",", "tabs": "\t"}.get(layout, ";"), "comma": layout == "decimal commas"}
        write_columns(mixed, ppm, example.mixtures, samples, **form)
        write_columns(known, ppm, example.references, example.names, **form)
    assert run(example, "--axis", "ppm", "-o", target, mixtures=mixed, references=known) == 0
    found = expected(example, step=-1 if layout == "descending" else 1)
    check_file(target, found, samples, example.names)
    printed = capsys.readouterr().out
    assert ("12 spectra in columns, 300 positions" in printed) == (layout != "unnamed")
    assert ("decimal commas" in printed) == (layout == "decimal commas")
    assert ("from 9.47 to 0.5 in the column 'ppm'" in printed) == (layout == "descending")


def test_calibration_and_reach(example, tmp_path):
    target = tmp_path / "shares.csv"
    shifted = np.roll(example.mixtures, 8, axis=1)
    mixed = write_rows(tmp_path / "mixed.csv", example.ppm, shifted, example.samples)
    assert run(example, "--calibration", "shift", "--reach", 0.3, "-o", target, mixtures=mixed) == 0
    found = expected(example, X=shifted, calibration="shift", reach=0.3)
    assert found.calibration.any()
    check_file(target, found, example.samples, example.names)


def test_free_parts(example, tmp_path):
    target = tmp_path / "shares.csv"
    assert run(example, "--free", 1, "-o", target) == 0
    found = expected(example, n_free=1)
    check_file(target, found, example.samples, [*example.names, "free 1"])


@pytest.mark.parametrize("form", ["numbers", "column", "row"])
def test_signal_from_numbers_a_column_or_a_row(form, example, tmp_path):
    target, known = tmp_path / "shares.csv", tmp_path / "known.csv"
    extra = ("protons", PROTONS)
    if form == "row":
        write_columns(known, example.ppm, example.references, example.names, extra)
    else:
        write_rows(known, example.ppm, example.references, example.names, extra=extra if form == "column" else None)
    signal = "3,2,6,1" if form == "numbers" else "protons"
    assert run(example, "--axis", "ppm", "--signal", signal, "-o", target, references=known) == 0
    check_file(target, expected(example, signal=PROTONS), example.samples, example.names)


def test_clip_sets_negative_values_of_both_files_to_zero(example, tmp_path, capsys):
    mixtures, references = example.mixtures.copy(), example.references.copy()
    mixtures[3, 5], references[1, 290] = -2.5, -0.001
    mixed = write_rows(tmp_path / "mixed.csv", example.ppm, mixtures, example.samples)
    known = write_rows(tmp_path / "known.csv", example.ppm, references, example.names)
    said = refused(capsys, mixtures=mixed, references=example.references_file)
    assert "1 negative values of 3600, the lowest -2.5 in mixture 4 at 0.65" in said
    assert "--clip" in said
    assert "in substance B at 9.2" in refused(capsys, mixtures=example.mixtures_file, references=known)
    target = tmp_path / "shares.csv"
    assert run(example, "--clip", "-o", target, mixtures=mixed, references=known) == 0
    parts = np.maximum(references, 0)
    found = Unmixer(parts, positions=example.ppm).fit().unmix(np.maximum(mixtures, 0))
    check_file(target, found, example.samples, example.names)


@pytest.mark.parametrize("output", [(), ("-o", "-")])
def test_without_a_file_a_table_is_printed(output, example, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(example, "--level", 0.5, *output) == 0
    lines = capsys.readouterr().out.splitlines()
    found = expected(example, 0.5)
    row = next(line for line in lines if line.startswith("mixture    mixture 12"))
    low, share, high = (100 * one[11, 1] for one in (found.lower, found.shares, found.upper))
    assert f"{share:.1f} ({low:.1f} to {high:.1f})" in row
    assert row.endswith(f"{100 * found.unexplained[11]:.1f}")
    assert "50 % intervals. -o SHARES.csv" in lines[-1]
    assert list(tmp_path.iterdir()) == []


def test_table_of_many_mixtures_and_parts_is_short(example, tmp_path, capsys):
    rng = np.random.default_rng(0)
    parts = np.exp(-(((example.ppm - rng.uniform(1, 9, (8, 1))) / 0.1) ** 2))
    known = write_rows(tmp_path / "known.csv", example.ppm, parts)
    mixed = write_rows(tmp_path / "mixed.csv", example.ppm, rng.random((30, 8)) @ parts)
    assert run(example, mixtures=mixed, references=known) == 0
    printed = capsys.readouterr().out
    assert printed.count("\nmixture    ") == 20
    assert "10 more mixtures and 3 more parts not shown" in printed


def test_json_has_the_same_numbers(example, tmp_path, capsys):
    assert run(example, "--json", "--report", tmp_path / "unmix.html") == 0
    document, found = json.loads(capsys.readouterr().out), expected(example)
    for name in ("shares", "lower", "upper", "displacement", "unexplained", "goodness", "calibration"):
        np.testing.assert_array_equal(document[name], getattr(found, name))
    assert document["parts"] == list(example.names)
    assert document["samples"] == list(example.samples)
    assert document["report"] == str(tmp_path / "unmix.html")


def test_dependent_references_are_named_in_the_warning(example, tmp_path, capsys):
    twice = np.vstack([example.references, example.references[:1]])
    known = write_rows(tmp_path / "known.csv", example.ppm, twice, [*example.names, "again"])
    assert run(example, references=known) == 0
    assert "'substance A', 'again'" in capsys.readouterr().err


# --- errors ----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_work(monkeypatch):
    """Fail if a fit is started."""

    class NoWork:
        def __init__(self, *_, **__):
            pytest.fail("the work began")

    monkeypatch.setattr(command, "Unmixer", NoWork)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"positions": 5}, "number 6 is 0.66 instead of 0.65"),
        ({"cut": 299}, "number 300 is missing instead of 9.47"),
        ({"names": ["a", "b", "c", "a"]}, "two references 'a'"),
        ({"cell": ""}, "an empty cell at substance C, 0.59"),
        ({"cell": "1_0"}, "the text '1_0' at substance C, 0.59"),
        ({"zero": 2}, "no positive value in substance C"),
    ],
)
def test_wrong_references_are_refused_before_any_work(change, said, example, tmp_path, capsys):
    positions, values = example.ppm.copy(), example.references.astype(object)
    if "positions" in change:
        positions[change["positions"]] += 0.01
    if "cell" in change:
        values[2, 3] = change["cell"]
    if "zero" in change:
        values[2] = 0.0
    cut = change.get("cut")
    known = tmp_path / "known.csv"
    write_rows(known, positions.round(2)[:cut], values[:, :cut], change.get("names", example.names))
    target = tmp_path / "shares.csv"
    target.write_text("good")
    assert said in refused(capsys, "-o", target, mixtures=example.mixtures_file, references=known)
    assert target.read_text() == "good"


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "shares.txt"], "a file that ends in .csv"),
        (["-o", "absent/shares.csv"], "a folder that exists"),
        (["--report", "page.htm"], "a file that ends in .html"),
        (["--reach", "0.1"], "--calibration shift or stretch too"),
        (["--signal", "1,2"], "--signal: got 2 number(s); expected 4"),
        (["--signal", "1,2,0,4"], "positive numbers"),
        (["--signal", "protons"], "has no column 'protons'"),
    ],
)
def test_wrong_options_are_refused_before_any_work(arguments, said, example, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"mixtures": example.mixtures_file, "references": example.references_file}
    assert said in refused(capsys, *arguments, **files)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_work")
def test_inputs_are_not_replaced(example, tmp_path, capsys):
    mixed = tmp_path / "mixed.csv"
    mixed.write_bytes(example.mixtures_file.read_bytes())
    said = refused(capsys, "-o", mixed, mixtures=mixed, references=example.references_file)
    assert "a file that is not one of the inputs" in said
    assert mixed.read_bytes() == example.mixtures_file.read_bytes()


@pytest.mark.parametrize("wrong", [("--level", "90"), ("--drift", "0"), ("--free", "-1"), ("--calibration", "turn")])
def test_values_of_options_are_checked_by_the_parser(wrong, example):
    with pytest.raises(SystemExit) as stop:
        run(example, *wrong)
    assert stop.value.code == 2


def test_no_partial_file_replaces_a_good_one(example, tmp_path, capsys, monkeypatch):
    """A disk that is full in the middle of the table."""
    target = tmp_path / "shares.csv"
    target.write_text("good")

    class Full:
        def writerow(self, row):
            pass

        def writerows(self, rows):
            next(iter(rows))
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("gwntf.cli.output.csv.writer", lambda _: Full())
    said = refused(capsys, "-o", target, mixtures=example.mixtures_file, references=example.references_file)
    assert "the existing file is unchanged" in said
    assert target.read_text() == "good"
    assert [path.name for path in tmp_path.iterdir()] == ["shares.csv"]


# --- reading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shift,A,B\n1,2,3\n2,3,4\n", r"3 columns whose header is not a number: 'shift', 'A', 'B'.*--axis"),
        ("name,1,2,3\n", "no spectra"),
        ("name,1,2,3\na,1,2\n", "3 cells in row 2, and 4 in the first"),
        ("name,1,3,2\na,1,2,3\n", "3, 2 next to each other in the first row"),
        ("name,1,1,2\na,1,2,3\n", "1, 1 next to each other"),
        ("ppm,A\n1,5\n3,5\n2,5\n", "3, 2 next to each other in the column of positions"),
        ("name\na\n", "no positions"),
        ("ppm\n1\n", "no spectra beside"),
    ],
)
def test_tables_that_cannot_be_read(text, said, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_spectra(path, axis="ppm")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_spectra(tmp_path / "absent.csv")
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match="save the table as CSV"):
        read_spectra(tmp_path / "table.xlsx")
    (tmp_path / "table.csv").write_bytes("name,1,2\nä,1,2\n".encode("utf-16"))
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_spectra(tmp_path / "table.csv")


def test_header_of_numbers_and_one_text_column(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff3.0, 2.0 ,sample,1.0,\n5,6,a,7,\n\n,,,,\n8,9,b,1e1,\n", encoding="utf-8")
    found = read_spectra(path)
    np.testing.assert_array_equal(found.columns, [3, 2, 1])
    np.testing.assert_array_equal(found.values, [[5, 6, 7], [8, 9, 10]])
    assert found.index == ("a", "b")
    assert found.note == "2 spectra in rows, 3 positions from 3 to 1 in the header, names in the column 'sample'"


def test_names_that_may_be_positions_are_remarked(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("ppm,1,2,3\n0.5,1,2,3\n0.6,1,2,3\n")
    assert "if it has positions, use --axis ppm" in read_spectra(path).note
    found = read_spectra(path, axis="ppm")
    np.testing.assert_array_equal(found.columns, [0.5, 0.6])
    assert found.index == ("1", "2", "3")


def test_corner_cell_with_the_name_of_the_axis_is_no_column_of_positions(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("ppm,1,2,3\na,1,2,3\n")
    assert read_spectra(path, axis="ppm").index == ("a",)


def test_in_a_separate_process_standard_output_is_only_json(example):
    program = [sys.executable, "-m", "gwntf", "unmix", example.mixtures_file, "--references", example.references_file]
    done = subprocess.run([*map(str, program), "--json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["command"] == "unmix"
