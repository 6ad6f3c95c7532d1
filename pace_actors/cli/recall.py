"""`pace recall`: find again what was said, noted and learnt."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from eventlog import EventLog, LogInUse
from pace_actors.actors.index_actor import mark_of
from pace_actors.cli.options import When, directory, examples, find_owner, json_option, owner_option, reading
from pace_actors.cli.recalled import hits_shown, reached_words, recalled_json
from pace_actors.cli.screen import Bar, console, print_json, shown_name
from pace_actors.cli.writing import writing
from pace_actors.domain.moments import moment
from pace_actors.domain.sources import SOURCES
from pace_actors.finder import Finder, Recalled
from pace_actors.models.choose import embedder_from
from pace_actors.models.port import Embedder, ModelFailure
from pace_actors.opening import RECALL_FOLDER, profile_of
from pace_actors.recall.fences import Fences, begin_of
from pace_actors.recall.port import KINDS, LIMIT_MAX, Profile, Query, RecallError
from pace_actors.recall.reranking import Reranker
from pace_actors.recall.tantivy_index import TantivyIndex
from pace_actors.recall.vectors import Vectors
from pace_actors.replay import replay_facts
from pace_actors.values import UserKey

if TYPE_CHECKING:
    from pace_actors.pace import Pace

WAIT_S = 0.02

PROFILES = get_args(Profile)
LOAD_S = 30.0
PATIENCE_S = 30.0
"""An index that does not come on for so long is asked as it is."""

EXAMPLES = examples(
    'pace recall ada.pace "when does the harbour tour start?"',
    "pace recall ada.pace budget --user ada --explain          why each was found",
    'pace recall ada.pace "last week" --kind turn --limit 20',
    "pace recall ada.pace hospital --sensitive                 health, money and relationships too",
    "pace recall ada.pace budget --json | jq -r '.hits[].snippet'",
)


@click.command("recall", short_help="Find what was said, noted and learnt.", epilog=EXAMPLES)
@directory
@click.argument("query")
@owner_option
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=10, show_default=True, help="Most hits.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only these; can be given again.")
@click.option("--source", "sources", multiple=True, type=click.Choice(SOURCES), help="Only of these sources.")
@click.option("--sensitive", is_flag=True, help="Sensitive things too.")
@click.option("--now", type=When(), help="Against which “yesterday” is understood: an ISO time, by default now.")
@click.option("--embedder", envvar="PACE_EMBEDDER", show_envvar=True, metavar="local|URL", help="Find by meaning too.")
@click.option("--embedder-name", envvar="PACE_EMBEDDER_NAME", show_envvar=True, default="", help="Its model.")
@click.option("--profile", type=click.Choice(PROFILES), help="With an embedder; by default hybrid.")
@click.option("--explain", is_flag=True, help="Why each was found.")
@json_option
def command(  # noqa: PLR0913 - each is an option, told once
    directory: str,
    query: str,
    *,
    user: str | None,
    limit: int,
    kinds: tuple[str, ...],
    sources: tuple[str, ...],
    sensitive: bool,
    now: datetime | None,
    embedder: str | None,
    embedder_name: str,
    profile: Profile | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Find what a user has said, noted or told of himself that fits QUERY, best first. Any text is a query.

    Of hits that fit nearly as well the newest comes first. Brings the index (with an embedder its vectors too, which
    takes a while for a long log) up to the log first. Beside a running program it asks that program's index as it is,
    writes nothing, and says how far it is.
    """
    at = time.time_ns() // 1000 if now is None else moment(now)
    with reading(directory) as log:
        owner = find_owner(log, user, talks=True).user
    asked = Query(
        text=query,
        owner=owner,
        now=at,
        limit=limit,
        kinds=frozenset(kinds) or None,
        sources=frozenset(sources) or None,
        include_sensitive=sensitive,
    )
    meant = profile_of(profile, embedder, "hybrid")
    chosen = _ready(embedder, embedder_name)
    try:
        found = _brought_up(directory, asked, now, chosen, meant)
    except LogInUse:
        with reading(directory) as log:
            found = _beside(directory, log, asked, chosen, meant)
    finally:
        if chosen is not None:
            chosen.close()
    if as_json:
        print_json({"user": owner} | recalled_json(found))
        return
    out = console()
    if found.hits:
        out.print(hits_shown(found.hits, explained=explain))
    else:
        out.print(f"nothing that {shown_name(owner)} said, noted or told fits that")
    if words := reached_words(found):
        out.print(words, style="dim")


def _ready(named: str | None, model: str) -> Embedder | None:
    """The embedder, when it has embedded something: a command loads the model, and that may take its time."""
    embedder = embedder_from(named, model_name=model)
    if embedder is not None:
        with contextlib.suppress(ModelFailure):  # the answer says so
            embedder.embed(["ready"], LOAD_S)
    return embedder


def _brought_up(
    directory: str, asked: Query, now: datetime | None, embedder: Embedder | None, profile: Profile
) -> Recalled:
    """With the directory for itself: index and vectors are fed what they have not seen, as long as they come on."""
    with writing(directory, embedder=embedder) as pace, Bar("bringing the index up to the log") as bar:
        engine = pace.core.engine
        search, vectors = engine.search, engine.vectors
        assert search is not None
        _wait(lambda: _lag(pace), bar)
        with contextlib.suppress(RecallError):
            search.shelf.commit(search.keeper.reached(), mark_of(pace.log, search.keeper.reached()))
        reranker = None
        if embedder is not None and vectors is not None:
            reranker = Reranker(vectors, embedder, cap_s=LOAD_S)  # one question, and a model that is not warm
        finder = Finder(pace.log, search.shelf, search.fences, reranker, search.keeper.reached)
        at = asked.now if now is None else moment(now)
        known = replay_facts(pace.log, UserKey(asked.owner))
        return finder.find(msgspec.structs.replace(asked, now=at), known, profile)


def _lag(pace: Pace) -> int:
    """Events that the slower of index and embedder has not seen."""
    views = [view for view in pace.stats().followers if view.name in ("index", "embedder")]
    return max((view.lag for view in views), default=0)


def _wait(lag: Callable[[], int], bar: Bar) -> None:
    """Until there is none, as long as it becomes less."""
    first = least = lag()
    since, pause = time.monotonic(), threading.Event()
    while left := lag():
        if left < least:
            least, since = left, time.monotonic()
        if time.monotonic() - since > PATIENCE_S:
            return
        bar(first - left, first)
        pause.wait(WAIT_S)


def _beside(directory: str, log: EventLog, asked: Query, embedder: Embedder | None, profile: Profile) -> Recalled:
    """Beside a running program: its index as it is on the disk, its vectors, and the log."""
    index = TantivyIndex(Path(directory) / RECALL_FOLDER, readonly=True)
    try:
        fences = Fences(log, begin_of(log, index.position))
        while not fences.follow():
            pass
        reranker = None if embedder is None else Reranker(Vectors(log), embedder, cap_s=LOAD_S)
        return Finder(log, index, fences, reranker).find(asked, replay_facts(log, UserKey(asked.owner)), profile)
    finally:
        index.close()
