"""Errors of the library: each names the argument, what was given and what is allowed."""

from __future__ import annotations


class GwntfError(Exception):
    """Base of every error that the library raises on purpose."""


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
    """

    def __init__(self, argument: str, given: str, allowed: str) -> None:
        super().__init__(f"{argument}: got {given}; expected {allowed}.")
        self.argument, self.given, self.allowed = argument, given, allowed

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.argument, self.given, self.allowed)


class MissingLibraryError(GwntfError, ImportError):
    """An optional library that is needed now and not installed."""


class DeviceMemoryError(GwntfError, MemoryError):
    """A device with too little memory, after smaller blocks of work had been tried."""


class DataError(GwntfError, OSError):
    """A data file that is not there, could not be had, or is not what it should be."""


class ModelFileError(GwntfError, ValueError):
    """A file that is no model or checkpoint of this library, is damaged, or comes from a later version."""


class FileWriteError(GwntfError, OSError):
    """A file that could not be written; its message says what became of the one that was there."""

    def __str__(self) -> str:
        return str(self.strerror)
