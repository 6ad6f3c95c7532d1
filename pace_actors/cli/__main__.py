"""`python -m pace_actors.cli`."""

import sys

from pace_actors.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
