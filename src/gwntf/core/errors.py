"""Errors and warnings of the library.

An error names the argument, what was given and what is allowed. A warning says what was found and what to change, once
per fit; a fit that has not converged warns with scikit-learn's `ConvergenceWarning`.
"""

from __future__ import annotations


class GwntfError(Exception):
    """Base of every error of the library.

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
    """An argument that the library cannot work with.

    Parameters
    ----------
    argument : str
        Name of the argument as the user wrote it, for example ``"costs[1]"``.
    given : str
        What was given.
    allowed : str
        What would have been accepted.

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
    """An optional library that is needed now and not installed."""


class DeviceMemoryError(GwntfError, MemoryError):
    """A device with too little memory, after smaller blocks of work had been tried.

    Examples
    --------
    >>> from gwntf import DeviceMemoryError
    >>> issubclass(DeviceMemoryError, MemoryError)           # one handler serves both
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
    """A file that is no model or checkpoint of this library, is damaged, or comes from a later version.

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
    """A file that could not be written; its message says what became of the one that was there.

    Examples
    --------
    >>> from gwntf import FileWriteError
    >>> issubclass(FileWriteError, OSError)
    True
    """

    def __str__(self) -> str:
        return str(self.strerror)


class GwntfWarning(UserWarning):
    """Base of every warning of the library, except those on convergence.

    Examples
    --------
    >>> import warnings
    >>> from gwntf import GwntfWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", GwntfWarning)  # fits in this block do not warn
    """


class EmptyComponentWarning(GwntfWarning):
    """Components that have no mass."""


class DisconnectedGraphWarning(GwntfWarning):
    """A graph with isolated samples, or with more connected components than clusters."""


class CoarseKernelWarning(GwntfWarning):
    """A long mode for which no near-far kernel was exact enough, so that all pairs are stored."""


class CheckpointWarning(GwntfWarning):
    """A checkpoint that could not be written or removed, while the fit goes on."""


class GraphNotExtendedWarning(GwntfWarning):
    """New samples embedded without the graph of the fit, not comparable with the samples of the fit."""


class SamplesLastWarning(GwntfWarning):
    """Data of a shape that they have where samples lie along the last axis."""


class UnevenSamplesWarning(GwntfWarning):
    """Samples, not scaled, of which half are too light to count."""
