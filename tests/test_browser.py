"""The reports in a browser: self-contained, legible on a phone, hostile text harmless."""

from __future__ import annotations

import csv
import os
import shutil

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import sync_playwright

from gwntf.cli import main
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
    html = table_report(summarise(table, results), {methods[0].name: arrays, methods[1].name: arrays_of_vectors})
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model_report_path(tmp_path_factory):
    """The report that `gwntf cluster` writes for a folder in which all names are hostile."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    names = [HOSTILE.replace("/", "\u2215"), "<b>bold & $x$", "quote\"'\x1b[31m", "\u65e5\u672c"]
    for k in range(24):
        target = folder / HOSTILE.replace("/", "\u2215")[:60] / names[k % 4]
        target.mkdir(parents=True, exist_ok=True)
        image = np.zeros((8, 9), np.uint8)
        image[2 * (k % 4) : 2 * (k % 4) + 2] = rng.integers(100, 255, (2, 9))
        Image.fromarray(image).save(target / f"<i>{k}.png")
    data = next(folder.iterdir())
    page = folder / "report.html"
    command = ["cluster", str(data), "-o", str(folder / "c.csv"), "--report", str(page), "-q"]
    assert main([*command, "--engine", "numpy"]) == 0
    return page


@pytest.fixture(scope="module", params=[1, 40])
def unmixing_path(request, tmp_path_factory):
    """The report that `gwntf unmix` writes for one and for many mixtures, with hostile names."""
    folder, rng = tmp_path_factory.mktemp("unmix"), np.random.default_rng(0)
    positions = np.linspace(9, 1, 160).round(3)
    parts = np.exp(-(((positions - rng.uniform(2, 8, (4, 1))) / 0.1) ** 2))
    weights = rng.dirichlet(np.ones(4), request.param)
    names = [HOSTILE, "<b>bold & $x$", "_hidden", "a" * 60]
    tables = {"m.csv": (weights @ parts, [f"{HOSTILE} {k}" for k in range(len(weights))]), "r.csv": (parts, names)}
    for file, (values, index) in tables.items():
        with (folder / file).open("w", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(["name", *positions])
            writer.writerows([name, *row] for name, row in zip(index, values.tolist(), strict=True))
    page = folder / "unmix.html"
    files = [str(folder / "m.csv"), "--references", str(folder / "r.csv")]
    assert main(["unmix", *files, "--axis", "$\\ppm{", "--calibration", "shift", "--report", str(page)]) == 0
    return page


@pytest.fixture(scope="module")
def browser():
    executable = browser_path()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def opened(browser, path):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.requests, page.problems = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text))
    page.goto(path.as_uri())
    return page


@pytest.fixture(scope="module")
def page(browser, report):
    return opened(browser, report)


def check_self_contained(page, path):
    outside = [url for url in page.requests if not url.startswith(("data:", path.as_uri()))]
    assert outside == []
    assert page.problems == []


def test_report_is_self_contained(page, report):
    check_self_contained(page, report)


def test_report_of_a_model_shows_hostile_names_as_text_and_fits_a_phone(browser, model_report_path):
    page = opened(browser, model_report_path)
    check_self_contained(page, model_report_path)
    folder = HOSTILE.replace("/", "\u2215")[:60]
    assert page.title() == folder
    assert page.locator("h1").inner_text() == folder
    assert page.locator("script, b, i, img[src=x]").count() == 0
    shown = page.locator("tbody").inner_text()
    assert "<b>bold & $x$" in shown
    assert "document.title='taken'" in shown
    assert "<i>0.png" in page.locator("body").inner_text()
    assert page.locator("img").count() == 6
    for k in range(6):
        image = page.locator("img").nth(k)
        assert image.evaluate("image => image.complete && image.naturalWidth > 300")
        assert image.get_attribute("alt")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_words_of_a_table_are_not_broken_on_a_phone(browser, model_report_path, page):
    """The first column broke after every letter where the table was wider than the screen."""
    narrow = opened(browser, model_report_path)
    for shown in (narrow, page):
        for name in ("th", "td"):
            first = shown.locator(name).first  # "cluster", "0"; "method", "plain"
            line = "cell => parseFloat(getComputedStyle(cell).fontSize) * 1.5"
            inner = "cell => { const range = document.createRange(); range.selectNodeContents(cell); "
            text = first.evaluate(inner + "return range.getBoundingClientRect().height }")
            assert text <= 1.2 * first.evaluate(line)


def test_text_of_pictures_is_legible_on_a_phone(browser, model_report_path):
    """At least 64 pixels per inch, so that letters of 10 points have nine pixels; wide pictures scroll."""
    page = opened(browser, model_report_path)
    for k in range(6):
        image = page.locator("img").nth(k)
        natural, shown = (image.evaluate(f"image => image.{name}") for name in ("naturalWidth", "clientWidth"))
        assert shown / (natural / 110) >= 63
        assert image.evaluate("image => image.parentElement.clientWidth") <= 358


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


def test_report_of_mixtures_fits_a_phone_and_shows_shares_and_pictures(browser, unmixing_path):
    page = opened(browser, unmixing_path)
    check_self_contained(page, unmixing_path)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    single = page.locator("h2").count() == 1
    images = page.locator("img")
    assert images.count() == (2 if single else 25)  # two for each drawn mixture, and the chart of all
    for k in range(images.count()):
        image = images.nth(k)
        assert image.evaluate("image => image.complete && image.naturalWidth > 300")
        assert image.get_attribute("alt")
        assert image.evaluate("image => image.clientWidth") <= 358
    rows = page.locator("table").first.locator("tbody tr")
    assert rows.count() == (4 if single else 40)
    share = rows.first.locator("td").nth(1)
    assert share.is_visible()
    assert "." in share.inner_text()
    box = share.bounding_box()
    assert box["x"] + box["width"] <= 390


def test_report_of_mixtures_shows_hostile_names_as_text(browser, unmixing_path):
    page = opened(browser, unmixing_path)
    assert page.title() == page.locator("h1").inner_text()
    assert "<script>" in page.title()
    assert page.locator("script, b, i, img[src=x]").count() == 0
    shown = page.locator("body").inner_text()
    assert "<b>bold & $x$" in shown
    assert "_hidden" in shown
