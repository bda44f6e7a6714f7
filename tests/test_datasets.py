"""Loaders: what is found, what is downloaded, and what happens when the network misbehaves."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from gwntf import DataError, InputError
from gwntf.data import reconstruct
from gwntf.datasets import images, load_coil20, load_digits_tensor, make_kruskal_tensor
from gwntf.datasets import remote as remote_module
from gwntf.datasets.remote import RemoteFile, fetch, find_data_home

CONTENT = bytes(range(256)) * 400
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        if self.path == "/stalled":
            time.sleep(3)
            return
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        cut = len(CONTENT) // 2 if self.path == "/cut" else len(CONTENT)
        body = CONTENT[:cut] if self.path != "/wrong" else bytes(len(CONTENT))
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(remote_module, "_PAUSE", 0.0)


@pytest.fixture
def server():
    with serving(Handler) as address:
        yield address


@contextmanager
def serving(handler):
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def remote(server, path="/good"):
    return RemoteFile("data.bin", server + path, DIGEST)


def test_downloads_once_and_keeps_the_file(server, tmp_path, capsys):
    path = fetch(remote(server), tmp_path / "new" / "folder")
    assert path.read_bytes() == CONTENT
    assert "data.bin" in capsys.readouterr().err
    assert fetch(RemoteFile("data.bin", "http://127.0.0.1:9/", DIGEST), path.parent) == path
    assert [file.name for file in path.parent.iterdir()] == ["data.bin"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/missing", "404"),
        ("/cut", "ended after|bytes read"),
        ("/wrong", "does not have the expected SHA-256"),
        ("/stalled", "timed out|without response"),
    ],
)
def test_a_bad_download_leaves_nothing_and_says_what_to_do(server, tmp_path, path, reason, monkeypatch):
    monkeypatch.setattr(remote_module, "_TIMEOUT", 0.5)
    with pytest.raises(DataError, match=reason) as caught:
        fetch(remote(server, path), tmp_path, progress=False)
    assert f"put the file from {server}{path}" in str(caught.value)
    assert str(tmp_path / "data.bin") in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_moved_is_followed(server, tmp_path):
    assert fetch(remote(server, "/moved"), tmp_path, progress=False).read_bytes() == CONTENT


def test_a_folder_in_the_place_of_the_file_is_a_clear_error(tmp_path):
    (tmp_path / "data.bin").mkdir()
    with pytest.raises(DataError, match="is not the expected"):
        fetch(RemoteFile("data.bin", "http://127.0.0.1:9/", DIGEST), tmp_path)


def test_no_network_is_a_clear_error(tmp_path):
    with serving(Handler) as address:
        pass
    with pytest.raises(DataError, match=r"could not be downloaded .* put the file from"):
        fetch(RemoteFile("data.bin", address, DIGEST), tmp_path, progress=False)


def test_a_folder_that_cannot_be_made_is_a_clear_error(server, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DataError, match="could not be downloaded"):
        fetch(remote(server), blocked / "folder", progress=False)


def test_a_wrong_file_on_disk_is_not_used_and_not_touched(tmp_path):
    (tmp_path / "data.bin").write_bytes(b"something else")
    with pytest.raises(DataError, match="its SHA-256 differs"):
        fetch(RemoteFile("data.bin", "http://127.0.0.1:9/", DIGEST), tmp_path)
    assert (tmp_path / "data.bin").read_bytes() == b"something else"


def test_without_download_an_absent_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="is not in"):
        load_coil20(tmp_path, download=False)


def test_data_home_is_argument_then_environment_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv("GWNTF_DATA", str(tmp_path / "environment"))
    assert find_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert find_data_home() == tmp_path / "environment"
    monkeypatch.delenv("GWNTF_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_data_home() == tmp_path / "gwntf_data"


def test_loader_downloads_parses_and_turns_images_upright(tmp_path, monkeypatch):
    """End to end against a local server: a file in the layout of the originals, one image with a known corner."""
    image = np.zeros((32, 32))
    image[0, 31] = 7  # top right
    buffer = io.BytesIO()
    savemat(buffer, {"fea": np.vstack([image.ravel(order="F"), np.ones(1024)]), "gnd": np.array([[1], [2]])})
    content = buffer.getvalue()

    class Mat(Handler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

    with serving(Mat) as address:
        digest = hashlib.sha256(content).hexdigest()
        monkeypatch.setattr(images, "COIL20", RemoteFile("COIL20.mat", address, digest))
        X, y = load_coil20(tmp_path, progress=False)
    np.testing.assert_array_equal(X[0], image)
    np.testing.assert_array_equal(y, [0, 1])


def test_a_file_without_the_fields_is_a_clear_error(tmp_path, monkeypatch):
    path = Path(tmp_path) / "COIL20.mat"
    savemat(path, {"other": np.ones(3)})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(images, "COIL20", RemoteFile("COIL20.mat", "http://127.0.0.1:9/", digest))
    with pytest.raises(DataError, match="no fields fea and gnd"):
        load_coil20(tmp_path)


def test_coil20_has_its_shape_classes_and_range(coil20):
    X, y = coil20
    assert X.shape == (1440, 32, 32)
    np.testing.assert_array_equal(np.bincount(y), [72] * 20)
    assert (X.min(), X.max()) == (0, 1)


def test_pie_faces_stand_upright(pie_pose27):
    """Faces are alike left and right, not top and bottom."""
    X, y = pie_pose27
    assert X.shape == (2856, 32, 32)
    np.testing.assert_array_equal(np.bincount(y), [42] * 68)
    mean = X.mean(axis=0)
    assert np.abs(mean - mean[:, ::-1]).sum() < 0.8 * np.abs(mean - mean[::-1]).sum()


def test_digits_and_synthetic_tensors():
    X, y = load_digits_tensor()
    assert X.shape == (1797, 8, 8)
    assert set(y) == set(range(10))
    Y, factors = make_kruskal_tensor((9, 4, 3), 2, density=0.3, random_state=0)
    np.testing.assert_allclose(Y, reconstruct(factors))
    assert min(factor.sum(axis=0).min() for factor in factors) > 0
    noisy, _ = make_kruskal_tensor((9, 4, 3), 2, density=0.3, noise=0.1, random_state=0)
    assert 0 < np.abs(np.log(noisy[Y > 0] / Y[Y > 0])).std() < 0.2


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"shape": (3,), "n_components": 1}, "shape"),
        ({"shape": (3, 0), "n_components": 1}, "shape"),
        ({"shape": (3, 2), "n_components": 0}, "n_components"),
        ({"shape": (3, 2), "n_components": 1, "density": 0}, "density"),
        ({"shape": (3, 2), "n_components": 1, "noise": -1}, "noise"),
    ],
)
def test_synthetic_generator_checks_its_arguments(arguments, name):
    with pytest.raises(InputError, match=f"{name}: got"):
        make_kruskal_tensor(**arguments)
