"""Why a fit stopped, and what to change if that is not what was wanted."""

from enum import Enum


class Status(Enum):
    """Reason for the end of the outer loop; `message` says what to change.

    Examples
    --------
    >>> from gwntf import Status
    >>> Status("converged").message
    'The objective changed by less than `tol`.'
    """

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    ROSE = "rose"
    DIVERGED = "diverged"
    STOPPED = "stopped"

    @property
    def message(self) -> str:
        """One sentence for a person."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.CONVERGED: "The objective changed by less than `tol`.",
    Status.MAX_ITER: (
        "The iteration limit came before the objective settled: raise `max_iter`, or `tol` if the "
        "factors are good enough."
    ),
    Status.ROSE: (
        "The objective rose. With update='mm' this means that the transports were solved too loosely: "
        "raise `transport_max_iter`. The other update rules give no guarantee: use update='mm'."
    ),
    Status.DIVERGED: (
        "The factors left the range of the number type and the last finite ones were kept: use "
        "update='mm', a smaller `graph_reg`, or float64 data."
    ),
    Status.STOPPED: "It was asked to stop: by a callback, or after the batch of a `partial_fit`.",
}
