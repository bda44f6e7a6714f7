"""Functions on a GPU that are recorded once, as a CUDA graph, and replayed."""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch


class Recording:
    """A function of tensors whose launches are recorded.

    The first call runs as it is, so that everything it needs is compiled and in its place; the second one is recorded.
    Tensors that the function keeps, such as warm starts, must stay where they are.

    Parameters
    ----------
    function : callable
        Takes and returns tensors, always of the same shapes, and never waits for the device.
    alone : callable
        Gives the context in which it runs.
    """

    def __init__(
        self, function: Callable[..., tuple[Any, ...]], alone: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._function, self._alone = function, alone
        self._warmed = False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: tuple[Any, ...] = ()
        self._outputs: tuple[Any, ...] = ()

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Return what the function returns."""
        if not self._warmed:
            self._warmed = True
            with self._alone():
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
        gc.collect()  # what is freed while recording, such as an older graph, would spoil the record
        gc.disable()
        try:
            with self._alone(), torch.cuda.graph(graph):
                self._outputs = self._function(*self._inputs)
        finally:
            if collecting:
                gc.enable()
        self._graph = graph
