"""Power cuts under the search index alone: `python -m tests.support.index_power_loss DIR` is what is recorded.

The index is derived and may come back older, or not at all. But it never says that it reaches farther than it does, for
nothing would be fed to it again; and what was discarded does not come back.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from eventlog.faults.harness import Workload
from eventlog.faults.reopen import Said
from eventlog.faults.states import Bounds
from pace_actors.recall.tantivy_index import TantivyIndex
from tests.unit.recall.contract import ask, entry, turn

POSITIONS = 6
DISCARDED_AT = 2
SECRET = "zanzibar"
BOUNDS = Bounds(every=2, writes=16, pages=2, torn=2, lengths=1)
FEW = Bounds(every=11, writes=16, pages=2, torn=2, lengths=1)


def say(**fields: object) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


def program(place: Path) -> None:
    """An entry a position, each in another group than the one before; once it is begun anew."""
    index = TantivyIndex(place / "index")
    index.add([entry("secret", f"tulips for {SECRET}")])
    for position in range(1, POSITIONS + 1):
        index.add([entry(f"note {position}", f"tulips {position}")] if position % 2 else turn(position, "red tulips"))
        index.commit(position)
        if position == DISCARDED_AT:
            index.discard()
            say(discarded=True)
            index.add([entry("note 1", "tulips 1"), *turn(2, "red tulips")])
            index.commit(position)
    index.close()


def check(place: Path, said: Sequence[Said], promised: int) -> list[str]:
    files = [path for path in place.rglob("*") if path.is_file()]
    if not any("discarded" in line for line in said[:promised]):
        files = []
    held = [path.relative_to(place) for path in files if SECRET.encode() in path.read_bytes()]
    wrong = [f"{path} holds what was discarded" for path in held]
    index = TantivyIndex(place / "index")
    found = set(ask(index, "tulips", diverse=False))
    wanted = {f"note {at}" if at % 2 else f"t/{at}/user" for at in range(1, index.position + 1)}
    if not wanted <= found:
        wrong.append(f"it says that it reaches {index.position}, and lacks {sorted(wanted - found)}")
    index.add([entry("afterwards", "tulips at last")])
    if index.trouble:
        index.start()
        index.add([entry("afterwards", "tulips at last")])
    index.commit(POSITIONS + 1)
    if "afterwards" not in ask(index, "tulips", diverse=False):
        wrong.append("what is added afterwards is not found")
    index.close()
    return wrong


def workload() -> Workload:
    command = (sys.executable, "-m", "tests.support.index_power_loss")
    return Workload("search index", command, "tests.support.index_power_loss:check")


if __name__ == "__main__":
    program(Path(sys.argv[1]))
