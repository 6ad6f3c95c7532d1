"""A log as lines of JSON, and back: to move it, to read it with other tools, to make every index of it anew.

    {"kind": "eventlog-export", "format": 1, "log_id": "9f…", "head": 3, "after": 0}
    {"position": 1, "recorded_at": 17…, "key": "request-1", "parts": [{"stream": "orders-7", "first_version": 1,
     "events": [{"type": "Placed", "version": 1, "payload": {"total": 12}}]}]}
    {"closed": "orders-7"}
    {"end": {"batches": 1, "events": 3, "closed": 1}}

A line is a batch: whole, in the order of the log, and a batch of several streams stays one. `recorded_at` is UTC
microseconds. Left out are what is empty: `correlation`, `causation`, `key`, `digest`. A payload is readable JSON where
turning it into JSON and back gives the same bytes; otherwise it is `payload_base64`. So are `key` and `digest` where
they are no UTF-8. `"erased": true` marks a stub.

**What comes back.** Into an empty log: the same events at the same positions and versions, with their types, times,
keys, correlations, causations and stubs, and the same streams closed. One thing is added: a batch without a key gets
one, made of the log it comes from and its position there, so that importing it again appends nothing. Not carried over:
checkpoints, views and snapshots, which belong to followers and programs and are made again from the events.

**Into a log that holds something** nothing that is there is changed. A batch whose key is known is skipped, with what
was erased on either side left as it is; the others go to the end of their streams, and causations follow the events
they point to. Into the log that it comes from, or a copy of it: what is there is recognized by its position, and only
what lies behind is appended.

An import that ends early (a bad line, a full disk, a cut-off file) leaves what it has appended, whole batches, in
order; importing again goes on there. Memory: a batch, those that are on their way (`IN_FLIGHT_MAX`), and 16 bytes each
time that the distance between old and new positions changes.
"""

from __future__ import annotations

import base64
import binascii
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import lru_cache, partial
from hashlib import sha256
from itertools import groupby
from typing import Any, BinaryIO, Final

import msgspec

from eventlog.admission import POSITION_MAX
from eventlog.copying import Copied
from eventlog.errors import BadExport, BadRecord, CutOffExport, InvalidArgument, KeyErased, KeyReused, StreamClosed
from eventlog.lines import (
    FORMAT,
    KIND,
    LINE_BYTES_MAX,
    BatchLine,
    ClosedLine,
    End,
    EndLine,
    EventLine,
    Heading,
    PartLine,
    in_base64,
    readable_payload,
    text_or_base64,
)
from eventlog.log import EventLog
from eventlog.types import Appended, AscendingKey, Chain, NewEvent, Part, StoredEvent

IN_FLIGHT_MAX: Final = 256
_IN_FLIGHT_BYTES_MAX: Final = 32 << 20
_KEY_PREFIX: Final = b"imported"
_LOG_BYTES: Final = 16
_WAIT_S: Final = 600.0
_PART_OF_LINE_MAX: Final = 200


class Imported(msgspec.Struct, frozen=True):
    """What one import has done."""

    appended: int
    """Events that were appended."""
    known: int
    """Events that were there already."""
    stubs: int
    """How many of those appended are stubs."""
    closed: int
    """Streams that are closed now, and were closed where they come from."""
    uncaused: int = 0
    """Events appended whose cause lies in front of the export: it is not known here, and left out."""


class Progress(msgspec.Struct, frozen=True):
    """How far an import is: a position of the log that it comes from, and that log's head."""

    position: int
    head: int


# --- export -----------------------------------------------------------------------------------------------------------
def export_lines(log: EventLog, after: int = 0) -> Iterator[bytes]:
    """The log as it is now, behind a position, as lines that end with a line feed. Appends go on meanwhile.

    Raises `InvalidArgument` for a position in the middle of a batch, `BadRecord` where the log is damaged: what came
    before is whole.
    """
    head = log.head()
    before = log.event_at(after) if after else None
    if after < 0 or after > head or (before is not None and not before.ends_batch):
        raise InvalidArgument("an export begins behind a whole batch", value=after)
    return _export(log, after, head)


def _export(log: EventLog, after: int, head: int) -> Iterator[bytes]:
    yield _line(Heading(KIND, FORMAT, log.log_id, head, after))
    batches = closed = 0
    batch: list[StoredEvent] = []
    for event in log.read_all(after, limit=head - after):
        batch.append(event)
        if event.ends_batch:
            yield _line(_batch_line(batch))
            batches += 1
            batch = []
    for stream in log.closed_streams():
        last = next(log.read(stream, limit=1, backwards=True), None)
        if last is None:
            raise BadRecord(stream=stream, reason="a stream that is closed has no events")
        if last.position <= head:  # one that was closed later comes with its last events
            yield _line(ClosedLine(stream))
            closed += 1
    yield _line(EndLine(End(batches, head - after, closed)))


def _line(of: msgspec.Struct) -> bytes:
    return msgspec.json.encode(of) + b"\n"


def _batch_line(batch: list[StoredEvent]) -> BatchLine:
    parts = []
    for stream, of_stream in groupby(batch, lambda event: event.stream):
        events = list(of_stream)
        parts.append(PartLine(stream, events[0].version, [_event_line(event) for event in events]))
    first = batch[0]
    key, key_base64 = text_or_base64(first.key)
    digest, digest_base64 = text_or_base64(first.digest)
    return BatchLine(
        first.position, first.recorded_at, parts, key, key_base64, digest, digest_base64, first.correlation,
        first.causation,
    )  # fmt: skip


def _event_line(event: StoredEvent) -> EventLine:
    readable = readable_payload(event.payload)
    if readable is msgspec.UNSET:
        return EventLine(
            event.type, event.type_version, payload_base64=in_base64(event.payload), erased=event.erased
        )  # fmt: skip
    return EventLine(event.type, event.type_version, payload=readable, erased=event.erased)


_FIELDS: Final = msgspec.json.Decoder(dict[str, Any])
_BATCH: Final = msgspec.json.Decoder(BatchLine)
_BATCH_BEGINS: Final = b'{"position":'


# --- import -----------------------------------------------------------------------------------------------------------
def read_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file for `import_lines`, of which none is read further than it may be long."""
    return iter(partial(file.readline, LINE_BYTES_MAX + 1), b"")


def import_lines(
    log: EventLog, lines: Iterable[bytes], *, on_progress: Callable[[Progress], None] | None = None
) -> Imported:
    """Append what `export_lines` has written, and close what was closed; see above for what becomes of what is there.

    Raises `BadExport` with the number of the line for what cannot be imported, `CutOffExport` where the last line is
    missing, and what appending raises (`DiskFull`, `ReadOnlyLog` …; `ChainBroken` where somebody else appends the same
    at the same time: import again). Each time, what came before is imported, and of that line nothing.
    """
    return _Import(log, on_progress).run(lines)


def imported_key(log_id: str, position: int) -> AscendingKey:
    """The key that a batch without one gets, from the log it comes from and its first position there."""
    return AscendingKey(_of_log(log_id) + position.to_bytes(8, "big"))


@lru_cache(maxsize=8)
def _of_log(log_id: str) -> bytes:
    return _KEY_PREFIX + sha256(log_id.encode(errors="surrogatepass")).digest()[:_LOG_BYTES]


class _Positions:
    """Old positions → new ones, by runs in which the distance is the same."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._offsets = array("q")

    def note(self, old: int, new: int) -> None:
        if not self._offsets or self._offsets[-1] != new - old:
            self._starts.append(old)
            self._offsets.append(new - old)

    def new(self, old: int) -> int:
        """The new position; 0 for one in front of all that are known. One behind them all keeps its distance."""
        run = bisect_right(self._starts, old) - 1
        return max(0, old + self._offsets[run]) if run >= 0 else 0


class _Sent(msgspec.Struct):
    """A batch on its way."""

    number: int
    line: BatchLine
    future: Future[Appended]
    stubs: int
    size: int
    uncaused: bool


class _Import:
    def __init__(self, log: EventLog, on_progress: Callable[[Progress], None] | None) -> None:
        self._log = log
        self._on_progress = on_progress
        self._number = 0
        self._ended = False
        self._heading = Heading(KIND, FORMAT, "", 0)
        self._position = 0
        """Up to which the batches go that were read."""
        self._positions = _Positions()
        self._sent: deque[_Sent] = deque()
        self._sent_bytes = 0
        self._chain = Chain()
        self._batches = self._events = self._closed_lines = 0
        self._appended = self._known = self._stubs = self._closed = self._uncaused = 0

    def run(self, lines: Iterable[bytes]) -> Imported:
        try:
            for line in lines:
                self._number += 1
                self._take(line)
            self._settle(0)
        except BaseException:
            self._settle_quietly()
            raise
        if not self._ended:
            reason = "it has no last line" if self._number else "it is empty"
            raise CutOffExport(line=self._number + 1, reason=reason)
        return Imported(self._appended, self._known, self._stubs, self._closed, self._uncaused)

    # --- lines --------------------------------------------------------------------------------------------------------
    def _take(self, line: bytes) -> None:
        """Do what a line says."""
        if self._ended:
            raise self._bad("there is something behind the last line")
        if len(line) > LINE_BYTES_MAX:
            raise self._bad(f"a line has at most {LINE_BYTES_MAX} bytes")
        if self._number > 1 and line.startswith(_BATCH_BEGINS):  # most lines: read in one go
            self._take_batch(self._decoded(line, _BATCH), len(line))
            return
        fields = self._decoded(line, _FIELDS)
        if self._number == 1:
            self._begin(fields)
        elif "position" in fields:
            self._take_batch(self._converted(fields, BatchLine), len(line))
        elif "closed" in fields:
            self._close(self._converted(fields, ClosedLine).closed)
        elif "end" in fields:
            self._compare(self._converted(fields, EndLine).end)
            self._ended = True
        else:
            raise self._bad("it is no batch, no closed stream and no end")

    def _begin(self, fields: dict[str, Any]) -> None:
        if fields.get("kind") != KIND:
            raise self._bad(f"the first line of an export has the kind {KIND!r}")
        form = fields.get("format")
        if isinstance(form, int) and form > FORMAT:
            raise self._bad(f"it has the format {form}, and this program knows {FORMAT}")
        self._heading = heading = self._converted(fields, Heading)
        if not 0 <= heading.after <= heading.head <= POSITION_MAX:
            raise self._bad("its head is a position, and it begins in front of it")
        self._position = heading.after

    def _decoded(self, line: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
        try:
            return decoder.decode(line)
        except msgspec.ValidationError as error:
            raise self._bad(str(error)[:_PART_OF_LINE_MAX]) from error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            kind = CutOffExport if not line.endswith(b"\n") and self._number > 1 else BadExport
            raise kind(line=self._number, reason=f"it is no JSON object: {error}"[:_PART_OF_LINE_MAX]) from error

    def _converted(self, fields: dict[str, Any], kind: Any) -> Any:
        try:
            return msgspec.convert(fields, kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._bad(str(error)[:_PART_OF_LINE_MAX]) from error

    def _bad(self, reason: str) -> BadExport:
        return BadExport(line=self._number, reason=reason)

    def _compare(self, end: End) -> None:
        there = End(self._batches, self._events, self._closed_lines)
        if end != there:
            raise self._bad(f"{there} in front of {end}: lines are missing")

    # --- batches ------------------------------------------------------------------------------------------------------
    def _take_batch(self, line: BatchLine, size: int) -> None:
        if line.position != self._position + 1 or not all(part.events for part in line.parts) or not line.parts:
            raise self._bad(
                f"a batch of position {line.position} where {self._position + 1} is next, or one of nothing"
            )
        if self._position + line.count > self._heading.head:
            raise self._bad(f"a batch behind position {self._heading.head}, where the log ended")
        if not 0 <= line.causation <= POSITION_MAX:
            raise self._bad("a causation is a position")
        first = self._known_as(line)
        if first is None:
            self._send(line, size)
        else:
            self._settle(0)  # positions are noted in order
            self._note(line, first, known=True)
        self._position += line.count
        self._batches += 1
        self._events += line.count
        if self._on_progress is not None:
            self._on_progress(Progress(self._position, self._heading.head))

    def _known_as(self, line: BatchLine) -> int | None:
        """The position at which this log has the batch already; None where it has not. Raises `BadExport`."""
        key = self._key_of(line)
        log = self._log
        if self._heading.log_id == log.log_id and line.position <= log.head():
            return self._same_here(line, line.position)
        if key.startswith(_of_log(log.log_id)):
            here = int.from_bytes(key[-8:], "big")  # it went out from here, and came back
            return self._same_here(line, here) if here <= log.head() else None
        try:
            found = log.find(line.parts[0].stream, key)
        except InvalidArgument as error:
            raise self._bad(str(error)) from error
        if found is None:
            return None
        digest, first = self._bytes_of(line.digest, line.digest_base64, "digest"), log.event_at(found.first_position)
        assert first is not None
        erased = first.erased or line.parts[0].events[0].erased
        if first.count != line.count or not (erased or found.digest == digest):
            raise self._bad("its key was used in this log for other content")
        return found.first_position

    def _same_here(self, line: BatchLine, position: int) -> int:
        event = self._log.event_at(position)
        same = event is not None and (
            event.stream == line.parts[0].stream
            and event.type == line.parts[0].events[0].type
            and (event.recorded_at, event.place, event.count) == (line.recorded_at, 0, line.count)
        )
        if not same:
            raise self._bad(f"position {position} of this log is another event: the two have gone different ways")
        return position

    def _key_of(self, line: BatchLine) -> bytes:
        key = self._bytes_of(line.key, line.key_base64, "key")
        return key or imported_key(self._heading.log_id, line.position)

    def _bytes_of(self, text: str, encoded: str, what: str) -> bytes:
        if text and encoded:
            raise self._bad(f"it has {what} and {what}_base64")
        return text.encode() if text else self._from_base64(encoded)

    def _from_base64(self, encoded: str) -> bytes:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self._bad(f"it is no base64: {error}") from error

    def _payload(self, event: EventLine) -> bytes:
        if (event.payload is msgspec.UNSET) == (event.payload_base64 is msgspec.UNSET):
            raise self._bad("an event has payload or payload_base64")
        if isinstance(event.payload_base64, str):
            return self._from_base64(event.payload_base64)
        try:
            return msgspec.msgpack.encode(event.payload)
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise self._bad(f"a payload cannot be written as MessagePack: {error}") from error

    def _send(self, line: BatchLine, size: int) -> None:
        causation = self._cause(line) if line.causation else 0
        parts, stubs, place = [], set(), 0
        for part in line.parts:
            events = [NewEvent(event.type, self._payload(event), event.version) for event in part.events]
            stubs |= {place + at for at, event in enumerate(part.events) if event.erased}
            parts.append(Part(part.stream, events))
            place += len(events)
        copied = Copied(
            parts, line.recorded_at, self._key_of(line), self._bytes_of(line.digest, line.digest_base64, "digest"),
            line.correlation, causation, frozenset(stubs),
        )  # fmt: skip
        try:
            future = self._log.append_copied(copied, chain=self._chain)
        except InvalidArgument as error:
            raise self._bad(str(error)) from error
        uncaused = bool(line.causation) and not causation
        self._sent.append(_Sent(self._number, line, future, len(stubs), size, uncaused))
        self._sent_bytes += size
        while len(self._sent) > IN_FLIGHT_MAX or self._sent_bytes > _IN_FLIGHT_BYTES_MAX:
            self._settle(len(self._sent) - 1)

    def _cause(self, line: BatchLine) -> int:
        """Where the event is now that led to this batch; 0 where nobody knows."""
        old = line.causation
        if self._heading.log_id == self._log.log_id and old <= self._heading.after:
            return old
        if self._sent and old >= self._sent[0].line.position:
            self._settle(0)  # the cause is on its way
        if not self._batches and old > self._heading.after:
            self._positions.note(line.position, self._log.head() + 1)
        return min(self._positions.new(old), POSITION_MAX)

    def _settle(self, left: int) -> None:
        """Wait until no more than so many batches are on their way. Raises what became of the first that failed."""
        while len(self._sent) > left:
            sent = self._sent.popleft()
            self._sent_bytes -= sent.size
            try:
                appended = sent.future.result(_WAIT_S)
            except (KeyReused, KeyErased, StreamClosed, InvalidArgument) as error:
                raise BadExport(line=sent.number, reason=str(error)) from error
            self._note(sent.line, appended.first_position, known=appended.known)
            if not appended.known:
                self._stubs += sent.stubs
                self._uncaused += sent.line.count * sent.uncaused

    def _settle_quietly(self) -> None:
        """It has failed: what is on its way is in the log, or is not, before the caller hears of it."""
        for sent in self._sent:
            sent.future.exception(_WAIT_S)
        self._sent.clear()

    def _note(self, line: BatchLine, first: int, *, known: bool) -> None:
        self._positions.note(line.position, first)
        if known:
            self._known += line.count
        else:
            self._appended += line.count

    # --- closed streams -----------------------------------------------------------------------------------------------
    def _close(self, stream: str) -> None:
        self._settle(0)
        self._closed_lines += 1
        try:
            if self._heading.after and not self._log.stream_version(stream):
                return  # its events lie in front of the export
            self._log.close_stream(stream)
        except InvalidArgument as error:
            raise self._bad(str(error)) from error
        self._closed += 1
