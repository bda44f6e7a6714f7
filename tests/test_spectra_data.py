"""Spectra with known references: downloads and their checks, conversion of the originals, and the generator."""

from __future__ import annotations

import datetime
import functools
import importlib.util
import io
import json
import os
import threading
import zipfile
from collections import OrderedDict
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import norm, poisson

from gwntf import DataError, InputError, read_data
from gwntf.datasets import (
    gamma,
    load_example_spectra,
    load_gamma_spectra,
    load_nmr_mixtures,
    make_drifting_spectra,
    nmr,
    remote,
)
from gwntf.datasets.gamma_archive import _Unpickler
from gwntf.datasets.values import save_arrays, values_digest
from tests.conftest import load_or_skip

NOWHERE = "http://127.0.0.1:9/nothing"
CHANNELS = 16


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(remote, "_PAUSE", 0.0)


class Served(SimpleHTTPRequestHandler):
    """Files of a folder. ``fail`` answers of 503 or broken connections come first, and `asked` lists the requests."""

    fail = 0
    broken = False
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        type(self).asked.append(self.path)
        if type(self).fail:
            type(self).fail -= 1
            if not self.broken:
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 500)
            return
        super().do_GET()

    def log_message(self, *args):
        pass


@contextmanager
def serving(folder):
    handler = type("Handler", (Served,), {"asked": []})
    http = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", handler
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


# --- small stand-ins for the originals ----------------------------------------------------------------------


def gamma_entries(rng):
    """Dictionaries as in the original files, by file name."""

    def entry(detector, labels, spectrum):
        return {
            "spectrum": spectrum,
            "labels": labels,
            "calibration": {"offset": np.float64(-10.0), "slope": 8, "quad": 0.001},
            "detector": detector,
            "absorber": OrderedDict(lead=2.0),
            "date": datetime.datetime(2024, 1, 24),
        }

    def counts():
        return rng.integers(0, 50, CHANNELS).tolist()

    files = {
        "Co60-1_left": [entry("left", ["Co60", "background"], counts()), entry("left", ["background"], counts())],
        "Am241_left": [entry("left", ["Am241", "background"], counts())],
        "Am241_right": [entry("right", ["Am241", "background"], counts())],
        "background_20240124_left": [entry("left", ["background"], counts()) for _ in range(3)],
    }
    for name in ("Am241", "Co60", "Cs137", "Eu152"):
        files[f"{name}_simulated"] = [entry("simulated", [name], rng.random(CHANNELS) * 9) for _ in range(3)]
    return files


def write_archive(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, entries in files.items():
            buffer = io.BytesIO()
            np.save(buffer, np.array(entries, dtype=object), allow_pickle=True)
            archive.writestr(f"data/1_numpy_raw/{name}.npy", buffer.getvalue())
        archive.writestr("data/00_list_of_isotopes", "Am241, Co60")


def expected_gamma(files):
    """What the archive contains, file by file in alphabetical order."""
    left = [
        (name.removesuffix("_left"), entry) for name in sorted(files) for entry in files[name] if name.endswith("_left")
    ]
    names = ("Am241", "Co60", "Cs137", "Eu152", "background")
    references = []
    for name in names[:-1]:
        scaled = [np.array(entry["spectrum"]) / np.sum(entry["spectrum"]) for entry in files[f"{name}_simulated"]]
        references.append(sum(scaled) / len(scaled))
    return {
        "spectra": np.array([entry["spectrum"] for _, entry in left], np.uint32),
        "labels": np.array([[name in entry["labels"] for name in names] for _, entry in left]),
        "isotopes": np.array(names),
        "source": np.array([name for name, _ in left]),
        "calibration": np.array([[-10, 8, 0.001]] * len(left), np.float32),
        "references": np.array(references),
    }


@pytest.fixture
def gamma_files(rng, tmp_path, monkeypatch):
    """Folder with a small archive in the layout of the original, and the arrays it contains; their digest is valid."""
    files = gamma_entries(rng)
    arrays = expected_gamma(files)
    monkeypatch.setattr(gamma, "DIGEST", values_digest(arrays, gamma.DTYPES))
    monkeypatch.setattr(gamma, "REFERENCE_CHANNELS", tuple(arrays["references"] @ np.arange(CHANNELS)))
    folder = tmp_path / "served"
    folder.mkdir()
    write_archive(folder / gamma.ARCHIVE, files)
    return folder, arrays


@pytest.fixture
def nmr_files(rng, tmp_path, monkeypatch):
    """Folder with small tables in the layout of the originals, and their values; their digests are valid."""
    folder, values, experiments = tmp_path / "served", {}, []
    for experiment in nmr.EXPERIMENTS:
        ppm = np.sort(rng.uniform(-1, 10, 20))
        spectra = rng.random((1 + len(experiment.names), 20))
        names = ["mix", *(f"comp{k}" for k in range(len(experiment.names)))]
        for name, spectrum in zip(names, spectra, strict=True):
            path = folder / f"{experiment.files}{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            newline = "\n" if experiment.number == 3 else "\r\n"  # as in the originals
            np.savetxt(path, np.stack([ppm, spectrum], 1), delimiter=",", newline=newline)
        arrays = {"ppm": ppm, "mix": spectra[0].astype(np.float32), "components": spectra[1:].astype(np.float32)}
        values[experiment.number] = arrays
        experiments.append(experiment._replace(digest=values_digest(arrays, nmr.DTYPES)))
    monkeypatch.setattr(nmr, "EXPERIMENTS", tuple(experiments))
    return folder, values


# --- downloads ----------------------------------------------------------------------------------------------


def check_gamma(data, arrays):
    np.testing.assert_array_equal(data.spectra, arrays["spectra"])
    np.testing.assert_array_equal(data.labels, arrays["labels"])
    np.testing.assert_array_equal(data.source, arrays["source"])
    np.testing.assert_allclose(data.references[:4], arrays["references"], rtol=1e-12)
    np.testing.assert_allclose(data.references.sum(axis=1), 1)
    alone = arrays["spectra"][arrays["source"] == "background_20240124"]
    np.testing.assert_allclose(data.references[4], np.mean([row / row.sum() for row in alone], axis=0))
    assert data.names == ("Am241", "Co60", "Cs137", "Eu152", "background")
    np.testing.assert_allclose(data.energies[2, 5], -10 + 8 * 5 + 0.001 * 25, rtol=1e-6)


def test_gamma_spectra_are_downloaded_converted_and_cached(gamma_files, tmp_path, capsys):
    folder, arrays = gamma_files
    home = tmp_path / "new" / "home"
    with serving(folder) as (address, handler):
        data = load_gamma_spectra(home, url=f"{address}/{gamma.ARCHIVE}")
        assert handler.asked == [f"/{gamma.ARCHIVE}"]
    check_gamma(data, arrays)
    assert gamma.ARCHIVE in capsys.readouterr().err
    assert os.listdir(home) == ["gamma_left.npz"]
    check_gamma(load_gamma_spectra(home, url=NOWHERE), arrays)  # the server has ended


def test_gamma_spectra_from_a_file_address_and_from_an_archive_in_the_folder(gamma_files, tmp_path, capsys):
    folder, arrays = gamma_files
    url = (folder / gamma.ARCHIVE).as_uri()
    check_gamma(load_gamma_spectra(tmp_path / "a", url=url, progress=False), arrays)
    converted = (tmp_path / "a" / gamma.FILE).as_uri()
    check_gamma(load_gamma_spectra(tmp_path / "b", url=converted, progress=False), arrays)
    check_gamma(load_gamma_spectra(folder, download=False), arrays)
    assert capsys.readouterr().err == ""
    assert (tmp_path / "a" / gamma.FILE).read_bytes() == (tmp_path / "b" / gamma.FILE).read_bytes()
    assert os.listdir(folder) == [gamma.ARCHIVE]


def check_nmr(data, values):
    assert [mixture.experiment for mixture in data] == [3, 4, 9]
    for mixture in data:
        arrays = values[mixture.experiment]
        np.testing.assert_array_equal(mixture.ppm, arrays["ppm"])
        np.testing.assert_array_equal(mixture.mixture, arrays["mix"])
        np.testing.assert_array_equal(mixture.references, arrays["components"])
        assert len(mixture.names) == len(mixture.protons) == len(mixture.truth_molar) == len(mixture.references)
        assert mixture.truth_molar.sum() == pytest.approx(1)


def test_nmr_mixtures_are_downloaded_and_cached(nmr_files, tmp_path):
    folder, values = nmr_files
    with serving(folder) as (address, handler):
        check_nmr(load_nmr_mixtures(tmp_path / "home", url=address + "/", progress=False), values)
        assert len(handler.asked) == 5 + 6 + 6
    check_nmr(load_nmr_mixtures(tmp_path / "home", url=NOWHERE), values)
    url = (tmp_path / "home" / nmr.FILE).as_uri()
    check_nmr(load_nmr_mixtures(tmp_path / "copy", url=url, progress=False), values)
    check_nmr(load_nmr_mixtures(tmp_path / "other", url=folder.as_uri(), progress=False), values)


@pytest.mark.parametrize("broken", [False, True])
def test_a_temporary_failure_is_tried_again_three_times_at_most(gamma_files, tmp_path, broken):
    folder, arrays = gamma_files
    with serving(folder) as (address, handler):
        url = f"{address}/{gamma.ARCHIVE}"
        handler.fail, handler.broken = 2, broken
        check_gamma(load_gamma_spectra(tmp_path / "a", url=url, progress=False), arrays)
        assert len(handler.asked) == 3
        handler.fail = 3
        with pytest.raises(DataError, match="ended after 500 of 1000|500 bytes read" if broken else "503"):
            load_gamma_spectra(tmp_path / "b", url=url, progress=False)
        assert len(handler.asked) == 6
    assert os.listdir(tmp_path / "b") == []


def test_a_missing_file_is_not_tried_again_and_the_error_says_what_to_do(gamma_files, nmr_files, tmp_path):
    folder, _ = nmr_files
    with serving(folder) as (address, handler):
        with pytest.raises(
            DataError, match=rf"could not be downloaded \(.*404.*put example_dataset.zip from {address}"
        ):
            load_gamma_spectra(tmp_path / "home", url=f"{address}/absent.zip", progress=False)
        assert len(handler.asked) == 1
        with pytest.raises(DataError, match=r"404.* check the connection, or name a copy"):
            load_nmr_mixtures(tmp_path / "home", url=f"{address}/absent", progress=False)
        assert len(handler.asked) == 2
    assert os.listdir(tmp_path / "home") == []


@pytest.mark.parametrize("load", [load_gamma_spectra, load_nmr_mixtures])
def test_without_a_network_the_error_names_the_address(load, tmp_path):
    with pytest.raises(DataError, match=r"could not be downloaded .*127\.0\.0\.1:9"):
        load(tmp_path, url=NOWHERE, progress=False)
    with pytest.raises(DataError, match=r"No such file|not found"):
        load(tmp_path, url=(tmp_path / "absent.npz").as_uri(), progress=False)
    assert os.listdir(tmp_path) == []
    with pytest.raises(DataError, match=r"is not in .*github"):
        load(tmp_path, download=False)


@pytest.mark.parametrize("load", [load_gamma_spectra, load_nmr_mixtures])
def test_an_address_of_another_kind_is_refused(load, tmp_path):
    with pytest.raises(InputError, match="url: got 'ftp://x'; expected an address that starts with http"):
        load(tmp_path, url="ftp://x")


def test_an_interrupted_download_leaves_nothing(gamma_files, tmp_path, monkeypatch):
    folder, _ = gamma_files

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(remote.shutil, "copyfileobj", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_gamma_spectra(tmp_path / "home", url=(folder / gamma.ARCHIVE).as_uri(), progress=False)
    assert os.listdir(tmp_path / "home") == []


def test_one_changed_value_is_found_and_nothing_is_cached(gamma_files, nmr_files, tmp_path, monkeypatch):
    folder, _ = gamma_files
    monkeypatch.setattr(gamma, "DIGEST", "0" * 64)
    with pytest.raises(DataError, match=r"does not contain the expected gamma spectra \(the SHA-256"):
        load_gamma_spectra(tmp_path / "home", url=(folder / gamma.ARCHIVE).as_uri(), progress=False)
    tables = nmr_files[0]
    path = next(tables.glob("*/*exp9_comp3.csv"))
    table = np.loadtxt(path, delimiter=",")
    table[4, 1] *= 1.001
    np.savetxt(path, table, delimiter=",")
    with pytest.raises(DataError, match="the expected spectra of experiment 9"):
        load_nmr_mixtures(tmp_path / "home", url=tables.as_uri(), progress=False)
    table[4, 0] += 1e-3
    np.savetxt(path, table, delimiter=",")
    with pytest.raises(DataError, match="another axis"):
        load_nmr_mixtures(tmp_path / "home", url=tables.as_uri(), progress=False)
    path.write_text("<html>a page of a proxy</html>")
    with pytest.raises(DataError, match=r"comp3\.csv is not a table of numbers"):
        load_nmr_mixtures(tmp_path / "home", url=tables.as_uri(), progress=False)
    assert os.listdir(tmp_path / "home") == []


def test_references_that_differ_are_found(gamma_files, tmp_path):
    _, arrays = gamma_files
    arrays["references"][2] = arrays["references"][1]
    save_arrays(tmp_path / gamma.FILE, arrays)
    with pytest.raises(DataError, match="does not contain the expected gamma spectra"):
        load_gamma_spectra(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\3\4 and nothing more", b"\x93NUMPY"])
@pytest.mark.parametrize(("load", "name"), [(load_gamma_spectra, gamma.FILE), (load_nmr_mixtures, nmr.FILE)])
def test_a_damaged_cached_file_is_named_and_left_alone(load, name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} cannot be read as .*: remove it"):
        load(tmp_path, url=NOWHERE)
    assert (tmp_path / name).read_bytes() == content


def test_a_file_with_one_changed_byte_is_refused_or_has_the_same_values(gamma_files, tmp_path):
    """A byte may be without meaning in the zip format, as a date is."""
    folder, arrays = gamma_files
    load_gamma_spectra(tmp_path, url=(folder / gamma.ARCHIVE).as_uri(), progress=False)
    content = (tmp_path / gamma.FILE).read_bytes()
    refused = 0
    for place in range(0, len(content), 5):
        changed = bytearray(content)
        changed[place] ^= 0x55
        (tmp_path / gamma.FILE).write_bytes(changed)
        try:
            check_gamma(load_gamma_spectra(tmp_path), arrays)
        except DataError:
            refused += 1
    assert refused > 0.5 * len(content) / 5


class Attack:
    def __reduce__(self):
        return os.mkdir, ("created-by-a-pickle",)


def test_an_archive_runs_no_code(gamma_files, tmp_path, monkeypatch):
    """Objects of other classes are ignored where they are not needed; a malicious one does not run."""
    monkeypatch.chdir(tmp_path)
    folder, arrays = gamma_files
    files = gamma_entries(np.random.default_rng(20))
    files["Am241_left"][0]["absorber"] = Attack()
    write_archive(folder / gamma.ARCHIVE, files)
    check_gamma(load_gamma_spectra(tmp_path / "home", url=(folder / gamma.ARCHIVE).as_uri(), progress=False), arrays)
    files["Am241_left"][0]["spectrum"] = Attack()
    write_archive(folder / gamma.ARCHIVE, files)
    with pytest.raises(DataError, match="cannot be read"):
        load_gamma_spectra(tmp_path / "other", url=(folder / gamma.ARCHIVE).as_uri(), progress=False)
    assert not (tmp_path / "created-by-a-pickle").exists()


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_arrays_of_older_and_newer_numpy_are_read_and_nothing_else_of_it(module):
    reader = _Unpickler(io.BytesIO())
    assert reader.find_class(module, "_reconstruct") is np._core.multiarray._reconstruct
    for other in ((module, "fromstring"), ("numpy", "load"), ("builtins", "getattr"), ("os", "system")):
        assert reader.find_class(*other).__name__ == "_Placeholder"


@pytest.mark.parametrize("change", ["negative", "no detector", "numbers", "no list", "truncated", "no simulation"])
def test_an_archive_of_another_layout_is_a_clear_error(gamma_files, tmp_path, change):
    folder, _ = gamma_files
    files = gamma_entries(np.random.default_rng(20))
    if change == "negative":
        files["Am241_left"][0]["spectrum"][3] = -1
    elif change == "no detector":
        del files["Am241_left"][0]["detector"]
    elif change == "no simulation":
        files["Cs137_simulated"] = []
    write_archive(folder / gamma.ARCHIVE, files)
    with zipfile.ZipFile(folder / gamma.ARCHIVE, "a") as archive:
        buffer = io.BytesIO()
        content = np.arange(3) if change == "numbers" else np.array([1, "a"], dtype=object)
        np.save(buffer, content, allow_pickle=True)
        cut = buffer.getvalue()[:-5] if change == "truncated" else buffer.getvalue()
        if change in ("numbers", "no list", "truncated"):
            archive.writestr("data/x_left.npy", cut)
    with pytest.raises(DataError, match=r"cannot be read|does not contain"):
        load_gamma_spectra(tmp_path / "home", url=(folder / gamma.ARCHIVE).as_uri(), progress=False)


def test_the_digest_depends_on_names_types_shapes_and_values():
    dtypes = {"a": "<f8", "b": "text"}
    arrays = {"a": np.array([[1.0, 2.0]]), "b": np.array(["x", "y"])}
    digests = {
        values_digest(arrays, dtypes),
        values_digest(arrays | {"a": np.array([1.0, 2.0])}, dtypes),
        values_digest(arrays | {"a": np.array([[1.0, 2.5]])}, dtypes),
        values_digest(arrays | {"b": np.array(["x", "z"])}, dtypes),
        values_digest(arrays, dtypes | {"a": "<f4"}),
    }
    assert len(digests) == 5
    assert values_digest({"a": arrays["a"].astype(">f4"), "b": arrays["b"]}, dtypes) in digests


# --- the data themselves, where they are --------------------------------------------------------------------


@pytest.fixture(scope="module")
def gamma_spectra():
    return load_or_skip(load_gamma_spectra)


@pytest.fixture(scope="module")
def nmr_mixtures():
    return load_or_skip(load_nmr_mixtures)


def test_gamma_lines_are_where_physics_has_them(gamma_spectra):
    """Strongest lines of Am-241, Cs-137 and Co-60, up to three channels of 8 keV."""
    assert gamma_spectra.spectra.shape == (4750, 256)
    assert gamma_spectra.spectra.sum() == 59_263_077
    assert dict(zip(gamma_spectra.names, gamma_spectra.labels.sum(axis=0), strict=True))["background"] == 4750
    energies = gamma_spectra.energies.mean(axis=0)
    lines = dict(zip(gamma_spectra.names, energies[gamma_spectra.references.argmax(axis=1)], strict=True))
    for name, energy in {"Am241": 59.5, "Cs137": 661.7, "Co60": 1173.2}.items():
        assert lines[name] == pytest.approx(energy, abs=25)


def test_gamma_references_explain_the_spectra(gamma_spectra):
    """The isotope of most spectra of one isotope is the one with the largest share by least squares."""
    one = np.flatnonzero(gamma_spectra.labels[:, :4].sum(axis=1) == 1)[::40]
    shares = [nnls(gamma_spectra.references.T, gamma_spectra.spectra[k])[0][:4] for k in one]
    assert np.mean(np.argmax(shares, axis=1) == gamma_spectra.labels[one, :4].argmax(axis=1)) > 0.9


def test_nmr_mixtures_have_their_sizes_and_truth(nmr_mixtures):
    assert [(case.experiment, *case.references.shape) for case in nmr_mixtures] == [
        (3, 4, 12449),
        (4, 5, 27129),
        (9, 5, 27129),
    ]
    for case in nmr_mixtures:
        assert (np.diff(case.ppm) > 0).all()
        np.testing.assert_allclose(case.references.sum(axis=1), 1, atol=1e-6)
        assert case.mixture.sum() == pytest.approx(1, abs=1e-6)
        shares, _ = nnls(case.references.T, case.mixture)
        assert np.corrcoef(shares, case.truth_signal)[0, 1] > 0.8


def test_nmr_truth_is_that_of_the_description_beside_the_data(nmr_mixtures):
    path = remote.find_data_home() / "nmr.json"
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    about = json.loads(path.read_text())
    for case in nmr_mixtures:
        given = about[str(case.experiment)]
        assert case.names == tuple(given["names"])
        assert case.protons.tolist() == given["protons"]
        assert case.truth_molar.tolist() == given["truth_molar"]


def test_the_measured_gamma_spectra_survive_the_layout_of_the_archive(gamma_spectra, tmp_path):
    """The archive has several simulated spectra per isotope; here it has one, which is their mean."""
    files = {}
    names = np.array(gamma_spectra.names)
    rows = zip(
        gamma_spectra.source, gamma_spectra.spectra, gamma_spectra.labels, gamma_spectra.calibration, strict=True
    )
    for source, spectrum, labels, calibration in rows:
        constants = dict(zip(("offset", "slope", "quad"), calibration.tolist(), strict=True))
        entry = {"spectrum": spectrum.tolist(), "labels": names[labels].tolist(), "calibration": constants}
        files.setdefault(f"{source}_left", []).append(entry | {"detector": "left"})
    for name, reference in zip(names[:4].tolist(), gamma_spectra.references, strict=False):
        files[f"{name}_simulated"] = [{"spectrum": reference * 7, "labels": [name], "detector": "simulated"}]
    write_archive(tmp_path / gamma.ARCHIVE, files)
    again = load_gamma_spectra(tmp_path, download=False)
    np.testing.assert_array_equal(again.spectra, gamma_spectra.spectra)
    np.testing.assert_allclose(again.references, gamma_spectra.references, rtol=1e-12)


def test_the_measured_nmr_mixtures_survive_the_layout_of_the_originals(nmr_mixtures, tmp_path):
    for case, experiment in zip(nmr_mixtures, nmr.EXPERIMENTS, strict=True):
        spectra = {"mix": case.mixture} | {f"comp{k}": spectrum for k, spectrum in enumerate(case.references)}
        for name, spectrum in spectra.items():
            path = tmp_path / "served" / f"{experiment.files}{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(path, np.stack([case.ppm, spectrum], axis=1), delimiter=",")
    again = load_nmr_mixtures(tmp_path / "home", url=(tmp_path / "served").as_uri(), progress=False)
    for one, two in zip(again, nmr_mixtures, strict=True):
        np.testing.assert_array_equal(one.references, two.references)


# --- the generator ------------------------------------------------------------------------------------------

UNEVEN = np.concatenate([np.linspace(-2, 3, 200, endpoint=False), np.linspace(3, 10, 150)])


def reference_by_hand(data, k, moved_edges=None, moves=None):
    """Integrals of the density of a reference between the midpoints, one channel and peak at a time."""
    edges = (data.positions[1:] + data.positions[:-1]) / 2 if moved_edges is None else moved_edges
    ends = [-np.inf, *edges, np.inf]
    total = np.zeros(len(data.positions))
    for j in range(data.peak_centers.shape[1]):
        center = data.peak_centers[k, j] + (0 if moves is None else moves[j])
        density = norm(center, data.peak_widths[k, j])
        for i in range(len(total)):
            total[i] += data.peak_areas[k, j] * (density.cdf(ends[i + 1]) - density.cdf(ends[i]))
    return total


@pytest.mark.parametrize("positions", [None, UNEVEN], ids=["even", "uneven"])
def test_references_are_integrals_of_their_density(positions):
    channels = 64 if positions is None else len(positions)
    data = make_drifting_spectra(2, 3, channels, positions=positions, counts=None, random_state=0)
    for k in range(3):
        np.testing.assert_allclose(data.references[k], reference_by_hand(data, k), atol=1e-13)
    np.testing.assert_allclose(data.references.sum(axis=1), 1, rtol=1e-13)


def test_without_drift_and_noise_spectra_are_exactly_the_mixtures():
    data = make_drifting_spectra(20, 5, drift="none", counts=None, random_state=1)
    np.testing.assert_array_equal(data.spectra, data.shares @ data.references)
    np.testing.assert_array_equal(data.displacement, 0)
    np.testing.assert_array_equal(data.peak_displacement, 0)
    recovered = np.array([nnls(data.references.T, x)[0] for x in data.spectra])
    np.testing.assert_allclose(recovered, data.shares, atol=1e-10)


@pytest.mark.parametrize("drift", ["none", "gain", "shift", "peaks", "smooth"])
@pytest.mark.parametrize("positions", [None, UNEVEN], ids=["even", "uneven"])
def test_drift_conserves_mass_and_shares(drift, positions):
    channels = 256 if positions is None else len(positions)
    options = {"drift": drift, "amount": 0.15, "background": 0.2, "positions": positions, "random_state": 2}
    data = make_drifting_spectra(30, 3, channels, counts=700, **options)
    np.testing.assert_allclose(data.expected.sum(axis=1), 700, rtol=1e-12)
    np.testing.assert_allclose(data.background.sum(axis=1), 140, rtol=1e-12)
    np.testing.assert_allclose(data.shares.sum(axis=1), 0.8, rtol=1e-12)
    assert data.expected.min() >= 0
    assert data.spectra.min() >= 0


@pytest.mark.parametrize("drift", ["gain", "shift", "peaks", "smooth"])
@pytest.mark.parametrize("positions", [None, UNEVEN], ids=["even", "uneven"])
def test_expected_spectra_are_shares_of_moved_references(drift, positions):
    """Oracle: peaks moved one by one, and for functions of the axis channels whose ends are found by bisection."""
    channels = 96 if positions is None else len(positions)
    data = make_drifting_spectra(
        3, 2, channels, n_peaks=2, drift=drift, amount=0.1, counts=None, positions=positions, random_state=3
    )
    axis = data.positions
    edges = (axis[1:] + axis[:-1]) / 2
    for s in range(3):
        moved_edges = edges
        if drift != "peaks":
            fine = np.linspace(2 * axis[0] - axis[-1], 2 * axis[-1] - axis[0], 200_001)
            displacement = field(drift, data, s, fine)
            moved_edges = np.interp(edges, fine + displacement, fine)
        model = sum(
            data.shares[s, k]
            * reference_by_hand(data, k, moved_edges, data.peak_displacement[s, k] if drift == "peaks" else None)
            for k in range(2)
        )
        np.testing.assert_allclose(data.expected[s], model, atol=1e-6)


def field(drift, data, s, where):
    """Displacement of a sample at any position, from its values at the positions of the channels."""
    axis = data.positions
    fraction = (where - axis[0]) / (axis[-1] - axis[0])
    if drift == "shift":
        return np.full_like(where, data.displacement[s, 0])
    if drift == "gain":
        return data.displacement[s, -1] * fraction
    own = (axis - axis[0]) / (axis[-1] - axis[0])
    waves = np.stack([np.ones_like(own), np.cos(np.pi * own), np.cos(2 * np.pi * own)], axis=1)
    weights, residual, *_ = np.linalg.lstsq(waves, data.displacement[s], rcond=None)
    assert residual.sum() < 1e-20
    return weights @ [np.ones_like(fraction), np.cos(np.pi * fraction), np.cos(2 * np.pi * fraction)]


@pytest.mark.parametrize("drift", ["gain", "shift", "peaks"])
def test_centroids_move_by_the_stated_displacement(drift):
    """Closed form: the centroid of a reference is the mean of its peaks, weighted by their areas."""
    data = make_drifting_spectra(40, 3, 2000, drift=drift, amount=0.1, counts=None, random_state=4)
    moved = data.peak_centers + data.peak_displacement  # samples, references, peaks
    expected = np.einsum("sk,kj,skj->s", data.shares, data.peak_areas, moved)
    np.testing.assert_allclose(data.expected @ data.positions, expected, rtol=1e-9)
    if drift == "shift":
        np.testing.assert_array_equal(data.displacement, data.displacement[:, :1].repeat(2000, axis=1))
        still = data.shares @ data.references @ data.positions
        np.testing.assert_allclose(data.expected @ data.positions - still, data.displacement[:, 0], atol=1e-8)
    if drift == "gain":
        gains = data.displacement[:, -1] / data.positions[-1]
        np.testing.assert_allclose(data.displacement, gains[:, None] * data.positions, atol=1e-12)
        still = data.shares @ data.references @ data.positions
        np.testing.assert_allclose(data.expected @ data.positions, (1 + gains) * still, rtol=1e-9)


@pytest.mark.parametrize("drift", ["gain", "shift", "peaks", "smooth"])
def test_displacements_are_at_most_the_amount_and_fill_its_range(drift):
    data = make_drifting_spectra(
        2000, 2, 16, drift=drift, amount=0.1, counts=None, positions=5 + 2.0 * np.arange(16), random_state=5
    )
    length = 30.0
    moves = data.peak_displacement if data.displacement is None else data.displacement
    assert np.abs(moves).max() <= 0.1 * length + 1e-12
    largest = np.abs(moves).max(axis=-1).ravel()
    assert largest.max() > (0.08 if drift == "smooth" else 0.099) * length
    if drift in ("gain", "shift"):  # uniform: its variance is a third of the square of the amount
        assert moves[:, -1].var() == pytest.approx((0.1 * length) ** 2 / 3, rel=0.1)
        assert abs(moves[:, -1].mean()) < 0.1 * length * 4 / np.sqrt(3 * 2000)
    if data.displacement is not None:
        order = data.positions + data.displacement
        assert (np.diff(order, axis=1) > 0).all()


def test_counts_are_poisson_with_the_expected_means():
    """Sums of one channel over samples, standardised; and totals, whose mean and variance are both the counts."""
    data = make_drifting_spectra(4000, 3, 64, drift="smooth", background=0.1, counts=300, random_state=6)
    np.testing.assert_array_equal(data.spectra, np.round(data.spectra))
    z = (data.spectra.sum(axis=0) - data.expected.sum(axis=0)) / np.sqrt(data.expected.sum(axis=0))
    assert np.abs(z).max() < 4.5
    totals = data.spectra.sum(axis=1)
    assert totals.mean() == pytest.approx(300, abs=4 * np.sqrt(300 / 4000))
    assert totals.var() == pytest.approx(300, rel=0.1)
    likely = poisson(data.expected).logpmf(data.spectra)
    entropy = np.mean([poisson(mean).entropy() for mean in data.expected[:20].ravel()])
    assert -likely[:20].mean() == pytest.approx(entropy, rel=0.1)


def test_the_seed_gives_the_same_references_shares_and_directions_whatever_the_sizes_of_effects():
    one = make_drifting_spectra(10, 3, amount=0.02, counts=100, random_state=8)
    two = make_drifting_spectra(10, 3, amount=0.04, counts=None, background=0.5, random_state=8)
    np.testing.assert_array_equal(one.references, two.references)
    np.testing.assert_allclose(one.shares, 2 * two.shares)
    np.testing.assert_allclose(2 * one.displacement, two.displacement)
    again = make_drifting_spectra(10, 3, amount=0.02, counts=100, random_state=np.random.RandomState(8))
    np.testing.assert_array_equal(one.spectra, again.spectra)
    assert not np.array_equal(one.references, make_drifting_spectra(10, 3, random_state=9).references)


def test_the_background_is_not_a_combination_of_the_references():
    data = make_drifting_spectra(1, 4, drift="none", counts=None, background=0.3, random_state=0)
    part = data.background[0]
    _, left = nnls(data.references.T, part)
    assert left > 0.7 * np.linalg.norm(part)
    np.testing.assert_allclose(data.spectra - data.background, data.shares @ data.references, atol=1e-15)


def test_small_concentrations_give_nearly_pure_samples():
    mixed, pure = (
        make_drifting_spectra(200, 4, 16, concentration=c, random_state=0).shares.max(axis=1).mean() for c in (10, 0.05)
    )
    assert mixed < 0.45 < 0.9 < pure


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: got 0"),
        ({"n_references": 2.5}, "n_references: got 2.5"),
        ({"n_channels": 1}, "n_channels: got 1; expected an integer of at least 2"),
        ({"n_peaks": 0}, "n_peaks"),
        ({"drift": "stretch"}, "drift: got 'stretch'; expected one of 'none', 'gain'"),
        ({"amount": 0.2}, "amount: got 0.2; expected a number from 0 to 0.15"),
        ({"amount": float("nan")}, "amount"),
        ({"counts": 0}, "counts: got 0; expected a positive number, or None"),
        ({"background": 1}, "background"),
        ({"concentration": 0}, "concentration"),
        ({"positions": [1.0, 2.0]}, "positions: got an array of shape"),
        ({"positions": np.zeros(256)}, "positions that are not ascending"),
    ],
)
def test_the_generator_checks_its_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        make_drifting_spectra(**arguments)


# --- the example that is part of the package ----------------------------------------------------------------


def test_the_example_is_small_consistent_and_readable():
    example = load_example_spectra()
    files = (example.mixtures_file, example.references_file, example.shares_file)
    assert sum(file.stat().st_size for file in files) < 100_000
    assert example.mixtures.shape == (len(example.samples), len(example.ppm)) == (12, 300)
    assert example.references.shape == (len(example.names), len(example.ppm)) == (4, 300)
    np.testing.assert_allclose(example.references.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(example.shares.sum(axis=1), 1, atol=1e-5)
    assert np.abs(example.mixtures.sum(axis=1) - 20_000).max() < 4 * np.sqrt(20_000)
    read = read_data(example.mixtures_file, id_column="name")
    np.testing.assert_array_equal(read.X, example.mixtures)
    assert read.names == example.samples


def test_the_example_is_what_its_program_writes(tmp_path):
    path = Path(__file__).parent.parent / "docs" / "example_spectra.py"
    spec = importlib.util.spec_from_file_location("example_spectra", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.write_example(tmp_path)
    example = load_example_spectra()
    for file in (example.mixtures_file, example.references_file, example.shares_file):
        assert (tmp_path / file.name).read_text() == file.read_text()
