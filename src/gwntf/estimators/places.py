"""Where an estimator computes: a backend of this process, and a Dask cluster for Dask arrays."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gwntf.backends import BACKENDS, Backend, get_backend
from gwntf.data import is_dask

ENGINES = BACKENDS
"""What the parameter `engine` may be."""


class Place(NamedTuple):
    """Where work on some data is done."""

    backend: Backend  # that of this process
    default_dtype: str | None  # number type where the user gives none; None keeps that of the data
    cluster: Any = None  # Dask cluster whose workers have the data of a fit


@contextmanager
def open_place(engine: str, device: str | None, given: Any) -> Iterator[Place]:
    """Provide the place for some data; nothing is left on a cluster when the block ends, however it does."""
    client = _current_client(given)
    if client is None:
        backend = get_backend(engine, device=device, given=given)
        with backend.session(given):
            yield Place(backend, backend.default_dtype)
        return
    from gwntf.data.dask import Cluster

    cluster = Cluster(client, engine, device)
    try:
        default = "float32" if engine == "torch" or device is not None else None
        yield Place(cluster.backend, default, cluster)
    finally:
        cluster.close()


def _current_client(X: Any) -> Any:
    """Return the client whose workers process a Dask array; None for other data, or if there is no client."""
    if not is_dask(X) or "distributed" not in sys.modules:
        return None
    from gwntf.data.dask import current_client

    return current_client()
