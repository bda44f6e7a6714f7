"""Writing files atomically, and the file format of models and checkpoints.

May import `geometry`, `problem`, `engines` and `core`. Start with `atomic`, which writes a temporary file and renames
it; `container` is the file format, `values` the values it may contain, `documents` combines both.
"""

from gwntf.io.atomic import atomic_path, remove_leftovers
from gwntf.io.documents import fingerprint, read_document, write_document
from gwntf.io.values import Record, Records

__all__ = [
    "Record",
    "Records",
    "atomic_path",
    "fingerprint",
    "read_document",
    "remove_leftovers",
    "write_document",
]
