"""`pace timeline`: what happened in a thread, with its requests for summaries as bars beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from eventlog import EventLog
from pace_actors.cli.coverage import PENDING, SEPARATOR, SUMMARISED, WINDOW
from pace_actors.cli.options import examples, find_thread, json_option, log_argument, replaying, user_option
from pace_actors.cli.screen import Bar as ProgressBar
from pace_actors.cli.screen import console, print_json, printable, shown_key, shown_time
from pace_actors.domain.extracts import line_of
from pace_actors.events import REGISTRY, TurnHeard
from pace_actors.values import ThreadKey

if TYPE_CHECKING:
    from rich.text import Text

    from pace_actors.cli.timeline_rows import Row
    from pace_actors.replay import Timeline

LEGEND = (("summarised", SUMMARISED), ("pending", PENDING), ("window", WINDOW))
ROWS_MAX = 80
"""More are put together, unless every one is asked for."""
QUOTE_CHARS_MIN = 12
WORDS_MIN = 16
COVERAGE_BESIDE_WIDTH = 76
TIME_BESIDE_WIDTH = 60
"""A narrower terminal shows no coverage, and no times: the words need the room."""
EXAMPLES = examples(
    "pace timeline ada.pace kitchen",
    "pace timeline ada.pace kitchen --last 20",
    "pace timeline ada.pace kitchen --from 120 --to turn:40",
    "pace timeline ada.pace kitchen --full | less -R",
    "pace timeline ada.pace kitchen --json | jq '.bars[] | select(.request.outcome != \"accepted\")'",
)


@click.command("timeline", short_help="Show what happened in a thread, with its summaries as bars.", epilog=EXAMPLES)
@log_argument
@click.argument("thread", required=False)
@user_option
@click.option("--from", "start", metavar="PLACE", help="From there on: a position, a time, turn:NUMBER, …")
@click.option("--to", "end", metavar="PLACE", help="Up to there.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N turns.")
@click.option("--full", is_flag=True, help="A row for everything, however much it is.")
@json_option
def command(
    directory: str,
    thread: str | None,
    *,
    user: str | None,
    start: str | None,
    end: str | None,
    last: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """Show what happened in a THREAD: turns, requests for summaries as bars from asked (┬) to answered.

    ✓ an answer was accepted, ✗ it was refused, ╳ a reset, a pause or a withdrawal dropped the request before. On the
    right which turns are summarised, pending, word for word. Where it is long a row stands for several turns.
    """
    from pace_actors.replay import place_of, timeline  # noqa: PLC0415

    if last is not None and (start is not None or end is not None):
        raise click.UsageError("--last counts turns from the end, --from and --to name places: give one or the other")
    with replaying(directory) as log, ProgressBar("reading") as bar:
        key = find_thread(log, thread, user)
        first, to = _begin(log, start, key), None if end is None else place_of(log, end, key)
        line = timeline(log, key, start=first, end=to, last=last, on_progress=bar)
        if as_json:
            print_json(msgspec.to_builtins(line))
        else:
            _show(log, line, None if full else ROWS_MAX)


def _begin(log: EventLog, words: str | None, key: ThreadKey) -> int:
    """The position of the input at a place: its batch is shown whole."""
    from pace_actors.replay import place_of, read_batch  # noqa: PLC0415

    position = 0 if words is None else place_of(log, words, key)
    batch = read_batch(log, position) if position else None
    return position if batch is None else batch.position


def _show(log: EventLog, line: Timeline, rows_max: int | None) -> None:
    from rich.text import Text  # noqa: PLC0415 - only for what is shown to a person

    from pace_actors.cli.timeline_rows import rows_of, totals  # noqa: PLC0415

    out = console()
    rows, step = rows_of(line, rows_max)
    out.print(Text(shown_key(line.key), style="bold"), soft_wrap=True)
    out.print(Text("  ·  ", style="dim").join(Text(words, style=style) for words, style in totals(line)))
    if not rows:
        out.print(Text("nothing happened there", style="dim"), soft_wrap=True)
        return
    widths = _Widths(out.width, rows)
    out.print()
    out.print(_heading(widths), soft_wrap=True)
    day = ""
    for row in rows:
        today = shown_time(row.at)[:10]
        if today != day:
            out.print(Text(f"{today} UTC".rjust(widths.left), style="dim"), soft_wrap=True)
            day = today
        for shown in _shown(log, row, widths):
            out.print(shown, soft_wrap=True)
    if step > 1:
        hint = f"a row stands for up to {step:,} turns; --from PLACE --to PLACE, --last N or --full show each"
        out.print(Text(hint, style="dim"))


class _Widths:
    """Columns: position and time, lanes, words, coverage."""

    def __init__(self, width: int, rows: Sequence[Row]) -> None:
        from pace_actors.cli.timeline_rows import coverage_pieces  # noqa: PLC0415

        self.position = max(len(str(rows[-1].position)), len("pos"))
        self.time = 2 + len("12:00:00") if width >= TIME_BESIDE_WIDTH else 0
        self.left = self.position + self.time
        self.lanes = max(2 * len(rows[0].lanes), 0)
        self.parts = [0, 0, 0]
        if width >= COVERAGE_BESIDE_WIDTH:
            pieces = [[len(words) for words, _ in coverage_pieces(row.coverage)] for row in rows]
            self.parts = [max(column) for column in zip(*pieces, strict=True)]
        self.coverage = sum(self.parts) + 2 + 2 * len(SEPARATOR) if any(self.parts) else 0
        self.words = max(WORDS_MIN, width - self.left - self.lanes - self.coverage - 2)
        self.end = self.left + 2 + self.lanes + self.words + self.coverage


def _heading(widths: _Widths) -> Text:
    from rich.text import Text  # noqa: PLC0415

    time = "  time".ljust(widths.time) if widths.time else ""
    head = Text(f"{'pos':>{widths.position}}{time}  {'':{widths.lanes}}what happened", style="dim")
    if widths.coverage:
        legend = Text(SEPARATOR, style="dim").join(Text(words, style=style) for words, style in LEGEND)
        head.pad_right(max(2, widths.end - head.cell_len - legend.cell_len))
        head.append_text(legend)
    return head


def _shown(log: EventLog, row: Row, widths: _Widths) -> list[Text]:
    """A row as one line; what is too long for it stands on a second one."""
    from rich.text import Text  # noqa: PLC0415

    time = f"  {shown_time(row.at)[11:]}" if widths.time else ""
    line = Text(f"{row.position:>{widths.position}}{time}  ", style="dim")
    for cell in row.lanes:
        line.append(f"{cell.mark} ", style=cell.style)
    words = _joined(row.words)
    for kept in range(len(row.words) - 1, 1, -1):
        if row.kind != "stretch" or words.cell_len <= widths.words:
            break
        words = _joined(row.words[:kept])
    room = widths.words - words.cell_len - 3
    if row.turn is not None and room >= QUOTE_CHARS_MIN:
        words.append(f" · {_quote(log, row.turn.position, room)}", style="default")
    lines = words.wrap(console(), widths.words)
    first = lines[0]
    first.pad_right(max(0, widths.words - first.cell_len))
    line.append_text(first)
    if widths.coverage:
        line.append("  ").append_text(_coverage(row, widths))
    line.rstrip()
    indent = widths.left + 2 + widths.lanes
    rest = []
    for more in lines[1:]:
        continued = Text(" " * (indent + 2))
        continued.append_text(more)
        rest.append(continued)
    return [line, *rest]


def _joined(pieces: Sequence[tuple[str, str]]) -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(" · ", style="dim").join(Text(printable(words), style=style) for words, style in pieces)


def _coverage(row: Row, widths: _Widths) -> Text:
    from rich.text import Text  # noqa: PLC0415

    from pace_actors.cli.timeline_rows import coverage_pieces  # noqa: PLC0415

    if row.coverage is None:
        return Text()
    pieces = coverage_pieces(row.coverage)
    cells = (Text(words.rjust(width), style=style) for (words, style), width in zip(pieces, widths.parts, strict=True))
    return Text(SEPARATOR, style="dim").join(cells)


def _quote(log: EventLog, position: int, room: int) -> str:
    """How a turn begins."""
    event = log.event_at(position)
    if event is None:
        return ""
    if event.erased:
        return "(erased)"
    heard = REGISTRY.decode(event)
    assert isinstance(heard, TurnHeard)
    text = heard.user or heard.assistant
    return f"“{printable(line_of(text, room - 2))}”" if text else ""
