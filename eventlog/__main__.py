"""`python -m eventlog`."""

import sys

from eventlog.cli import main

if __name__ == "__main__":
    sys.exit(main())
