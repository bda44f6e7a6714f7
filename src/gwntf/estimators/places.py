"""Where an estimator computes: a backend of this process, and a Dask cluster for engine="dask"."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

from gwntf.backends import BACKENDS, Backend, get_backend
from gwntf.core import InputError, MissingLibraryError

ENGINES = (*BACKENDS, "dask")
"""What the parameter `engine` may be: a backend, or "dask" to keep data on the workers of a cluster."""


class Place(NamedTuple):
    """Where work on some data is done."""

    backend: Backend  # that of this process
    default_dtype: str | None  # number type where the user gives none; None keeps that of the data
    cluster: Any = None  # Dask cluster whose workers have the data of a fit


@contextmanager
def open_place(engine: str, device: str | None, precision: str, given: Any) -> Iterator[Place]:
    """Provide the place for some data; nothing is left on a cluster when the block ends, however it does."""
    if engine != "dask":
        backend = get_backend(engine, device=device, precision=precision, given=given)
        with backend.session(given):
            yield Place(backend, backend.default_dtype)
        return
    missing = [name for name in ("distributed", "numba") if find_spec(name) is None]
    if missing:
        raise MissingLibraryError(f"engine='dask' needs {missing[0]}: pip install 'gwntf[dask]'")
    if device is None and precision != "highest":
        raise InputError("precision", f"{precision!r} with engine='dask'", "'highest', or a device of torch")
    from gwntf.data.dask import Cluster

    cluster = Cluster(device, precision)
    try:
        yield Place(cluster.backend, None if device is None else "float32", cluster)
    finally:
        cluster.close()
