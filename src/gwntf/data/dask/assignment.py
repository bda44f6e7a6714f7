"""Which worker each block belongs to: blocks are spread evenly, again whenever workers come and go."""

from collections import Counter
from collections.abc import Sequence

from gwntf.data.dask.tasks import Tasks


class Assignment:
    """Workers of blocks. The tasks of a block run on its worker while that is there, and anywhere when it is not.

    The scheduler alone would leave blocks where they were made, since moving one takes longer than a step of it: two
    blocks that were made on one worker would stay there for the whole fit, beside an idle one.

    Attributes
    ----------
    known : list of str or None
        The workers when they were last asked for.
    """

    def __init__(self, tasks: Tasks, count: int) -> None:
        self._tasks = tasks
        self.known: Sequence[str | None] = assigned([None] * count, tasks.slots())

    def now(self) -> Sequence[str | None]:
        """Return the worker of every block, now that workers may have come or gone."""
        self.known = assigned(self.known, self._tasks.slots())
        return self.known


def assigned(workers: Sequence[str | None], slots: Sequence[str]) -> list[str | None]:
    """Assign every block to a worker; blocks with a free slot stay, extra blocks go to the least loaded worker.

    Parameters
    ----------
    workers : list of str or None
        Workers of the blocks so far.
    slots : list of str
        Workers, each as often as it has threads.
    """
    free, threads = Counter(slots), Counter(slots)
    found: list[str | None] = []
    for worker in workers:
        stays = worker is not None and free[worker] > 0
        found.append(worker if stays else None)
        if stays:
            free[worker] -= 1  # type: ignore[index]
    for block, worker in enumerate(found):
        if worker is None and threads:
            best = max(threads, key=lambda name: (free[name] / threads[name], -slots.index(name)))
            found[block] = best
            free[best] -= 1
    return found
