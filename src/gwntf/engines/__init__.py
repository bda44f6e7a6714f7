"""Where the arithmetic runs.

May import `core` only. Start with `protocol` and `numpy_engine`. An engine supplies an array namespace and
the few things that namespaces leave open (`protocol`); `numpy_engine` is the reference that every other
engine is compared with, `cpu` compiles the scaling loop with numba, `torch` also runs on GPUs, `dask` sends work
to a cluster. A library such as numba or torch is imported in its own engine folder and nowhere else; `interchange`
knows arrays of others without importing their library.
"""

from gwntf.engines.forms import DenseForm, ExponentialForm, KernelForm, NearFarForm, SeparableForm
from gwntf.engines.interchange import is_foreign, to_host
from gwntf.engines.protocol import Engine, StackTask, StackTransport
from gwntf.engines.registry import ENGINES, LOCAL_ENGINES, PRECISIONS, get_engine

__all__ = [
    "ENGINES",
    "LOCAL_ENGINES",
    "PRECISIONS",
    "DenseForm",
    "Engine",
    "ExponentialForm",
    "KernelForm",
    "NearFarForm",
    "SeparableForm",
    "StackTask",
    "StackTransport",
    "get_engine",
    "is_foreign",
    "to_host",
]
