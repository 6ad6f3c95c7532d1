"""`pace demo`: opens a directory, plays, closes, proves that the log alone brings everything back."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from pace_actors.cli.options import examples, json_option, reaching, reading
from pace_actors.cli.screen import Bar, console, print_json, shown_bytes
from pace_actors.domain.wording import counted
from pace_actors.errors import InvalidInput

STAND_IN_PATIENCE_S = 10.0
SERVER_PATIENCE_S = 120.0

EXAMPLES = examples(
    "pace demo",
    "pace demo --fast                                without the pauses for reading",
    "pace demo --dir my-demo                         keep the log there",
    "PACE_MODEL_URL=http://127.0.0.1:8080/v1 pace demo   with a model instead of the stand-in",
    "pace demo --json | jq .hashes",
)


class Hashes(msgspec.Struct, frozen=True):
    """The state, three times."""

    live: str
    replayed: str
    """From the log alone, with the directory closed."""
    reopened: str

    @property
    def equal(self) -> bool:
        """Whether it is the same."""
        return self.live == self.replayed == self.reopened


@click.command("demo", short_help="Play a conversation of three days, and explain it.", epilog=EXAMPLES)
@click.option(
    "--dir", "directory", type=click.Path(), metavar="DIR", help="Where to keep the log; by default a new place."
)
@click.option(
    "--model", envvar="PACE_MODEL_URL", show_envvar=True, metavar="URL", help="A chat server; by default a stand-in."
)
@click.option("--fast", is_flag=True, help="No pauses for reading.")
@json_option
@click.pass_context
def command(ctx: click.Context, directory: str | None, *, model: str | None, fast: bool, as_json: bool) -> None:
    """Play three days of two people, and look at what an assistant would know at each moment.

    No model server is needed: a stand-in picks sentences. Ends with exit code 1 if the log did not bring the same
    state back.
    """
    started = time.monotonic()
    place = _place(directory)
    told = _perform(place, model or None, pauses=not fast and not as_json, quiet=as_json)
    told["seconds"] = round(time.monotonic() - started, 3)
    if as_json:
        print_json(told)
    ctx.exit(0 if told["hashes"].equal else 1)


def _place(directory: str | None) -> str:
    """An empty directory. Raises `InvalidInput` for one that holds something, and for what is none."""
    if directory is None:
        return tempfile.mkdtemp(prefix="pace-demo-")
    path = Path(directory)
    with reaching("dir"):
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{directory}: it is a file; the demo wants a directory of its own", what="dir")
        if path.exists() and any(path.iterdir()):
            raise InvalidInput(f"{directory} is not empty; the demo wants a directory of its own", what="dir")
    return directory


def _perform(place: str, model: str | None, *, pauses: bool, quiet: bool) -> dict[str, Any]:
    """The whole evening. Returns what is to be told about it."""
    from pace_actors.cli.demo.gate import GatedSummariser  # noqa: PLC0415 - loads everything
    from pace_actors.cli.demo.play import Play, conversation  # noqa: PLC0415
    from pace_actors.cli.demo.scenes import Scenes  # noqa: PLC0415
    from pace_actors.cli.demo.stage import Stage  # noqa: PLC0415
    from pace_actors.models.choose import LOCAL, summariser_from  # noqa: PLC0415
    from pace_actors.models.local import missing_packages  # noqa: PLC0415
    from pace_actors.opening import RECALL_FOLDER  # noqa: PLC0415
    from pace_actors.pace import Pace  # noqa: PLC0415

    out = console()
    out.quiet = quiet
    stage = Stage(out, pauses=pauses and out.is_terminal)
    gate = GatedSummariser(summariser_from(model))
    patience_s = SERVER_PATIENCE_S if model else STAND_IN_PATIENCE_S
    lines = conversation()
    stage.title("pace-actors: what an assistant remembers")
    stage.say(f"Two people, three days, {counted(len(lines), 'line')}. Summaries by {gate.name}. The log: {place}")
    embedder = None if missing_packages() else LOCAL
    with Pace.open(place, model=gate, embedder=embedder) as pace:
        scenes = Scenes(pace, gate, stage, Path(place) / RECALL_FOLDER, patience_s=patience_s)
        play = Play(pace, scenes, stage, keeps_up=model is None, patience_s=patience_s)
        play.run(lines)
        gate.hold()  # nothing may change between the hash and the end
        live = pace.state_hash()
    hashes = Hashes(live, *_from_the_log(place))
    secret_bytes = _occurrences(place, scenes.secret)
    told = {
        "directory": place,
        "model": gate.name,
        "turns": play.turns,
        "hashes": hashes,
        "equal": hashes.equal,
        "refused": None if scenes.refusal is None else vars(scenes.refusal),
        "secret_found_on_disk": secret_bytes,
        **_figures(place),
        "try": _commands(place),
    }
    _end(stage, told)
    return told


def _from_the_log(place: str) -> tuple[str, str]:
    """The state again: folded from the closed log, and as a Pace has it that opens the directory anew."""
    from pace_actors.cli.demo.gate import GatedSummariser  # noqa: PLC0415
    from pace_actors.models.extractive import ExtractiveSummariser  # noqa: PLC0415
    from pace_actors.pace import Pace  # noqa: PLC0415
    from pace_actors.replay import replay  # noqa: PLC0415

    with reading(place) as log:
        replayed = replay(log).hash
    silent = GatedSummariser(ExtractiveSummariser())
    silent.hold()  # a request that is still open is not answered now
    with Pace.open(place, model=silent) as pace:
        return replayed, pace.state_hash()


def _occurrences(place: str, secret: str) -> int:
    """How often the secret stands in the files of the closed log."""
    assert secret
    return sum(path.read_bytes().count(secret.encode()) for path in Path(place).rglob("*") if path.is_file())


def _figures(place: str) -> dict[str, Any]:
    from pace_actors.cli.stats import figures_of  # noqa: PLC0415

    with reading(place) as log:
        figures = figures_of(log, Bar("counting"))
    return {"summaries": msgspec.to_builtins(figures.summaries), "facts": msgspec.to_builtins(figures.facts)}


def _end(stage: Any, told: dict[str, Any]) -> None:
    from rich.table import Table  # noqa: PLC0415 - only for what is shown to a person
    from rich.text import Text  # noqa: PLC0415

    place, hashes, summaries = told["directory"], told["hashes"], told["summaries"]
    stage.title("closed, and back from the log alone")
    rows = Table.grid(padding=(0, 2))
    rows.add_row("state hash, live", hashes.live)
    rows.add_row("replayed from the log", hashes.replayed)
    rows.add_row("in a new Pace", hashes.reopened)
    stage.show(rows)
    verdict = ("✓ the same state, three times", "bold green") if hashes.equal else ("✗ they differ", "bold red")
    stage.show(Text(*verdict))
    refused = ", ".join(f"{count} {reason}" for reason, count in summaries["rejected"].items()) or "none"
    stage.show(
        f"{counted(told['turns'], 'turn')}; {counted(summaries['requested'], 'summary', 'summaries')} requested, "
        f"{summaries['accepted']} accepted, refused: {refused}. The wifi password stands "
        f"{counted(told['secret_found_on_disk'], 'time')} in the files."
    )
    decisions = told["facts"]["decisions"]
    refusals = [f"{n} {name.partition(': ')[2]}" for name, n in decisions.items() if name.startswith("FactRejected")]
    stage.show(
        f"{counted(decisions.get('FactAdded', 0), 'fact')} learnt, {decisions.get('FactReplaced', 0)} replaced, "
        f"{decisions.get('FactForgotten', 0)} forgotten, refused: {', '.join(refusals) or 'none'}."
    )
    size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    stage.title("the log")
    stage.show(f"{place} ({shown_bytes(size)}). Five commands to try:")
    for line in told["try"]:
        stage.out.print(Text(f"  {line}", style="bold cyan"), soft_wrap=True)


def _commands(place: str) -> list[str]:
    at, pace = shlex.quote(place), _program()
    return [
        f"{pace} context {at} move --now last --text 'When does the van come?'",
        f"{pace} facts {at} --history --sensitive",
        f"{pace} recall {at} 'piano' --user ben --explain",
        f"{pace} log {at} --type ResetAsked --type AnswerArrived --type SummaryRejected --thread kitchen",
        f"{pace} replay {at}",
    ]


def _program() -> str:
    """How this program was called, so that a command can be copied."""
    called = Path(sys.argv[0])
    if called.name.removesuffix(".exe") != "pace":
        return f"{shlex.quote(sys.executable)} -m pace_actors.cli"
    return "pace" if shutil.which("pace") else shlex.quote(os.path.relpath(called))
