"""What importing the package costs and what it leaves alone."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from doctest import DocTestParser
from importlib.metadata import version
from pathlib import Path

from benchmarks.import_time import foreign_imports, run

import gwntf
from gwntf import SeparableCost
from gwntf.estimators.base import Factorization

HEAVY = (
    *("torch", "triton", "numba", "dask", "distributed", "zarr", "h5py", "sparse"),
    *("matplotlib", "PIL", "tqdm", "pynndescent", "ot"),
)
BASE = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
"""The only libraries that ``import gwntf`` may import itself."""


def loaded_libraries(code: str) -> set[str]:
    """Top-level names of all modules outside the standard library that a program loads."""
    names = "{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names"
    return set(run(f"{code}\nimport sys\nprint(*sorted({names}))").split())


def test_import_loads_no_heavy_library():
    code = f"import sys, gwntf; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code) == "[]"


def test_import_loads_only_what_numpy_scipy_and_scikit_learn_load():
    """A program that has only the imports of other libraries in it loads all of them; `import-time` times both."""
    imports = foreign_imports()
    assert set(imports.values()) <= BASE
    assert {"numpy", "scipy", "sklearn"} <= set(imports.values())
    assert loaded_libraries("import gwntf") - loaded_libraries("\n".join(imports)) == {"gwntf"}


def test_fitting_with_numpy_loads_no_heavy_library_either():
    code = (
        "import sys, numpy, gwntf;"
        "gwntf.GWNTF(2, max_iter=2, tol=0, engine='numpy').fit(numpy.ones((4, 3)));"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_public_names_exist_and_have_docstrings():
    for name in set(gwntf.__all__) - {"__version__"}:
        assert getattr(gwntf, name).__doc__


def test_version_has_one_source():
    assert version("gwntf") == gwntf.__version__


def test_the_quick_start_of_the_readme_runs(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    block = text.split("## Quick start")[1].split("```python\n")[1].split("```")[0]
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    shape, accuracy, labelled = capsys.readouterr().out.splitlines()
    assert (shape, labelled) == ("(297, 8, 8)", "(297,)")
    assert float(accuracy) > 0.8


def test_the_first_example_of_the_readme_prints_what_it_shows(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    block, shown = text.split("```python\n")[1].split("```")[0], text.split("```\n\n```\n")[1].split("```")[0]
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == shown


def test_package_is_typed():
    assert (Path(gwntf.__file__).parent / "py.typed").exists()


def test_every_room_says_what_it_is_for():
    rooms = [path for path in Path(gwntf.__file__).parent.iterdir() if (path / "__init__.py").exists()]
    assert {"core", "backends", "solver", "cli"} <= {room.name for room in rooms}
    for room in rooms:
        text = (room / "__init__.py").read_text()
        assert text.startswith('"""'), room.name
        said = text.split('"""')[1].lower()
        assert "import" in said, f"{room.name} does not say what it may import"
        assert "start with" in " ".join(said.split()), f"{room.name} does not say where to start reading"


def test_map_of_rooms_names_every_room_in_the_order_of_the_contract():
    root = Path(__file__).parents[1]
    layers = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = re.findall(r"^\| (`\w+`.*?) \|", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert [re.findall(r"\w+", row) for row in rows] == [re.findall(r"\w+", layer) for layer in layers]
    rooms = {path.parent.name for path in Path(gwntf.__file__).parent.glob("*/__init__.py")}
    assert rooms == {room for layer in layers for room in re.findall(r"\w+", layer)}


PUBLIC = (
    "gwntf",
    "gwntf.datasets",
    "gwntf.distances",
    "gwntf.evaluation",
    "gwntf.model_selection",
    "gwntf.plots",
)


def public_objects():
    """Every public function and class, and the public methods that a class of the library defines or inherits."""
    for room in map(importlib.import_module, PUBLIC):
        for name in room.__all__:
            thing = getattr(room, name)
            if not callable(thing):
                continue
            yield f"{room.__name__}.{name}", thing
            for method, function in inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else ():
                ours = str(getattr(function, "__module__", "")).startswith("gwntf.") and not method.startswith("_")
                ours = ours and method not in ("get_params", "set_params")  # scikit-learn explains them
                if ours and issubclass(thing, Factorization | SeparableCost):
                    yield f"{room.__name__}.{name}.{method}", function


def test_every_public_name_has_an_example_that_runs():
    """`make test` runs the examples themselves, as doctests."""
    examples = {name: inspect.getdoc(thing) or "" for name, thing in public_objects()}
    assert {"gwntf.GWNTF.fit_impute", "gwntf.SeparableCost.on_grid", "gwntf.plots.plot_flow"} <= set(examples)
    assert [name for name, text in examples.items() if not DocTestParser().get_examples(text)] == []


def test_reference_names_everything_public():
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
    listed = set(re.findall(r"^ +(gwntf\.[\w.]+)$", page, re.MULTILINE))
    public = {f"{room}.{name}" for room in PUBLIC for name in importlib.import_module(room).__all__}
    again = {name for name in public if name.startswith("gwntf.distances.") and hasattr(gwntf, name.split(".")[-1])}
    assert listed == public - again - {"gwntf.__version__"}


def test_a_program_of_a_user_passes_strict_type_checks(tmp_path):
    """Against the package as it is installed: from outside the repository, with none of its settings."""
    program = shutil.copy(Path(__file__).with_name("user_program.py"), tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from gwntf import NMF\n\nerror: str = NMF(2).score([[1.0]])\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path / "cache"),
        "--config-file",
        "",
    ]
    environment = {**os.environ, "MYPYPATH": ""}

    def check(path):
        return subprocess.run([*command, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True)

    done = check(program)
    assert done.returncode == 0, done.stdout
    assert "Incompatible types in assignment" in check(wrong).stdout
