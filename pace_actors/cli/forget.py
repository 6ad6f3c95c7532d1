"""`pace forget`: facts out of every view, with the turns that they came from."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from eventlog import EventLog
from pace_actors.cli.facts import fact_json, facts_table, turns_of
from pace_actors.cli.options import directory, examples, find_owner, json_option, owner_option
from pace_actors.cli.screen import console, print_json, shown_key, shown_name
from pace_actors.cli.writing import writing
from pace_actors.domain.known import words_of
from pace_actors.domain.wording import counted, ranges
from pace_actors.errors import UnknownFact
from pace_actors.fact_verbs import Forgotten, SourceTurn
from pace_actors.pace import Pace
from pace_actors.values import ThreadKey

EXAMPLES = examples(
    "pace forget ada.pace 12",
    "pace forget ada.pace --query 'phone calls'           what would go",
    "pace forget ada.pace --query 'phone calls' --yes",
    "pace forget ada.pace --all --user ada --yes --keep-turns",
)


class Wish(NamedTuple):
    """What is to go."""

    fact: int | None
    query: str | None
    keep_turns: bool


@click.command("forget", short_help="Forget facts: by number, by words, or all.", epilog=EXAMPLES)
@directory
@click.argument("fact", metavar="[FACT]", type=click.IntRange(min=1), required=False)
@click.option("--query", metavar="WORDS", help="All facts that have each of these words.")
@click.option("--all", "everything", is_flag=True, help="All facts; and nothing said so far is learnt from.")
@owner_option
@click.option("--yes", is_flag=True, help="Do it: --query and --all only show what would go without it.")
@click.option("--keep-turns", is_flag=True, help="The turns that the facts came from stay where they are.")
@json_option
def command(
    directory: str,
    fact: int | None,
    *,
    query: str | None,
    everything: bool,
    user: str | None,
    yes: bool,
    keep_turns: bool,
    as_json: bool,
) -> None:
    """Forget a FACT by its number (`pace facts` has it), those with all words of --query, or --all.

    Forgotten is out of every view, and not learnt again for 30 days unless the user states it outright (`pace
    remember`). The turns that it came from leave window, extracts and summary too, unless --keep-turns. It is not
    erased: the log still has the words, and `pace log` shows them; `pace erase` takes out a whole conversation. Notes
    stay.

    Where nothing matches, nothing is forgotten, and the exit code is 3. Needs the directory for itself.
    """
    if sum((fact is not None, query is not None, everything)) != 1:
        raise click.UsageError("forget takes one of FACT, --query and --all")
    with writing(directory) as pace:
        owner = find_owner(pace.log, user).user
        gone = _forget(pace, owner, Wish(fact, query, keep_turns), yes=yes)
        if as_json:
            print_json(_json(pace.log, owner, gone))
        else:
            _show(pace.log, owner, gone, everything=everything, keep_turns=keep_turns)


def _forget(pace: Pace, owner: str, wish: Wish, *, yes: bool) -> Forgotten:
    """Do it, or see what it would be. Raises `UnknownFact` where nothing matches."""
    if wish.fact is not None:
        return pace.forget(wish.fact, user=owner, keep_turns=wish.keep_turns)
    if wish.query is None:
        if yes:
            return pace.forget_all(user=owner, keep_turns=wish.keep_turns)
        return _all_of(pace, owner, keep_turns=wish.keep_turns)
    gone = pace.forget(query=wish.query, confirm=yes, user=owner, keep_turns=wish.keep_turns)
    if not gone.facts:
        why = "no fact has all these words" if words_of(wish.query) else "the query has no word that means something"
        raise UnknownFact(f"nothing of user {owner!r} is forgotten: {why}; `pace facts` lists what is known", fact=0)
    return gone


def _all_of(pace: Pace, owner: str, *, keep_turns: bool) -> Forgotten:
    facts = pace.facts(user=owner, include_sensitive=True)
    turns = {SourceTurn(*turn) for fact in facts for turn in turns_of(pace.log, fact)} if not keep_turns else ()
    return Forgotten(facts=facts, turns=tuple(turns), done=False)


def _json(log: EventLog, owner: str, gone: Forgotten) -> dict[str, Any]:
    return {
        "user": owner,
        "done": gone.done,
        "facts": [fact_json(log, fact) for fact in gone.facts],
        "turns": [{"thread": turn.key.thread, "turn": turn.turn} for turn in gone.turns],
        "everywhere": gone.everywhere,
    }


def _show(log: EventLog, owner: str, gone: Forgotten, *, everything: bool, keep_turns: bool) -> None:
    out = console()
    verb = "forgotten" if gone.done else "would be forgotten"
    out.print(f"{counted(len(gone.facts), 'fact')} of {shown_name(owner)} {verb}", style="bold")
    if gone.facts:
        out.print(facts_table(log, gone.facts))
    if everything:
        out.print("Nothing that was said so far " + ("is" if gone.done else "would be") + " learnt from again.")
    if gone.turns:
        went = "are shown no longer" if gone.done else "would be shown no longer"
        out.print(f"With them these turns {went}: {turns_listed(gone.turns)}")
    elif keep_turns:
        out.print("The turns that they came from stay.")
    if not gone.everywhere:
        out.print("Some threads have still to take them out; that goes on when the directory is opened again.")
    if gone.done:
        out.print("Not erased: the log still has the words. Notes are as they were.", style="dim")
    else:
        out.print("Nothing is forgotten yet: say it again with --yes.", style="bold yellow")


def turns_listed(turns: tuple[SourceTurn, ...]) -> str:
    """`ada/kitchen 1–3, 7; ada/work 2`."""
    by_thread: dict[ThreadKey, list[int]] = {}
    for turn in turns:
        by_thread.setdefault(turn.key, []).append(turn.turn)
    return "; ".join(f"{shown_key(key)} {ranges(sorted(numbers))}" for key, numbers in by_thread.items())
