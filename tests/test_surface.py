"""The public surface: few parameters, explicit signatures, true docstrings, nested parameters, callbacks."""

from __future__ import annotations

import importlib
import inspect
import pickle
import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import gwntf
from gwntf import (
    GNCP,
    GNMF,
    GWNTF,
    NCP,
    NMF,
    SDNMF,
    SWIFT,
    Checkpoint,
    InputError,
    KNNGraph,
    MiniBatchGWNTF,
    ProgressBar,
    TensorClustering,
    TransportOptions,
    load,
)
from gwntf.geometry import SeparableCost

ESTIMATORS = (GWNTF, SWIFT, NCP, GNCP, NMF, GNMF, SDNMF, MiniBatchGWNTF, TensorClustering)
OPTIONS = (KNNGraph, TransportOptions)
QUICK = {"max_iter": 2, "tol": 0, "random_state": 0, "engine": "numpy"}


def data(samples=14):
    return np.random.default_rng(0).random((samples, 3, 4))


# --- signatures ---------------------------------------------------------------------------------------------


def parameters(cls):
    return inspect.signature(cls).parameters


def test_estimators_have_few_parameters():
    assert len(parameters(GWNTF)) <= 23
    assert len(parameters(NMF)) <= 15
    for cls in (*ESTIMATORS, *OPTIONS):
        assert len(parameters(cls)) <= 23


def test_only_the_first_parameter_is_positional():
    for cls in (*ESTIMATORS, *OPTIONS):
        _, *others = parameters(cls).values()
        assert {parameter.kind for parameter in others} == {inspect.Parameter.KEYWORD_ONLY}
        with pytest.raises(TypeError):
            cls(4, "l1")


ROOMS = ("gwntf", "gwntf.datasets", "gwntf.evaluation", "gwntf.model_selection", "gwntf.plots")
OPEN = {"set_params": "scikit-learn's interface: the names of all parameters, also of nested ones"}
"""Names of methods that take any keyword, and why."""


def public_functions():
    """Every public function of the library, and the constructors and public methods of its public classes."""
    for room in map(importlib.import_module, ROOMS):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isclass(thing):
                for method, function in inspect.getmembers(thing, inspect.isroutine):
                    ours = str(getattr(function, "__module__", "")).startswith("gwntf.")
                    if ours and (method == "__init__" or not method.startswith("_")):
                        yield f"{room.__name__}.{name}.{method}", function
            elif callable(thing):
                yield f"{room.__name__}.{name}", thing


def test_no_public_function_takes_any_argument():
    functions = dict(public_functions())
    assert {"gwntf.GWNTF.__init__", "gwntf.NMF.fit", "gwntf.fit_many", "gwntf.plots.plot_flow"} <= set(functions)
    variable = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    found = {
        name
        for name, function in functions.items()
        if variable & {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    }
    assert {name for name in found if name.rpartition(".")[2] not in OPEN} == set()
    assert {name.rpartition(".")[2] for name in found} == set(OPEN)  # nothing is listed in vain


def test_weights_of_samples_are_not_requested_from_scikit_learn():
    """They are arguments that exist to be refused; `set_fit_request` would offer them."""
    for cls in (NMF, GWNTF, MiniBatchGWNTF):
        assert not {"set_fit_request", "set_partial_fit_request", "set_score_request"} & set(dir(cls))


# --- docstrings ---------------------------------------------------------------------------------------------


def described(cls):
    """The entries of the section "Parameters" of a class: name -> (type and default, text)."""
    section = inspect.getdoc(cls).split("\nParameters\n----------\n")[1]
    section = re.split(r"\n\n\w[\w ]*\n-+\n", section)[0]
    entries = re.findall(r"^(\w+) : (.+)\n((?:[ ]{4}.*\n?)+)", section, re.MULTILINE)
    return {name: (kind, " ".join(text.split())) for name, kind, text in entries}


def default_of(kind):
    if kind.endswith(", optional"):
        return None
    return eval(re.search(r"default=(.+)$", kind)[1], {})  # noqa: S307


@pytest.mark.parametrize("cls", [*ESTIMATORS, *OPTIONS])
def test_the_docstring_lists_the_parameters_in_order_with_their_defaults(cls):
    entries = described(cls)
    assert list(entries) == list(parameters(cls))
    for name, (kind, text) in entries.items():
        expected = parameters(cls)[name].default
        found = default_of(kind)
        assert found == expected, name
        assert isinstance(found, bool) == isinstance(expected, bool), name
        assert text.endswith("."), name


OWN = {
    SWIFT: {"costs", "sample_norm", "init"},
    NCP: {"init"},
    NMF: {"init", "parts"},
    GNMF: {"parts"},
    SDNMF: {"sample_shape", "parts"},
    MiniBatchGWNTF: {"costs", "init", "max_iter", "tol", "callbacks", "random_state"},
    TensorClustering: {"n_components", "graph", "graph_reg", "costs", "max_iter", "engine", "random_state"},
}
"""Parameters whose description in a class differs from that of the others with reason."""


def test_shared_parameters_have_the_same_description():
    common = {}
    for cls in ESTIMATORS:
        for name, entry in described(cls).items():
            if name not in OWN.get(cls, ()):
                assert common.setdefault(name, entry) == entry, f"{cls.__name__}.{name}"
    for cls, names in OWN.items():
        for name in names:
            assert described(cls)[name] != common[name], f"{cls.__name__}.{name}"


# --- nested parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", ["knn", KNNGraph(4, weight="cosine")], ids=["knn", "KNNGraph"])
def test_a_search_over_the_neighbours_of_the_graph(graph):
    model = GNCP(2, graph=graph, graph_reg=1.0, **QUICK)
    search = GridSearchCV(model, {"graph__n_neighbors": [1, 3]}, cv=2, error_score="raise").fit(data())
    assert search.best_params_["graph__n_neighbors"] in (1, 3)
    assert model.graph is graph
    for count, found in zip((1, 3), search.cv_results_["mean_test_score"], strict=True):
        params = {} if graph == "knn" else {"weight": "cosine"}
        alone = GridSearchCV(model, {"graph": [KNNGraph(count, **params)]}, cv=2, error_score="raise").fit(data())
        assert found == alone.cv_results_["mean_test_score"][0]


def test_a_search_over_the_options_of_the_transport():
    model = GWNTF(2, graph=None, transport=TransportOptions(tol=0), **QUICK)
    search = GridSearchCV(model, {"transport__max_iter": [1, 30]}, cv=2, error_score="raise").fit(data())
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1]
    assert model.transport.max_iter == "auto"


def test_setting_a_parameter_of_the_graph_changes_one_model():
    first, second = GWNTF(), GWNTF()
    first.set_params(graph__n_neighbors=9)
    assert (first.graph.n_neighbors, first.get_params()["graph__n_neighbors"]) == (9, 9)
    assert (second.graph, second.get_params()["graph__n_neighbors"]) == ("knn", 5)
    assert GWNTF().get_params()["graph__n_neighbors"] == 5
    third = clone(first).set_params(graph__n_neighbors=2)
    assert (first.graph.n_neighbors, third.graph.n_neighbors) == (9, 2)


def test_parameters_of_shorthands_replace_them():
    assert GWNTF().set_params(transport__max_iter="auto").transport.max_iter == "auto"
    clusterer = TensorClustering().set_params(graph__n_neighbors=9)
    assert (clusterer.graph.n_neighbors, clusterer.graph.metric, clusterer.graph.weight) == (9, "auto", "self-tuning")
    model = GWNTF()
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(graph__neighbors=3)
    assert model.graph == "knn"


def test_a_graph_and_its_parameters_are_set_together():
    model = GWNTF().set_params(graph=KNNGraph(weight="cosine"), graph__n_neighbors=2)
    assert (model.graph.weight, model.graph.n_neighbors) == ("cosine", 2)


def test_knn_has_the_parameters_of_a_default_graph():
    nested = {name: value for name, value in GWNTF().get_params().items() if name.startswith("graph__")}
    assert nested == {f"graph__{name}": value for name, value in KNNGraph().get_params().items()}
    expected = GNCP(2, graph=KNNGraph(), **QUICK).fit(data())
    np.testing.assert_array_equal(GNCP(2, **QUICK).fit(data()).embedding_, expected.embedding_)


def test_a_copy_shares_no_nested_object():
    model = GWNTF(graph=KNNGraph(3), transport=TransportOptions(4))
    copy = clone(model)
    assert copy.graph is not model.graph
    assert copy.transport is not model.transport
    assert (copy.graph.n_neighbors, copy.transport.max_iter) == (3, 4)


def test_a_fit_does_not_change_its_parameters():
    model = GWNTF(2, graph=KNNGraph(3, metric="auto"), transport=TransportOptions("auto"), **QUICK)
    before = repr(model.get_params())
    graph, transport = model.graph, model.transport
    model.fit(data())
    assert repr(model.get_params()) == before
    assert model.graph is graph
    assert model.transport is transport


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (NMF(), "n_neighbors"),
        (NMF(), "graph"),
        (GWNTF(), "reg_m_data"),
        (GWNTF(), "graph__neighbors"),
        (GWNTF(graph=KNNGraph()), "graph__neighbors"),
        (GWNTF(transport=TransportOptions()), "transport__iterations"),
        (GWNTF(), "transport__iterations"),
        (TensorClustering(), "graph__neighbors"),
        (TensorClustering(), "n_init"),
    ],
)
def test_unknown_parameters_are_refused_by_name(model, name):
    with pytest.raises(ValueError, match=f"Invalid parameter '{name.rpartition('__')[2]}' for estimator"):
        model.set_params(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        type(model)(**{name: 1} if "__" not in name else {"n_neighbors": 1})


def test_representations_show_nested_parameters():
    model = GWNTF(7, graph=KNNGraph(3), transport=TransportOptions(9))
    expected = "GWNTF(graph=KNNGraph(n_neighbors=3), n_components=7, transport=TransportOptions(max_iter=9))"
    assert " ".join(repr(model).split()) == expected
    assert repr(GWNTF()) == "GWNTF()"
    page = model._repr_html_()
    assert all(word in page for word in ("GWNTF", "KNNGraph", "TransportOptions"))


RING = np.roll(np.eye(14), 1, axis=0) + np.roll(np.eye(14), -1, axis=0)
NESTED = {
    "defaults": {},
    "rule": {"graph": KNNGraph(4, metric="gradient", weight="self-tuning")},
    "chosen metric": {"graph": KNNGraph(3, metric="auto")},
    "no graph": {"graph": None},
    "matrix": {"graph": RING},
    "sparse matrix": {"graph": csr_array(RING)},
    "options": {"transport": TransportOptions(5, tol=1e-3, kernel_tol=0.1, max_memory=0.0)},
    "pairs": {"reg_m": (float("inf"), 0.5), "alpha": (0.1, 0.2)},
    "list": {"reg_m": [2.0, 0.5]},
    "costs": {"costs": (None, SeparableCost([np.ones((3, 3))]), np.ones((4, 4)))},
}


def shown(model):
    """All parameters but the callbacks as text, nested ones and arrays included."""
    with np.printoptions(threshold=10**6):
        return {
            name: value.toarray().tolist()
            if isinstance(value, csr_array)
            else [np.asarray(axis).tolist() for axis in value.axes]
            if isinstance(value, SeparableCost)
            else re.sub(r"0x\w+", "", repr(value))
            for name, value in model.get_params().items()
            if name != "callbacks"
        }


@pytest.mark.parametrize("name", NESTED)
def test_nested_parameters_survive_copies_pickles_and_files(name, tmp_path):
    model = GWNTF(2, **NESTED[name], **QUICK)
    expected = shown(model)
    assert shown(clone(model)) == expected
    assert shown(pickle.loads(pickle.dumps(model))) == expected  # noqa: S301
    model.fit(data()).save(tmp_path / "model.gwntf")
    again = load(tmp_path / "model.gwntf")
    assert shown(again) == expected
    np.testing.assert_array_equal(again.reconstruct(data()), model.reconstruct(data()))
    np.testing.assert_array_equal(again.fit(data()).embedding_, model.embedding_)


# --- checks of the options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors: got 0; expected a whole number of at least 1."),
        ({"n_neighbors": 2.0}, "n_neighbors: got 2.0; expected a whole number of at least 1."),
        ({"n_neighbors": True}, "n_neighbors: got True; expected a whole number of at least 1."),
        ({"n_neighbors": "5"}, "n_neighbors: got '5'; expected a whole number of at least 1."),
        ({"weight": "heat"}, "weight: got 'heat'; expected one of 'binary', 'cosine', 'self-tuning'."),
        ({"metric": "taxi"}, "metric: got 'taxi'; expected one of 'cosine', 'euclidean', "),
        ({"metric": 3}, "metric: got 3; expected one of 'cosine', 'euclidean', "),
    ],
)
def test_invalid_graphs_are_refused_by_name(params, message):
    with pytest.raises(InputError) as caught:
        KNNGraph(**params).check()
    assert str(caught.value).startswith(message)
    with pytest.raises(InputError, match=re.escape(message)):
        KNNGraph(**params).build(data())


def test_valid_graphs_pass():
    for metric in ("cosine", "orientation-fine", "wasserstein", "auto", np.asarray):
        KNNGraph(np.int64(3), metric=metric).check()
    with pytest.raises(InputError, match="metric: got 'auto'"):
        KNNGraph(metric="auto").build(data())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_iter": 0}, "transport.max_iter: got 0; expected a whole number of at least 1 or 'auto'."),
        ({"max_iter": "many"}, "transport.max_iter: got 'many'; expected a whole number of at least 1 or 'auto'."),
        ({"max_iter": 2.5}, "transport.max_iter: got 2.5; expected a whole number of at least 1 or 'auto'."),
        ({"tol": -1.0}, "transport.tol: got -1.0; expected a number of at least 0."),
        ({"tol": "small"}, "transport.tol: got 'small'; expected a number of at least 0."),
        ({"tol": float("nan")}, "transport.tol: got nan; expected a number of at least 0."),
        ({"kernel_tol": 1}, "transport.kernel_tol: got 1; expected a number of at least 0 and below 1."),
        ({"max_memory": -1}, "transport.max_memory: got -1; expected a number of at least 0."),
    ],
)
def test_invalid_options_are_refused_by_name(params, message):
    with pytest.raises(InputError) as caught:
        TransportOptions(**params).check()
    assert str(caught.value) == message
    with pytest.raises(InputError, match=re.escape(message)):
        SWIFT(2, transport=TransportOptions(**params)).fit(data())


@pytest.mark.parametrize("options", [{}, {"max_iter": "auto", "tol": 0, "kernel_tol": 0, "max_memory": float("inf")}])
def test_valid_options_pass(options):
    model = SWIFT(2, max_iter=1, tol=0, random_state=0, transport=TransportOptions(**options)).fit(data())
    assert model.n_iter_ == 1


# --- callbacks ----------------------------------------------------------------------------------------------


class Follower:
    """A callback that records what it is called with, and may raise at some iteration."""

    def __init__(self, fails_at=None):
        self.calls, self.fails_at = [], fails_at

    def on_fit_begin(self, iterations):
        self.calls.append(("begin", iterations))

    def __call__(self, news):
        self.calls.append((news.restart, news.iteration))
        if news.iteration == self.fails_at:
            raise ZeroDivisionError

    def on_fit_end(self):
        self.calls.append("end")


def test_a_callback_is_called_once_around_every_fit():
    follower = Follower()
    model = NCP(2, n_init=2, callbacks=[follower], **QUICK)
    expected = [("begin", 4), (0, 1), (0, 2), (1, 1), (1, 2), "end"]
    model.fit(data())
    assert follower.calls == expected
    model.fit_transform(data())
    assert follower.calls == 2 * expected
    model.transform(data())
    assert follower.calls == 2 * expected


def test_callbacks_of_batches_and_clusterers_are_called_once_around_every_fit():
    follower = Follower()
    MiniBatchGWNTF(2, batch_size=7, max_epochs=2, tol=0, callbacks=[follower], random_state=0).fit(data())
    assert follower.calls == [("begin", 4), *((0, batch) for batch in (1, 2, 3, 4)), "end"]
    follower = Follower()
    TensorClustering(2, max_iter=2, callbacks=[follower], random_state=0).fit(data())
    assert follower.calls == [("begin", 2), (0, 1), (0, 2), "end"]


def test_callbacks_are_ended_where_the_fit_fails():
    first, second = Follower(), Follower(fails_at=1)
    with pytest.raises(ZeroDivisionError):
        NCP(2, callbacks=[first, second], **QUICK).fit(data())
    assert first.calls == second.calls == [("begin", 2), (0, 1), "end"]


def test_a_callback_that_cannot_begin_ends_those_before_it():
    class Broken(Follower):
        def on_fit_begin(self, iterations):
            raise ZeroDivisionError

    first, second = Follower(), Broken()
    with pytest.raises(ZeroDivisionError):
        NCP(2, callbacks=[first, second], **QUICK).fit(data())
    assert first.calls == [("begin", 2), "end"]
    assert second.calls == []


@pytest.fixture
def bars(monkeypatch):
    """The progress bars that fits show, in place of those of tqdm."""
    shown = []

    class Bar:
        def __init__(self, total, unit):
            self.total, self.steps, self.closed = total, 0, 0
            shown.append(self)

        def set_postfix(self, refresh, objective):
            self.objective = float(objective)

        def update(self):
            self.steps += 1

        def close(self):
            self.closed += 1

    monkeypatch.setattr(pytest.importorskip("tqdm.auto"), "tqdm", Bar)
    return shown


def test_a_progress_bar_is_closed_after_every_fit_also_one_that_fails(bars):
    model = NCP(2, callbacks=[ProgressBar()], **QUICK)
    model.fit(data())
    assert [(bar.total, bar.steps, bar.closed) for bar in bars] == [(2, 2, 1)]
    assert bars[0].objective == pytest.approx(model.objective_, rel=1e-5)
    with pytest.raises(ZeroDivisionError):
        model.set_params(callbacks=[ProgressBar(), Follower(fails_at=1)]).fit(data())
    assert [(bar.steps, bar.closed) for bar in bars] == [(2, 1), (1, 1)]
    with pytest.raises(InputError):
        model.fit(-data())
    assert all(bar.closed for bar in bars)


def test_a_fitted_model_with_a_progress_bar_can_be_copied(capsys):
    pytest.importorskip("tqdm")
    model = NCP(2, callbacks=[ProgressBar()], **QUICK).fit(data())
    np.testing.assert_array_equal(clone(model).fit(data()).embedding_, model.embedding_)
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(copy.fit(data()).embedding_, model.embedding_)
    assert capsys.readouterr().err.count("2/2") >= 3


def test_checkpoints_among_callbacks(tmp_path):
    kept = [Checkpoint(tmp_path / name) for name in "ab"]
    with pytest.raises(InputError, match="callbacks: got 2 checkpoints; expected at most one"):
        NMF(2, callbacks=kept, **QUICK).fit(data())
    with pytest.raises(InputError, match="callbacks: got 2 checkpoints; expected at most one"):
        TensorClustering(2, callbacks=kept).fit(data())
    batches = MiniBatchGWNTF(2, callbacks=kept[:1])
    for method in (batches.fit, batches.partial_fit):
        with pytest.raises(InputError, match="callbacks: got a Checkpoint; expected other callbacks: save the model"):
            method(data())
    assert not list(tmp_path.iterdir())


def test_everything_public_is_a_name_of_the_package():
    assert {cls.__name__ for cls in (*ESTIMATORS, *OPTIONS, ProgressBar, Checkpoint)} <= set(gwntf.__all__)
