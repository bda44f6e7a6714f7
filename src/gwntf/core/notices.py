"""Warnings of the library: each says what was seen and what to change, once per fit.

A fit that has not settled warns with scikit-learn's `ConvergenceWarning`.
"""


class GwntfWarning(UserWarning):
    """Base of every warning that the library gives on purpose, but for those on convergence.

    Examples
    --------
    >>> import warnings
    >>> from gwntf import GwntfWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", GwntfWarning)  # fits here keep these to themselves
    """


class EmptyComponentWarning(GwntfWarning):
    """Components that have no mass."""


class DisconnectedGraphWarning(GwntfWarning):
    """A graph with samples that are tied to nothing, or with more parts than clusters are asked for."""


class CoarseKernelWarning(GwntfWarning):
    """A long mode for which no near-far kernel was exact enough, so that all pairs are held."""


class UnevenSamplesWarning(GwntfWarning):
    """Samples, not scaled, of which half are too light to count."""
