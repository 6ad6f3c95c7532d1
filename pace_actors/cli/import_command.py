"""`pace import`: conversations from files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pace_actors.cli.incidents import incident_lines, incidents_of
from pace_actors.cli.options import NAMES_SHOWN, examples, json_option, reaching, settings_of_environment
from pace_actors.cli.screen import Bar, console, print_json, shown_key
from pace_actors.domain.wording import counted
from pace_actors.errors import InvalidInput
from pace_actors.values import DEFAULT_USER

if TYPE_CHECKING:
    from pace_actors.importing import Line, Source, Tally
    from pace_actors.pace import Pace

PROGRESS_LINES = 64
SUMMARIES_WAIT_S = 30.0
"""How long summaries are waited for at the end; what is missing then is made when the directory is opened again."""

EXAMPLES = examples(
    "pace import chats.jsonl --into ada.pace",
    "pace import march.jsonl.gz april.jsonl.gz --into ada.pace --user ada --thread kitchen",
    "zcat chats.jsonl.gz | pace import - --name chats.jsonl --into ada.pace",
    "pace import chats.jsonl --into ada.pace --steady     the same threads every time (threads_hash)",
)


@click.command("import", short_help="Store conversations and facts from files (JSON lines).", epilog=EXAMPLES)
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--into", metavar="DIR", required=True, type=click.Path(), help="The directory; made if it is not there.")
@click.option(
    "--user", default=DEFAULT_USER, show_default=True, help="Whose turns they are, where a line names nobody."
)
@click.option("--thread", default="", help="The thread, where a line names none.")
@click.option(
    "--name",
    help="What the one FILE is called where its turns have no ids: for stdin, and for a file that was renamed.",
)
@click.option("--steady", is_flag=True, help="Wait for each summary before the next turn: slower, always alike.")
@click.option(
    "--model",
    envvar="PACE_MODEL_URL",
    show_envvar=True,
    metavar="URL",
    help="A chat server that writes the summaries; without one they are made of extracts.",
)
@click.option("--allow-remote-model", is_flag=True, help="The server may be on another machine; it is sent the turns.")
@json_option
def command(
    files: tuple[str, ...],
    *,
    into: str,
    user: str,
    thread: str,
    name: str | None,
    steady: bool,
    model: str | None,
    allow_remote_model: bool,
    as_json: bool,
) -> None:
    """Store the conversations of each FILE (JSON lines, `.gz` too, `-` for stdin; docs/import-format.md).

    A turn is stored once, however often it is imported: after an interrupt, run the same command again. At a line
    that cannot be read it stops; what came before it is stored. Facts are stored once as well; they beat nothing that
    is known better, and what was forgotten is refused.

    A turn without an id is known by its content, the name of its file, and its place in it. So the same lines under
    another name, or through stdin (whose name is `-`), are stored once more; --name says what they were called before.

    The order in the file is the order in the thread: turns that are older than what their thread has already stand
    behind it all the same, and are counted at the end.

    Settings for all its threads can stand in the environment: PACE_WINDOW, PACE_IDLE_MINUTES, PACE_ZONE, and so on.
    """
    from pace_actors.importing import Importer, read_lines  # noqa: PLC0415 - and with it everything that writes
    from pace_actors.pace import Pace  # noqa: PLC0415

    if name is not None and (len(files) > 1 or not name.strip("./")):
        raise click.UsageError("--name is the name of a file, and goes with one FILE")
    settings = settings_of_environment()
    if settings.get("resume") == "never":
        words = (
            "PACE_RESUME=never keeps nothing in the log, so nothing can be imported; unset it, or give it another value"
        )
        raise InvalidInput(words, what="resume")
    started = time.monotonic()
    with (
        _opened(files, name or "") as sources,
        Bar("importing") as bar,
        Pace.open(into, model=model or None, allow_remote_model=allow_remote_model, **settings) as pace,
    ):
        importer = Importer(pace, steady=steady, on_line=_reporting(sources, bar))
        for source in sources:
            importer.feed(read_lines(source, user=user, thread=thread))
        importer.finish()
        took_s = time.monotonic() - started
        summarised = pace.wait_idle(SUMMARIES_WAIT_S)
        _tell(pace, importer.tally, took_s, summarised=summarised, as_json=as_json)


@contextmanager
def _opened(files: tuple[str, ...], known_as: str) -> Iterator[list[Source]]:
    """All files at once, so that a missing one is known before anything is written."""
    from pace_actors.importing import Source  # noqa: PLC0415

    with ExitStack() as stack:
        sources = []
        for name in files:
            with reaching("file"):
                stream = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
            sources.append(Source(name=name, stream=stream, known_as=known_as))
        yield sources


def _reporting(sources: list[Source], bar: Bar) -> Callable[[Line], None]:
    total = sum(Path(source.name).stat().st_size for source in sources if source.name != "-")

    def report(line: Line) -> None:
        if line.number % PROGRESS_LINES == 0:
            bar(sum(source.position for source in sources if source.name != "-"), total)

    return report


def _tell(pace: Pace, tally: Tally, took_s: float, *, summarised: bool, as_json: bool) -> None:
    rate = round(tally.lines / took_s) if took_s else 0
    if as_json:
        print_json(
            {
                "turns": tally.turns,
                "known": tally.known,
                "erased": tally.erased,
                "disabled": tally.disabled,
                "resets": tally.resets,
                "settings": tally.settings,
                "facts": tally.facts,
                "facts_known": tally.facts_known,
                "facts_refused": tally.facts_refused,
                "late": [{"user": key.user, "thread": key.thread, "turns": turns} for key, turns in tally.late.items()],
                "threads": len(pace.threads()),
                "seconds": round(took_s, 6),
                "turns_per_second": rate,
                "summarised": summarised,
                "state_hash": pace.state_hash(),
                "incidents": incidents_of(pace.stats()),
            }
        )
        return
    out = console()
    parts = [f"{counted(tally.turns, 'turn')} stored", f"{tally.known:,} known already"]
    parts += [f"{tally.erased:,} erased before, and left so"] if tally.erased else []
    parts += [f"{tally.disabled:,} not stored, for memory is off"] if tally.disabled else []
    parts += [counted(tally.resets, "reset")] if tally.resets else []
    parts += [counted(tally.settings, "change of settings", "changes of settings")] if tally.settings else []
    parts += [f"{counted(tally.facts, 'fact')}"] if tally.facts else []
    parts += [f"{counted(tally.facts_known, 'fact')} known already"] if tally.facts_known else []
    parts += [f"{counted(count, 'fact')} refused ({why})" for why, count in tally.facts_refused.items()]
    out.print(", ".join(parts))
    out.print(f"{took_s:.2f} s, {rate:,} turns/s; {counted(len(pace.threads()), 'thread')} in the log")
    for words in _late(tally):
        out.print(words, style="bold yellow")
    for words in incident_lines(pace.stats()):
        out.print(words, style="bold yellow")
    if not summarised:
        out.print("Some summaries are still to be made; that goes on when the directory is opened again.", style="dim")


def _late(tally: Tally) -> Iterator[str]:
    """What stands in its thread where its time would not have put it."""
    for key, turns in list(tally.late.items())[:NAMES_SHOWN]:
        are, they, stand = ("is", "it", "stands") if turns == 1 else ("are", "they", "stand")
        older = f"{counted(turns, 'turn')} {are} older than what {shown_key(key)} had when {they} came"
        yield f"{older}: {they} {stand} behind it"
    if len(tally.late) > NAMES_SHOWN:
        yield f"and so in {counted(len(tally.late) - NAMES_SHOWN, 'more thread', 'more threads')}"
