"""`python -m tests.planted FOLDER`: the logs that docs/debugging.md looks at."""

import sys
from pathlib import Path

from tests.planted.bugs import BUGS, plant

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for bug in BUGS:
    plant(bug, folder)
    sys.stdout.write(f"{bug.name}: {bug.complaint}\n")
