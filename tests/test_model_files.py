"""Models in files: they come back the same, and whatever is not one of ours is refused."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import gwntf
from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    InputError,
    KNNGraph,
    ModelFileError,
    SeparableCost,
    TensorClustering,
    TransportOptions,
)
from gwntf.estimators.files import FITTED_FIELDS, KNOWN, OPTIONAL_FIELDS
from gwntf.estimators.records import SESSION
from gwntf.io.container import MAX_HEADER, read_container, write_container
from gwntf.io.documents import Packer, Unpacker
from tests.backends import needs_torch

FIXTURE = Path(__file__).parent / "files" / "model-v1.gwntf"
CLASSES = [GNCP, GNMF, GWNTF, NCP, NMF, SDNMF, SWIFT]
QUICK = {"max_iter": 4, "tol": 0, "random_state": 0, "engine": "numpy"}


def data(shape=(14, 3, 4), seed=0):
    return np.random.default_rng(seed).random(shape)


def saved(model, folder):
    path = folder / "model.gwntf"
    model.save(path)
    return gwntf.load(path)


def sealed(body: bytes) -> bytes:
    """The body with its digest: what somebody would write who means harm and knows the format."""
    return body + hashlib.sha256(body).digest()


def built(header: bytes, rest: bytes = b"", *, version: int = 1, length: int | None = None) -> bytes:
    prefix = struct.pack("<8sII", b"\x89GWNTF\r\n", version, len(header) if length is None else length)
    body = prefix + header
    return sealed(body + bytes(-len(body) % 64) + rest)


@pytest.fixture(scope="module")
def small_file(tmp_path_factory) -> bytes:
    """A model in as few bytes as there can be."""
    path = tmp_path_factory.mktemp("small") / "model.gwntf"
    NMF(1, max_iter=1, tol=0, random_state=0, engine="numpy").fit(data((3, 2))).save(path)
    return path.read_bytes()


def refused(content: bytes, folder: Path) -> str:
    path = folder / "bad.gwntf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        gwntf.load(path)
    assert isinstance(caught.value, ValueError)
    assert str(path) in str(caught.value)
    return str(caught.value)


# --- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
def test_a_loaded_model_does_the_same_to_the_bit(cls, tmp_path):
    X, new = data(), data((6, 3, 4), seed=1)
    new[0, 0, 0] = np.nan
    model = cls(3, missing="ignore", **QUICK).fit(X)
    again = saved(model, tmp_path)
    assert type(again) is cls
    assert again.get_params() == model.get_params()
    for method in ("transform", "impute", "reconstruct", "score"):
        np.testing.assert_array_equal(getattr(again, method)(new), getattr(model, method)(new))
    np.testing.assert_array_equal(again.components_, model.components_)
    np.testing.assert_array_equal(again.objective_curve_, model.objective_curve_)
    assert again.objective_terms_ == model.objective_terms_
    assert again.status_ is model.status_
    assert set(vars(again)) == set(vars(model))


def test_every_estimator_of_the_package_can_be_saved():
    public = [getattr(gwntf, name) for name in gwntf.__all__]
    estimators = {thing for thing in public if isinstance(thing, type) and hasattr(thing, "fit")}
    assert estimators == set(KNOWN.values())


def test_every_fitted_attribute_is_written_or_can_be_had_from_others():
    clusterer = TensorClustering(3, max_iter=2, engine="numpy", random_state=0).fit(data((30, 4, 5)))
    model = clusterer.model_
    kept = {name for name in vars(model) if name not in model.get_params()}
    assert kept - {*FITTED_FIELDS, *OPTIONAL_FIELDS} == {"_clusters", "_plain", "_start_labels"}


def test_saving_twice_writes_the_same_bytes(tmp_path):
    model = GWNTF(2, **QUICK).fit(data())
    model.save(tmp_path / "a.gwntf")
    saved(model, tmp_path).save(tmp_path / "b.gwntf")
    assert (tmp_path / "a.gwntf").read_bytes() == (tmp_path / "b.gwntf").read_bytes()


@given(
    rank=st.integers(1, 4),
    norm=st.sampled_from(["l1", "l2", None]),
    dtype=st.sampled_from(["float32", "float64", None]),
    alpha=st.sampled_from([0.5, float("inf"), np.float32(2.0)]),
    costs=st.sampled_from(
        [
            "auto",
            [None, None, None],
            (None, np.asfortranarray(np.abs(np.subtract.outer(range(3), range(3)))) / 3.0, "grid2"),
            ["cosine", "grid", SeparableCost([np.ones((2, 2)), np.eye(2)])],
        ]
    ),
    graph=st.sampled_from([None, "csr", "csc", "coo", "lil", "dense"]),
    seed=st.sampled_from([3, None, np.random.RandomState(5)]),
)
def test_parameters_of_every_kind_come_back(tmp_path_factory, rank, norm, dtype, alpha, costs, graph, seed):
    ring = np.roll(np.eye(8), 1, axis=0) + np.roll(np.eye(8), -1, axis=0)
    ready = {None: None, "dense": ring}.get(graph, sp.csr_array(ring).asformat(graph if graph != "dense" else None))
    ready = ready if graph else None
    params = {"sample_norm": norm, "dtype": dtype, "reg_m": (alpha, 1.5), "costs": costs, "graph": ready}
    model = GWNTF(rank, max_iter=2, tol=0, engine="numpy", random_state=seed, **params).fit(data((8, 3, 4)))
    again = saved(model, tmp_path_factory.mktemp("params"))
    for name, value in again.get_params().items():
        same(value, model.get_params()[name])
    np.testing.assert_array_equal(again.reconstruct(data((8, 3, 4))), model.reconstruct(data((8, 3, 4))))


def same(found, wanted):
    """Equal in kind and content, also where == says nothing."""
    if sp.issparse(wanted):
        assert isinstance(found, sp.sparray) == isinstance(wanted, sp.sparray)
        np.testing.assert_array_equal(found.toarray(), wanted.toarray())
        return
    assert type(found) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert found.flags.f_contiguous == wanted.flags.f_contiguous
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, list | tuple):
        for a, b in zip(found, wanted, strict=True):
            same(a, b)
    elif isinstance(wanted, SeparableCost):
        same(found.axes, wanted.axes)
    elif isinstance(wanted, np.random.RandomState):
        np.testing.assert_equal(found.get_state(), wanted.get_state())
    else:
        assert found == wanted


@pytest.mark.parametrize("metric", ["cosine", "wasserstein", "orientation"])
@pytest.mark.parametrize("weight", ["binary", "cosine", "self-tuning"])
def test_a_loaded_model_ties_new_samples_as_before(metric, weight, tmp_path):
    X, new = data((20, 5, 6)), data((7, 5, 6), seed=2)
    model = GWNTF(3, graph=KNNGraph(metric=metric, weight=weight), graph_reg=10.0, **QUICK).fit(X)
    again = saved(model, tmp_path)
    np.testing.assert_array_equal(again.transform(new), model.transform(new))
    assert not np.array_equal(again.transform(new), again.set_params(graph_reg=0.0).transform(new))


def test_a_near_far_cost_comes_back(tmp_path):
    X = np.random.default_rng(0).random((1100, 6))
    model = GWNTF(2, costs=["cosine", "grid"], max_iter=1, tol=0, graph_reg=0, random_state=0)
    model.set_params(transport=TransportOptions(kernel_tol=0.5))
    again = saved(model.fit(X), tmp_path)
    places = np.arange(40)
    np.testing.assert_array_equal(again.costs_[0].between(places, places), model.costs_[0].between(places, places))
    assert again.costs_[0].error == model.costs_[0].error


def test_sparse_and_named_features_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data((9, 3)), columns=["a", "b\u00e9", "\U0001f600"])
    again = saved(NMF(2, **QUICK).fit(frame), tmp_path)
    assert list(again.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["b\u00e9", "a", "\U0001f600"]])
    counts = sp.random_array((12, 8), density=0.4, random_state=np.random.default_rng(1), format="csr")
    model = SWIFT(2, **QUICK).fit(counts)
    np.testing.assert_array_equal(saved(model, tmp_path).transform(counts), model.transform(counts))


@needs_torch
def test_a_model_of_tensors_is_saved_as_arrays_of_the_host(tmp_path):
    import torch

    X = torch.as_tensor(data())
    model = GWNTF(3, max_iter=4, tol=0, random_state=0, dtype="float64").fit(X)
    again = saved(model, tmp_path)
    assert isinstance(again.embedding_, np.ndarray)
    assert torch.equal(again.transform(X), model.transform(X))


# --- what is not saved, and says so -----------------------------------------------------------------------------------


def test_an_unfitted_model_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        NMF().save(tmp_path / "model.gwntf")
    assert not list(tmp_path.iterdir())


def test_callbacks_are_not_written_and_functions_are_refused(tmp_path):
    model = GNMF(2, callbacks=[lambda news: None], **QUICK).fit(data())
    assert saved(model, tmp_path).callbacks is None
    assert set(SESSION) <= set(model.get_params())
    model = GNMF(2, graph=KNNGraph(metric=lambda samples: samples.reshape(len(samples), -1)), **QUICK).fit(data())
    with pytest.raises(InputError, match=r"graph\.metric: got a function"):
        model.save(tmp_path / "other.gwntf")
    assert not (tmp_path / "other.gwntf").exists()


def test_long_lists_in_place_of_arrays_are_told(tmp_path):
    lists = [[0.123456789] * 700] * 700
    model = NCP(2, init=[np.ones((14, 2)), np.ones((3, 2)), np.ones((4, 2))], **QUICK).fit(data())
    with pytest.raises(InputError, match="use arrays instead of long lists"):
        model.set_params(init=lists).save(tmp_path / "model.gwntf")


def test_a_class_that_is_not_ours_is_refused(tmp_path):
    class Mine(NMF):
        pass

    with pytest.raises(InputError, match="Mine"):
        Mine(2, **QUICK).fit(data()).save(tmp_path / "model.gwntf")


# --- files that must be refused ---------------------------------------------------------------------------------------


def test_a_file_with_any_byte_changed_is_refused(small_file, tmp_path):
    path = tmp_path / "bad.gwntf"
    for place in range(len(small_file)):
        changed = bytearray(small_file)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            gwntf.load(path)


def test_a_file_with_bytes_missing_or_added_is_refused(small_file, tmp_path):
    for length in range(0, len(small_file), 7):
        refused(small_file[:length], tmp_path)
    refused(small_file[:-1], tmp_path)
    refused(small_file + b"\0", tmp_path)
    refused(small_file + small_file, tmp_path)


def test_a_foreign_file_a_later_version_and_a_checkpoint_are_told_apart(small_file, tmp_path):
    assert "is not a gwntf file" in refused(b"PK\x03\x04 something else, long enough to be one", tmp_path)
    later = small_file[:8] + struct.pack("<I", 2) + small_file[12:-32]
    assert "format version 2" in refused(sealed(later), tmp_path)
    write_container(tmp_path / "run.ckpt", "checkpoint", {}, [])
    assert "it is a checkpoint" in refused((tmp_path / "run.ckpt").read_bytes(), tmp_path)


HOSTILE = {
    "a header longer than the file": built(b"{}", length=2**20),
    "a header longer than allowed": built(b" " * (MAX_HEADER + 1)),
    "no JSON": built(b"{"),
    "JSON that is no header": built(b"[1, 2]"),
    "not a number": built(b'{"kind":NaN}'),
    "brackets without end": built(b"[" * 100_000),
    "braces without end": built(b'{"a":' * 100_000),
    "a number of a million digits": built(b'{"kind":' + b"9" * 1_000_000 + b"}"),
    "an array larger than the file": built(
        b'{"kind":"model","content":{},"arrays":[{"dtype":"<f8","shape":[1000000000000]}]}'
    ),
    "an array larger than any": built(
        b'{"kind":"model","content":{},"arrays":[{"dtype":"<f8","shape":[4611686018427387904,4611686018427387904]}]}'
    ),
    "an array of no entries but great length": built(
        b'{"kind":"model","content":{},"arrays":[{"dtype":"<f8","shape":[0,4611686018427387904,4611686018427387904]}]}'
    ),
    "a negative size": built(b'{"kind":"model","content":{},"arrays":[{"dtype":"<f8","shape":[-8]}]}'),
    "objects": built(b'{"kind":"model","content":{},"arrays":[{"dtype":"|O","shape":[8]}]}', bytes(64)),
    "truth values that are none": built(
        b'{"kind":"model","content":{},"arrays":[{"dtype":"|b1","shape":[1]}]}', b"\7" + bytes(63)
    ),
    "an unknown class": built(
        b'{"kind":"model","content":{"class":"os.system","params":{"dict":{}},"fitted":{"dict":{}}},"arrays":[]}'
    ),
    "an unknown record": built(
        b'{"kind":"model","content":{"class":{"record":"subprocess.Popen","fields":{}}},"arrays":[]}'
    ),
    "an array that is not there": built(b'{"kind":"model","content":{"class":{"array":7}},"arrays":[]}'),
    "deep values": built(b'{"kind":"model","content":{"class":' + b"[" * 500 + b"]" * 500 + b'},"arrays":[]}'),
    "very many lists": built(b'{"kind":"model","arrays":[],"content":{"class":[' + b"[]," * 200_000 + b"[]]}}"),
    "nothing": built(b'{"kind":"model","content":{},"arrays":[]}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_with_the_right_digest_is_refused(name, tmp_path):
    tracemalloc.start()
    try:
        refused(HOSTILE[name], tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_attributes_that_do_not_fit_each_other_are_refused(tmp_path):
    path = tmp_path / "model.gwntf"
    GWNTF(2, **QUICK).fit(data()).save(path)
    content, arrays = read_container(path, "model")
    for place in range(len(arrays)):
        shorter = [array[:-1] if k == place and array.ndim else array for k, array in enumerate(arrays)]
        write_container(tmp_path / "bad.gwntf", "model", content, shorter)
        curve = content["fitted"]["dict"]["objective_curve_"]["array"]
        if place != curve:
            refused((tmp_path / "bad.gwntf").read_bytes(), tmp_path)
    for name in FITTED_FIELDS:
        changed = json.loads(json.dumps(content))
        del changed["fitted"]["dict"][name]
        write_container(tmp_path / "bad.gwntf", "model", changed, arrays)
        refused((tmp_path / "bad.gwntf").read_bytes(), tmp_path)
    changed = json.loads(json.dumps(content))
    changed["params"]["dict"]["n_components"] = -1
    write_container(tmp_path / "bad.gwntf", "model", changed, arrays)
    assert "n_components" in refused((tmp_path / "bad.gwntf").read_bytes(), tmp_path)


@given(
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=0, max_size=6), st.integers(0, 6)), max_size=4),
    resealed=st.booleans(),
)
def test_a_mutated_file_is_loaded_or_refused_and_nothing_else(small_file, tmp_path_factory, edits, resealed):
    """Also where the digest was made anew, so that the mutation reaches what reads the header and the values."""
    body = bytearray(small_file[:-32])
    for where, piece, cut in edits:
        place = int(where * len(body))
        body[place : place + cut] = piece
    content = sealed(bytes(body)) if resealed else bytes(body) + small_file[-32:]
    path = tmp_path_factory.mktemp("fuzz") / "model.gwntf"
    path.write_bytes(content)
    try:
        model = gwntf.load(path)
    except ModelFileError:
        return
    assert resealed or content == small_file
    assert model.factors_[0].shape == (3, 1)


def test_what_is_no_file_is_an_error_and_no_wait(tmp_path):
    with pytest.raises(FileNotFoundError):
        gwntf.load(tmp_path / "nothing.gwntf")
    with pytest.raises(IsADirectoryError):
        gwntf.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a regular file"):
        gwntf.load(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a regular file"):
        gwntf.load("/dev/zero")


# --- values -----------------------------------------------------------------------------------------------------------

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from([np.float32(1.5), np.int64(-3), np.bool_(True)])
)


@given(
    st.recursive(LEAVES, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner))
)
def test_values_come_back_as_they_were(value):
    packer = Packer()
    content = json.loads(json.dumps(packer.pack(value, "value"), allow_nan=False))
    found = Unpacker({}, packer.arrays).unpack(content)
    assert found == value
    assert repr(found) == repr(value)


@given(st.lists(st.text()))
def test_texts_come_back_as_they_were(texts):
    packer = Packer()
    content = packer.pack(np.array([*texts, "end"], dtype=object), "texts")
    assert list(Unpacker({}, packer.arrays).unpack(content)) == [*texts, "end"]


@pytest.mark.parametrize("order", ["C", "F", "strided", "big-endian"])
def test_arrays_come_back_as_they_were(order, tmp_path):
    array = np.arange(24.0).reshape(2, 3, 4)
    given = {
        "C": array,
        "F": np.asfortranarray(array),
        "strided": array[:, ::2],
        "big-endian": array.astype(">f8"),
    }[order]
    write_container(tmp_path / "file", "model", None, [given, given[:0], np.array(3)])
    _, (found, empty, scalar) = read_container(tmp_path / "file", "model")
    np.testing.assert_array_equal(found, given)
    assert found.flags.f_contiguous == given.flags.f_contiguous
    assert found.flags.writeable
    assert found.dtype == np.float64
    assert empty.shape == given[:0].shape
    assert scalar == 3


# --- old files --------------------------------------------------------------------------------------------------------


def test_a_file_of_format_version_1_is_read_and_transforms_as_when_it_was_written():
    model = gwntf.load(FIXTURE)
    expected = np.load(FIXTURE.with_suffix(".npz"))
    assert isinstance(model, GWNTF)
    np.testing.assert_allclose(model.transform(expected["X"]), expected["transform"], rtol=1e-10)
    np.testing.assert_allclose(model.impute(expected["X"]), expected["impute"], rtol=1e-10)
    assert model.reg_m == (np.inf, 1.0)
    assert (model.graph.n_neighbors, model.graph.weight) == (4, "cosine")
    assert model.transport.max_iter == 12
    assert FIXTURE.read_bytes()[8] == 1


def test_a_file_is_laid_out_as_the_page_says():
    """Read it by the table of docs/reliability.md alone."""
    content = FIXTURE.read_bytes()
    assert content[:8].hex(" ") == "89 47 57 4e 54 46 0d 0a"
    assert int.from_bytes(content[8:12], "little") == 1
    length = int.from_bytes(content[12:16], "little")
    header = json.loads(content[16 : 16 + length].decode("ascii"))
    assert set(header) == {"kind", "library", "arrays", "content"}
    place, arrays = 16 + length, []
    for entry in header["arrays"]:
        assert set(content[place : place + -place % 64]) <= {0}
        place += -place % 64
        values = np.frombuffer(content, entry["dtype"], int(np.prod(entry["shape"])), place)
        arrays.append(values.reshape(entry["shape"], order=entry.get("order", "C")))
        place += values.nbytes
    assert len(content) == place + -place % 64 + 32
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    assert set(header["content"]) == {"class", "params", "fitted"}
    places = header["content"]["fitted"]["dict"]["factors_"]
    for place, factor in zip(places, gwntf.load(FIXTURE).factors_, strict=True):
        np.testing.assert_array_equal(arrays[place["array"]], factor)


if __name__ == "__main__":  # how the file of the present version was made
    training, new = data((12, 3, 4)), data((4, 3, 4), seed=9)
    new[1, 2, 3] = np.nan
    model = GWNTF(
        2,
        reg_m=(np.inf, 1.0),
        missing="ignore",
        graph=KNNGraph(4, weight="cosine"),
        graph_reg=5.0,
        transport=TransportOptions(12),
        **QUICK,
    ).fit(training)
    model.save(FIXTURE)
    results = {name: getattr(model, name)(new) for name in ("transform", "impute")}
    np.savez(FIXTURE.with_suffix(".npz"), X=new, **results)
