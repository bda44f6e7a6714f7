"""The report in a real browser: nothing from outside, readable on a phone, hostile text harmless."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from gwntf.evaluation import SCORES
from gwntf.experiments import RunResult, summarise
from gwntf.experiments.table import Method, Table
from gwntf.reports import table_report

HOSTILE = "$\\bad{$ <script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def browser_path() -> str:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        reason = "no browser: install Chromium to run the tests of the HTML report"
        if os.environ.get("GWNTF_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    methods = tuple(Method(name, "NMF", {"note": HOSTILE}, {"ACC": 50.0}) for name in ("plain", HOSTILE))
    table = Table("t", f"Report {HOSTILE}", "digits", 2, 20, (), methods)
    results = [
        RunResult(method.name, seed, dict.fromkeys(SCORES, 0.5 + 0.1 * k), 1.0, 3, 1.0, {})
        for k, method in enumerate(methods)
        for seed in range(2)
    ]
    arrays = {
        "components": rng.random((4, 12)),
        "samples": rng.random((3, 12)),
        "reconstructions": rng.random((3, 12)),
        "embedding": rng.random((30, 4)),
        "objective_curve": np.array([3.0, 2.0, 1.0]),
        "sample_shape": np.array([3, 4]),
        "labels": np.arange(30) % 3,
    }
    arrays_of_vectors = {**arrays, "sample_shape": np.array([12]), "embedding": rng.random((30, 1))}
    html = table_report(
        summarise(table, results), {methods[0].name: arrays, methods[1].name: arrays_of_vectors}
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(report):
    executable = browser_path()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page(viewport={"width": 390, "height": 844})
        opened.requests, opened.problems = [], []
        opened.on("request", lambda request: opened.requests.append(request.url))
        opened.on("pageerror", lambda error: opened.problems.append(str(error)))
        opened.on("console", lambda message: opened.problems.append(message.text))
        opened.goto(report.as_uri())
        yield opened
        browser.close()


def test_report_is_self_contained(page, report):
    outside = [url for url in page.requests if not url.startswith(("data:", report.as_uri()))]
    assert outside == []
    assert page.problems == []


def test_report_shows_its_table_and_marks_the_best(page):
    rows = page.locator("tbody tr")
    assert rows.count() == 2
    assert page.locator("td.best").count() == len(SCORES)
    assert rows.nth(1).locator("td.best").count() == len(SCORES)
    assert "paper 50.00, +0.00" in rows.nth(0).inner_text()


def test_every_picture_is_drawn_and_described(page):
    images = page.locator("img")
    assert images.count() == 4
    for k in range(images.count()):
        assert images.nth(k).evaluate("image => image.complete && image.naturalWidth > 300")
        assert images.nth(k).get_attribute("alt")


def test_report_fits_a_phone(page):
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    font = page.locator("td").first.evaluate("cell => parseFloat(getComputedStyle(cell).fontSize)")
    assert font >= 14


def test_hostile_text_is_only_text(page):
    assert page.title() == f"Report {HOSTILE}"
    assert page.locator("h1").inner_text() == f"Report {HOSTILE}"
    assert page.locator("script").count() == 0
    assert page.locator("img[src=x]").count() == 0
