"""F6: what was erased lies in no file after a compaction, nor in a backup, in any encoding that it could have there.

A child process looks at every byte: nothing else in a process that has a log open may open its files.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import eventlog
from eventlog import LmdbLog, MemoryLog, Part, Snapshot
from eventlog.contract.support import Said, said_registry
from tests.unit.eventlog.conftest import Program, events

WAIT_S = 60.0
Look = Callable[..., list[int]]
LOOK = """
import sys
from pathlib import Path
needles = [bytes.fromhex(line) for line in sys.argv[2].split()]
found = set()
count = 0
for path in sorted(Path(sys.argv[1]).rglob("*")):
    if path.is_file():
        count += 1
        text = path.read_bytes()
        found.update(place for place, needle in enumerate(needles) if needle in text)
print(count, *sorted(found))
"""

EVENT, DIGEST, SNAPSHOT, LARGE = (f"canary-{kind}-4f0b1d7e93" for kind in ("event", "digest", "snapshot", "large"))
CANARIES = (EVENT, DIGEST, SNAPSHOT, LARGE)
KEPT = "a-bird-that-stays-77d1"


def encodings(text: str) -> list[bytes]:
    """A text as it could lie in a file: UTF-8, MessagePack, UTF-16, hexadecimal, base64 at three offsets."""
    plain = text.encode()
    shifted = [base64.b64encode(b"\0" * shift + plain)[4:-4] for shift in range(3)]
    return [
        plain,
        msgspec.msgpack.encode(text),
        text.encode("utf-16-le"),
        text.encode("utf-16-be"),
        plain.hex().encode(),
        plain.hex().upper().encode(),
        *shifted,
    ]


def everywhere(text: str) -> bytes:
    """A text in all of its encodings."""
    return b"|".join(encodings(text))


@pytest.fixture
def look(run_program: Program) -> Look:
    """Which canaries lie in files below a directory."""

    def look(directory: Path, *texts: str) -> list[int]:
        needles = [(place, needle) for place, text in enumerate(texts) for needle in encodings(text)]
        process = run_program(LOOK, str(directory), " ".join(needle.hex() for _, needle in needles))
        said, _ = process.communicate(timeout=WAIT_S)
        files, *found = map(int, said.split())
        assert files >= 3
        return [sum(needles[number][0] == place for number in found) for place in range(len(texts))]

    return look


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LmdbLog]:
    with eventlog.open(tmp_path / "log") as opened:
        yield opened


def tell(log: LmdbLog | MemoryLog) -> None:
    """Put canaries wherever words can go, between other things, and change the pages that they lie on."""
    for number in range(200):
        log.append("other", events(b"%d %s" % (number, KEPT.encode())), key=b"other-%d" % number)
        if number % 20 == 0:
            told = events(everywhere(EVENT), b"x" * 300)
            log.append("told", told, key=b"told-%d" % number, digest=DIGEST.encode())
    log.append("told", events(b"\0" * 9000 + everywhere(LARGE)))
    log.save_snapshot("told", Snapshot(log.stream_version("told"), "v1", everywhere(SNAPSHOT)))
    log.append_many([Part("other", events(b"x")), Part("told", events(everywhere(EVENT)))], digest=b"d")
    log.flush()


ALL = len(encodings(EVENT))


def test_what_was_erased_is_in_no_file_after_a_compaction(log: LmdbLog, tmp_path: Path, look: Look) -> None:
    tell(log)
    found = look(tmp_path, *CANARIES, KEPT)
    assert [bool(number) for number in found] == [True] * 5
    assert [found[0], found[2], found[3]] == [ALL] * 3
    log.erase("told")
    log.append("other", events(b"y"))
    before = look(tmp_path, *CANARIES)
    assert any(before), "the engine leaves the bytes of before on its pages, or this test shows nothing"
    assert log.compact().gone
    assert look(tmp_path, *CANARIES) == [0, 0, 0, 0]
    assert look(tmp_path, KEPT)[0]
    assert log.stream_version("told") > 20
    for number in range(50):
        log.append("told", events(b"%d" % number))
    log.close()
    assert look(tmp_path, *CANARIES) == [0, 0, 0, 0]


def test_what_was_erased_is_in_no_backup_also_without_a_compaction(log: LmdbLog, tmp_path: Path, look: Look) -> None:
    tell(log)
    log.backup(tmp_path / "before")
    log.erase("told")
    log.backup(tmp_path / "after")
    assert all(look(tmp_path / "before", *CANARIES))
    assert any(look(tmp_path / "log", *CANARIES))
    assert look(tmp_path / "after", *CANARIES) == [0, 0, 0, 0]
    assert look(tmp_path / "after", KEPT)[0]


def test_what_was_erased_in_memory_is_in_no_backup(tmp_path: Path, look: Look) -> None:
    log = MemoryLog()
    tell(log)
    log.backup(tmp_path / "before")
    log.erase("told")
    log.backup(tmp_path / "after")
    assert all(look(tmp_path / "before", *CANARIES))
    assert look(tmp_path / "after", *CANARIES) == [0, 0, 0, 0]


def test_the_words_of_typed_events_are_gone_and_their_numbers_stay(tmp_path: Path, look: Look) -> None:
    types = said_registry()
    with eventlog.open(tmp_path / "log", types) as log:
        for number in range(100):
            log.append("s", [Said(EVENT if number % 2 else KEPT, number)])
        log.erase("s", range(2, 101, 2))
        assert any(look(tmp_path, EVENT))
        log.compact()
        assert look(tmp_path, EVENT) == [0]
        assert look(tmp_path, KEPT)[0]
        said = [types.decode(event) for event in log.read("s")]
        assert said == [Said("" if number % 2 else KEPT, number) for number in range(100)]
