"""What the documents name exists: extras, Python versions, classes' parameters, and no parameter that was removed."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
import tomllib
from pathlib import Path

import pytest

import gwntf

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))
MODULES = ("gwntf", *(f"gwntf.{name}" for name in ("datasets", "distances", "evaluation", "model_selection", "plots")))
DISTANCES = importlib.import_module("gwntf.distances").__all__


def public_objects():
    """Return the public classes and functions of the library by name."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        found |= {entry: getattr(module, entry) for entry in module.__all__ if callable(getattr(module, entry))}
    return found


PUBLIC = public_objects()
CLASSES = [thing for thing in PUBLIC.values() if inspect.isclass(thing)]
ESTIMATORS = [cls for cls in CLASSES if hasattr(cls, "get_params")]


def docstrings():
    """Return the docstring of every public class, function and method, by its name."""
    found = {}
    for name, thing in PUBLIC.items():
        found[name] = inspect.getdoc(thing) or ""
        if inspect.isclass(thing):
            for member, value in inspect.getmembers(thing, callable):
                if not member.startswith("_") and "gwntf" in (getattr(value, "__module__", None) or ""):
                    found[f"{name}.{member}"] = inspect.getdoc(value) or ""
    return {name: text for name, text in found.items() if text}


DOCSTRINGS = docstrings()


def without_tables_of_results(text):
    """Remove the parts of a page that programs write."""
    return re.sub(r"<!-- begin (.*?) -->.*?<!-- end \1 -->", "", text, flags=re.DOTALL)


def blocks(text):
    """Return the fenced blocks of Python of a page."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def spans(text):
    """Return the inline code of a page or a docstring."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *(>>>|\.\.\.) .*$", "", text, flags=re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"(?<!`)`{1,2}([^`]+)`{1,2}(?!`)", text)]


def parsed(code):
    """Parse code; of inline code such as ``f(x, tol=)`` or ``f(...)`` too. None if it is not Python."""
    try:
        return ast.parse(textwrap.dedent(re.sub(r"=\s*([,)])", r"=None\1", code)))
    except SyntaxError:
        return None


def sources():
    """Return the code of all documents: where it is, and the code."""
    for path in PAGES:
        text = path.read_text()
        yield from ((path.name, code) for code in (*blocks(text), *spans(text)))
    yield from ((path.name, path.read_text()) for path in SCRIPTS)
    for name, text in DOCSTRINGS.items():
        examples = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        yield from ((name, code) for code in (examples, *spans(text)))


def calls(code):
    tree = parsed(code)
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []


def signature(thing):
    """Return the parameters of a class or a function; those of a built-in exception are any."""
    try:
        return list(inspect.signature(thing).parameters.values())
    except ValueError:
        return [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]


def misfit(function, call):
    """Return the arguments of a call that a function does not take; ``...`` may stand for any."""
    parameters = [parameter for parameter in signature(function) if parameter.name != "self"]
    given = [argument for argument in call.args if not (isinstance(argument, ast.Constant) and argument.value is ...)]
    kinds = {parameter.kind for parameter in parameters}
    wrong = []
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        names = {parameter.name for parameter in parameters}
        wrong += [keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg not in names]
    if inspect.Parameter.VAR_POSITIONAL not in kinds and not any(isinstance(a, ast.Starred) for a in given):
        most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        wrong += [f"argument {number + 1}" for number in range(most, len(given))]
    return wrong


def nested_parameters():
    """Return what `set_params` takes, of all estimators together, and in a pipeline made by `make_pipeline`."""
    found = set()
    for cls in ESTIMATORS:
        required = [entry.name for entry in signature(cls) if entry.default is entry.empty]
        own = set(cls(**dict.fromkeys(required)).get_params())
        if "transport" in own:
            own |= {f"transport__{name}" for name in gwntf.TransportOptions().get_params()}
        found |= own | {f"{cls.__name__.lower()}__{name}" for name in own}
    return found


def wrong_arguments(call):
    """Return what is wrong with a call, if it is one of something public or of a method of a public class."""
    if isinstance(call.func, ast.Name):
        function = PUBLIC.get(call.func.id)
        return misfit(function, call) if function else []
    if not isinstance(call.func, ast.Attribute):
        return []
    name, owner = call.func.attr, call.func.value
    if isinstance(owner, ast.Name) and owner.id in ("np", "da", "plt", "torch"):
        return []
    if name == "set_params":
        return [keyword.arg for keyword in call.keywords if keyword.arg and keyword.arg not in nested_parameters()]
    if name in PUBLIC and isinstance(owner, ast.Name):
        return misfit(PUBLIC[name], call)
    methods = [getattr(cls, name) for cls in CLASSES if inspect.isfunction(getattr(cls, name, None))]
    misfits = [misfit(method, call) for method in methods]
    return min(misfits, key=len) if misfits else []


def test_calls_in_the_documents_use_parameters_that_exist():
    found = [(where, ast.unparse(call), wrong_arguments(call)) for where, code in sources() for call in calls(code)]
    ours = [text for _, text, _ in found if re.match(r"(gwntf\.)?(GWNTF|TensorClustering|KNNGraph)\(", text)]
    assert len(ours) > 30
    assert [entry for entry in found if entry[2]] == []


def test_a_call_with_a_parameter_that_does_not_exist_is_found():
    wrong = {
        "GWNTF(3, n_neighbors=5)": ["n_neighbors"],
        "gwntf.NMF(3, 4)": ["argument 2"],
        "TransportOptions(5, tol=)": [],
        "model.save(path, with_predict=True)": ["with_predict"],
        "model.set_params(graph__size=3, graph__n_neighbors=2)": ["graph__size"],
        "KNeighbors(n_neighbors=5)": [],
    }
    for code, expected in wrong.items():
        assert wrong_arguments(calls(code)[-1]) == expected


OTHERS = {"error_model", "of_slices"}
"""Parameters that pages mention of numba, and of a decorator for costs that is not public."""


def parameter_names():
    """Return every parameter of something public."""
    methods = [value for cls in CLASSES for _, value in inspect.getmembers(cls, inspect.isfunction)]
    return nested_parameters() | {entry.name for thing in (*PUBLIC.values(), *methods) for entry in signature(thing)}


def test_settings_in_the_documents_are_of_parameters_that_exist():
    known = parameter_names() | OTHERS
    found = []
    for where, code in sources():
        setting = re.fullmatch(r"([a-z]\w*)=([^=\s].*)?", code)
        if setting:
            found.append((where, setting[1]))
    assert len(found) > 30
    assert [entry for entry in found if entry[1] not in known] == []


REMOVED = (
    r"\bgraph_weight\b",
    r"\bgraph_metric\b",
    r"\btransport_max_iter\b",
    r"\btransport_tol\b",
    r"\bextend_graph\b",
    r"\bfor_clustering\b",
    r"\bneighbor_graph\b",
    r"\bwith_predict\b",
    r"\bprogress=",
    r"\bcheckpoint=",
    r"\bprecision=",
    r"engine=.?.?dask",
)
"""Names that are no longer public."""

OWNED = {
    "n_neighbors": ("KNNGraph",),
    "kernel_tol": ("TransportOptions",),
    "max_memory": ("TransportOptions",),
    "reg_m_data": DISTANCES,
    "reg_m_model": DISTANCES,
}
"""Parameters that estimators do not have, and what has them."""


def sections(text):
    """Split a page at its headings of the second level."""
    return re.split(r"\n(?=## )", text)


def stale(text):
    """Return names that were removed, and those that only other classes have and that stand far from their names."""
    text = without_tables_of_results(text)
    found = [match[0] for pattern in REMOVED for match in re.finditer(pattern, text)]
    for name, owners in OWNED.items():
        found += [span for span in spans(text) if span.startswith(f"{name}=")]
        for section in sections(text):
            if re.search(rf"\b{name}\b", section) and not any(owner in section for owner in owners):
                found.append(f"{name} under {section.split(chr(10))[0]!r}")
    return found


@pytest.mark.parametrize("path", [*PAGES, *SCRIPTS], ids=lambda path: path.name)
def test_pages_name_no_parameter_that_was_removed(path):
    text = path.read_text()
    if path in SCRIPTS:
        text = re.sub(r"KNNImputer\([^)]*\)", "", text)  # of scikit-learn, with neighbours of its own
    assert stale(text) == []


def test_docstrings_name_no_parameter_that_was_removed():
    owners = {owner for names in OWNED.values() for owner in names}
    found = {name: stale(text) for name, text in DOCSTRINGS.items() if name.split(".")[0] not in owners}
    assert len(found) > 80
    assert {name: names for name, names in found.items() if names} == {}


def test_a_name_that_was_removed_is_found():
    assert stale("Use `graph_weight`, and `graph_metric_` afterwards.") == ["graph_weight"]
    assert stale("`kernel_tol` of `TransportOptions`") == []
    assert stale("`TransportOptions(kernel_tol=0)`, or `kernel_tol=0`") == ["kernel_tol=0"]
    assert stale("`TransportOptions`\n\n## More\n\n`kernel_tol`") == ["kernel_tol under '## More'"]
    assert stale("`graph__n_neighbors` of `GWNTF`") == []
    assert stale('A page\n\n<!-- begin x -->\nextend_graph\n<!-- end x -->\n\n`engine="dask"`') == ['engine="dask']


def packages(requirements):
    """Return the packages, and the extras of this library, that some requirements name."""
    own = [re.fullmatch(r"gwntf\[(.*)\]", requirement) for requirement in requirements]
    extras = {name for match in own if match for name in match[1].split(",")}
    others = {re.match(r"[\w-]+", text)[0] for text, match in zip(requirements, own, strict=True) if not match}
    return others, extras


def test_install_page_lists_every_extra_with_its_libraries():
    page = (ROOT / "docs" / "getting_started.md").read_text()
    table = page.split("## Installation")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines() if line.startswith("| `")]
    shown = {}
    for name, cell in rows:
        extras = set(re.findall(r"`(\w+)`", cell))
        shown[name.strip("`")] = set(re.findall(r"[\w-]+", re.sub(r"`\w+`|\b(?:the|extras?|and)\b", "", cell))), extras
    declared = {name: packages(requirements) for name, requirements in PROJECT["optional-dependencies"].items()}
    assert shown == declared


@pytest.mark.parametrize("path", [*PAGES, *sorted((ROOT / "src").rglob("*.py"))], ids=lambda path: path.name)
def test_extras_that_are_named_exist(path):
    text = path.read_text()
    lists = re.findall(r"(?:gwntf|\.)\[([a-z, ]+)\]", text)
    named = {name.strip() for names in lists for name in names.split(",")}
    named |= set(re.findall(r"`(\w+)` extra\b", text)) | set(re.findall(r"\bextra `(\w+)`", text))
    assert named <= set(PROJECT["optional-dependencies"])


def test_readme_names_what_the_extra_all_has():
    line = next(line for line in (ROOT / "README.md").read_text().splitlines() if '".[all]"' in line)
    _, extras = packages(PROJECT["optional-dependencies"]["all"])
    assert set(re.findall(r"\w+", line.split(":")[1])) == extras


def test_documents_state_the_oldest_python_that_is_declared():
    oldest = re.fullmatch(r">=(3\.\d+)", PROJECT["requires-python"])[1]
    versions = [entry.rsplit(" ", 1)[1] for entry in PROJECT["classifiers"] if "Python :: 3." in entry]
    assert min(versions, key=lambda version: int(version.split(".")[1])) == oldest
    stated = {path.name: set(re.findall(r"Python (3\.\d+)", path.read_text())) for path in PAGES}
    assert stated["README.md"] == stated["getting_started.md"] == {oldest}
    assert set.union(*stated.values()) == {oldest}
