"""Backends: array libraries and compiled code that do the arithmetic.

May import `core` only. Start with `protocol`, the interface: an array namespace, conversions, compiled functions.
`numpy_backend` is the reference that every other backend is compared with, `cpu` compiles the scaling loop with numba,
`torch` also runs on GPUs. A library such as numba or torch is imported in its own backend folder and nowhere else;
`interchange` recognises arrays of other libraries without importing them.
"""

from gwntf.backends.forms import (
    DenseForm,
    ExponentialForm,
    KernelForm,
    LineForm,
    NearFarForm,
    SeparableForm,
    UnevenForm,
)
from gwntf.backends.interchange import is_foreign, is_tensor, to_host
from gwntf.backends.protocol import Backend, StackTask, StackTransport
from gwntf.backends.registry import BACKENDS, get_backend
