"""Checkpoints: what a fit needs to go on where it was, written now and then and before the process leaves."""

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
"""Version of what a fit writes; to be raised whenever that changes, so that no fit continues from an older one."""

_WORDS = 624
"""Of the state of the Mersenne Twister."""

_PARTS = {"fingerprint", "done", "rng", "restart", "best", "loop"}
"""Of a checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a fit writes a checkpoint, from which the same fit continues after an interruption.

    It is one of the `callbacks` of an estimator. A fit that finds the file resumes from it, with the same result to the
    bit; a file of other data or settings is refused. It is also written at the end of the iteration in which the
    process receives Ctrl-C or SIGTERM. When the fit has ended, the file is removed. Where it cannot be written, as on
    a full disk, the fit warns, continues, and tries again the next time.

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
        """Raise unless the path is that of a file in a folder that is there."""
        path = Path(self.path)
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise InputError("checkpoint", repr(str(path)), "the path of a file in a folder that exists")


@dataclass
class Progress:
    """How far a fit is among its starts."""

    rng: np.random.RandomState  # As it was before the starts were drawn
    restart: int = 0  # Which start is running
    best: Result | None = None  # The best of those before it
    loop: dict[str, Any] | None = None  # Where the loop is, from `loop`; None at its beginning


class Keeper:
    """Writes the checkpoint of some fits that run one after the other, if there is one, and finds where to continue.

    `fingerprint` is that of data and settings; a checkpoint with another one is refused. `on_failure` is called with
    the error where the file cannot be written or removed, once until it can be again.
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
        """Return the result of a fit that had ended before the checkpoint was written."""
        if self._saved is None or fit >= len(self._saved["done"]):
            return None
        self._done.append(_on_backend(self._saved["done"][fit], backend))
        return self._done[-1]

    def begin(self, rng: np.random.RandomState, backend: Backend) -> Progress:
        """Return where the present fit begins: at its start, or where the checkpoint has it."""
        if self._checkpoint is None:
            return Progress(rng)
        _taken(rng)  # a generator that cannot be written is refused before any work
        saved, self._saved = self._saved, None
        if saved is None:
            self._position = Progress(deepcopy(rng))
            return Progress(rng)
        best = None if saved["best"] is None else _on_backend(saved["best"], backend)
        self._position = Progress(saved["rng"], saved["restart"], best)
        drawn = deepcopy(saved["rng"])
        if rng is not check_random_state(None):  # the user's own, which ends as if nothing had happened
            rng.set_state(drawn.get_state())
            drawn = rng
        return Progress(drawn, saved["restart"], best, saved["loop"])

    def move(self, restart: int, best: Result | None) -> None:
        """Record which start the next iterations belong to."""
        if self._position is not None:
            self._position = replace(self._position, restart=restart, best=best)

    def end(self, result: Result) -> None:
        """Record that the present fit has ended."""
        if self._checkpoint is not None:
            self._done.append(result)

    def offer(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the checkpoint if it is due; if a signal has come, write it and then act on the signal."""
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
        """Remove the checkpoint, and what killed processes have left of it: all fits have ended."""
        if self._checkpoint is not None:
            try:
                remove_leftovers(self._checkpoint.path)
                Path(self._checkpoint.path).unlink(missing_ok=True)
            except OSError as error:
                self._report(error)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Delay Ctrl-C and SIGTERM inside the block until the next checkpoint is written.

        Only in the main thread, and only where the signal is not ignored. A second signal is handled immediately.
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
        """Act on a signal as if it had not been delayed."""
        self._signal = None
        self._restore()
        signal.raise_signal(number)


def _read(path: str | os.PathLike[str], fingerprint: str) -> dict[str, Any]:
    """Return the content of a checkpoint if it is that of this fit."""
    saved = read_document(path, "checkpoint", RECORDS)
    if set(saved) != _PARTS:
        raise ModelFileError(f"{path} has other values than a checkpoint of this gwntf: remove it to start again")
    if saved["fingerprint"] != fingerprint:
        given = f"{os.fspath(path)!r}, which a fit of other data or settings has written"
        allowed = (
            "one of a fit of the same data with the same parameters, backend and version of gwntf: "
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
        given = f"a RandomState over {state['bit_generator']}"
        raise InputError("random_state", given, "an int, None, or a RandomState over MT19937")
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
"""What the solver writes into files, by name."""
