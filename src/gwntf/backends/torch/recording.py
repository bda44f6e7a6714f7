"""Functions on a GPU that are recorded once as a CUDA graph and replayed."""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch


class Recording:
    """A function of tensors as a CUDA graph; `mode` returns the context manager in which it runs.

    The function takes and returns tensors, always of the same shapes, without host synchronisation. The first call runs
    it normally, so that everything is compiled and allocated; the second call records it. Tensors that the function
    updates in place, such as warm starts, must not be reallocated.
    """

    def __init__(
        self, function: Callable[..., tuple[Any, ...]], mode: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._function, self._mode = function, mode
        self._warmed = False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: tuple[Any, ...] = ()
        self._outputs: tuple[Any, ...] = ()

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Return the results of the function."""
        if not self._warmed:
            self._warmed = True
            with self._mode():
                return self._function(*arrays)
        if self._graph is None:
            self._record(arrays)
        for own, given in zip(self._inputs, arrays, strict=True):
            own.copy_(given)
        self._graph.replay()  # type: ignore[union-attr]
        return tuple(output.clone() for output in self._outputs)

    def _record(self, arrays: tuple[Any, ...]) -> None:
        self._inputs = tuple(array.clone() for array in arrays)
        graph = torch.cuda.CUDAGraph()
        collecting = gc.isenabled()
        gc.collect()  # memory that is freed during the capture, such as an older graph, would invalidate it
        gc.disable()
        try:
            with self._mode(), torch.cuda.graph(graph):
                self._outputs = self._function(*self._inputs)
        finally:
            if collecting:
                gc.enable()
        self._graph = graph
