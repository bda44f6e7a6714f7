"""Readers of data files and folders; the content of a file is never trusted.

May import `data` and everything below it. Start with `read`, the table of formats. `limits` has the size limits that
all readers check. Libraries that crash on damaged files run in a child process: `matlab` starts it, `isolated` is what
it runs. `spectra` reads tables of spectra with their axis, for `gwntf unmix`.
"""

from gwntf.readers.limits import format_bytes
from gwntf.readers.read import FORMATS, default_memory, read_data
from gwntf.readers.samples import Samples, Summary, summarise
from gwntf.readers.spectra import Spectra, read_spectra

__all__ = [
    "FORMATS",
    "Samples",
    "Spectra",
    "Summary",
    "default_memory",
    "format_bytes",
    "read_data",
    "read_spectra",
    "summarise",
]
