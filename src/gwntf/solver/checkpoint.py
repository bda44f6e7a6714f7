"""Checkpoints: what a fit needs to go on where it was, written now and then and before the process leaves."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gwntf.backends import Backend
from gwntf.core import InputError, ModelFileError
from gwntf.io import read_document, remove_leftovers, write_document
from gwntf.solver.records import RECORDS
from gwntf.solver.result import Result

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

LAYOUT = 3
"""Of what a fit writes down; to be raised whenever that changes, so that no older checkpoint is gone on from."""

_PARTS = {"fingerprint", "done", "rng", "restart", "best", "loop"}
"""Of a checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a fit writes down how far it is.

    It is also written at the end of the iteration in which the process is asked to leave, by Ctrl-C or SIGTERM. When
    the fit has ended, the file is removed.

    Parameters
    ----------
    path : path
        File of this fit and no other.
    iterations : int, optional
        Write after so many outer iterations.
    seconds : float or None, default=30.0
        Write when so many seconds have passed since the last time; with `iterations`, whichever comes first.

    Examples
    --------
    >>> from gwntf import NMF, Checkpoint
    >>> model = NMF(3, checkpoint=Checkpoint("run.ckpt", iterations=100))
    >>> model.checkpoint.seconds
    30.0
    """

    path: str | os.PathLike[str]
    iterations: int | None = None
    seconds: float | None = 30.0

    def __post_init__(self) -> None:
        given: Any = self.path
        if not isinstance(given, str | os.PathLike):
            raise InputError("path", type(given).__name__, "a path")
        every: Any = self.iterations
        if every is not None and (not isinstance(every, int | np.integer) or every < 1):
            raise InputError("iterations", repr(every), "a whole number of at least 1, or None")
        if self.seconds is not None and not self.seconds >= 0:
            raise InputError("seconds", repr(self.seconds), "a number of at least 0, or None")

    def check_folder(self) -> None:
        """Raise unless the path is that of a file in a folder that is there."""
        path = Path(self.path)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise InputError("checkpoint", repr(str(path)), "the path of a file in a folder that exists")


@dataclass
class Progress:
    """Where a fit stands among its starts."""

    rng: np.random.RandomState  # As it was before the starts were drawn
    restart: int = 0  # Which start is at work
    best: Result | None = None  # The best of those before it
    loop: dict[str, Any] | None = None  # Where the loop is, from `saved.loop_state`; None at its beginning


class Keeper:
    """Writes the checkpoint of some fits that are done one after the other, and finds the place to go on.

    Parameters
    ----------
    checkpoint : Checkpoint or None
        Where and how often; None keeps nothing.
    fingerprint : str
        Of data and settings; a checkpoint with another one is refused.
    """

    def __init__(self, checkpoint: Checkpoint | None = None, fingerprint: str = "") -> None:
        self._checkpoint, self._fingerprint = checkpoint, fingerprint
        self._saved: dict[str, Any] | None = None
        if checkpoint is not None and Path(checkpoint.path).exists():
            self._saved = _read(checkpoint.path, fingerprint)
        self._done: list[Result] = []
        self._position: Progress | None = None
        self._last, self._since = time.monotonic(), 0
        self._asked: int | None = None
        self._before: dict[int, Any] = {}

    def finished(self, fit: int, backend: Backend) -> Result | None:
        """Return the result of a fit that had ended before the checkpoint was written."""
        if self._saved is None or fit >= len(self._saved["done"]):
            return None
        self._done.append(_on_backend(self._saved["done"][fit], backend))
        return self._done[-1]

    def begin(self, rng: np.random.RandomState, backend: Backend) -> Progress:
        """Return where the present fit begins: at its start, or where the checkpoint has it."""
        if self._checkpoint is None:
            return Progress(rng)
        saved, self._saved = self._saved, None
        if saved is None:
            self._position = Progress(_copied(rng))
            return Progress(rng)
        best = None if saved["best"] is None else _on_backend(saved["best"], backend)
        self._position = Progress(saved["rng"], saved["restart"], best)
        drawn = _copied(saved["rng"])
        if rng is not check_random_state(None):  # the user's own, which ends as if nothing had happened
            rng.set_state(drawn.get_state())
            drawn = rng
        return Progress(drawn, saved["restart"], best, saved["loop"])

    def move(self, restart: int, best: Result | None) -> None:
        """Note which start is at work now."""
        if self._position is not None:
            self._position = replace(self._position, restart=restart, best=best)

    def end(self, result: Result) -> None:
        """Note that the present fit has ended."""
        if self._checkpoint is not None:
            self._done.append(result)

    def offer(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the checkpoint if it is time to, and leave if the process was asked to."""
        if self._checkpoint is None:
            return
        if self._asked is not None or self._due():
            self._write(state())
        self._since += 1
        if self._asked is not None:
            number, self._asked = self._asked, None
            self._restore()
            signal.raise_signal(number)  # as if nobody had listened
            self._install()

    def close(self) -> None:
        """Remove the checkpoint, and what killed processes have left of it: all fits have ended."""
        if self._checkpoint is not None:
            remove_leftovers(self._checkpoint.path)
            Path(self._checkpoint.path).unlink(missing_ok=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear Ctrl-C and SIGTERM inside the block, and leave by them after the next checkpoint.

        Only in the main thread, and only where somebody would act on the signal. A second one is not waited with.
        """
        self._install()
        try:
            yield
        finally:
            self._restore()
            if self._asked is not None:
                number, self._asked = self._asked, None
                signal.raise_signal(number)

    def _due(self) -> bool:
        every = self._checkpoint
        if every is None:
            return False
        late = every.seconds is not None and time.monotonic() - self._last >= every.seconds and self._since > 0
        return late or (every.iterations is not None and self._since >= every.iterations)

    def _write(self, loop: dict[str, Any]) -> None:
        if self._checkpoint is None or self._position is None:
            return
        at = self._position
        content = {
            "fingerprint": self._fingerprint,
            "done": self._done,
            "rng": at.rng,
            "restart": at.restart,
            "best": at.best,
            "loop": loop,
        }
        write_document(self._checkpoint.path, "checkpoint", content, RECORDS)
        self._last, self._since = time.monotonic(), 0

    def _install(self) -> None:
        if self._checkpoint is None or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._hear)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _hear(self, number: int, frame: Any) -> None:  # noqa: ARG002
        if self._asked is None:
            self._asked = number
            return
        self._asked = None
        self._restore()
        signal.raise_signal(number)


def _read(path: str | os.PathLike[str], fingerprint: str) -> dict[str, Any]:
    """Return what a checkpoint holds if it is that of this fit."""
    saved = read_document(path, "checkpoint", RECORDS)
    if set(saved) != _PARTS:
        raise ModelFileError(f"{path} holds other values than a checkpoint of this gwntf: remove it to start anew")
    if saved["fingerprint"] != fingerprint:
        given = f"{os.fspath(path)!r}, which a fit of other data or settings has written"
        allowed = (
            "one of a fit of the same data with the same parameters, backend and version of gwntf: "
            "use another path, or remove the file to start anew"
        )
        raise InputError("checkpoint", given, allowed)
    return saved


def _copied(rng: np.random.RandomState) -> np.random.RandomState:
    copy = np.random.RandomState()
    copy.set_state(rng.get_state())
    return copy


def _on_backend(result: Result, backend: Backend) -> Result:
    return replace(result, factors=[backend.asarray(factor) for factor in result.factors])
