"""Files: written aside, then renamed, so that no partial file ever replaces a good one.

May import `geometry`, `problem`, `engines` and `core`. Start with `atomic`.
"""

from gwntf.io.atomic import atomic_path

__all__ = ["atomic_path"]
