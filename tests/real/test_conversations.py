"""Goal: real conversations survive as they are. Method: import, look at contexts, close, open, look again.

Everything is made again from the log alone and held against what was given, and against two accounts of a thread that
know nothing of its rules.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import eventlog
from eventlog import EventLog
from pace_actors import Pace, Thread
from pace_actors.domain.context import CLOSE_TAG, FOUND_NOTE, OPEN_TAG, Context, assemble
from pace_actors.domain.fold import Batch, batches
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import evolve
from pace_actors.events import REGISTRY, SummaryAccepted, SummaryRejected, TurnHeard
from pace_actors.importing import Importer, Line, Source, Tally, TurnLine, read_lines
from pace_actors.replay import check, replay
from pace_actors.settings import ThreadSettings, changed
from pace_actors.simulation.invariants import Account
from pace_actors.values import ThreadKey
from tests.support.conversations import (
    HOSTILE,
    Conversation,
    Given,
    beam,
    blns,
    locomo,
    realmem,
    write_lines,
    xpersona,
)

QUESTION = "What did we say about it?"
BLANKS_TURN_CHARS = 348_853
"""One turn of BEAM's fourth history, nearly all blanks."""

_MARK = re.compile(r"\[redacted:[a-z_]+:\d+\]")
_OUR_TAG = re.compile(r"<[\s/]*conversation", re.IGNORECASE)
_OUR_HEADING = re.compile(r"local\s+context\s*:|LOCAL\s+CONTEXT|user\s+request\s*:|USER\s+REQUEST")
_INVISIBLE = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\U000e0000-\U000e007f]")


class Seen(msgspec.Struct):
    """What was found in a log, for the words at a test's end."""

    turns: int = 0
    masked: int = 0
    batches: int = 0
    contexts: int = 0
    accepted: int = 0
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    chars_max: int = 0


# --- the tests --------------------------------------------------------------------------------------------------------


def test_two_people_over_months_are_remembered_word_for_word(tmp_path: Path) -> None:
    """Goal: LoCoMo whole, durable. Method: all five conversations with their lines in turn, on the default settings."""
    seen = check_set(tmp_path, locomo(), mode="durable", in_turn=True)
    assert seen.turns == 1604
    assert seen.accepted >= 5


@pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_half_a_year_with_an_assistant_is_remembered_under_any_settings(tmp_path: Path, part: int) -> None:
    """Goal: RealMem's long projects. Method: three users at once: defaults; one endless session; folds that overlap."""
    changes: list[dict[str, Any]] = [
        {},
        {"resume": "always"},
        {"coalesce": False, "window": 2, "context_chars": 3000, "resume": "always"},
    ]
    users = [user._replace(turns=user.turns[: len(user.turns) // part]) for user in realmem(3, changes)]
    seen = check_set(tmp_path, users, in_turn=True, context_every=20)
    assert seen.turns == sum(len(user.turns) for user in users) >= 2057 // part - len(users)
    assert seen.accepted > 300 // part


def test_a_history_of_100_000_tokens_is_kept_whole(tmp_path: Path) -> None:
    """Goal: a turn of 348,853 characters. Method: that BEAM history, durable; the turn is looked up in the log."""
    history = beam("beam/100K/4")
    seen = check_set(tmp_path, [history], mode="durable")
    assert seen.chars_max == BLANKS_TURN_CHARS == max(len(turn.assistant) for turn in history.turns)


def test_hostile_strings_stay_data(tmp_path: Path) -> None:
    """Goal: no string opens or closes a block. Method: each as user's and as assistant's words, a context a turn."""
    strings = blns()
    seen = check_set(tmp_path, [strings])
    assert seen.turns == len(strings.turns) > 2 * len(HOSTILE)


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.soak)])
def test_chats_in_japanese_korean_and_chinese_are_summarised(tmp_path: Path, every: int) -> None:
    """Goal: scripts without blanks, many short threads. Method: XPersona's 796 chats, each longer than a window."""
    chats = xpersona(["ja", "ko", "zh"])[::every]
    seen = check_set(tmp_path, chats)
    assert seen.accepted >= len(chats) == 796 // every


# --- one set, in and out ----------------------------------------------------------------------------------------------


def check_set(
    place: Path,
    conversations: Sequence[Conversation],
    *,
    mode: Literal["durable", "relaxed"] = "relaxed",
    in_turn: bool = False,
    context_every: int = 1,
) -> Seen:
    """Import, look, close, open the log alone, look again."""
    started = time.perf_counter()
    write_lines(conversations, place / "set.jsonl", in_turn=in_turn)
    watch = Watch(conversations, context_every)
    with Pace.open(place / "memory", mode=mode) as pace:
        tally = import_file(pace, place / "set.jsonl", watch)
        assert tally.turns == tally.lines == sum(len(conversation.turns) for conversation in conversations)
        assert pace.wait_idle(60)
        before = {conversation: watch.look(pace, conversation) for conversation in range(len(conversations))}
        live_hash = pace.state_hash()
        head = pace.log.head()
        assert import_file(pace, place / "set.jsonl").known == tally.turns
        assert pace.log.head() == head, "a second import of the same file wrote something"
    with eventlog.open(place / "memory", REGISTRY, create=False, readonly=True) as log:
        replayed = replay(log)
        assert replayed.broken == ()
        checked = check(log, every=True)
        assert (checked.divergence_count, checked.compared) == (0, replayed.batches)
        assert replayed.hash == live_hash
        assert set(replayed.states) == {key_of(conversation).stream for conversation in conversations}
        seen = Seen(contexts=watch.looked)
        for conversation in conversations:
            state = follow(log, conversation, seen)
            assert state == replayed.states[key_of(conversation).stream]
    with Pace.open(place / "memory", mode=mode) as pace:
        assert pace.wait_idle(60)
        assert pace.state_hash() == live_hash
        after = {conversation: watch.look(pace, conversation) for conversation in range(len(conversations))}
        assert after == before
        assert pace.log.head() == head, "opening and looking wrote something"
    print(f"{len(conversations)} threads, {time.perf_counter() - started:.1f} s, {seen}")  # noqa: T201 - counts for who runs it with -s
    return seen


def import_file(pace: Pace, place: Path, watch: Watch | None = None) -> Tally:
    """What `pace import` does with one file."""
    importer = Importer(pace, on_line=None if watch is None else lambda line: watch.on_line(pace, line))
    with place.open("rb") as stream:
        importer.feed(read_lines(Source(name=place.name, stream=stream)))
    importer.finish()
    return importer.tally


def key_of(conversation: Conversation) -> ThreadKey:
    """Whose thread it is, and which."""
    return ThreadKey.of(conversation.user, conversation.thread)


# --- contexts while turns go in ---------------------------------------------------------------------------------------


class Watch:
    """Asks for contexts on the way and holds them against the turns given so far, from outside."""

    def __init__(self, conversations: Sequence[Conversation], every: int) -> None:
        self.looked = 0
        self._every = every
        self._conversations = conversations
        self._places = {key_of(conversation): place for place, conversation in enumerate(conversations)}
        self._starts = [conversation.session_starts() for conversation in conversations]
        self._given: Counter[int] = Counter()

    def on_line(self, pace: Pace, line: Line) -> None:
        """Called by the importer for each line that is on its way."""
        if isinstance(line.said, TurnLine):
            place = self._places[line.key]
            self._given[place] += 1
            if self._given[place] % self._every == 0:
                self._check(pace, place)

    def look(self, pace: Pace, place: int) -> Context:
        """The context of a thread at the time of its last turn, to be compared with a later one."""
        thread, at = self._check(pace, place)
        # what is found again is weighed by all there is at the time, deleted entries that still lie there included:
        # what is the thread's alone has to stay the same
        context = thread.context(now=at)
        assert context.receipt.hits == ()
        # durability is a moment's, and so is a context's time where turns bring none
        receipt = msgspec.structs.replace(context.receipt, not_durable=(), now=0)
        return msgspec.structs.replace(context, receipt=receipt)

    def _check(self, pace: Pace, place: int) -> tuple[Thread, datetime | None]:
        self.looked += 1
        conversation = self._conversations[place]
        number = self._given[place]
        key = key_of(conversation)
        thread = pace.thread(key.thread, user=key.user)
        at = conversation.turns[number - 1].at
        context = thread.context(QUESTION, now=at)
        check_shown(context, range(self._starts[place][number - 1], number + 1))
        check_block(context, changed(ThreadSettings(), conversation.changes).context_chars)
        check_found(context)
        return thread, at


def check_shown(context: Context, live: range) -> None:
    """Each turn of the session is shown or named once, and the newest is shown word for word."""
    receipt = context.receipt
    ranges = [*receipt.left_out, *([receipt.covers] if receipt.covers else [])]
    named = [turn for covers in ranges for turn in range(covers.first, covers.last + 1)]
    assert receipt.late == ()
    assert sorted([*named, *receipt.pending, *receipt.window]) == list(live)
    assert context.window[-1].turn == live[-1]


def check_block(context: Context, budget: int) -> None:
    """Within the budget, and no text inside opens or closes the block, plays a heading, or hides."""
    messages = context.messages()
    before = f"{context.local}\n\nUSER REQUEST\n" if context.local else ""
    assert messages[-1] == {"role": "user", "content": before + QUESTION}
    ours = sum(len(message["content"]) for message in messages[:-1]) + len(before)
    assert ours == context.receipt.chars <= budget
    assert len(_OUR_HEADING.findall(context.local)) == bool(context.local)
    assert not _INVISIBLE.search(context.local)
    system = context.system
    if system:
        assert system.startswith(OPEN_TAG + "\n")
        assert system.endswith("\n" + CLOSE_TAG)
    plain = unicodedata.normalize("NFKC", system)
    assert len(_OUR_TAG.findall(plain)) == (2 if system else 0)
    assert not _OUR_HEADING.search(plain)
    assert not _INVISIBLE.search(system)


def check_found(context: Context) -> None:
    """What was found again: a line each, best first, quoted, below the note that says so, and named by the receipt."""
    before, note, found = context.local.partition(f"\n{FOUND_NOTE}\n")
    hits = context.receipt.hits
    assert bool(note) == bool(hits)
    lines = found.split("\n") if found else []
    assert len(lines) == len(hits)
    for number, line in enumerate(lines, before.count("\n") + 1):
        assert re.fullmatch(rf'{number}\. pace_history: [^"]*"[^"]+"', line)
    assert len({hit.position for hit in hits}) == len(hits)
    assert all(hit.score_milli > 0 for hit in hits)


# --- from the log alone -----------------------------------------------------------------------------------------------


def follow(log: EventLog, conversation: Conversation, seen: Seen) -> ThreadState:
    """Fold a thread batch by batch, hold each state and its context against the account, and its turns to the data."""
    account, state = Account(), EMPTY
    heard: list[TurnHeard] = []
    key = key_of(conversation)
    for batch in batches(log.read(key.stream)):
        account = account.after(batch.heard, batch.decided)
        state = evolve(state, batch.heard, batch.decided)
        account.check(state)
        now = account.last_activity
        context = assemble(key, state, now=now, user_text=QUESTION)
        account.check_context(context, now, state.settings)
        check_block(context, state.settings.context_chars)
        count(batch, seen)
        if isinstance(batch.heard, TurnHeard):
            heard.append(batch.heard)
    check_turns(conversation, heard, seen)
    check_summaries(conversation, state, account)
    return state


def count(batch: Batch, seen: Seen) -> None:
    """Add a batch to the words at the end."""
    seen.batches += 1
    for decision in batch.decided:
        if isinstance(decision, SummaryAccepted):
            seen.accepted += 1
        elif isinstance(decision, SummaryRejected):
            seen.rejected[decision.reason] += 1


def check_turns(conversation: Conversation, heard: Sequence[TurnHeard], seen: Seen) -> None:
    """Every turn once, in order, and as it was given, but for what the event says was taken out."""
    assert len(heard) == len(conversation.turns)
    assert len({turn.turn_id for turn in heard}) == len(heard)
    for given, turn in zip(conversation.turns, heard, strict=True):
        assert turn.repaired == 0
        assert turn.at_given == (given.at is not None)
        assert given.at is None or turn.at == microseconds(given.at)
        check_texts(given, turn)
        seen.turns += 1
        seen.masked += bool(turn.masked)
        seen.chars_max = max(seen.chars_max, len(turn.user), len(turn.assistant))


def check_texts(given: Given, turn: TurnHeard) -> None:
    """Equal, or equal around the marks that stand for secrets, of which the event tells how many."""
    for was, kept in ((given.user, turn.user), (given.assistant, turn.assistant)):
        if not turn.masked:
            assert kept == was
        elif kept != was:
            around = [re.escape(part) for part in _MARK.split(kept)]
            assert len(around) > 1
            assert re.fullmatch(".+".join(around), was, re.DOTALL)


def check_summaries(conversation: Conversation, state: ThreadState, account: Account) -> None:
    """When all is quiet, all that left the window of the last session is in its summary."""
    assert not account.undecided()
    assert state.pending == ()
    in_session = len(conversation.turns) + 1 - conversation.session_starts()[-1]
    assert (state.summary is not None) == (in_session > state.settings.window)


def microseconds(at: datetime) -> int:
    """UTC microseconds."""
    return round(at.timestamp() * 1_000_000)


@pytest.fixture(autouse=True)
def _data(data_dir: Path) -> None:
    """Nothing here runs without the data."""
