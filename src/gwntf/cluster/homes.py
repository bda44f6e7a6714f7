"""Which worker each block of samples belongs to: they are shared out evenly, anew where workers come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gwntf.backends.dask.tasks import Tasks


class Homes:
    """Workers of blocks. The tasks of a block run at home while that worker is there, and anywhere when it is not.

    The scheduler alone would leave blocks where they came to be, since to move one takes longer than a step of it: two
    blocks that were made on one worker would stay there for the whole fit, beside an idle one.

    Attributes
    ----------
    known : list of str or None
        The homes when they were last asked for.
    """

    def __init__(self, tasks: Tasks, count: int) -> None:
        self._tasks = tasks
        self.known: Sequence[str | None] = settled([None] * count, tasks.seats())

    def now(self) -> Sequence[str | None]:
        """Return the home of every block, now that workers may have come or gone."""
        self.known = settled(self.known, self._tasks.seats())
        return self.known


def settled(homes: Sequence[str | None], seats: Sequence[str]) -> list[str | None]:
    """Give every block a seat; those that have one stay, those for which there is none crowd where there is most room.

    Parameters
    ----------
    homes : list of str or None
        Workers of the blocks so far.
    seats : list of str
        Workers, each as often as it has threads.
    """
    room = Counter(seats)
    found: list[str | None] = []
    for home in homes:
        if home is not None and room[home] > 0:
            found.append(home)
            room[home] -= 1
        else:
            found.append(None)
    threads = Counter(seats)
    for block, home in enumerate(found):
        if home is None and threads:
            best = max(threads, key=lambda worker: (room[worker] / threads[worker], -seats.index(worker)))
            found[block] = best
            room[best] -= 1
    return found
