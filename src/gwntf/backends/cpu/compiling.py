"""Telling the user that something is being compiled, when it takes long enough to be noticed."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)

_PATIENCE = 1.0


@contextmanager
def told_if_slow(what: str) -> Iterator[None]:
    """Log a warning, once, if the block takes longer than a second."""
    message = "compiling %s; this takes some seconds, once: the result is kept on disk"
    timer = threading.Timer(_PATIENCE, _log.warning, (message, what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
