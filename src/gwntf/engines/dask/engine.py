"""The engine of a fit on a cluster: the compiled one here, any one on the workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gwntf.engines.cpu.engine import CpuEngine
from gwntf.engines.dask.tasks import Tasks, session


class DaskEngine(CpuEngine):
    """What is small, or is asked about data that are here, is done here; what a fit does with data the workers do.

    Attributes
    ----------
    device, precision
        See `get_engine`: with which the workers get their engine.
    tasks : Tasks
        Those of the session.
    """

    name = "dask"
    tasks: Tasks

    def __init__(self, device: str | None, precision: str) -> None:
        super().__init__()
        self.device, self.precision = device, precision
        self.default_dtype = None if device is None else "float32"

    def __reduce__(self) -> tuple[type[CpuEngine], tuple[()]]:
        """Travel without the cluster: it is spoken to from here."""
        return CpuEngine, ()

    @contextmanager
    def session(self, given: Any) -> Iterator[None]:  # noqa: ARG002
        """Find the cluster, and leave nothing on it."""
        with session() as self.tasks:
            yield
