"""The rows of a time line: what happened in a thread, one after the other, with its open requests beside it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from pace_actors.cli.coverage import PENDING, SUMMARISED, WINDOW
from pace_actors.domain.wording import counted, ranges
from pace_actors.replay.history import PastAnswer, PastTurn
from pace_actors.replay.timeline import Bar, CoverageMark, Timeline
from pace_actors.values import Microseconds

Kind = Literal["turn", "accepted", "refused", "fence", "fact", "wait", "stretch"]
Key = tuple[int, int]
"""Where a row stands: position of its batch, and 0 for what comes before the turn of the same batch."""
STEPS: Final = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
BEGINS, OPEN, ACCEPTED, REFUSED, DROPPED, FREE = "┬", "│", "✓", "✗", "╳", " "
LANES_SHOWN_MAX = 8
"""Requests that lie beside one another farther out are told by words only."""


class Cell(msgspec.Struct, frozen=True):
    """One lane in one row."""

    mark: str = FREE
    style: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    key: Key
    kind: Kind
    at: Microseconds
    words: tuple[tuple[str, str], ...]
    """Pieces with their styles; of a stretch the last ones may be left out where there is no room."""
    turn: PastTurn | None = None
    """Whose first words are shown."""
    refused: str = ""
    """Reason, of an answer that was."""
    lanes: tuple[Cell, ...] = ()
    coverage: CoverageMark | None = None
    pending_max: int = 0

    @property
    def position(self) -> int:
        """Of the batch."""
        return self.key[0]


def rows_of(line: Timeline, rows_max: int | None) -> tuple[list[Row], int]:
    """All rows, or, where they are too many, rows that stand for stretches of so many turns each; how many that is.

    Ends of sessions, settings, withdrawals and erasures are shown each, as long as they are less than half of it.
    """
    rows = sorted(_all(line), key=lambda row: row.key)
    _fill_in(rows, line)
    rows = list(_beside(rows, line))
    if rows_max is None or len(rows) <= rows_max:
        return rows, 1
    fences_kept = sum(row.kind == "fence" for row in rows) <= rows_max // 2
    for step in STEPS:
        short = list(_in_stretches(rows, step, fences_kept=fences_kept))
        if len(short) <= rows_max or step == STEPS[-1]:
            return short[-rows_max:], step
    raise AssertionError


# --- one row each -----------------------------------------------------------------------------------------------------


def _all(line: Timeline) -> Iterator[Row]:
    asked: dict[int, list[Bar]] = {}
    for bar in line.bars:
        asked.setdefault(bar.request.caused_by, []).append(bar)
    bars = {bar.request.name: bar for bar in line.bars}
    told = [*_turns(line), *(_answer(answer, bars.get(answer.name)) for answer in line.answers), *_fences(line)]
    known = {row.position for row in told if row.key[1]}
    for position, there in asked.items():
        if position not in known and line.start <= position <= line.end:
            words = (("the wait is over", "dim"),)
            told.append(Row(key=(position, 1), kind="wait", at=there[0].request.at, words=words))
    for row in told:
        asks = _asks(asked.get(row.position, ())) if row.key[1] else ()
        yield msgspec.structs.replace(row, words=(*row.words, *asks))
    for fact in line.facts:
        name = f"fact {fact.fact}" if fact.fact else "fact"
        decided = f"{name} of turn {fact.turn} {_left_off(fact.decision)}" + (f": {fact.reason}" if fact.reason else "")
        yield Row(key=(fact.position, 1), kind="fact", at=fact.at, words=((decided, "dim"),))


def _turns(line: Timeline) -> Iterator[Row]:
    for turn in line.turns:
        style = "dim strike" if turn.withdrawn_at or turn.erased_at else "bold"
        yield Row(key=(turn.position, 1), kind="turn", at=turn.at, words=((f"turn {turn.turn}", style),), turn=turn)


def _fences(line: Timeline) -> Iterator[Row]:
    """Settings, withdrawals, and the ends of sessions, which stand before the turn whose batch they are in."""

    def row(key: Key, at: Microseconds, words: str) -> Row:
        return Row(key=key, kind="fence", at=at, words=((words, "magenta"),))

    for mark in line.settings:
        changes = ", ".join(f"{name} {old} → {new}" for name, old, new in mark.changes) or "as they were"
        yield row((mark.position, 1), mark.at, f"settings: {changes}")
    for gone in line.withdrawals:
        words = f"{'turn' if len(gone.turns) == 1 else 'turns'} {ranges(gone.turns)} withdrawn"
        yield row((gone.position, 1), gone.at, words + (", the summary with it" if gone.invalidated else ""))
    for session in line.sessions:
        if line.start <= session.ended <= line.end and session.ended:
            words = f"session {session.session} ends: {session.reason}, behind turn {session.last_turn}"
            yield row((session.ended - 1, 0), session.ended_at, words)


def _left_off(decision: str) -> str:
    return decision.removeprefix("Fact").lower() if decision.startswith("Fact") else "has its tombstone lifted"


def _asks(bars: Iterable[Bar]) -> Iterator[tuple[str, str]]:
    for bar in bars:
        request = bar.request.asked
        by = "" if request.by == "model" else f" by {request.by}"
        turns = ranges(range(request.covers.first, request.covers.last + 1))
        yield f"asks v{request.version} for {turns}{by}", "cyan"


def _seconds(latency_ms: int) -> str:
    """`11 s`, `0.4 s`."""
    seconds = latency_ms / 1000
    whole = seconds >= 10 or seconds == round(seconds)  # noqa: PLR2004 - then tenths say nothing
    return f"{seconds:.{0 if whole else 1}f}\u00a0s"


def _answer(answer: PastAnswer, bar: Bar | None) -> Row:
    name = f"v{answer.name.number}"
    took = _seconds(answer.latency_ms)
    if answer.reason is None:
        reach = f" covers up to {bar.request.asked.covers.last}" if bar else ""
        words = (f"{ACCEPTED} {name}{reach}", SUMMARISED)
    else:
        words = (f"{REFUSED} {name} refused: {answer.reason}", "red")
    dropped = [("dropped later on", "magenta")] if bar and bar.invalidated and not answer.reason else []
    return Row(
        key=(answer.position, 1),
        kind="refused" if answer.reason else "accepted",
        at=answer.at,
        words=(words, (took, "dim"), *dropped),
        refused=answer.reason or "",
    )


# --- what stands beside them ------------------------------------------------------------------------------------------


def _fill_in(rows: list[Row], line: Timeline) -> None:
    """The coverage after each row."""
    places = [mark.position for mark in line.coverage]
    for at, row in enumerate(rows):
        if row.kind == "fact" or row.key[1] == 0:
            continue
        found = bisect_right(places, row.position)
        if found:
            mark = line.coverage[found - 1]
            rows[at] = msgspec.structs.replace(row, coverage=mark, pending_max=mark.pending)


def _beside(rows: Sequence[Row], line: Timeline) -> Iterator[Row]:
    """The rows with their lanes: where a request begins, goes on, ends."""
    keys = [row.key for row in rows]
    ends_before_turn = {session.ended: (session.ended - 1, 0) for session in line.sessions}
    lanes = min(line.lanes, LANES_SHOWN_MAX)
    grid = [[Cell()] * lanes for _ in rows]
    for bar in line.bars:
        if bar.lane >= lanes:
            continue
        first = bisect_right(keys, (bar.request.caused_by, 1)) - 1
        closed = bar.request.closed_at
        end = ends_before_turn.get(closed, (closed, 1))
        last = bisect_right(keys, end) - 1 if closed else len(rows)
        began = first >= 0 and keys[first][0] == bar.request.caused_by
        for at in range(max(0, first + began), min(last, len(rows))):
            grid[at][bar.lane] = Cell(OPEN, "cyan")
        if began and grid[first][bar.lane].mark == FREE:
            grid[first][bar.lane] = Cell(BEGINS, "cyan")
        if 0 <= last < len(rows) and closed <= line.end:
            grid[last][bar.lane] = _end(bar)
    for row, cells in zip(rows, grid, strict=True):
        yield msgspec.structs.replace(row, lanes=tuple(cells))


def _end(bar: Bar) -> Cell:
    if bar.request.outcome == "accepted":
        return Cell(ACCEPTED, SUMMARISED)
    return Cell(REFUSED, "red") if bar.request.outcome == "rejected" else Cell(DROPPED, PENDING)


# --- many rows in one -------------------------------------------------------------------------------------------------


def _in_stretches(rows: Sequence[Row], step: int, *, fences_kept: bool) -> Iterator[Row]:
    waiting: list[Row] = []
    for row in rows:
        fence = row.kind == "fence" and fences_kept
        number = row.turn.turn if row.turn else 0
        if waiting and (fence or (number and number % step == 1)):
            yield from _stretch(waiting)
            waiting = []
        if fence:
            yield row
        else:
            waiting.append(row)
    if waiting:
        yield from _stretch(waiting)


def _stretch(rows: Sequence[Row]) -> Iterator[Row]:
    if len(rows) == 1:
        yield rows[0]
        return
    turns = [row.turn.turn for row in rows if row.turn]
    kinds = Counter(row.kind for row in rows)
    refused = Counter(row.refused for row in rows if row.refused)
    accepted = kinds["accepted"]
    words: list[tuple[str, str]] = []
    if turns:
        words.append((f"{'turn' if len(turns) == 1 else 'turns'} {ranges([*turns])}", "bold"))
    if accepted:
        words.append((f"{ACCEPTED} {accepted}", SUMMARISED))
    if refused:
        words.append((f"{REFUSED} {refused.total()}", "red"))
    pending = max(row.pending_max for row in rows)
    if pending:
        words.append((f"pending ≤ {pending}", PENDING))
    if kinds["fence"]:
        words.append((counted(kinds["fence"], "other event"), "magenta"))
    if refused:
        words.append((", ".join(f"{count} {reason}" for reason, count in refused.most_common()), "red"))
    if kinds["fact"]:
        words.append((f"{counted(kinds['fact'], 'decision')} on facts", "dim"))
    lanes = tuple(_busy([row.lanes[lane] for row in rows]) for lane in range(len(rows[0].lanes)))
    yield Row(
        key=rows[0].key,
        kind="stretch",
        at=rows[0].at,
        words=tuple(words),
        lanes=lanes,
        coverage=next((row.coverage for row in reversed(rows) if row.coverage), None),
        pending_max=pending,
    )


def _busy(cells: Sequence[Cell]) -> Cell:
    """A lane over a stretch: free, with requests, or with one that was refused or dropped."""
    marks = {cell.mark for cell in cells}
    for mark, style in ((REFUSED, "red"), (DROPPED, PENDING)):
        if mark in marks:
            return Cell("┊" if len(marks) > 1 else mark, style)
    return Cell("┊", "cyan") if marks != {FREE} else Cell()


def coverage_pieces(mark: CoverageMark | None) -> list[tuple[str, str]]:
    """`1–4`, `5–6`, `7–10`: summarised, pending, word for word, each with its colour; nothing without a session."""
    if mark is None or not mark.session:
        return [("–", "dim"), ("", ""), ("", "")]
    parts = ((mark.first, mark.covered, SUMMARISED), (mark.covered + 1, mark.displaced, PENDING))
    pieces = [(_span(first, last), style) for first, last, style in parts]
    return [*pieces, (_span(mark.displaced + 1, mark.last), WINDOW)]


def _span(first: int, last: int) -> str:
    return ranges(range(first, last + 1)) if last >= first else "–"


def totals(line: Timeline) -> list[tuple[str, str]]:
    """What the stretch comes to, in numbers."""
    outcomes = Counter(bar.request.outcome for bar in line.bars)
    refused = Counter(answer.reason for answer in line.answers if answer.reason)
    pieces: list[tuple[str, Any]] = [
        (counted(len(line.turns), "turn"), "bold"),
        (counted(len(line.sessions), "session"), ""),
        (counted(len(line.bars), "request"), "cyan"),
        (f"{outcomes['accepted']:,} accepted", SUMMARISED),
    ]
    if refused:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.most_common())
        pieces.append((f"{sum(refused.values()):,} refused ({reasons})", "red"))
    pieces += [(f"{outcomes[name]:,} {name}", PENDING) for name in ("dropped", "open") if outcomes[name]]
    return pieces
