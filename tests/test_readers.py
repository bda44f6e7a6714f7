"""A user's files: every format gives the same samples, and nothing in a file is trusted."""

from __future__ import annotations

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import zarr
from PIL import Image

import gwntf
from gwntf import DataError, InputError, read_data
from gwntf.core import MissingLibraryError
from gwntf.readers import matlab, summarise
from tests import data_files as files
from tests.data_files import IDS, IMAGES, WRITERS, X, Y

HUGE = 10**15


class Trap:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


# --- what comes out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["npz", "mat", "mat73", "h5", "csv", "parquet", "zarr", "zarr2"])
def test_every_format_gives_the_samples_and_labels_that_were_written(name, tmp_path):
    is_table = name in ("csv", "parquet")
    options = {"id_column": "id", "label_column": "y"} if is_table else {"labels": "y"}
    data = read_data(WRITERS[name](tmp_path), **options)
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.labels, [f"class {label}" for label in Y] if is_table else Y)
    assert data.names == (tuple(IDS) if is_table else None)


@pytest.mark.parametrize("name", ["sparse", "mat-sparse"])
def test_sparse_matrices_stay_sparse(name, tmp_path):
    data = read_data(WRITERS[name](tmp_path))
    assert data.X.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), np.where(X > 0.5, X, 0))


def test_npy_takes_its_labels_from_a_file_beside_it(tmp_path):
    path = files.write_npy(tmp_path)
    np.save(tmp_path / "y.npy", Y.astype(float))
    data = read_data(path, labels=str(tmp_path / "y.npy"))
    np.testing.assert_array_equal(data.X, X)
    assert data.labels.dtype.kind == "i"
    np.testing.assert_array_equal(data.labels, Y)


def test_images_in_subfolders_are_labelled_samples_in_the_order_of_their_names(tmp_path):
    folder = files.write_images(tmp_path)
    (folder / "0" / "notes.txt").write_text("not an image")
    data = read_data(folder)
    order = np.argsort(Y, kind="stable")
    np.testing.assert_array_equal(data.X, IMAGES[order])
    assert list(data.labels) == [str(label) for label in Y[order]]
    assert data.names[0] == "0/image0.png"
    assert data.note == "files that are not images were skipped: 1"


def test_jpegs_are_nearly_what_was_saved(tmp_path):
    smooth = np.linspace(0, 255, 64, dtype=np.uint8).reshape(8, 8)
    Image.fromarray(smooth).save(tmp_path / "one.jpg", quality=100)
    assert np.abs(read_data(tmp_path).X[0].astype(int) - smooth).max() <= 3


def test_colour_is_one_more_axis(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    data = read_data(tmp_path, color=True)
    np.testing.assert_array_equal(data.X[0], pixels)
    assert data.labels is None
    assert read_data(tmp_path).X.shape == (1, 5, 7)


def test_sixteen_bit_images_keep_their_depth(tmp_path):
    deep = (np.arange(12, dtype=np.uint16) * 5000).reshape(3, 4)
    Image.fromarray(deep).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_data(tmp_path).X[0], deep.astype(np.float32))


def test_images_of_two_sizes_ask_for_a_size(tmp_path):
    for name, shape in (("img2.png", (4, 6)), ("img10.png", (8, 12))):
        Image.fromarray(np.full(shape, 9, np.uint8)).save(tmp_path / name)
    with pytest.raises(DataError, match=r"img2.png is 4x6 and .*img10.png is 8x12: use size"):
        read_data(tmp_path)
    np.testing.assert_array_equal(read_data(tmp_path, size=(2, 3)).X, np.full((2, 2, 3), 9))


def test_rows_fold_to_samples_and_those_of_matlab_by_columns(tmp_path):
    images = np.random.default_rng(2).random((6, 3, 4))
    np.save(tmp_path / "rows.npy", images.reshape(6, 12))
    np.testing.assert_array_equal(read_data(tmp_path / "rows.npy", sample_shape=(3, 4)).X, images)
    by_columns = np.stack([image.ravel(order="F") for image in images])
    scipy.io.savemat(tmp_path / "rows.mat", {"fea": by_columns})
    np.testing.assert_array_equal(read_data(tmp_path / "rows.mat", sample_shape=(3, 4)).X, images)


def test_samples_on_another_axis_come_first(tmp_path):
    stack = np.random.default_rng(3).random((3, 4, 6))
    np.save(tmp_path / "stack.npy", stack)
    found = read_data(tmp_path / "stack.npy", sample_axis=-1).X
    np.testing.assert_array_equal(found, stack.transpose(2, 0, 1))
    with pytest.raises(InputError, match="sample_axis: got 3"):
        read_data(tmp_path / "stack.npy", sample_axis=3)


def test_lazy_data_are_opened_and_not_read(tmp_path):
    assert isinstance(read_data(files.write_npy(tmp_path), lazy=True).X, np.memmap)
    opened = read_data(files.write_zarr(tmp_path), key="X", lazy=True).X
    assert isinstance(opened, zarr.Array)
    np.testing.assert_array_equal(opened[:], X)
    with pytest.raises(InputError, match=r"lazy: got True; expected the default: options for .*x.csv are id_column"):
        read_data(files.write_csv(tmp_path), lazy=True)


def test_foreign_byte_order_becomes_native(tmp_path):
    np.save(tmp_path / "big.npy", X.astype(">f8"))
    assert read_data(tmp_path / "big.npy").X.dtype == np.dtype("f8")


# --- tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("a;b\n1;2\n", [[1, 2]]),
        ("\ufeffa\tb\n1\t2\n", [[1, 2]]),
        ("1,\nNA,4\n", [[1, np.nan], [np.nan, 4]]),
        ('"1","2"\n\n3,4\n', [[1, 2], [3, 4]]),
        ("0,1,2\n5,6,7\n", [[5, 6, 7]]),
        (",a,b\n0,5,6\n1,7,8\n", [[5, 6], [7, 8]]),
    ],
    ids=["plain", "semicolons", "tabs", "gaps", "quotes", "counted-header", "row-numbers"],
)
def test_tables_of_text(text, expected, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_data(tmp_path / "t.csv").X, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n", "0 rows"),
        ("1,2\n3\n", "1 cells in row 2, and 2 in the first"),
        ("1,2\n3,=1+1\n", r"text in row 2: '=1\+1' in column 1; expected numbers"),
        ("1,2\n3,1_0\n", "row 2: '1_0'"),
        ("a,b\n1,x\n", "row 1: 'x' in column 'b'"),
        ("1,2\n3," + "9" * 200_000 + "\n", "field larger"),
    ],
    ids=["empty", "header", "ragged", "formula", "underscore", "word", "long"],
)
def test_bad_tables_say_where(text, message, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "t.csv")


def test_label_columns_are_found_by_name_or_number(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,7\n3,4,8\n")
    for place in (2, "2", -1, "-1"):
        data = read_data(tmp_path / "t.csv", label_column=place)
        np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
        assert list(data.labels) == ["7", "8"]
    for absent in ("kind", 3, -4, 1.5):
        with pytest.raises(DataError, match=f"no column {absent!r}; it has no header and 3 columns"):
            read_data(tmp_path / "t.csv", label_column=absent)


@pytest.mark.parametrize("name", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["c3", "c0"], [3, 0]),
        ([1, -2], [0, 11]),
        ("c2:c5", [2, 3, 4, 5]),
        (["c7:9", "1"], [7, 8, 0]),
        (4, [3]),
    ],
    ids=["names", "positions", "range", "mixed", "one"],
)
def test_data_columns_are_chosen_by_name_position_or_range(name, columns, expected, tmp_path):
    data = read_data(WRITERS[name](tmp_path), columns=columns, id_column=0)
    np.testing.assert_array_equal(data.X, X[:, expected])
    assert data.names == tuple(IDS)
    assert data.labels is None


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_columns_of_text_are_named_with_the_options_for_them(name, tmp_path):
    path = WRITERS[name](tmp_path)
    with pytest.raises(DataError, match=r"'id'.*'y'.*id_column= .*label_column= .*columns= \(--columns\)"):
        read_data(path)
    with pytest.raises(DataError, match="'y'") as caught:
        read_data(path, id_column="id")
    assert "'id'" not in str(caught.value)
    np.testing.assert_array_equal(read_data(path, columns="c0:c11").X, X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_column": "c1", "columns": "c0:c3"}, "columns: got the column 'c1' twice"),
        ({"id_column": "id", "label_column": 0}, "columns: got the column 'id' twice"),
        ({"columns": "c3:c1"}, "columns: got 'c3:c1'; expected first:last"),
        ({"id_column": "id", "label_column": "y", "sample_axis": 1}, "sample_axis: got 1; expected 0 with id_col"),
        ({"labels": "y"}, "labels: got 'y'; expected the default: options for .* are id_column, label_column, columns"),
    ],
    ids=["ids-are-data", "ids-are-labels", "backwards", "turned", "labels"],
)
def test_roles_of_columns_that_contradict_each_other(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_data(files.write_csv(tmp_path), **options)


def test_a_header_of_numbers_is_one_where_it_has_a_column_that_was_named(tmp_path):
    """Spectra often have the positions, such as ppm, as names of columns."""
    (tmp_path / "ppm.csv").write_text("id,9.5,4.5,0.5,group\na1,1,2,3,x\na2,4,5,6,y\n")
    data = read_data(tmp_path / "ppm.csv", id_column="id", label_column="group")
    np.testing.assert_array_equal(data.X, [[1, 2, 3], [4, 5, 6]])
    data = read_data(tmp_path / "ppm.csv", columns="4.5:0.5")
    np.testing.assert_array_equal(data.X, [[2, 3], [5, 6]])


def test_numbers_that_may_identify_samples_are_noted(tmp_path):
    (tmp_path / "t.csv").write_text("Sample ID,a,b\n17,1,2\n18,3,4\n")
    data = read_data(tmp_path / "t.csv")
    assert data.X.shape == (2, 3)
    assert "'Sample ID' was read as data; if it identifies the samples, use id_column=" in data.note
    data = read_data(tmp_path / "t.csv", id_column="Sample ID")
    assert data.names == ("17", "18")
    assert data.note == ""


def test_the_index_of_pandas_gives_the_identifiers(tmp_path):
    table = pd.DataFrame(X, index=[7, 3, 5, 1, 2, 9], columns=[f"c{k}" for k in range(12)])
    table.to_csv(tmp_path / "t.csv")
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        data = read_data(tmp_path / name)
        np.testing.assert_array_equal(data.X, X)
        assert data.names == ("7", "3", "5", "1", "2", "9")


def test_tables_of_pandas_come_back_as_they_were(tmp_path):
    table = pd.DataFrame(X).assign(kind=[f"k{label}" for label in Y])
    for name, index in (("with", True), ("without", False)):
        table.to_csv(tmp_path / f"{name}.csv", index=index)
        data = read_data(tmp_path / f"{name}.csv", label_column="kind")
        np.testing.assert_array_equal(data.X, X)
        assert list(data.labels) == list(table["kind"])
        assert bool(data.note) == index


def test_nulls_of_parquet_are_missing_and_text_is_refused(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, None], pa.int64()), "b": [1.0, 2.0]}), tmp_path / "n.parquet")
    np.testing.assert_array_equal(read_data(tmp_path / "n.parquet").X, [[1, 1], [np.nan, 2]])
    pq.write_table(pa.table({"a": ["x", None], "b": [1.0, 2.0]}), tmp_path / "s.parquet")
    with pytest.raises(DataError, match=r"columns that are not numbers: 'a' \(string\)"):
        read_data(tmp_path / "s.parquet")


# --- choosing ----------------------------------------------------------------------------------------------


def test_several_arrays_ask_for_a_key(tmp_path):
    np.savez(tmp_path / "two.npz", a=X, b=X)
    with pytest.raises(DataError, match=r"several arrays .*: choose one with key="):
        read_data(tmp_path / "two.npz")
    np.testing.assert_array_equal(read_data(tmp_path / "two.npz", key="b").X, X)
    with pytest.raises(DataError, match="has no array 'c'; it contains a 6x12, b 6x12"):
        read_data(tmp_path / "two.npz", key="c")


@pytest.mark.parametrize("name", ["absent.npy", "unknown.docx", "one.png"])
def test_paths_that_are_no_data(name, tmp_path):
    if "absent" not in name:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError, match=name):
        read_data(tmp_path / name)


def test_labels_must_fit_the_samples(tmp_path):
    np.savez(tmp_path / "y.npz", X=X, y=np.arange(5), z=np.full(6, 0.5))
    with pytest.raises(DataError, match=r"labels \(y\) of shape \(5,\) for 6 samples"):
        read_data(tmp_path / "y.npz", labels="y")
    with pytest.raises(DataError, match="not whole numbers"):
        read_data(tmp_path / "y.npz", labels="z")


def test_missing_library_says_what_to_install(tmp_path, monkeypatch):
    path = files.write_parquet(tmp_path)
    monkeypatch.setattr("gwntf.readers.samples.find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match=r"x.parquet needs pyarrow: pip install 'gwntf\[io\]'"):
        read_data(path)


# --- hostile files -----------------------------------------------------------------------------------------


def npy_header(shape, descr="<f8"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def test_npy_that_declares_more_than_it_holds_is_refused_before_allocating(tmp_path):
    (tmp_path / "big.npy").write_bytes(npy_header((HUGE,)) + b"\0" * 64)
    for lazy in (False, True):
        with pytest.raises(DataError, match="declares 8000000000000000 bytes of entries but contains 64"):
            read_data(tmp_path / "big.npy", lazy=lazy)


def test_nothing_is_unpickled(tmp_path):
    trap = Trap(tmp_path / "sprung")
    held = np.array([[trap, trap]], dtype=object)
    np.save(tmp_path / "o.npy", held, allow_pickle=True)
    np.savez(tmp_path / "o.npz", X=held, allow_pickle=True)
    (tmp_path / "p.npy").write_bytes(pickle.dumps(trap))
    for name in ("o.npy", "o.npz", "p.npy"):
        with pytest.raises(DataError):
            read_data(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_zarr_codecs_that_unpickle_are_refused(tmp_path):
    path = tmp_path / "t.zarr"
    zarr.create_array(path, data=X, chunks=(6, 12), zarr_format=2, compressors=None)
    meta = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps({**meta, "compressor": {"id": "pickle", "protocol": 4}}))
    (path / "0.0").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    for lazy in (False, True):
        with pytest.raises(DataError, match="pickle"):
            read_data(path, lazy=lazy)
    assert not (tmp_path / "sprung").exists()
    (path / ".zarray").write_text(json.dumps({**meta, "filters": [{"id": "base64"}]}))
    with pytest.raises(DataError, match="uses the codec 'base64', which is not allowed"):
        read_data(path)


def test_archive_that_unfolds_to_far_more_than_it_stores_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", npy_header((10, 2**20)) + b"\0" * 10 * 2**23)
    (tmp_path / "small.npz").write_bytes((tmp_path / "b.npz").read_bytes())
    assert (tmp_path / "b.npz").stat().st_size < 2**17
    with pytest.raises(DataError, match=r"max_bytes allows 10\.0 MB"):
        read_data(tmp_path / "b.npz", max_bytes=10**7)
    lying = (tmp_path / "b.npz").read_bytes()
    declared, claimed = struct.pack("<I", 10 * 2**23 + 128), struct.pack("<I", 2**32 - 2)
    assert lying.count(declared) == 2
    (tmp_path / "b.npz").write_bytes(lying.replace(declared, claimed))
    with pytest.raises(DataError, match=r"declares an array of 4\.3 GB but stores"):
        read_data(tmp_path / "b.npz", max_bytes=2**40)


def test_members_of_an_archive_are_never_written_to_disk(tmp_path):
    inner = io.BytesIO()
    np.save(inner, X)
    inside = tmp_path / "inside"
    inside.mkdir()
    with zipfile.ZipFile(inside / "slip.npz", "w") as archive:
        archive.writestr("../../outside.npy", inner.getvalue())
    np.testing.assert_array_equal(read_data(inside / "slip.npz").X, X)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inside", "slip.npz"]


def test_image_with_too_many_pixels_is_refused_before_it_is_decoded(tmp_path):
    files.write_images(tmp_path)
    path = tmp_path / "images-png" / "0" / "image0.png"
    whole = path.read_bytes()
    for width, height in ((60_000, 60_000), (4, 2**23)):
        head = b"IHDR" + struct.pack(">II", width, height) + whole[24:29]
        path.write_bytes(whole[:12] + head + struct.pack(">I", zlib.crc32(head)) + whole[33:])
        with pytest.raises(DataError, match=rf"image0\.png .*({width}x{height}|{width * height}) pixels"):
            read_data(tmp_path / "images-png")


def test_blank_page_is_read_however_well_it_is_compressed(tmp_path):
    Image.new("1", (2480, 3508)).save(tmp_path / "blank.png", optimize=True)
    assert read_data(tmp_path, size=(8, 6)).X.sum() == 0


def test_hdf5_that_stores_nothing_of_what_it_declares_is_refused(tmp_path):
    with h5py.File(tmp_path / "fill.h5", "w") as file:
        file.create_dataset("X", shape=(10**6, 10**6), chunks=(100, 100), dtype="f8", fillvalue=1)
        file.create_dataset("Y", shape=(10**4, 10**4), chunks=(100, 100), dtype="f8", fillvalue=1)
    with pytest.raises(DataError, match=r"declares an array of 8\.0 TB"):
        read_data(tmp_path / "fill.h5", key="X")
    with pytest.raises(DataError, match=r"declares an array of 800\.0 MB but stores 0 bytes"):
        read_data(tmp_path / "fill.h5", key="Y", max_bytes=2**40)


def test_hdf5_does_not_lead_to_other_files(tmp_path):
    (tmp_path / "secret").write_bytes(b"\1" * 64)
    files.write_h5(tmp_path)
    with h5py.File(tmp_path / "out.h5", "w") as file:
        file.create_dataset("ext", shape=(4, 2), dtype="f8", external=[(str(tmp_path / "secret"), 0, 64)])
        file["link"] = h5py.ExternalLink(str(tmp_path / "x.h5"), "X")
        layout = h5py.VirtualLayout(shape=(6, 12), dtype="f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "x.h5"), "X", shape=(6, 12))
        file.create_virtual_dataset("virtual", layout)
    for key, message in (
        ("ext", "in other files"),
        ("virtual", "in other files"),
        ("link", "no array 'link'"),
    ):
        with pytest.raises(DataError, match=message):
            read_data(tmp_path / "out.h5", key=key)


def test_mat_with_silly_sizes_is_refused(tmp_path):
    whole = files.write_mat(tmp_path).read_bytes()
    sizes = struct.pack("<ii", 6, 12)
    assert whole.count(sizes) == 1
    (tmp_path / "x.mat").write_bytes(whole.replace(sizes, struct.pack("<ii", 2**31 - 1, 2**31 - 1)))
    with pytest.raises(DataError, match="declares an array of"):
        read_data(tmp_path / "x.mat", labels="y")


def test_zarr_with_a_giant_shape_is_refused(tmp_path):
    path = files.write_zarr(tmp_path)
    meta = json.loads((path / "X" / "zarr.json").read_text())
    (path / "X" / "zarr.json").write_text(json.dumps({**meta, "shape": [HUGE, 12]}))
    with pytest.raises(DataError, match="declares an array of 96 PB"):
        read_data(path, key="X")
    (path / "X" / "zarr.json").write_text(json.dumps({**meta, "shape": [6, 2**18]}))
    with pytest.raises(DataError, match="declares 131072 chunks but stores"):
        read_data(path, key="X")
    chunk = {"name": "regular", "configuration": {"chunk_shape": [HUGE, 12]}}
    (path / "X" / "zarr.json").write_text(json.dumps({**meta, "chunk_grid": chunk}))
    with pytest.raises(DataError, match="has chunks of"):
        read_data(path, key="X", lazy=True)


def test_sparse_matrix_whose_indices_point_outside_is_refused(tmp_path):
    parts = {"format": b"csr", "shape": (2, 3), "data": [1.0, 2.0], "indices": [0, 9], "indptr": [0, 1, 2]}
    np.savez(tmp_path / "bad.npz", **{name: np.asarray(value) for name, value in parts.items()})
    with pytest.raises(DataError, match="could not be read"):
        read_data(tmp_path / "bad.npz")


# --- the child process -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import os; os.abort()", r"the library that reads it crashed \(exit code -6\)"),
        ("while True: pass", "was not read within 1 s"),
    ],
    ids=["crash", "hang"],
)
def test_a_library_that_crashes_or_hangs_takes_nothing_with_it(script, message, tmp_path, monkeypatch):
    path = files.write_mat(tmp_path)
    monkeypatch.setattr(matlab, "CHILD_CODE", script)
    monkeypatch.setattr(matlab, "_TIMEOUT", 1.0)
    with pytest.raises(DataError, match=message):
        read_data(path)


def test_reading_apart_loads_nothing_of_the_package(tmp_path):
    """But for the checks of sizes: the real packages above them stay out, and start-up stays quick."""
    request = {"reader": "mat5", "path": str(files.write_mat(tmp_path)), "key": None, "labels": None}
    loaded = "print(); print(sorted(name for name in sys.modules if name.startswith(('gwntf', 'sklearn'))))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", matlab.CHILD_CODE + loaded],
        input=json.dumps({**request, "max_bytes": 10**6, "folder": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    answer, modules = done.stdout.splitlines()
    assert json.loads(answer) == {"arrays": ["X"]}
    assert modules == str(["gwntf", "gwntf.readers", "gwntf.readers.isolated", "gwntf.readers.limits"])


# --- summaries ---------------------------------------------------------------------------------------------


def test_summary_counts_what_a_loop_counts(tmp_path):
    values = np.array([[0.0, 2.5, np.nan], [-1.0, np.inf, 0.0]])
    found = summarise(values)
    assert (found.zeros, found.missing, found.infinite, found.negative, found.entries) == (2, 1, 1, 1, 6)
    assert (found.smallest, found.largest) == (-1.0, 2.5)
    sparse = summarise(read_data(files.write_sparse(tmp_path)).X)
    dense = summarise(np.where(X > 0.5, X, 0))
    assert sparse.sparse
    assert (sparse.zeros, sparse.largest, sparse.smallest) == (dense.zeros, dense.largest, dense.smallest)


def test_readers_load_no_library_before_it_is_needed():
    code = (
        "import sys, gwntf; "
        "print([n for n in ('h5py', 'pyarrow.parquet', 'PIL', 'zarr', 'scipy.io.matlab') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert gwntf.read_data is read_data
