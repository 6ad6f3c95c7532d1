"""`python -m eventlog.faults`: what `make powerloss` does for the log itself."""

from __future__ import annotations

import sys

from eventlog.faults.cli import main

sys.exit(main())
