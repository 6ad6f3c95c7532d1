"""`python -m eventlog check|stats|export|import|compact|backup DIR`: one log in a directory, from the command line.

It needs nothing but this package. Commands that read work beside a process that writes.

    exit code
    0    done
    1    a check found something wrong, or something went wrong: one line on stderr says what, and what to do
    2    it cannot be done like this: an argument is not possible
    130  interrupted from the keyboard; what was imported until then is stored
    141  whoever read the output went away
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import msgspec

import eventlog
from eventlog import check
from eventlog.admission import check_timeout
from eventlog.console import give_up_stdout, prepare_streams, whole_file
from eventlog.errors import DiskFull, EventLogError
from eventlog.exchange import Progress, export_lines, import_lines, read_lines
from eventlog.lines import EXPORT_BEGINS
from eventlog.lmdb.checking import check_directory
from eventlog.lmdb.directory import NO_SPACE
from eventlog.log import LogStats
from eventlog.types import Checked, Finding

INTERRUPTED: Final = 130
READER_GONE: Final = 141
USAGE: Final = 2
_PROGRESS_S: Final = 0.2
_UNIT: Final = 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and say its exit code. Prints no traceback."""
    prepare_streams()
    try:
        asked = _parser().parse_args(arguments)
        code: int = asked.run(asked)
        sys.stdout.flush()
    except SystemExit as done:  # argparse has said it
        return done.code if isinstance(done.code, int) else 1
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        give_up_stdout()
        return READER_GONE
    except EventLogError as error:
        _say(str(error))
        return 1
    except OSError as error:
        _say(f"{error.filename}: {_reason(error)}" if error.filename else _reason(error))
        return 1
    return code


# --- the commands -----------------------------------------------------------------------------------------------------
def _check(asked: argparse.Namespace) -> int:
    checked = check_directory(asked.directory, timeout_s=asked.timeout)
    if asked.json:
        _print_json(msgspec.to_builtins(checked) | {"well": checked.well})
    else:
        _show_checked(checked)
    return 0 if checked.well else 1


def _show_checked(checked: Checked) -> None:
    looked_at = (
        f"{_counted(checked.events, 'event')} in {_counted(checked.streams, 'stream')}, "
        f"{_counted(checked.keys, 'key')}, {checked.erased:,} erased"
    )
    print(f"well: {looked_at}" if checked.well else f"NOT well: {looked_at}")
    for finding in checked.findings:
        print(f"  {finding.what}  {_where(finding)}{finding.detail}")
    if checked.more:
        print(f"  … and {_counted(checked.more, 'finding')} more")
    for name in checked.leftovers:
        print(f"  left over: {name}, which belongs to nothing")
    if not checked.well:
        print("What each finding means, and what to do: python -m eventlog check --help")


def _where(finding: Finding) -> str:
    place = [f"position {finding.position}"] if finding.position else []
    place += [f"stream {finding.stream!r}"] if finding.stream else []
    return f"{', '.join(place)}: " if place else ""


def _stats(asked: argparse.Namespace) -> int:
    with _reading(asked) as log:
        stats = log.stats()
    if asked.json:
        _print_json(msgspec.to_builtins(stats))
    else:
        _show_stats(stats)
    return 0


def _show_stats(stats: LogStats) -> None:
    rows = [
        ("events", f"{stats.head:,} in {_counted(stats.streams, 'stream')}"),
        ("on disk", f"{_bytes(stats.bytes_on_disk)} of at most {_bytes(stats.map_bytes)} before the map grows"),
        ("generation", f"{stats.generation:,}"),
        ("readers", f"{stats.readers:,}"),
        ("log id", stats.log_id),
    ]
    rows += [
        (f"follower {name}", f"at {one.position:,}, {one.lag:,} behind") for name, one in stats.checkpoints.items()
    ]
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        print(f"{name:{width}}  {words}")


def _export(asked: argparse.Namespace) -> int:
    with _reading(asked) as log, _output(asked.output) as file:
        for line in export_lines(log, asked.after):
            file.write(line)
    return 0


@contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that is there when it is whole, and not before."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(path), EXPORT_BEGINS) as file:
        yield file


def _import(asked: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        file = sys.stdin.buffer if asked.file in (None, "-") else stack.enter_context(Path(asked.file).open("rb"))
        log = stack.enter_context(eventlog.open(asked.directory))
        with _Bar() as bar:
            done = import_lines(log, read_lines(file), on_progress=bar)
    stubs = f", {done.stubs:,} of them erased ones" if done.stubs else ""
    print(f"{_counted(done.appended, 'event')} imported{stubs}; {done.known:,} were there already")
    if done.closed:
        print(f"{_counted(done.closed, 'stream')} closed")
    if done.uncaused:
        print(f"{_counted(done.uncaused, 'event')} without their cause, which lies in front of the export")
    return 0


def _compact(asked: argparse.Namespace) -> int:
    with eventlog.open(asked.directory, create=False) as log:
        done = log.compact()
    print(f"generation {done.generation}: {_bytes(done.bytes_before)} before, {_bytes(done.bytes_after)} now")
    if not done.gone:
        print(f"the file of before is still read by {', '.join(map(str, done.readers))}: it goes when they end")
    return 0


def _backup(asked: argparse.Namespace) -> int:
    with _reading(asked) as log:
        done = log.backup(asked.destination)
    print(f"{_counted(done.head, 'event')} copied to {asked.destination}, {_bytes(done.bytes)}")
    return 0


@contextmanager
def _reading(asked: argparse.Namespace) -> Iterator[eventlog.LmdbLog]:
    """The log, for reading only, beside whoever writes it."""
    with eventlog.open(asked.directory, readonly=True) as log:
        yield log


# --- arguments --------------------------------------------------------------------------------------------------------
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m eventlog",
        description="One event log in a directory.",
        epilog="Exit codes: 0 done, 1 something is wrong, 2 it cannot be done like this.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], words: str, epilog: str | None = None
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name, help=words, description=words, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        added.add_argument("directory", metavar="DIR", help="the directory of the log")
        added.set_defaults(run=run)
        return added

    added = command("check", _check, "Compare a log with every index of it, both ways.", check.__doc__)
    added.add_argument("--json", action="store_true", help="one JSON document instead of words")
    added.add_argument(
        "--timeout", type=_seconds, default=check.TIMEOUT_S, metavar="SECONDS", help="end it after so long"
    )  # fmt: skip
    added = command("stats", _stats, "Count what a log holds.")
    added.add_argument("--json", action="store_true", help="one JSON document instead of words")
    added = command("export", _export, "Write a log as lines of JSON.")
    added.add_argument("--after", type=_position, default=0, metavar="POSITION", help="only what lies behind it")
    added.add_argument("-o", "--output", metavar="FILE", help="into a file instead of standard output")
    added = command("import", _import, "Append what an export holds; again, and nothing is appended twice.")
    added.add_argument("file", nargs="?", metavar="FILE", help="the export; standard input without one, or with -")
    command("compact", _compact, "Write what is still there into a new file, without what was erased.")
    added = command("backup", _backup, "Copy a log as it is now into a new directory.")
    added.add_argument("destination", metavar="DESTINATION", help="a directory that holds nothing, or is not there")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError("a time is more than 0 seconds")
    return check_timeout(seconds)


def _position(text: str) -> int:
    position = int(text)
    if position < 0:
        raise argparse.ArgumentTypeError("a position is 0 or more")
    return position


# --- words ------------------------------------------------------------------------------------------------------------
class _Bar:
    """How far an import is, in one line of stderr, where that is a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._shows and now >= self._next:
            self._next = now + _PROGRESS_S
            share = 100 * progress.position // max(1, progress.head)
            with contextlib.suppress(OSError):
                sys.stderr.write(f"\rimporting: {progress.position:,} of {progress.head:,} events, {share} %")
                sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shows and self._next:
            with contextlib.suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


def _print_json(document: Any) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _bytes(size: int) -> str:
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < _UNIT:
            break
        value, unit = value / _UNIT, larger
    return f"{size} B" if unit == "B" else f"{value:,.1f} {unit}"


def _reason(error: OSError) -> str:
    if error.errno in NO_SPACE:
        return DiskFull.template
    return (error.strerror or str(error)).lower()


def _say(words: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads stderr either
        print(f"eventlog: {' '.join(words.split())}", file=sys.stderr, flush=True)
