"""A user's own data: files and folders become samples, and nothing in them is trusted.

May import `problem`, `engines` and `core`. Start with `read`, which knows the formats; each has a file of its own.
Libraries that crash on damaged files are called in a process of their own: `guard` starts it, `apart` is what runs
there; it also holds the rules for how large an array may be, and imports nothing of this package.
"""

from gwntf.readers.apart import size
from gwntf.readers.read import FORMATS, default_memory, read_data
from gwntf.readers.samples import Samples
from gwntf.readers.summary import Summary, summarise

__all__ = ["FORMATS", "Samples", "Summary", "default_memory", "read_data", "size", "summarise"]
