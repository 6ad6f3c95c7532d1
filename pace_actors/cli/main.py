"""The entry point: finds a command, runs it, and turns whatever goes wrong into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from eventlog.console import give_up_stdout, prepare_streams
from pace_actors.cli import failures
from pace_actors.cli.signs import use_stand_ins

COMMANDS: dict[str, str] = {
    "demo": "pace_actors.cli.demo.command",
    "import": "pace_actors.cli.import_command",
    "context": "pace_actors.cli.context",
    "facts": "pace_actors.cli.facts",
    "remember": "pace_actors.cli.remember",
    "forget": "pace_actors.cli.forget",
    "erase": "pace_actors.cli.erase",
    "note": "pace_actors.cli.note",
    "recall": "pace_actors.cli.recall",
    "sources": "pace_actors.cli.sources",
    "doctor": "pace_actors.cli.doctor",
    "log": "pace_actors.cli.log",
    "state": "pace_actors.cli.state",
    "diff": "pace_actors.cli.diff",
    "why": "pace_actors.cli.why",
    "replay": "pace_actors.cli.replay",
    "bisect": "pace_actors.cli.bisect",
    "shrink": "pace_actors.cli.shrink",
    "timeline": "pace_actors.cli.timeline",
    "inspect": "pace_actors.cli.inspect",
    "stats": "pace_actors.cli.stats",
    "simulate": "pace_actors.cli.simulate",
    "bench": "pace_actors.cli.bench",
    "help": "pace_actors.cli.help",
}
"""Command → the module that has it as `command`; loaded when it is asked for."""

EPILOG = """\b
Examples:
  pace demo                                    a conversation, played and explained
  pace import chats.jsonl --into ada.pace      conversations from a file
  pace context ada.pace kitchen --user ada     what the planner sees
  pace facts ada.pace --user ada               what is known of a user
  pace recall ada.pace "harbour tour"          what was said, noted and learnt of it
  pace help exit-codes                         every exit code, and the errors behind it
"""


class LazyGroup(click.Group):
    """A group whose commands are loaded one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(module).command
        return command

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Read the arguments, which may print the help."""
        with _as_themselves():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it."""
        with _as_themselves():
            return super().invoke(ctx)


class _ReaderGone(Exception):
    """Nobody reads stdout any more."""


class _Interrupted(Exception):
    """Ctrl-C."""


@contextmanager
def _as_themselves() -> Iterator[None]:
    """A broken pipe and Ctrl-C leave as themselves, for click has answers of its own to both."""
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error
    except KeyboardInterrupt as error:
        raise _Interrupted from error


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(None, "-V", "--version", package_name="pace-actors", prog_name="pace")
@click.pass_context
def group(ctx: click.Context) -> None:
    """The memory of an assistant, on one directory."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit(failures.USAGE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and say its exit code. Prints no traceback; `PACE_TRACEBACK=1` lets one through."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    prepare_streams()
    use_stand_ins()
    code = _run(given, as_json=as_json)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_went_away()
    except OSError as error:
        give_up_stdout()  # what could not be written would be tried again at the end
        return code or failures.tell(error, as_json=as_json)
    return code


def _run(given: list[str], *, as_json: bool) -> int:
    try:
        code = group.main(given, prog_name="pace", standalone_mode=False)
    except _ReaderGone:
        return _reader_went_away()
    except (_Interrupted, click.exceptions.Abort):
        return failures.tell_interrupted(as_json=as_json)
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    except Exception as error:  # the one place where every error becomes a line and a code
        if os.environ.get("PACE_TRACEBACK"):
            raise
        return failures.tell(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def _reader_went_away() -> int:
    """`pace log … | head`: stop quietly."""
    give_up_stdout()
    return failures.READER_GONE
