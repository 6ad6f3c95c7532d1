"""`check` finds what is wrong with a log, says it with a name from a fixed list, and finds nothing in a whole one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import eventlog
from eventlog import MemoryLog, NotALog, Snapshot, check
from eventlog.check import DETAIL_CHARS_MAX, FINDINGS_MAX, NAMES
from eventlog.errors import InvalidArgument, NewerFormat
from eventlog.lmdb import checking
from eventlog.lmdb.checking import check_directory
from eventlog.lmdb.directory import read_metas
from eventlog.memory_store import MemoryStore
from eventlog.types import Checked
from tests.support.skips import POSIX_ONLY
from tests.unit.eventlog.conftest import events
from tests.unit.eventlog.damaged import damage

ROWS: list[tuple[str, str]] = [
    # --- records
    ("record_damaged", "flip(log, pack_position(7), 3)"),
    ("record_damaged", "txn.put(pack_position(6), b'', db=log)"),
    ("record_damaged", "txn.put(pack_position(7), txn.get(pack_position(6), db=log), db=log)"),
    ("position_missing", "txn.delete(pack_position(7), db=log)"),
    ("position_missing", "[txn.delete(pack_position(at), db=log) for at in (1, 2, 3)]"),
    ("batch_broken", "recode(4, count=4)"),
    ("batch_broken", "recode(4, place=2)"),
    ("batch_broken", "recode(7, place=1, count=2)"),
    ("batch_broken", "recode(13, count=2)"),
    ("batch_broken", ("recode(5, count=4); recode(4, count=4); recode(3, count=4); recode(6, place=3, count=4);"
     "recode(6, stream=1, version=4); recode(7, version=5)")),
    ("version_wrong", "recode(7, version=9)"),
    ("version_wrong", "recode(2, version=1)"),
    ("digest_left", "recode(8, digest=b'd')"),
    # --- names
    ("name_damaged", "flip(names, pack_stream_number(1))"),
    ("name_damaged", "txn.delete(pack_stream_number(2), db=names)"),
    ("type_damaged", "flip(types, b'\\0\\2', 0)"),
    ("type_damaged", "txn.delete(b'\\0\\1', db=types)"),
    ("type_damaged", "txn.put(b'\\0\\2', seal(b'\\0\\2', b'a'), db=types)"),
    ("name_unused", ("key = pack_stream_number(9); txn.put(key, seal(key, b'nine'), db=names);"
     "txn.put(b'nine', key, db=numbers)")),
    ("number_wrong", "txn.delete(b't', db=numbers)"),
    ("number_wrong", "txn.put(b't', pack_stream_number(1), db=numbers)"),
    ("number_wrong", "txn.put(b'other', pack_stream_number(77), db=numbers)"),
    ("number_wrong", "txn.put(b't', b'', db=numbers)"),
    ("number_wrong", "key = pack_stream_number(3); txn.put(key, seal(key, b's'), db=names)"),
    # --- the index of streams
    ("index_entry_missing", "txn.delete(pack_stream_number(1), pack_position(7), db=streams)"),
    ("index_entry_missing", "txn.delete(pack_stream_number(3), db=streams)"),
    ("index_entry_wrong", "txn.put(pack_stream_number(2), pack_position(7), db=streams)"),
    ("index_entry_wrong", "txn.put(pack_stream_number(1), pack_position(99), db=streams)"),
    ("index_entry_wrong", "txn.put(pack_stream_number(88), pack_position(2), db=streams)"),
    # --- the index of keys
    ("key_row_missing", "txn.delete(b'k1' + pack_stream_number(1), db=keys)"),
    ("key_row_wrong", "flip(keys, b'k2' + pack_stream_number(1))"),
    ("key_row_wrong", "key = b'k1' + pack_stream_number(1); txn.put(key, seal(key, pack_position(3)), db=keys)"),
    ("key_row_wrong", "key = b'k9' + pack_stream_number(1); txn.put(key, seal(key, pack_position(1)), db=keys)"),
    ("key_row_wrong", "key = b'k1' + pack_stream_number(2); txn.put(key, seal(key, pack_position(1)), db=keys)"),
    ("key_row_wrong", "key = b'k9' + pack_stream_number(1); txn.put(key, seal(key, pack_position(99)), db=keys)"),
    # --- the small tables
    ("header_damaged", "flip(about, b'header')"),
    ("header_damaged", "txn.delete(b'header', db=about)"),
    ("header_damaged", "txn.put(b'header', seal(b'header', b'[]'), db=about)"),
    ("closed_wrong", "flip(about, closed_key(3))"),
    ("closed_wrong", "key = closed_key(99); txn.put(key, seal(key, b''), db=about)"),
    ("checkpoint_damaged", "flip(checkpoints, b'f')"),
    ("checkpoint_ahead", "txn.put(b'f', seal(b'f', pack_checkpoint(14)), db=checkpoints)"),
    ("view_damaged", "flip(views, view_key(b'f', b'b'))"),
    ("snapshot_damaged", "flip(snapshots, pack_stream_number(1))"),
    ("snapshot_damaged", "key = pack_stream_number(1); txn.put(key, seal(key, b'x'), db=snapshots)"),
    ("snapshot_ahead", ("key = pack_stream_number(1);"
     "txn.put(key, seal(key, pack_snapshot(Snapshot(5, 'v', b''))), db=snapshots)")),
    ("snapshot_ahead", ("key = pack_stream_number(77);"
     "txn.put(key, seal(key, pack_snapshot(Snapshot(1, 'v', b''))), db=snapshots)")),
    # --- keys that nothing writes
    ("impossible_entry", "txn.put(b'xx', b'1', db=log)"),
    ("impossible_entry", "txn.put(b'\\0', b'1', db=types)"),
    ("impossible_entry", "txn.put(b'\\0' * 4, b'1', db=names)"),
    ("impossible_entry", "txn.put(b'\\0' * 5, pack_position(1), db=streams)"),
    ("impossible_entry", "txn.put(b'k', b'1', db=keys)"),
    ("impossible_entry", "txn.put(b'what', b'1', db=about)"),
    ("impossible_entry", "txn.put(b'\\0\\9f', b'1', db=views)"),
    ("impossible_entry", "txn.put(b'\\0' * 4, b'1', db=snapshots)"),
    ("impossible_entry", "env.open_db(b'foreign', txn=txn)"),
    ("file_damaged", "txn.drop(views)"),
]  # fmt: skip
"""What is found where the rows of a whole log are changed like this, and nothing else."""

FILES: list[tuple[str, str]] = [
    ("file_missing", "data.unlink()"),
    ("file_missing", "edit(lambda text: b'')"),
    ("file_cut_off", "edit(lambda text: text[:len(text) // 2])"),
    ("file_damaged", "edit(lambda text: bytes(8192) + text[8192:])"),
    ("file_damaged", "edit(lambda text: text[:3000])"),
    # the number of a meta page's transaction, damaged so that the one in front of the last is believed
    ("file_damaged", "edit(lambda text: text[:147] + bytes((text[147] ^ 1,)) + text[148:])"),
    ("file_damaged", "edit(lambda text: text[:144] + bytes((text[144] ^ 2,)) + text[145:])"),
    ("file_damaged", "edit(lambda text: text[:4240] + bytes((text[4240] ^ 2,)) + text[4241:])"),
    ("file_damaged", "edit(lambda text: text[:4240] + bytes((text[4240] ^ 1,)) + text[4241:])"),
    ("current_damaged", "(directory / 'LOG.json').unlink()"),
    ("current_damaged", "(directory / 'LOG.json').write_text('{')"),
    ("current_damaged", ("said = json.loads((directory / 'LOG.json').read_text()); said['log_id'] = 'another';"
     "(directory / 'LOG.json').write_text(json.dumps(said))")),
    ("count_wrong", "edit_root(b'streams', 'entries', 14)"),
    ("table_unreadable", "edit_root(b'views', 'root', 1 << 40)"),
    ("table_disordered", ("open_file(); value = txn.get(pack_stream_number(3), db=names); txn.abort(); env.close()\n"
     "edit(lambda text: text.replace(pack_stream_number(3) + value, pack_stream_number(99) + value))")),
]  # fmt: skip


def names_of(checked: Checked) -> set[str]:
    found = {finding.what for finding in checked.findings}
    assert found <= NAMES
    return found


def test_a_log_of_every_feature_is_well(full: Path) -> None:
    checked = check_directory(full)
    assert checked == Checked(events=13, streams=5, keys=8, erased=1)
    assert checked.well


def test_an_empty_log_is_well(tmp_path: Path) -> None:
    with eventlog.open(tmp_path) as log:
        assert log.check() == Checked(0, 0, 0, 0)


@pytest.mark.parametrize(("what", "program"), ROWS)
def test_damaged_rows_are_found(copied: Path, what: str, program: str) -> None:
    """And nothing is said of what is whole: one thing wrong is not told as ten."""
    damage(copied, program)
    checked = check_directory(copied)
    also = {"index_entry_wrong", "index_entry_missing"} if "stream=" in program else set()
    assert names_of(checked) == {what} | also, checked.findings
    assert not checked.well


@pytest.mark.parametrize(("what", "program"), FILES)
def test_damaged_files_are_found(copied: Path, what: str, program: str) -> None:
    damage(copied, program, rows=False)
    checked = check_directory(copied)
    assert what in names_of(checked), checked.findings


def test_a_missing_event_explains_one_gap_and_no_second(copied: Path) -> None:
    """Of a stream whose first event is missing, another version is left out later."""
    damage(copied, "txn.delete(pack_position(9), db=log); recode(12, version=5); recode(13, version=6)")
    findings = check_directory(copied).findings
    assert [(one.what, one.position) for one in findings] == [("position_missing", 9), ("version_wrong", 12)]


def test_numbers_of_meta_pages_follow_one_another(copied: Path) -> None:
    damage(copied, "edit(lambda text: text[:147] + bytes((text[147] ^ 1,)) + text[148:])", rows=False)
    [finding] = check_directory(copied).findings
    assert "do not follow one another" in finding.detail


@pytest.mark.parametrize("fill", [0, 0x7F])
def test_pages_of_the_older_state_may_be_written_over(copied: Path, fill: int) -> None:
    """A power cut in the mode "relaxed" leaves that, when it takes back the newest state, and nobody needs them."""
    data = copied / "log-1" / "data.mdb"
    with data.open("rb") as file:
        metas = [meta for meta in read_metas(file) if meta is not None]
    older, newest = sorted(metas, key=lambda meta: meta.transaction)
    assert older.free_root != newest.free_root
    contents = bytearray(data.read_bytes())
    start = older.free_root * older.page_size
    contents[start : start + older.page_size] = bytes([fill]) * older.page_size
    data.write_bytes(contents)
    assert check_directory(copied).well


CUT_OFF_MEANWHILE = """
import json, os, sys; asked = json.load(sys.stdin); sys.path[:] = asked['path']
from eventlog.lmdb import checking, inspection
check_log = inspection.Inspection._check_log
def cut_off(inspection):
    os.truncate(asked['directory'] + '/log-1/data.mdb', 8192)
    check_log(inspection)
inspection.Inspection._check_log = cut_off
checking.main(asked['directory'])
"""


@pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)
def test_a_process_that_dies_says_by_what_and_where(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody cuts the file off while it is read. What had been found before is told too."""
    damage(copied, "flip(types, b'\\0\\2', 0)")
    monkeypatch.setattr(checking, "_CHILD", CUT_OFF_MEANWHILE)
    checked = check_directory(copied)
    assert [(finding.what, finding.detail) for finding in checked.findings] == [
        ("reader_died", "the process that read log was ended by SIGBUS"),
        ("type_damaged", "the name of type 2 is damaged"),
    ]
    assert not checked.well


def test_a_check_that_takes_too_long_is_ended(full: Path) -> None:
    checked = check_directory(full, timeout_s=0)
    assert names_of(checked) == {"unfinished"}
    assert not checked.well


def test_an_interrupted_check_leaves_no_process(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while it waits."""
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def communicate(self, *_: Any) -> Any:
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        check_directory(full)
    assert started[0].returncode is not None


def test_every_name_is_explained_and_tried() -> None:
    """The table in the docstring, the fixed list, and what these tests produce are the same."""
    assert check.__doc__ is not None
    table = check.__doc__.partition("--  ----------\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in table.splitlines()] == list(
        dict.fromkeys(line.split()[0] for line in table.splitlines())
    )
    assert {line.split()[0] for line in table.splitlines()} == NAMES
    assert {what for what, _ in [*ROWS, *FILES]} | {"unfinished", "reader_died"} == NAMES
    advice = {line.split()[-1] for line in table.splitlines()}
    assert all(f"\n    {word} " in check.__doc__ for word in advice)


def test_findings_are_bounded_and_the_rest_is_counted(copied: Path) -> None:
    damage(copied, "[txn.put(b'extra %03d' % n, pack_stream_number(1), db=numbers) for n in range(150)]")
    checked = check_directory(copied)
    assert len(checked.findings) == FINDINGS_MAX
    assert checked.more == 50
    assert names_of(checked) == {"number_wrong"}
    damage(copied, "txn.put(b'x' * 500, b'1', db=numbers)")
    assert all(len(finding.detail) <= DETAIL_CHARS_MAX for finding in check_directory(copied).findings)


def test_a_check_beside_a_writer(copied: Path) -> None:
    """The owner checks while it appends, and neither disturbs the other: the engine's locks hold after it."""
    with eventlog.open(copied) as log:
        first = log.check()
        log.append("s", events(b"more"))
        assert (first.events, log.check().events) == (13, 14)
        assert log.check().well
        with eventlog.open(copied) as again:
            assert again.check().well


def test_leftovers_are_told_and_are_no_finding(copied: Path) -> None:
    (copied / "log-7").mkdir()
    (copied / "new-2").mkdir()
    (copied / "index-1").mkdir()
    (copied / "LOG.json.tmp").write_text("")
    checked = check_directory(copied)
    assert checked.well
    assert checked.leftovers == ("LOG.json.tmp", "log-7", "new-2")


@pytest.mark.parametrize("kind", ["missing", "empty", "a file", "newer"])
def test_where_there_is_nothing_to_check(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "a file":
        path.write_text("")
    elif kind != "missing":
        path.mkdir()
    if kind == "newer":
        (path / "LOG.json").write_text('{"kind": "eventlog", "format": 9, "log_id": "x", "generation": 1}')
    with pytest.raises(NewerFormat if kind == "newer" else NotALog):
        check_directory(path)


def test_bad_times(full: Path) -> None:
    for bad in ("1", None, True, float("nan")):
        with pytest.raises(InvalidArgument):
            check_directory(full, timeout_s=bad)  # type: ignore[arg-type]


# --- in memory --------------------------------------------------------------------------------------------------------
def broken_event(**changes: Any) -> Callable[[MemoryStore], None]:
    """Change the second event."""

    def change(store: MemoryStore) -> None:
        store.events[1] = replace(store.events[1], **changes)

    return change


BREAKERS: dict[str, Callable[[MemoryStore], Any]] = {
    "": lambda _: None,
    "version_wrong": broken_event(version=5),
    "batch_broken": broken_event(count=3),
    "position_missing": broken_event(position=9),
    "digest_left": broken_event(erased=True, digest=b"d"),
    "index_entry_missing": lambda store: store.streams["s"].remove(2),
    "index_entry_wrong": lambda store: store.streams["t"].append(2),
    "table_disordered": lambda store: store.streams["s"].reverse(),
    "name_unused": lambda store: store.streams.update(u=[]),
    "key_row_missing": lambda store: store.keys.clear(),
    "key_row_wrong": lambda store: store.keys.update({("t", b"k"): store.keys["s", b"k"]}),
    "closed_wrong": lambda store: store.closed.add("u"),
    "checkpoint_ahead": lambda store: store.checkpoints.update(f=4),
    "snapshot_ahead": lambda store: store.snapshots.update(t=Snapshot(2, "", b"")),
}


@pytest.mark.parametrize("what", BREAKERS)
def test_a_log_in_memory_is_compared_with_itself(what: str) -> None:
    log = MemoryLog()
    log.append("s", events(b"1", b"2"), key=b"k")
    log.append("t", events(b"3"))
    BREAKERS[what](log._store)
    assert names_of(log.check()) == ({what} if what else set())
