"""Errors and warnings of the library.

An error names the argument, what was given and what is allowed. A warning says what was found and what to change, once
per fit; a fit that has not converged warns with scikit-learn's `ConvergenceWarning`.
"""

from __future__ import annotations


class GwntfError(Exception):
    """Base class of all errors of the library.

    Examples
    --------
    >>> from gwntf import NMF, GwntfError
    >>> try:
    ...     NMF(2, init=[[1.0]]).fit([[1.0, 2.0], [3.0, 4.0]])
    ... except GwntfError as error:
    ...     print(type(error).__name__)
    InputError
    """


class InputError(GwntfError, ValueError):
    """An invalid argument.

    Parameters
    ----------
    argument : str
        Name of the argument as the user wrote it, for example ``"costs[1]"``.
    given : str
        What was given.
    allowed : str
        What is accepted.

    Examples
    --------
    >>> from gwntf import GWNTF, InputError
    >>> try:
    ...     GWNTF(2, costs=("cosine", "gird")).fit([[1.0, 2.0], [3.0, 4.0]])
    ... except InputError as error:
    ...     print(error.argument, error.given)
    costs[1] 'gird'
    """

    def __init__(self, argument: str, given: str, allowed: str) -> None:
        super().__init__(f"{argument}: got {given}; expected {allowed}.")
        self.argument, self.given, self.allowed = argument, given, allowed

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.argument, self.given, self.allowed)


class MissingLibraryError(GwntfError, ImportError):
    """An optional library that is required but not installed."""


class DeviceMemoryError(GwntfError, MemoryError):
    """A device has too little memory, even for smaller blocks of work.

    Examples
    --------
    >>> from gwntf import DeviceMemoryError
    >>> issubclass(DeviceMemoryError, MemoryError)           # `except MemoryError` catches both
    True
    """


class DataError(GwntfError, OSError):
    """A data file that does not exist, could not be downloaded, or is invalid.

    Examples
    --------
    >>> from gwntf import DataError
    >>> from gwntf.datasets import load_coil20
    >>> try:
    ...     load_coil20("/no/such/folder", download=False)
    ... except DataError as error:
    ...     print("COIL20.mat" in str(error))
    True
    """


class ModelFileError(GwntfError, ValueError):
    """A file that is not a gwntf model or checkpoint, is damaged, or was written by a later version.

    Examples
    --------
    >>> import os, tempfile
    >>> from gwntf import ModelFileError, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("no model")
    ...     try:
    ...         load(path)
    ...     except ModelFileError as error:
    ...         print("notes.txt" in str(error))
    True
    """


class FileWriteError(GwntfError, OSError):
    """A file that could not be written; the message says whether an existing file is unchanged.

    Examples
    --------
    >>> from gwntf import FileWriteError
    >>> issubclass(FileWriteError, OSError)
    True
    """

    def __str__(self) -> str:
        return str(self.strerror)


class GwntfWarning(UserWarning):
    """Base class of all warnings of the library, except convergence warnings.

    Examples
    --------
    >>> import warnings
    >>> from gwntf import GwntfWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", GwntfWarning)  # fits in this block do not warn
    """


class EmptyComponentWarning(GwntfWarning):
    """Components that have almost no mass."""


class DependentPartsWarning(GwntfWarning):
    """Known parts that are linear combinations of each other."""


class DisconnectedGraphWarning(GwntfWarning):
    """A graph with isolated samples, or with more connected components than clusters."""


class CoarseKernelWarning(GwntfWarning):
    """No near-far kernel was accurate enough for a long mode, so that all pairs are stored."""


class CheckpointWarning(GwntfWarning):
    """A checkpoint could not be written or removed; the fit continues."""


class GraphNotExtendedWarning(GwntfWarning):
    """New samples were embedded without the graph, so that they are not comparable with the training samples."""


class SamplesLastWarning(GwntfWarning):
    """The shape of X suggests that the samples are along its last axis."""


class UnevenSamplesWarning(GwntfWarning):
    """Without `sample_norm`, half of the samples are too small to influence the fit."""
