"""``python -m gwntf`` is the ``gwntf`` command."""

import sys

from gwntf.cli import main

sys.exit(main())
