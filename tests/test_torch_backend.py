"""What is special to the torch backend: tensors in and out, devices, TF32, memory that runs out."""

from __future__ import annotations

import pickle
import subprocess
import sys
import types
import warnings
from itertools import chain

import numpy as np
import pytest
from scipy.sparse import csr_array

from gwntf import GNMF, GWNTF, NCP, NMF, DeviceMemoryError, InputError, KNNGraph, TensorClustering
from gwntf.backends import get_backend, registry
from gwntf.core import MissingLibraryError
from gwntf.datasets import load_digits_tensor
from gwntf.losses import transport as transport_module
from gwntf.model_selection import stability_curve

torch = pytest.importorskip("torch", reason="torch is not installed")

from gwntf.backends.torch import backend as backend_module  # noqa: E402
from gwntf.backends.torch import memory, sparse  # noqa: E402


def digits(count=60):
    return load_digits_tensor()[0][:count]


def small(**options):
    return GWNTF(4, **{"max_iter": 4, "tol": 0, "random_state": 0, "graph_reg": 10.0, **options})


ARRAYS = ("embedding_", "components_", "sample_scale_")


def test_tensors_come_back_as_tensors_and_numpy_as_numpy():
    X = digits()
    by_numpy = small(engine="torch").fit(X)
    by_tensor = small().fit(torch.from_numpy(X))
    for name in ARRAYS:
        a, b = getattr(by_numpy, name), getattr(by_tensor, name)
        assert isinstance(a, np.ndarray)
        assert isinstance(b, torch.Tensor)
        assert a.dtype == np.float32
        assert b.dtype == torch.float32
        np.testing.assert_array_equal(a, b.numpy())
    assert all(isinstance(factor, torch.Tensor) for factor in by_tensor.factors_)
    assert isinstance(by_tensor.objective_curve_, np.ndarray)
    assert isinstance(by_tensor.objective_, float)


def test_every_method_gives_back_what_it_was_given():
    """Whatever the fit was given: tensors, NumPy arrays and lists may be mixed."""
    X = digits()
    tensor = torch.from_numpy(X)
    for model in (small().fit(tensor), small(engine="torch").fit(X)):
        Z = model.transform(tensor[:5])
        assert isinstance(Z, torch.Tensor)
        assert isinstance(model.transform(X[:5]), np.ndarray)
        assert isinstance(model.transform(X[:5].tolist()), np.ndarray)
        np.testing.assert_allclose(model.transform(X[:5]), Z, rtol=1e-3, atol=1e-5)
        for method, values in ((model.inverse_transform, Z), (model.reconstruct, tensor[:5])):
            assert isinstance(method(values), torch.Tensor)
            assert method(values).shape == (5, 8, 8)
            np.testing.assert_allclose(method(values.numpy()), method(values), rtol=1e-3, atol=1e-5)
        assert isinstance(model.score(tensor), float)


def test_new_samples_joined_by_the_graph_come_back_as_they_were_given():
    """Whichever of tensors and NumPy arrays the fit was given, also where the model was pickled in between."""
    X, new = digits(60), load_digits_tensor()[0][60:70]
    tensor, found = torch.from_numpy(X), []
    for model in (small().fit(tensor), small(engine="torch").fit(X)):
        model = pickle.loads(pickle.dumps(model))  # noqa: S301
        by_tensor, by_numpy = model.transform(torch.from_numpy(new)), model.transform(new)
        assert isinstance(by_tensor, torch.Tensor)
        assert isinstance(by_numpy, np.ndarray)
        np.testing.assert_allclose(by_numpy, by_tensor.numpy(), rtol=1e-3, atol=1e-5)
        found.append(by_tensor)
    np.testing.assert_array_equal(*found)


def test_labels_of_tensors_are_numpy_arrays():
    """Whichever of tensors and NumPy arrays the fit was given, also where the clusterer was pickled in between."""
    X, new = digits(60), load_digits_tensor()[0][60:70]
    for clusterer, given in ((TensorClustering(4), torch.from_numpy(X)), (TensorClustering(4, engine="torch"), X)):
        labels = clusterer.set_params(max_iter=3, random_state=0).fit_predict(given)
        assert isinstance(labels, np.ndarray)
        assert labels.dtype.kind == "i"
        clusterer = pickle.loads(pickle.dumps(clusterer))  # noqa: S301
        predicted = clusterer.predict(torch.from_numpy(new))
        assert isinstance(predicted, np.ndarray)
        np.testing.assert_array_equal(clusterer.predict(new), predicted)


def test_stability_of_tensors_is_that_of_arrays():
    X = digits(40)
    found = [
        stability_curve(small(engine="torch"), given, [2, 3], n_seeds=2, random_state=0).component_agreement
        for given in (X, torch.from_numpy(X))
    ]
    np.testing.assert_array_equal(*found)


def test_graph_of_a_tensor_is_that_of_the_array():
    X = digits(40)
    rule = KNNGraph(3, weight="cosine")
    np.testing.assert_array_equal(rule.build(torch.from_numpy(X)).toarray(), rule.build(X).toarray())


def test_holes_are_filled_in_what_was_given():
    """A tensor for a tensor, whose own entries stay as they are, and a NumPy array for a masked one."""
    X = digits()
    hidden = np.random.default_rng(0).random(X.shape) < 0.2
    tensor, masked = torch.from_numpy(np.where(hidden, np.nan, X)), np.ma.MaskedArray(X, mask=hidden)
    by_tensor, by_mask = small(missing="ignore"), small(missing="ignore", engine="torch")
    for method in ("fit_impute", "impute"):
        filled, other = getattr(by_tensor, method)(tensor), getattr(by_mask, method)(masked)
        assert isinstance(filled, torch.Tensor)
        assert type(other) is np.ndarray
        np.testing.assert_array_equal(filled.numpy(), other)
        np.testing.assert_array_equal(other[~hidden], X[~hidden])
        assert tensor.isnan().numpy()[hidden].all()
    whole = torch.from_numpy(X)
    assert by_tensor.set_params(dtype="float64").impute(whole).data_ptr() != whole.data_ptr()
    with pytest.raises(InputError, match="masked entries"):
        small(engine="torch").fit(masked)


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_backends_of_the_host_also_give_tensors_back(engine):
    X = digits()
    found = small(engine=engine).fit(torch.from_numpy(X))
    expected = small(engine=engine).fit(X)
    assert isinstance(found.embedding_, torch.Tensor)
    np.testing.assert_array_equal(found.embedding_.numpy(), expected.embedding_)
    assert isinstance(found.transform(torch.from_numpy(X[:5])), torch.Tensor)


class Namespace:
    @staticmethod
    def from_dlpack(values):
        return Foreign(np.array(np.from_dlpack(values)))  # writeable, as older versions of DLPack want it


class Foreign:
    """An array of some library that speaks DLPack and nothing else."""

    def __init__(self, values):
        self._values = values
        self.shape, self.dtype = values.shape, values.dtype

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()

    def __len__(self):
        return len(self._values)

    def __array_namespace__(self):
        return Namespace


def test_arrays_of_other_libraries_come_in_and_go_out_by_dlpack():
    X = digits()
    model = small(engine="torch").fit(Foreign(X))
    assert isinstance(model.embedding_, Foreign)
    expected = small(engine="torch").fit(X)
    np.testing.assert_array_equal(np.from_dlpack(model.embedding_), expected.embedding_)
    found = model.transform(Foreign(X[:5]))
    np.testing.assert_allclose(np.from_dlpack(found), expected.transform(X[:5]), rtol=1e-5)
    assert isinstance(model.inverse_transform(found), Foreign)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16", "int64", "uint8", "bool"])
def test_number_types_of_tensors(kind):
    """float32 unless float64 is asked for, whatever comes."""
    X = torch.from_numpy(digits() > 7).to(getattr(torch, kind))
    expected = small(engine="torch").fit(X.to(torch.float32).numpy()).embedding_
    np.testing.assert_array_equal(small().fit(X).embedding_.numpy(), expected)
    assert small(dtype="float64").fit(X).embedding_.dtype == torch.float64


def test_tensors_with_gradients_strides_or_read_only_memory_are_taken():
    X = digits()
    expected = small(engine="torch").fit(X).embedding_
    strided = torch.from_numpy(X.transpose(2, 1, 0).copy()).permute(2, 1, 0)
    graded = torch.from_numpy(X.copy()).requires_grad_()
    frozen = X.copy()
    frozen.flags.writeable = False
    for given in (strided, graded, frozen):
        found = small(engine="torch").fit(given).embedding_
        np.testing.assert_array_equal(np.asarray(found), expected)
        assert not getattr(found, "requires_grad", False)


def test_the_input_is_not_written_to():
    X = torch.from_numpy(digits().astype(np.float32))
    before = X.clone()
    small(sample_norm=None).fit(X)
    assert torch.equal(X, before)


def test_auto_follows_the_data():
    tensor = torch.ones(3, 2)
    assert get_backend("auto", given=np.ones((3, 2))).name == "cpu"
    assert get_backend("auto", given=tensor).name == "torch"
    assert get_backend("auto", given=np.ones((3, 2)), device="cpu").name == "torch"
    assert get_backend("cpu", given=tensor).name == "cpu"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "numpy", "device": "cpu"}, "device: got 'cpu' with engine='numpy'; expected None"),
        ({"engine": "cpu", "device": "cuda"}, "device: got 'cuda' with engine='cpu'; expected None"),
        ({"device": "mps"}, "device: got 'mps'; expected 'cpu', 'cuda' or 'cuda:N'"),
        ({"device": "the attic"}, "device: got 'the attic'; expected 'cpu', 'cuda' or 'cuda:N'"),
        ({"device": "cuda"}, "device: got 'cuda'; expected 'cpu': torch .* finds no CUDA device"),
    ],
)
def test_impossible_devices_are_refused_before_any_work(options, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=message):
        small(**options).fit(digits())


def test_devices_beyond_the_last_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=r"device: got 'cuda:2'; expected .* with N below 2"):
        get_backend("torch", device="cuda:2")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (torch.ones(3), "X: got 1 dimension"),
        (torch.ones(3, 0), "X: got the empty shape"),
        (torch.ones(3, 2, 0), "X: got the empty shape"),
        (torch.ones(3, 2, dtype=torch.complex64), "X: got entries of type torch.complex64"),
        (torch.tensor([[1.0, torch.inf], [1, 1]]), "X: got infinite entries"),
        (torch.tensor([[1.0, torch.nan], [1, 1]]), "X: got 1 NaN entry"),
        (torch.tensor([[1.0, -2], [1, 1]]), "X: got 1 negative entry \\(smallest -2\\)"),
        (torch.tensor([[1e300, 1], [1, 1]], dtype=torch.float64), "X: got numbers up to 1e\\+300"),
    ],
)
def test_bad_tensors_are_refused(X, message):
    with pytest.raises(InputError, match=message):
        GNMF(1).fit(X)


def test_new_samples_of_another_shape_are_refused():
    model = small().fit(torch.from_numpy(digits()))
    with pytest.raises(InputError, match=r"samples of shape \(8, 7\)"):
        model.transform(torch.ones(3, 8, 7))
    with pytest.raises(InputError, match=r"samples of shape \(7, 8\)"):
        model.transform(torch.ones(3, 7, 8))
    with pytest.raises(InputError, match="Z: got shape"):
        model.inverse_transform(torch.ones(3, 7))
    with pytest.raises(InputError, match="Z: got entries that are not finite"):
        model.inverse_transform(torch.full((3, 4), torch.nan))


def test_without_torch_the_backend_says_what_to_install(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(MissingLibraryError, match="pip install torch"):
        get_backend("torch")


def test_starts_graphs_and_costs_may_be_tensors():
    X = digits(30)
    rng = np.random.default_rng(0)
    init, graph = [rng.random((size, 4)) for size in X.shape], np.ones((30, 30)) - np.eye(30)
    costs = [None, rng.random((8, 8)), None]
    given = {
        "init": [torch.from_numpy(a) for a in init],
        "graph": torch.from_numpy(graph),
        "costs": [None, torch.from_numpy(costs[1]), None],
    }
    found = small(engine="torch", **given).fit(X)
    expected = small(engine="torch", init=init, graph=graph, costs=costs).fit(X)
    np.testing.assert_array_equal(found.embedding_, expected.embedding_)


@pytest.fixture
def matmul_precision():
    """Set torch's own precision of float32 products, which is restored after the test."""
    before = torch.get_float32_matmul_precision()
    yield torch.set_float32_matmul_precision
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(("precision", "exact"), [("highest", True), ("high", False)])
def test_kernels_of_a_gpu_use_tf32_where_torch_allows_it(precision, exact, matmul_precision, monkeypatch):
    seen = []
    kernels = types.SimpleNamespace(fused_transport=lambda *args, exact, recording: seen.append(exact))
    monkeypatch.setitem(sys.modules, "gwntf.backends.torch.fused", kernels)
    monkeypatch.setattr(backend_module, "_HAS_TRITON", True)
    backend = get_backend("torch")
    backend.device = types.SimpleNamespace(type="cuda")
    matmul_precision(precision)
    backend.stack_transport(lambda: None, 8, 4)
    assert seen == [exact]


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_fits_leave_the_precision_of_torch_as_it_is(precision, matmul_precision):
    matmul_precision(precision)
    inside = []
    model = small(engine="torch", callbacks=[lambda _: inside.append(torch.get_float32_matmul_precision())])
    model.fit(digits(20)).transform(digits(5))
    assert set(inside) == {precision}
    assert torch.get_float32_matmul_precision() == precision


def shortage():
    return torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")


def test_blocks_that_do_not_fit_are_halved_and_stay_halved():
    halving, calls = memory.Halving(), []

    def visit(block):
        calls.append(block.stop - block.start)
        if block.stop - block.start > 3:
            raise shortage()
        return list(range(block.start, block.stop))

    blocks = [slice(0, 10), slice(10, 21), slice(21, 22)]
    assert list(chain(*halving.map(visit, blocks))) == list(range(22))
    first, calls[:] = list(calls), []
    assert list(chain(*halving.map(visit, blocks))) == list(range(22))
    assert max(first) == 10
    assert max(calls) <= 3
    with pytest.raises(torch.cuda.OutOfMemoryError):
        memory.Halving().map(lambda block: visit(slice(0, 5)), blocks)
    with pytest.raises(RuntimeError, match="another"):
        memory.Halving().map(lambda block: (_ for _ in ()).throw(RuntimeError("another")), blocks)


@pytest.mark.parametrize(("failing_from", "rtol"), [(0, 1e-9), (1, 1e-9), (6, 1e-9), (7, 1e-2)])
@pytest.mark.parametrize("missing", [False, True])
def test_a_fit_short_of_memory_ends_where_one_with_enough_ends(failing_from, rtol, missing, monkeypatch):
    """From the start; after one mode; later, where kept scalings are cut; and then after one mode.

    Only there does that mode go on from where it was, as if there had been more scalings.
    """
    X = digits(100)
    if missing:
        X[5, 3] = np.nan
    options = {"engine": "torch", "dtype": "float64", "missing": "ignore"}
    expected = small(**options).fit(X)
    usual, calls = transport_module.transport_mode, []

    def short(backend, kernel, data, *args, **kwargs):
        calls.append(np.prod(data.shape))
        if len(calls) > failing_from and calls[-1] > 2000:
            raise shortage()
        return usual(backend, kernel, data, *args, **kwargs)

    monkeypatch.setattr(transport_module, "transport_mode", short)
    found = small(**options).fit(X)
    assert max(calls) > 2000 >= max(calls[-6:])
    apart = np.linalg.norm(found.embedding_ - expected.embedding_) / np.linalg.norm(expected.embedding_)
    assert apart <= rtol
    np.testing.assert_allclose(found.objective_curve_, expected.objective_curve_, rtol=rtol)


def test_where_nothing_fits_the_error_names_the_sizes(monkeypatch):
    def never(*args, **kwargs):
        raise shortage()

    monkeypatch.setattr(transport_module, "transport_mode", never)
    message = r"cpu has too little memory for X of shape \(60, 8, 8\): its 3840 entries take .* 1/32 .* 2.00 GiB"
    with pytest.raises(DeviceMemoryError, match=message) as caught:
        small().fit(torch.from_numpy(digits()))
    assert isinstance(caught.value, MemoryError)


def test_memory_that_the_host_refuses_is_told_as_well():
    backend = get_backend("torch")
    with pytest.raises(DeviceMemoryError, match="can't allocate memory"), backend.session(torch.ones(2, 2)):
        torch.empty(2**60, dtype=torch.uint8)


@pytest.mark.parametrize("room", [1, 40, 10**6])
@pytest.mark.parametrize("run", [2, 32])
def test_sparse_product_equals_scipy(room, run, monkeypatch):
    """Rows all at once and a few at a time, empty ones and ones longer than a run among them."""
    monkeypatch.setattr(sparse, "_RUN", run)
    monkeypatch.setattr(sparse, "_ENTRIES_AT_ONCE", room)
    rng = np.random.default_rng(0)
    full = np.where(rng.random((40, 30)) < 0.1, rng.random((40, 30)), 0)
    full[7:12] = 0
    matrix = csr_array(full)
    dense = rng.random((30, 5))
    found = get_backend("torch").sparse(matrix, np.float64) @ torch.from_numpy(dense)
    np.testing.assert_allclose(found.numpy(), matrix @ dense, rtol=1e-13, atol=1e-15)


def test_sparse_product_without_rows_has_none():
    found = get_backend("torch").sparse(csr_array((0, 4)), np.float64) @ torch.ones(4, 3, dtype=torch.float64)
    assert found.shape == (0, 3)


@pytest.mark.parametrize("kind", [NMF, NCP, GWNTF])
def test_sparse_samples_without_entries_are_embedded_at_zero(kind):
    model = kind(2, max_iter=3, tol=0, random_state=0, engine="torch").fit(csr_array(np.eye(6) + 0.1))
    assert not model.transform(csr_array((3, 6))).any()


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_fit_needs_nothing_but_torch_and_scikit_learn_and_leaves_cuda_alone():
    code = (
        "import sys;"
        "sys.modules.update(dict.fromkeys(['numba', 'array_api_compat', 'tqdm', 'matplotlib', 'pynndescent', 'ot']));"
        "import numpy, gwntf;"
        "assert 'torch' not in sys.modules;"
        "model = gwntf.GWNTF(2, max_iter=2, tol=0, engine='torch').fit(numpy.ones((4, 3)));"
        "import torch;"
        "print(type(model.embedding_).__name__, torch.cuda.is_initialized())"
    )
    assert run(code) == "ndarray False"


def test_no_warning_of_torch_reaches_the_user():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        small().fit(torch.from_numpy(digits()))
    assert [str(warning.message) for warning in seen] == []
