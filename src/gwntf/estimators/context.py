"""Where an estimator computes: a backend in this process, and a Dask cluster for Dask arrays."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gwntf.backends import BACKENDS, Backend, get_backend
from gwntf.data import is_dask

ENGINES = BACKENDS
"""Allowed values of the parameter `engine`."""


class Context(NamedTuple):
    """Backend and cluster on which some data are processed."""

    backend: Backend  # backend in this process
    default_dtype: str | None  # number type if the user gives none; None keeps that of the data
    cluster: Any = None  # Dask cluster whose workers process the data, if any


@contextmanager
def open_context(engine: str, device: str | None, given: Any) -> Iterator[Context]:
    """Open the context for some data; on exit, also after an error, all data on a cluster are released."""
    client = _current_client(given)
    if client is None:
        backend = get_backend(engine, device=device, given=given)
        with backend.session(given):
            yield Context(backend, backend.default_dtype)
        return
    from gwntf.data.dask import Cluster

    cluster = Cluster(client, engine, device)
    try:
        default = "float32" if engine == "torch" or device is not None else None
        yield Context(cluster.backend, default, cluster)
    finally:
        cluster.close()


def _current_client(X: Any) -> Any:
    """Return the client whose workers process a Dask array; None for other data, or if there is no client."""
    if not is_dask(X) or "distributed" not in sys.modules:
        return None
    from gwntf.data.dask import current_client

    return current_client()
