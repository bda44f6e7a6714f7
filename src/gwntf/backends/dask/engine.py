"""The backend of a fit on a cluster: the compiled one here, any one on the workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gwntf.backends.cpu.backend import CpuBackend
from gwntf.backends.dask.tasks import Tasks, current_client
from gwntf.backends.protocol import Backend


class DaskEngine(CpuBackend):
    """What is small, or is asked about data that are here, is done here; what a fit does with data the workers do.

    Attributes
    ----------
    device, precision
        See `get_backend`: with which the workers get their backend.
    """

    name = "dask"

    def __init__(self, device: str | None, precision: str) -> None:
        super().__init__()
        self.device, self.precision = device, precision
        self.default_dtype: Any = None if device is None else "float32"
        self._tasks: Tasks | None = None

    @property
    def tasks(self) -> Tasks:
        """Those of the session, on the client in use when they are first asked for."""
        if self._tasks is None:
            self._tasks = Tasks(current_client())
        return self._tasks

    def __reduce__(self) -> tuple[type[CpuBackend], tuple[()]]:
        """Travel without the cluster: it is spoken to from here."""
        return CpuBackend, ()

    @contextmanager
    def session(self, given: Any) -> Iterator[None]:  # noqa: ARG002
        """However it ends, leave nothing on the cluster."""
        try:
            yield
        finally:
            if self._tasks is not None:
                self._tasks.cancel()
                self._tasks = None


def tasks_of(backend: Backend) -> Tasks:
    """Return the tasks of an backend that has a cluster."""
    if not isinstance(backend, DaskEngine):
        raise TypeError(f"engine {backend.name!r} has no cluster")
    return backend.tasks
