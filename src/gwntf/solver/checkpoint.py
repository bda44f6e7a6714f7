"""Checkpoints, from which an interrupted fit resumes; written at intervals and on Ctrl-C or SIGTERM."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gwntf.backends import Backend
from gwntf.core import InputError, ModelFileError, Status
from gwntf.io import Record, Records, read_document, remove_leftovers, write_document
from gwntf.losses import ObjectiveTerms, PlanTerms
from gwntf.solver.problem import Result

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

LAYOUT = 4
"""Version of the content of a checkpoint; raise it with every change, so that no fit resumes from an older layout."""

_WORDS = 624
"""Number of words in the state of the Mersenne Twister."""

_PARTS = {"fingerprint", "done", "rng", "restart", "best", "loop"}
"""Fields of a checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """Path and interval of the checkpoints of a fit, from which the same fit resumes after an interruption.

    Pass it in the `callbacks` of an estimator. If the file exists, `fit` resumes from it and returns the same result to
    the bit; a file from other data or other parameters raises an error. The checkpoint is also written at the end of
    the iteration in which the process receives Ctrl-C or SIGTERM. The file is removed after the fit. If it cannot be
    written, for example because the disk is full, the fit warns, continues, and tries again at the next interval.

    Parameters
    ----------
    path : path
        File of the checkpoint; no other fit may use it.
    iterations : int, optional
        Interval in outer iterations.
    seconds : float or None, default=30.0
        Interval in seconds. With both intervals the checkpoint is written when either has passed.

    Examples
    --------
    >>> from gwntf import NMF, Checkpoint
    >>> model = NMF(3, callbacks=[Checkpoint("run.ckpt", iterations=100)])
    >>> model.callbacks[0].seconds
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
        """Raise InputError unless the path is that of a file in an existing folder."""
        path = Path(self.path)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise InputError("checkpoint", repr(str(path)), "the path of a file in an existing folder")


@dataclass
class Progress:
    """Progress of a fit through its starts."""

    rng: np.random.RandomState  # State before the starts were drawn
    restart: int = 0  # Index of the current start
    best: Result | None = None  # Best result of the starts before it
    loop: dict[str, Any] | None = None  # State of the outer loop; None before its first iteration


class Keeper:
    """Writes the checkpoint, if there is one, of fits that run one after the other, and resumes from it.

    `fingerprint` identifies data and parameters; a checkpoint with another fingerprint raises an error. `on_failure` is
    called with the error if the file cannot be written or removed, and not again until a write has succeeded.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        fingerprint: str = "",
        on_failure: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        self._checkpoint, self._fingerprint, self._on_failure = checkpoint, fingerprint, on_failure
        self._failed = False
        self._saved: dict[str, Any] | None = None
        if checkpoint is not None and Path(checkpoint.path).exists():
            self._saved = _read(checkpoint.path, fingerprint)
        self._done: list[Result] = []
        self._position: Progress | None = None
        self._last, self._since = time.monotonic(), 0
        self._signal: int | None = None
        self._before: dict[int, Any] = {}

    def finished(self, fit: int, backend: Backend) -> Result | None:
        """Return the result of a fit that was complete when the checkpoint was written, else None."""
        if self._saved is None or fit >= len(self._saved["done"]):
            return None
        self._done.append(_on_backend(self._saved["done"][fit], backend))
        return self._done[-1]

    def begin(self, rng: np.random.RandomState, backend: Backend) -> Progress:
        """Return the progress from which the current fit starts: that of the checkpoint, or none."""
        if self._checkpoint is None:
            return Progress(rng)
        _taken(rng)  # raises before any work if the generator cannot be written
        saved, self._saved = self._saved, None
        if saved is None:
            self._position = Progress(deepcopy(rng))
            return Progress(rng)
        best = None if saved["best"] is None else _on_backend(saved["best"], backend)
        self._position = Progress(saved["rng"], saved["restart"], best)
        drawn = deepcopy(saved["rng"])
        if rng is not check_random_state(None):  # the user's generator ends in the state of an uninterrupted fit
            rng.set_state(drawn.get_state())
            drawn = rng
        return Progress(drawn, saved["restart"], best, saved["loop"])

    def move(self, restart: int, best: Result | None) -> None:
        """Set the start to which the next iterations belong, and the best result so far."""
        if self._position is not None:
            self._position = replace(self._position, restart=restart, best=best)

    def end(self, result: Result) -> None:
        """Add the result of the current fit, which is complete."""
        if self._checkpoint is not None:
            self._done.append(result)

    def offer(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the checkpoint if it is due or a signal was received; then raise that signal again."""
        every = self._checkpoint
        if every is None:
            return
        late = every.seconds is not None and time.monotonic() - self._last >= every.seconds and self._since > 0
        if self._signal is not None or late or (every.iterations is not None and self._since >= every.iterations):
            self._write(every, state())
        self._since += 1
        if self._signal is not None:
            self._raise(self._signal)
            self._install()

    def close(self) -> None:
        """Remove the checkpoint and temporary files of killed processes; called after all fits."""
        if self._checkpoint is not None:
            try:
                remove_leftovers(self._checkpoint.path)
                Path(self._checkpoint.path).unlink(missing_ok=True)
            except OSError as error:
                self._report(error)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Delay Ctrl-C and SIGTERM inside the block until the next checkpoint is written.

        Applies only in the main thread and to signals that are not ignored. A second signal is handled immediately.
        """
        self._install()
        try:
            yield
        finally:
            self._restore()
            if self._signal is not None:
                self._raise(self._signal)

    def _write(self, checkpoint: Checkpoint, loop: dict[str, Any]) -> None:
        if self._position is None:
            return
        content = {"fingerprint": self._fingerprint, "done": self._done, **vars(self._position), "loop": loop}
        try:
            write_document(checkpoint.path, "checkpoint", content, RECORDS)
            self._failed = False
        except OSError as error:
            self._report(error)
        self._last, self._since = time.monotonic(), 0

    def _report(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            self._on_failure(error)

    def _install(self) -> None:
        if self._checkpoint is None or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._received)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _received(self, number: int, frame: Any) -> None:  # noqa: ARG002
        if self._signal is None:
            self._signal = number
        else:
            self._raise(number)

    def _raise(self, number: int) -> None:
        """Raise a delayed signal with its original handler."""
        self._signal = None
        self._restore()
        signal.raise_signal(number)


def _read(path: str | os.PathLike[str], fingerprint: str) -> dict[str, Any]:
    """Return the content of a checkpoint; raise InputError if it is not of this fit."""
    saved = read_document(path, "checkpoint", RECORDS)
    if set(saved) != _PARTS:
        raise ModelFileError(f"{path} is not a checkpoint of this version of gwntf: remove it to start again")
    if saved["fingerprint"] != fingerprint:
        given = f"{os.fspath(path)!r}, written by a fit of other data or settings"
        allowed = (
            "a checkpoint of the same data, parameters, backend and version of gwntf: "
            "use another path, or remove the file to start again"
        )
        raise InputError("checkpoint", given, allowed)
    return saved


def _on_backend(result: Result, backend: Backend) -> Result:
    return replace(result, factors=[backend.asarray(factor) for factor in result.factors])


def _random_state(key: Any, pos: int, has_gauss: int, gauss: float) -> np.random.RandomState:
    if key.shape != (_WORDS,) or key.dtype != np.uint32 or not 0 <= pos <= _WORDS or has_gauss not in (0, 1):
        raise ValueError("invalid RandomState")
    found = np.random.RandomState()
    found.set_state(("MT19937", key, pos, has_gauss, float(gauss)))
    return found


def _taken(rng: np.random.RandomState) -> dict[str, Any]:
    state: Any = rng.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        given = f"a RandomState with the bit generator {state['bit_generator']}"
        raise InputError("random_state", given, "an int, None, or a RandomState with MT19937 for a fit with checkpoint")
    return {**state["state"], "has_gauss": state["has_gauss"], "gauss": state["gauss"]}


def _terms(modes: tuple[PlanTerms | None, ...], misfit: float, graph: float, penalty: float = 0.0) -> ObjectiveTerms:
    if not all(mode is None or isinstance(mode, PlanTerms) for mode in modes):
        raise ValueError("invalid ObjectiveTerms")
    return ObjectiveTerms(tuple(modes), float(misfit), float(graph), float(penalty))


def _plan_terms(transport: float, data: float, model: float) -> PlanTerms:
    return PlanTerms(float(transport), float(data), float(model))


RECORDS: Records = {
    "ObjectiveTerms": Record(ObjectiveTerms, lambda terms: dict(vars(terms)), _terms),
    "PlanTerms": Record(PlanTerms, lambda terms: dict(vars(terms)), _plan_terms),
    "RandomState": Record(np.random.RandomState, _taken, _random_state),
    "Result": Record(Result, lambda result: dict(vars(result)), Result),
    "Status": Record(Status, lambda status: {"value": status.value}, Status),
}
"""Classes of the solver that are written to files, by name."""
