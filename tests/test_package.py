"""What importing the package costs and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import gwntf

HEAVY = ("torch", "dask", "numba", "ot", "matplotlib", "tqdm", "triton", "sparse", "distributed", "zarr")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_no_heavy_library():
    code = f"import sys, gwntf; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code) == "[]"


def test_import_adds_little_to_scikit_learn():
    """At most 0.3 s of the processor's time, the best of three processes; others may be busy beside."""
    code = (
        "import sklearn, time; start = time.process_time(); import gwntf; print(time.process_time() - start)"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.3


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


def test_the_ten_lines_of_the_readme_run(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    block = text.split("```python\n")[1].split("```")[0]
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out
    assert float(printed.split()[0]) > 0.8
    assert "(297, 8, 8)" in printed


def test_package_is_typed():
    assert (Path(gwntf.__file__).parent / "py.typed").exists()


def test_every_room_says_what_it_is_for():
    rooms = [path for path in Path(gwntf.__file__).parent.iterdir() if (path / "__init__.py").exists()]
    assert {"core", "engines", "solvers", "cli"} <= {room.name for room in rooms}
    for room in rooms:
        text = (room / "__init__.py").read_text()
        assert text.startswith('"""'), room.name
        assert "import" in text.split('"""')[1].lower(), f"{room.name} does not say what it may import"
