"""Writing files atomically, and the file format of models and checkpoints.

May import `transport` and everything below it. Start with `atomic`, which writes a temporary file and renames it;
`container` is the file format, `documents` the values that it may contain.
"""

from gwntf.io.atomic import atomic_path, check_target, remove_leftovers
from gwntf.io.documents import Record, Records, fingerprint, read_document, write_document
