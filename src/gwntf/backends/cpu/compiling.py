"""A warning while something is compiled, if that takes long."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)

_DELAY = 1.0


@contextmanager
def warn_if_slow(what: str) -> Iterator[None]:
    """Log a warning if the block takes longer than a second."""
    message = "compiling %s; this takes some seconds, once: the result is kept on disk"
    timer = threading.Timer(_DELAY, _log.warning, (message, what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
