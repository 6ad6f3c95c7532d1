"""Whoever judges a log after a fault sees each lie that could be told of it.

Method: the run of `make inject` without a fault, and its account. Then something is changed in a copy: in what callers
are said to have been told, or in the log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import eventlog
from eventlog import NewEvent, Snapshot, ViewBatch
from eventlog.faults import warm
from eventlog.faults.account import Account, judge
from eventlog.faults.doing import Doer, Said
from eventlog.faults.steps import EVENT_TYPE, Wish, payload, whole_run, wishes_of

Made = tuple[Path, Account]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What the run leaves in a directory, and its account."""
    place = tmp_path_factory.mktemp("run")
    said: list[Said] = []
    doer = Doer(place / "log", said.append, lambda: None)
    doer.open()
    doer.run(whole_run())
    doer.close()
    account = Account()
    account.add([wish for step in whole_run() for wish in wishes_of(step)], said)
    return place, account


@pytest.fixture
def copied(made: Made, tmp_path: Path) -> Made:
    place, account = made
    copy = Path(shutil.copytree(place, tmp_path / "copy"))
    return copy, Account(dict(account.wishes), list(account.said))


def wrong(copied: Made) -> str:
    place, account = copied
    return "\n".join(judge(place / "log", account, ended_well=True).wrong)


def test_a_run_without_a_fault_is_right_and_does_something_of_everything(copied: Made) -> None:
    place, account = copied
    assert {said.outcome for said in account.said[1:]} == {"begun", "done"}
    assert {said.kind for said in account.said[1:]} == {
        "append", "together", "follow", "handle", "flush", "erase", "closestream", "compact", "backup",
        "reopen", "open",
    }  # fmt: skip
    assert wrong(copied) == ""
    account.keep(judge(place / "log", Account(), ended_well=True))
    assert "asked by nobody" in "".join(judge(place / "log", Account()).wrong)


def changed(account: Account, chosen: Callable[[Said], bool], **changes: object) -> None:
    """Another thing was told at the one place that is chosen."""
    at = max(number for number, said in enumerate(account.said) if chosen(said))
    account.said[at] = msgspec.structs.replace(account.said[at], **changes)


def done(kind: str) -> Callable[[Said], bool]:
    return lambda said: (said.kind, said.outcome) == (kind, "done")


def appended_elsewhere(account: Account) -> None:
    changed(account, done("append"), positions=(1,))


def refused_and_stored(account: Account) -> None:
    changed(account, done("append"), outcome="refused")


def never_begun_and_stored(account: Account) -> None:
    name = next(said.name for said in account.said if done("together")(said))
    account.said = [said for said in account.said if said.name != name]


def acknowledged_and_absent(account: Account) -> None:
    account.add([Wish("more", (("a", (10,)),), b"more")], [Said("more", "done", "append", (7,))])


def half(account: Account) -> None:
    wish = account.wishes["0"]
    [(stream, sizes)] = wish.streams
    account.wishes["0"] = msgspec.structs.replace(wish, streams=((stream, (*sizes, 10)),))


def other_bytes(account: Account) -> None:
    wish = account.wishes["1"]
    [(stream, sizes)] = wish.streams
    account.wishes["1"] = msgspec.structs.replace(wish, streams=((stream, (sizes[0], sizes[1] + 1)),))


def another_key(account: Account) -> None:
    account.wishes["0"] = msgspec.structs.replace(account.wishes["0"], key=b"unheard of")


def found_elsewhere(account: Account) -> None:
    account.found["0"] = ()


def erased_unasked(account: Account) -> None:
    account.said = [said for said in account.said if said.kind != "erase"]


def erased_in_vain(account: Account) -> None:
    account.said += [Said("x", "begun", "erase", (3,)), Said("x", "done", "erase", (3,))]


def flushed_in_vain(account: Account) -> None:
    account.said += [Said("x", "done", "follow", (150,), "late"), Said("y", "done", "flush")]


def closed_in_vain(account: Account) -> None:
    account.said.append(Said("x", "done", "closestream", about="d"))


def closed_unasked(account: Account) -> None:
    changed(account, done("closestream"), outcome="refused")


def copied_too_little(account: Account) -> None:
    said = next(said for said in account.said if done("backup")(said))
    changed(account, done("backup"), positions=(said.positions[0] + 1,))


def copied_in_vain(account: Account) -> None:
    changed(account, done("backup"), outcome="refused")


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (appended_elsewhere, "was acknowledged at (1,), and is at"),
        (refused_and_stored, "was refused, and is stored"),
        (never_begun_and_stored, "was never begun, and is stored"),
        (acknowledged_and_absent, "was acknowledged at (7,), and is at ()"),
        (half, "1 of 2 events of append '0'"),
        (other_bytes, "append '1' is stored with other bytes"),
        (another_key, "the key of append '0' leads to None"),
        (found_elsewhere, "append '0' was found at (), and is now at (1,)"),
        (erased_unasked, "is erased, and that was never asked"),
        (erased_in_vain, "position 3 was erased, and is there again"),
        (flushed_in_vain, "'late' stands at"),
        (closed_in_vain, "stream 'd' was closed, and is open"),
        (closed_unasked, "are closed, and nobody has done that"),
        (copied_too_little, "backup 'backup 1' has"),
        (copied_in_vain, "backup 'backup 1' failed, and has left something"),
    ],
)
def test_what_was_told_wrongly_is_seen(copied: Made, lie: Callable[[Account], None], sentence: str) -> None:
    lie(copied[1])
    assert sentence in wrong(copied)


def twice(log: eventlog.EventLog, account: Account) -> None:
    wish = account.wishes["0"]
    log.append("a", [NewEvent(EVENT_TYPE, payload(wish.name, 0, 40))], correlation=wish.name)


def stranger(log: eventlog.EventLog, account: Account) -> None:
    log.append("a", [NewEvent(EVENT_TYPE, b"x")], correlation="stranger")
    account.said.clear()


def wrong_view(log: eventlog.EventLog, _: Account) -> None:
    at = log.checkpoint("follower")
    log.set_checkpoint("follower", at, at + 1, view=ViewBatch())


def wrong_state(log: eventlog.EventLog, _: Account) -> None:
    log.save_snapshot("d", Snapshot(log.stream_version("d"), "1", b"wrong"))
    log.set_checkpoint("other", 0, 1)


def effect_missing(log: eventlog.EventLog, _: Account) -> None:
    at = log.checkpoint("handler")
    log.set_checkpoint("handler", at, log.head())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (twice, "2 of 1 events of append '0' are stored"),
        (stranger, "'stranger' was asked by nobody"),
        (wrong_view, "the view of 'follower' at"),
        (wrong_state, "the snapshot of 'd' is"),
        (effect_missing, "has no effect of ["),
    ],
)
def test_what_lies_wrongly_in_the_log_is_seen(
    copied: Made, change: Callable[[eventlog.EventLog, Account], None], sentence: str
) -> None:
    place, account = copied
    with eventlog.open(place / "log") as log:
        change(log, account)
    assert sentence in wrong(copied)


def test_what_lies_wrongly_in_the_directory_is_seen(copied: Made) -> None:
    place, _ = copied
    (place / "log" / "stray").mkdir()
    shutil.rmtree(place / "backup 1")
    sentences = wrong(copied)
    assert "left behind in the directory" in sentences
    assert "backup 'backup 1' does not open" in sentences


def test_a_log_that_does_not_open_again_is_judged_by_nobody(copied: Made) -> None:
    """The process that judges ends with the error, which whoever started it reports."""
    place, account = copied
    (place / "log" / "LOG.json").write_bytes(b"{}")
    with pytest.raises(eventlog.DamagedLog):
        judge(place / "log", account)
    if os.name == "posix":
        with pytest.raises(ChildProcessError, match="judge gave no answer: exit code 1"):
            warm.answer_of(judge, place / "log", account)
