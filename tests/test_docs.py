"""What the documents say is what the results files hold."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

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
    assert "GWNTF.for_clustering" in table
    assert table in (ROOT / "docs" / "clustering.md").read_text()
    content = results(f"clustering_{name}")
    assert content["runs"] == 50
    ours, theirs = (
        content["methods"][method]["scores"]
        for method in ("GWNTF.for_clustering", "spectral clustering, auto")
    )
    assert all(ours[score]["mean"] >= theirs[score]["mean"] for score in SCORES)


def test_clustering_page_shows_what_every_committed_ingredient_adds():
    tables = [results(f"ablation_{name}") for name in ("coil20", "pie_pose27", "digits")]
    lines = (ROOT / "docs" / "clustering.md").read_text().splitlines()
    assert all(table["runs"] >= 20 for table in tables)
    for method in tables[0]["methods"]:
        entries = [table["methods"].get(method) for table in tables]
        cells = [
            "/".join(f"{entry['scores'][score]['mean']:.1f}" for score in SCORES) if entry else "-"
            for entry in entries
        ]
        assert f"| {method} | {' | '.join(cells)} |" in lines


@pytest.mark.parametrize("name", TABLES)
def test_committed_tables_come_from_enough_runs_at_the_papers_settings(name):
    content = results(name)
    assert content["runs"] >= 10
    assert {entry["params"].get("max_iter", 100) for entry in content["methods"].values()} == {100}
    for entry in content["methods"].values():
        assert set(entry["scores"]) == set(SCORES)


def test_readme_shows_the_committed_figures():
    lines = (ROOT / "README.md").read_text().splitlines()
    for method, entry in results("coil20")["methods"].items():
        row = next(line for line in lines if line.startswith(f"| {method} |"))
        figures = [float(text) for text in re.findall(r"\| (\d+\.\d)", row)]
        other = results("pie_pose27")["methods"][method]
        expected = [
            round(table["scores"][score]["mean"], 1) for table in (entry, other) for score in ("ACC", "NMI")
        ]
        assert figures == pytest.approx(expected, abs=0.051)


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text())
    missing = [link for link in links if not link.startswith("http") and not (path.parent / link).exists()]
    assert missing == []


def test_tests_named_in_the_documents_exist():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "mathematics.md").read_text()))
    code = "".join(file.read_text() for file in (ROOT / "tests").glob("*.py"))
    assert named
    assert [name for name in named if f"def {name}(" not in code] == []
