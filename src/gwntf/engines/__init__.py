"""Where the arithmetic runs.

May import `core` only. An engine supplies an array namespace and the few things that namespaces leave open
(`protocol`); `numpy_engine` is the reference that every other engine is compared with. A library such as
numba or torch is imported in its own engine file and nowhere else.
"""

from gwntf.engines.protocol import Engine
from gwntf.engines.registry import ENGINES, get_engine

__all__ = ["ENGINES", "Engine", "get_engine"]
