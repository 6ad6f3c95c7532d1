"""What `check` compares, and the names of what it can find.

Events are compared with every index of them, both ways, and nothing is mended. What lies in a file is read in a process
of its own: a damaged page may end the process that reads it, and then that is the finding.

    finding               what is wrong                                                               what to do
    --------------------  --------------------------------------------------------------------------  ----------
    file_missing          LOG.json names a file that is not there, or is empty                        restore
    file_cut_off          the file is shorter than its own account of itself                          restore
    file_damaged          the engine cannot open the file, or its pages contradict one another        restore
    reader_died           the process that read it was ended by a page of it, or could not go on      restore
    unfinished            the time was over; what was not looked at is not known                      longer
    table_unreadable      the engine or a row ended the reading of a table                            restore
    table_disordered      rows of a table are not in the order of their keys, or not found by them    restore
    header_damaged        the header is missing or damaged                                            restore
    current_damaged       LOG.json is missing or damaged, or names another log than the header        restore
    record_damaged        a record does not decode, or its checksum does not hold                     restore
    position_missing      there is no record at a position                                            restore
    batch_broken          place and count of events do not make a whole batch                         restore
    version_wrong         an event does not have the next version of its stream                       restore
    name_damaged          a stream that has events has no name, or a damaged one                      restore
    type_damaged          a type that events have has no name, a damaged one, or that of another      restore
    impossible_entry      an entry under a key that nothing writes                                    tell
    index_entry_missing   an event is not in the index of its stream                                  export
    index_entry_wrong     an entry of that index has no event, or one of another stream               export
    name_unused           a stream has a name, and no event                                           export
    number_wrong          name and number of a stream do not lead to one another                      export
    key_row_missing       an event was appended with a key, and the index of keys does not say so     export
    key_row_wrong         an entry of that index is damaged, or its event does not have the key       export
    closed_wrong          what is closed is no stream that there is                                   export
    count_wrong           the engine counts other rows in a table than there are                      export
    digest_left           an erased event has the digest of what it was                               erase
    checkpoint_damaged    a checkpoint is damaged                                                     anew
    checkpoint_ahead      a checkpoint lies beyond the end of the log                                 anew
    view_damaged          an entry of a follower's view is damaged                                    anew
    snapshot_damaged      a snapshot is damaged                                                       harmless
    snapshot_ahead        a snapshot is of a version, or a stream, that there is not                  harmless

    restore   Keep the directory as evidence and restore a backup. `export` gives the events in front of the damage.
    export    The events are whole: export them and import them into a new directory, which makes every index anew.
    erase     Erase and compact that stream's events again: a digest lets a guess of what was said be tried.
    anew      Start that follower under a new name, from the beginning.
    harmless  A snapshot is a cache, and one that is damaged is not used: save the next one.
    longer    Check again, with more time.
    tell      It was written by something else, or by an error of this library: say so where it is kept.

Leftovers in the directory (an older generation, a copy that was not finished) are told, and are no finding: nothing is
wrong with the log for them. They are worth a look where something was erased, because they hold it still.

Time grows with the events, memory with the number of streams, and by a byte for each page. A check sees the log of one
moment, and appends go on meanwhile; the file cannot use pages again that are freed while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from eventlog.memory_store import MemoryStore
from eventlog.types import Checked, Finding, StoredEvent

FINDINGS_MAX: Final = 100
"""So many are told; the rest is counted."""
DETAIL_CHARS_MAX: Final = 300
TIMEOUT_S: Final = 600.0
"""How long a check may take, if nobody says."""

NAMES: Final = frozenset({
    "batch_broken", "checkpoint_ahead", "checkpoint_damaged", "closed_wrong", "count_wrong", "current_damaged",
    "digest_left", "file_cut_off", "file_damaged", "file_missing", "header_damaged", "impossible_entry",
    "index_entry_missing", "index_entry_wrong", "key_row_missing", "key_row_wrong", "name_damaged", "name_unused",
    "number_wrong", "position_missing", "reader_died", "record_damaged", "snapshot_ahead", "snapshot_damaged",
    "table_disordered", "table_unreadable", "type_damaged", "unfinished", "version_wrong", "view_damaged",
})  # fmt: skip


class Findings:
    """The first hundred findings, and how many there are more. `tell` hears each of the first at once."""

    def __init__(self, tell: Callable[[Finding], None] | None = None) -> None:
        self.found: list[Finding] = []
        self.more = 0
        self._tell = tell

    def add(self, what: str, detail: str, position: int = 0, stream: str = "") -> None:
        """Note one."""
        assert what in NAMES, what
        if len(self.found) == FINDINGS_MAX:
            self.more += 1
            return
        finding = Finding(what, detail[:DETAIL_CHARS_MAX], position, stream)
        self.found.append(finding)
        if self._tell is not None:
            self._tell(finding)


class Walk:
    """What can be said of the events one after the other, by position: versions of each stream, and whole batches.

    Events that cannot be read are told once, as that, and not again by what is missing behind them.
    """

    def __init__(self, findings: Findings, name_of: Callable[[Hashable], str]) -> None:
        self._findings = findings
        self._name_of = name_of
        self._unread = 0
        """Events that may be missing in some stream."""
        self._place = self._count = 0
        """What the next event continues; no count between batches, and -1 where the beginning of one was not seen."""
        self._in_batch: set[Hashable] = set()
        self._stream: Hashable = None
        self.versions: dict[Hashable, int] = {}
        """How far each stream goes."""
        self.events = self.erased = 0

    def unread(self, count: int = 1) -> None:
        """So many events, of whatever stream, could not be read here."""
        self._unread += count
        self._count = -1

    def event(
        self, position: int, stream: Hashable, version: int, place: int, count: int, digest: bytes, *, erased: bool
    ) -> None:
        """The next event."""
        self.events += 1
        self.erased += erased
        if erased and digest:
            self._findings.add("digest_left", "erased, with a digest", position, self._name_of(stream))
        self._versions(position, stream, version)
        self._batch(position, stream, place, count)

    def furthest(self, stream: Hashable) -> int:
        """The version that a stream may have, if all that could not be read is of that stream."""
        return self.versions.get(stream, 0) + self._unread

    def _versions(self, position: int, stream: Hashable, version: int) -> None:
        expected = self.versions.get(stream, 0) + 1
        missing = version - expected
        if 0 <= missing <= self._unread:
            self._unread -= missing
        elif missing:
            detail = f"version {version} where {expected} is next"
            self._findings.add("version_wrong", detail, position, self._name_of(stream))
        self.versions[stream] = max(version, expected)

    def _batch(self, position: int, stream: Hashable, place: int, count: int) -> None:
        whole = self._count == -1 or (count == self._count and place == self._place if self._count else not place)
        if not whole:
            there = f"place {place} of {count}"
            wanted = f"{self._place} of {self._count}" if self._count else "0"
            self._findings.add("batch_broken", f"{there} where place {wanted} is next", position, self._name_of(stream))
        if not place or not whole or self._count == -1:
            self._in_batch.clear()
        elif stream != self._stream and stream in self._in_batch:
            self._findings.add("batch_broken", "a stream twice in a batch", position, self._name_of(stream))
        self._in_batch.add(stream)
        self._stream = stream
        self._place, self._count = (place + 1, count) if place + 1 < count else (0, 0)

    def end(self) -> None:
        """There are no more events."""
        if self._count > 0:
            self._findings.add("batch_broken", f"the log ends at place {self._place} of {self._count}")


def check_store(store: MemoryStore) -> Checked:
    """The same for a log in memory: its lists and dictionaries against one another."""
    findings = Findings()
    walk = Walk(findings, str)
    positions: dict[str, list[int]] = {}
    keyed: dict[tuple[str, bytes], StoredEvent] = {}
    for place, event in enumerate(store.events):
        if event.position != place + 1:
            findings.add("position_missing", f"position {event.position} at place {place}", place + 1, event.stream)
        walk.event(
            place + 1, event.stream, event.version, event.place, event.count, event.digest, erased=event.erased
        )  # fmt: skip
        positions.setdefault(event.stream, []).append(place + 1)
        if event.key:
            keyed[event.stream, event.key] = event
    walk.end()
    _check_index(store, positions, findings)
    _check_keys(store, keyed, findings)
    for name, snapshot in store.snapshots.items():
        if snapshot.version > walk.versions.get(name, 0):
            findings.add("snapshot_ahead", f"of version {snapshot.version}", stream=name)
    for name in sorted(store.closed - positions.keys()):
        findings.add("closed_wrong", "closed, and there is no such stream", stream=name)
    for name, position in store.checkpoints.items():
        if position > len(store.events):
            findings.add("checkpoint_ahead", f"{name!r} is at {position} of {len(store.events)}", position)
    return Checked(
        walk.events, len(store.streams), len(store.keys), walk.erased, tuple(findings.found), findings.more
    )  # fmt: skip


def _check_index(store: MemoryStore, positions: dict[str, list[int]], findings: Findings) -> None:
    for name in positions | store.streams:
        there, wanted = store.streams.get(name, []), positions.get(name, [])
        if not there and not wanted:
            findings.add("name_unused", "no event", stream=name)
        for position in sorted(set(wanted) - set(there)):
            findings.add("index_entry_missing", "not in the index", position, name)
        for position in sorted(set(there) - set(wanted)):
            findings.add("index_entry_wrong", "no event of this stream", position, name)
        if sorted(there) == wanted != there:
            findings.add("table_disordered", "the positions of a stream do not ascend", stream=name)


def _check_keys(store: MemoryStore, keyed: dict[tuple[str, bytes], StoredEvent], findings: Findings) -> None:
    for (name, key), event in keyed.items():
        known = store.keys.get((name, key))
        if known is None:
            findings.add("key_row_missing", f"key {key.hex()}", event.position, name)
        elif known.appended.first_position != event.position or known.erased != event.erased:
            findings.add("key_row_wrong", f"key {key.hex()}", event.position, name)
    for name, key in store.keys.keys() - keyed.keys():
        findings.add("key_row_wrong", f"no event has the key {key.hex()}", stream=name)
