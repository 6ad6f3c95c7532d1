"""What is held against a log after a power cut: a whole log passes, and each thing that can be wrong with it is told.

The log is that of a real run; what is wrong is planted in what its program has said, which is the same from both sides.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlog.faults.promises import check
from eventlog.faults.workload import PLACE

Said = list[dict[str, Any]]
Run = tuple[Path, Said]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What `features` leaves, and what it says."""
    place = tmp_path_factory.mktemp("run")
    command = [sys.executable, "-m", "eventlog.faults.workload", "features", "durable", str(place)]
    done = subprocess.run(command, capture_output=True, check=True)
    return place, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def place(run: Run, tmp_path: Path) -> Path:
    shutil.copytree(run[0], tmp_path / "copy")
    return tmp_path / "copy"


def things(said: Said, what: str) -> Said:
    return [line for line in said if line.get("what") == what]


def last_number(said: Said) -> int:
    return max(int(line["will"]) for line in said if "will" in line)


def append_more(said: Said) -> None:
    number = last_number(said) + 1
    said.append({"will": number, "what": "append", "parts": [["busy", ["00"]]], "key": "", "snapshot": 0})
    said.append({"did": number, "durable": True})


def append_one_more_in_a_batch(said: Said) -> None:
    things(said, "append")[-1]["parts"][0][1].append("00")


def other_log(said: Said) -> None:
    for line in said:
        if "log_id" in line:
            line["log_id"] = "another"


def other_bytes(said: Said) -> None:
    things(said, "append")[3]["parts"][0][1][0] = "00"


def fewer(said: Said) -> None:
    things(said, "append")[-1]["parts"][0][1].clear()


def other_key(said: Said) -> None:
    things(said, "append")[0]["key"] = "another"


def other_stream(said: Said) -> None:
    things(said, "append")[0]["parts"][0][0] = "another"


def not_erased(said: Said) -> None:
    things(said, "erase")[0]["versions"] = [1]


def erased_more(said: Said) -> None:
    said.insert(len(said) - 1, {"will": last_number(said) + 1, "what": "erase", "stream": "busy", "versions": [1]})
    said.append({"did": last_number(said), "durable": True})


def never_closed(said: Said) -> None:
    things(said, "close_stream")[0]["stream"] = "busy"


def waited(said: Said) -> None:
    for line in things(said, "checkpoint"):
        line["position"] += 1


def copied_more(said: Said) -> None:
    next(line for line in said if line.get("copied"))["head"] += 1


def with_snapshots(said: Said) -> None:
    things(said, "append")[-1]["snapshot"] = 1


def test_a_whole_run_keeps_its_promises(run: Run, place: Path) -> None:
    assert check(place, run[1], len(run[1])) == []


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (append_more, "was promised, and is not there"),
        (append_one_more_in_a_batch, "its last batch is there in part|is there in part"),
        (other_log, "it is another log"),
        (other_bytes, "holds other bytes"),
        (fewer, "were ever appended"),
        (other_key, "the key 'another' leads to None"),
        (other_stream, "its streams are"),
        (not_erased, "is erased"),
        (erased_more, "(erase) was promised, and is not there"),
        (never_closed, "(close_stream) was promised, and is not there"),
        (waited, "the checkpoint of 'mailer' is"),
        (copied_more, "backup-1: its head is"),
        (with_snapshots, "the snapshot of 'stream/5'"),
    ],
)
def test_what_is_wrong_is_told(run: Run, place: Path, plant: Callable[[Said], None], words: str) -> None:
    said: Said = json.loads(json.dumps(run[1]))
    plant(said)
    wrong = check(place, said, len(said))
    assert any(word in sentence for sentence in wrong for word in words.split("|")), wrong


def test_words_that_were_compacted_away_may_lie_nowhere(run: Run, place: Path) -> None:
    (place / PLACE / "log-1").mkdir()
    (place / PLACE / "log-1" / "data.mdb").write_bytes(b"a canary in an old file")
    words = "log-1/data.mdb holds words that were erased and compacted away: the power cut brought it back"
    assert words in check(place, run[1], len(run[1]))
