"""Install each distribution of a folder into a fresh environment, and use it there, far from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SMOKE = Path(__file__).with_name("smoke.py")


def try_out(distribution: Path, folder: Path) -> None:
    """Install one distribution with the `plots` extra, run the smoke program, `gwntf --help` and `gwntf demo`."""
    venv.create(folder / "env", with_pip=True)
    binaries = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, env=environment, check=True)

    pip = (str(binaries / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "install", f"gwntf[plots] @ {distribution.resolve().as_uri()}")
    run(*pip, "check")
    run(str(binaries / "python"), str(SMOKE))
    run(str(binaries / "gwntf"), "--help")
    run(str(binaries / "gwntf"), "demo")


def main(folder: Path) -> None:
    """Try every wheel and sdist of a folder; there must be one of each."""
    found = sorted(folder.glob("gwntf-*.whl")) + sorted(folder.glob("gwntf-*.tar.gz"))
    if len(found) != 2:
        raise SystemExit(f"{folder} holds {[path.name for path in found]}; expected one wheel and one sdist")
    for distribution in found:
        print(f"--- {distribution.name}", flush=True)
        with tempfile.TemporaryDirectory() as place:
            try_out(distribution, Path(place))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
