"""Files: written aside, then renamed, so that no partial file ever replaces a good one.

May import `geometry`, `problem`, `engines` and `core`. Start with `atomic`; `container` is the file of models and
checkpoints, `values` what may be in it, `documents` both together.
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
