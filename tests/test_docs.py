"""What the documents say is what the results files hold."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from benchmarks.defaults import body as body_of_defaults
from benchmarks.estimate import estimate
from benchmarks.held_out import body as body_of_held_out
from benchmarks.report import SCALING
from benchmarks.report import body as body_of_report
from benchmarks.stability import body as body_of_stability
from benchmarks.tried import body as body_of_tried
from benchmarks.unmixing_page import CASES as UNMIXING

from gwntf import GWNTF
from gwntf.evaluation import SCORES

ROOT = Path(__file__).parents[1]
TABLES = ("coil20", "pie_pose27")


def results(name):
    return json.loads((ROOT / "paper" / "results" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", TABLES)
def test_reproduction_page_shows_the_committed_table(name):
    table = (ROOT / "paper" / "results" / f"{name}.md").read_text().split("\n\n")[2].strip()
    assert table.count("\n") >= 8
    assert table in (ROOT / "docs" / "reproduction.md").read_text()


@pytest.mark.parametrize("name", ["coil20", "pie_pose27", "digits"])
def test_clustering_page_shows_the_committed_table(name):
    table = (ROOT / "paper" / "results" / f"clustering_{name}.md").read_text().split("\n\n")[2].strip()
    assert "TensorClustering" in table
    assert table in (ROOT / "docs" / "clustering.md").read_text()
    content = results(f"clustering_{name}")
    assert content["runs"] == 50
    ours, theirs = (
        content["methods"][method]["scores"] for method in ("TensorClustering", "spectral clustering, auto")
    )
    assert all(ours[score]["mean"] >= theirs[score]["mean"] for score in SCORES)


def test_clustering_page_shows_what_every_committed_ingredient_adds():
    tables = [results(f"ablation_{name}") for name in ("coil20", "pie_pose27", "digits")]
    lines = (ROOT / "docs" / "clustering.md").read_text().splitlines()
    assert all(table["runs"] >= 20 for table in tables)
    for method in tables[0]["methods"]:
        entries = [table["methods"].get(method) for table in tables]
        cells = [
            "/".join(f"{entry['scores'][score]['mean']:.1f}" for score in SCORES) if entry else "-" for entry in entries
        ]
        assert f"| {method} | {' | '.join(cells)} |" in lines


@pytest.mark.parametrize("name", TABLES)
def test_committed_tables_come_from_enough_runs_at_the_papers_settings(name):
    content = results(name)
    assert content["runs"] >= 10
    assert {entry["params"].get("max_iter", 100) for entry in content["methods"].values()} == {100}
    for entry in content["methods"].values():
        assert set(entry["scores"]) == set(SCORES)


@pytest.mark.parametrize("name", ["coil20", "digits"])
def test_missing_data_page_shows_the_committed_table(name):
    record = json.loads((ROOT / "benchmarks" / "results" / f"imputation-{name}.json").read_text())
    page = (ROOT / "docs" / "missing.md").read_text()
    shown = page.split(f"<!-- begin {name} -->")[1].split(f"<!-- end {name} -->")[0]
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("| ")][1:]
    found = {(row[0][2:], row[1]): float(row[2].strip("*")) for row in rows}
    errors = {
        (line["method"], str(line["rank"] or "")): sum(line["errors"]) / len(line["errors"]) for line in record["table"]
    }
    assert found == pytest.approx(errors, abs=5.1e-4)
    ours = min(error for (_, rank), error in errors.items() if rank)
    assert ours < min(error for (_, rank), error in errors.items() if not rank)
    held = page.split(f"<!-- begin {name} held out -->")[1].split(f"<!-- end {name} held out -->")[0]
    for line in record["held_out"]:
        row = next(r for r in held.splitlines() if r.startswith(f"| {line['rank']} | {line['graph_reg']:g} |"))
        assert [f"{line[key]:.3f}" for key in ("held_out", "hidden")] == re.findall(r"\d\.\d{3}", row)


def test_coil20_is_filled_as_well_as_the_page_promises():
    record = json.loads((ROOT / "benchmarks" / "results" / "imputation-coil20.json").read_text())
    errors = {(line["method"], line["rank"]): line["errors"] for line in record["table"]}
    assert max(errors["KL, rows, graph", 60]) <= 0.25
    assert max(errors["KL, rows, graph", 400]) <= 0.176


def test_readme_shows_the_committed_figures():
    lines = (ROOT / "README.md").read_text().splitlines()
    for method, entry in results("coil20")["methods"].items():
        row = next(line for line in lines if line.startswith(f"| {method} |"))
        figures = [float(text) for text in re.findall(r"\| (\d+\.\d)", row)]
        other = results("pie_pose27")["methods"][method]
        expected = [round(table["scores"][score]["mean"], 1) for table in (entry, other) for score in ("ACC", "NMI")]
        assert figures == pytest.approx(expected, abs=0.051)


def test_readme_shows_the_committed_figures_of_the_preset():
    rows = {
        "spectral clustering, cosine graph": "spectral clustering, cosine",
        "spectral clustering, same graph": "spectral clustering, auto",
        "`TensorClustering`": "TensorClustering",
    }
    text = (ROOT / "README.md").read_text()
    tables = [results(f"clustering_{name}")["methods"] for name in ("coil20", "pie_pose27", "digits")]
    for shown, method in rows.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| {shown} |"))
        expected = [table[method]["scores"][score]["mean"] for table in tables for score in ("ACC", "NMI")]
        figures = [float(figure) for figure in re.findall(r"\d+\.\d", row)]
        assert figures == pytest.approx(expected, abs=0.051)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text())
    missing = [link for link in links if not link.startswith("http") and not (path.parent / link).exists()]
    assert missing == []


def anchors(path):
    """Return the anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#{1,6} (.*)$", re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES)
def test_links_to_headings_lead_to_headings(path):
    links = re.findall(r"\]\(([^)#\s]*\.md)?#([^)]+)\)", path.read_text())
    missing = [link for link in links if link[1] not in anchors(path.parent / link[0] if link[0] else path)]
    assert missing == []


def test_code_of_the_page_on_pictures_draws_all_its_pictures(tmp_path):
    figures = load_script("figures")
    written = figures.draw_page(figures.PAGE, tmp_path)
    linked = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", figures.PAGE.read_text())
    assert [path.relative_to(tmp_path).as_posix() for path in written] == linked
    for path, link in zip(written, linked, strict=True):
        sizes = path.stat().st_size, (ROOT / "docs" / link).stat().st_size
        assert all(5_000 < size < 100_000 for size in sizes)


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_commands_of_the_page_on_the_command_line_print_what_it_shows(tmp_path, monkeypatch):
    script = load_script("command_line")
    page = script.PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    script.prepare(page)
    commands = script.commands(page)
    assert len(commands) >= 8
    for command in commands:
        shown = page.split(f"$ gwntf {command}\n")[1].split("\n```")[0]
        printed = script.output(command)
        printed, shown = (re.sub(r"[\d.]+( [kMG]B\b)?", "#", text) for text in (printed, shown))
        assert printed == shown


def test_page_on_pictures_names_every_function_of_the_room():
    import gwntf.plots

    page = (ROOT / "docs" / "plots.md").read_text()
    drawing = [name for name in gwntf.plots.__all__ if name.startswith("plot_") or name == "overview"]
    assert [name for name in drawing if name not in page] == []


def test_tests_named_in_the_documents_exist():
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    code = "".join(file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    assert named
    assert [name for name in named if f"def {name}(" not in code] == []


def test_every_promise_of_the_page_on_reliability_names_a_test():
    text = (ROOT / "docs" / "reliability.md").read_text().split("## Guarantees")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    assert [guarantee for guarantee, test in rows if not re.search(r"`test_\w+`", test)] == []


def bench_results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def test_new_samples_page_shows_the_committed_scores():
    content = bench_results("held-out")
    assert content["splits"] >= 10
    assert body_of_held_out(content["scores"]) in (ROOT / "docs" / "new_samples.md").read_text()
    for methods in content["scores"].values():
        tied, plain, nmf = (
            sum(methods[name]["acc"])
            for name in (
                "TensorClustering",
                "TensorClustering, graph not extended",
                "scikit-learn's NMF, k-means",
            )
        )
        assert tied > plain - 1 > nmf


def test_clustering_page_shows_what_was_tried():
    assert body_of_tried(bench_results("tried")["scores"]) in (ROOT / "docs" / "clustering.md").read_text()


def test_scaling_page_shows_the_committed_figures():
    page = (ROOT / "docs" / "scaling.md").read_text()
    for part, cases in SCALING.items():
        found = {name: bench_results(name) for name in cases}
        shown = page.split(f"<!-- begin {part} -->")[1].split(f"<!-- end {part} -->")[0]
        assert shown.strip() == body_of_report(found)
        assert all(claim["met"] is not False for case in found.values() for claim in case["claims"])
    names = ("chunked-fit", "cluster-scaling", "gpu-iteration")
    assert estimate({name: bench_results(name) for name in names}) in page


def test_the_page_on_unmixing_shows_the_committed_figures():
    found = {name: bench_results(name) for name in UNMIXING}
    assert body_of_report(found) in (ROOT / "docs" / "unmixing_results.md").read_text()
    gamma = next(iter(found["unmixing-gamma"]["tables"].values()))
    ours = next(iter(gamma.values()))
    assert min(ours.values()) >= 99
    assert all(ours[gain] >= max(cells[gain] for cells in gamma.values()) - 0.5 for gain in ours)


def test_numerics_page_shows_the_committed_sweep():
    content = bench_results("safety")
    assert content["table"] in (ROOT / "docs" / "numerics.md").read_text()
    assert content["combinations"] >= 500
    assert "bad" not in content["ends"]
    assert {entry["end"] for entry in content["worth_a_look"]} <= {"diverged"}


def test_model_selection_page_shows_the_committed_curves():
    content = bench_results("stability")
    assert body_of_stability(content["curves"], content["misses"]) in (ROOT / "docs" / "model_selection.md").read_text()
    assert content["curves"]["NCP on a tensor of rank 4"]["best_rank"] == 4
    assert {miss for misses in content["misses"].values() for miss in misses} <= {0, 1}


@pytest.mark.parametrize("name", ["getting_started", "choosing", "data_kinds", "known_parts"])
def test_code_of_the_page_runs(name):
    mpl.use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(), re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)  # noqa: S102
    plt.close("all")


def test_errors_on_the_page_on_known_parts_are_those_of_its_code(capsys):
    page = (ROOT / "docs" / "known_parts.md").read_text()
    names: dict[str, object] = {}
    shown, found = [], []
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        exec(compile(block, "known_parts", "exec"), names)  # noqa: S102
        shown += re.findall(r"# (0\.\d+)$", block, re.MULTILINE)
        found += re.findall(r"^0\.\d+", capsys.readouterr().out, re.MULTILINE)
    assert len(shown) == 3
    assert [f"{float(text):.3f}" for text in found] == shown


def test_examples_of_the_gallery_are_headed_and_need_no_download():
    scripts = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
    assert len(scripts) >= 10
    for script in scripts:
        title = re.match(r'"""\n(.+)\n(=+)\n\n\S', script.read_text())
        assert title, script.name
        assert len(title[1]) == len(title[2]), script.name
        assert not re.search(r"fetch_|download(?!=False)|urlopen|load_coil20|load_pie", script.read_text()), script.name


def test_the_page_on_parameters_shows_the_committed_scores_of_the_defaults():
    content = bench_results("defaults")
    assert len(content["scores"]) >= 5
    assert body_of_defaults(content["scores"]) in (ROOT / "docs" / "choosing.md").read_text()
    accuracy = {
        name: sum(sum(found[name]["accuracy"]) for found in content["scores"].values())
        for name in next(iter(content["scores"].values()))
    }
    ours = {name: value for name, value in accuracy.items() if name.startswith("graph_reg") and "samples" not in name}
    fits = sum(len(found["graph_reg=0.1"]["accuracy"]) for found in content["scores"].values())
    assert ours[f"graph_reg={GWNTF().graph_reg:g}"] >= max(ours.values()) - 0.005 * fits
    assert ours["graph_reg=0.1"] > accuracy["scikit-learn's NMF"]
