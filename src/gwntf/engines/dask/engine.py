"""The engine of a fit on a cluster: NumPy here, any engine on the workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gwntf.engines.dask.tasks import Tasks, session
from gwntf.engines.numpy_engine import NumpyEngine


class DaskEngine(NumpyEngine):
    """What is small is done here, in NumPy; what goes through the data is done by the workers.

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
        self.device, self.precision = device, precision
        self.default_dtype = None if device is None else "float32"

    def __reduce__(self) -> tuple[type[NumpyEngine], tuple[()]]:
        """Travel as plain NumPy: there is one cluster, and it is spoken to from here."""
        return NumpyEngine, ()

    @contextmanager
    def session(self, given: Any) -> Iterator[None]:  # noqa: ARG002
        """Find the cluster, and leave nothing on it."""
        with session() as self.tasks:
            yield
