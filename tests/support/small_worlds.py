"""Every order of a few turns, answers and one disturbance, by the pure rules.

A world begins behind its first turn, with a window of one, so that each of the n turns that follow displaces one. The
i-th answer comes some time after the i-th turn and is that to request i; where the rules have not asked for it, it is
one that nobody waits for. So there are 1 · 3 · 5 · … · (2n − 1) orders of turns and answers, each answer has one of
some outcomes, and a disturbance comes at one of 2n + 1 places or not at all:

    modes · (2n − 1)!! · outcomesⁿ · (1 + disturbances · (2n + 1))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from pace_actors.domain.context import assemble
from pace_actors.domain.fold import Batch, turns_within
from pace_actors.domain.state import EMPTY, ThreadState
from pace_actors.domain.thread import admit, decide, evolve, live_turn, wait_s
from pace_actors.events import (
    AnswerArrived,
    ClockRead,
    EraseThreadAsked,
    Input,
    ResetAsked,
    SettingsChanged,
    SummaryRequested,
    WithdrawAsked,
)
from pace_actors.settings import changed
from pace_actors.simulation.invariants import Account, require
from pace_actors.values import SECOND, Covers, ThreadKey
from tests.support.made import START, answer, failure, minutes, turn

KEY = ThreadKey("ada", "kitchen")
ROUNDS_MAX = 40
"""Answers and waits in which a world that nothing disturbs any more must have all of it covered."""
OUTCOMES = ("good", "timeout", "empty")


class Node(NamedTuple):
    """A world after some inputs."""

    state: ThreadState
    account: Account
    asked: tuple[SummaryRequested, ...]
    batches: tuple[Batch, ...]
    now: int
    before: Node | None
    """The world before its last batch, which is not durable yet."""
    last: Input | None


Disturb = Callable[[Node], tuple[Node, tuple[Input, ...]]]
"""The world behind it, and answers that come once more at the end."""


def hear(node: Node, heard: Input) -> Node:
    """One input, decided and held against the account. Raises `Broken`."""
    state = node.state
    decided = decide(state, heard)
    if not decided and not isinstance(heard, SettingsChanged):
        return node
    if isinstance(heard, AnswerArrived):
        heard = admit(heard, decided)
    after = evolve(state, heard, decided)
    account = node.account.after(heard, decided)
    account.check(after)
    asked = tuple(decision for decision in decided if isinstance(decision, SummaryRequested))
    batch = Batch(KEY.stream, state.version + 1, state.version + 1, heard, decided, False)
    return Node(after, account, node.asked + asked, (*node.batches, batch), node.now, node._replace(before=None), heard)


def say(node: Node) -> Node:
    """The next turn, a second later."""
    node = node._replace(now=node.now + SECOND)
    return hear(node, turn(f"turn {node.state.last_turn + 1}", at=node.now))


def answered(node: Node, number: int, outcome: str) -> Node:
    """The answer to a request."""
    state = node.state
    if number <= len(node.asked):
        request = node.asked[number - 1]
    else:
        request = SummaryRequested(
            session=state.session,
            generation=state.generation,
            version=number,
            base_version=0,
            covers=Covers(number, number),
            from_at=1,
        )
    if outcome == "good":
        return hear(node, answer(request, f"Summary {number}.", at=node.now))
    if outcome == "empty":
        return hear(node, answer(request, " ", at=node.now, blank=True))
    return hear(node, failure(request, outcome))


# --- disturbances -----------------------------------------------------------------------------------------------------


def reset(node: Node) -> tuple[Node, tuple[Input, ...]]:
    return hear(node, ResetAsked(at=node.now)), ()


def silence(node: Node) -> tuple[Node, tuple[Input, ...]]:
    node = node._replace(now=node.now + minutes(20))
    return hear(node, ClockRead(at=node.now, why="idle")), ()


def erase(node: Node) -> tuple[Node, tuple[Input, ...]]:
    return hear(node, EraseThreadAsked(at=node.now)), ()


def crash(node: Node) -> tuple[Node, tuple[Input, ...]]:
    """What was on its way is lost: a turn is said again at once, an answer is made again and comes at the end."""
    replayed = EMPTY
    for batch in node.batches:
        replayed = evolve(replayed, batch.heard, batch.decided)
    assert replayed == node.state
    if node.before is None or node.last is None:
        return node, ()
    lost, back = node.last, node.before._replace(now=node.now)
    if isinstance(lost, AnswerArrived):
        return back, (lost,)
    return hear(back, lost), ()


def again(node: Node) -> tuple[Node, tuple[Input, ...]]:
    """The newest request is answered once more."""
    return (answered(node, len(node.asked), "good") if node.asked else node), ()


def wait_over(node: Node) -> tuple[Node, tuple[Input, ...]]:
    return hear(node, ClockRead(at=node.now, why="wait")), ()


def withdraw_oldest(node: Node) -> tuple[Node, tuple[Input, ...]]:
    return _withdraw(node, node.state.first_turn), ()


def withdraw_newest(node: Node) -> tuple[Node, tuple[Input, ...]]:
    return _withdraw(node, node.state.displaced), ()


def _withdraw(node: Node, number: int) -> Node:
    state = node.state
    found = turns_within(node.batches, Covers(state.first_turn, state.displaced)) if state.live else ()
    live = tuple(live_turn(one.turn, one.at, one.heard) for one in found if one.turn != number)
    return hear(node, WithdrawAsked(at=node.now, turns=(number,), live=live))


def widen(node: Node) -> tuple[Node, tuple[Input, ...]]:
    return _set(node, window=2), ()


def switch(node: Node) -> tuple[Node, tuple[Input, ...]]:
    """Overlapping folds become coalesced ones, or the other way round."""
    return _set(node, coalesce=not node.state.settings.coalesce), ()


def _set(node: Node, **changes: object) -> Node:
    return hear(node, SettingsChanged(at=node.now, settings=changed(node.state.settings, changes)))


ENDS: Sequence[Disturb] = (reset, silence, erase, crash)
ALL: Sequence[Disturb] = (*ENDS, again, wait_over, withdraw_oldest, withdraw_newest, widen, switch)


# --- all of them ------------------------------------------------------------------------------------------------------


class Walked:
    """Figures of a walk."""

    def __init__(self) -> None:
        self.schedules = 0
        self.all_asked = 0
        """Schedules in which each answer was to a request."""
        self.overlapping = 0
        self.in_flight = 0
        """Schedules whose disturbance came while a request was in flight."""


def walk(turns: int, disturbances: Sequence[Disturb], *, coalesce: bool, outcomes: Sequence[str] = OUTCOMES) -> Walked:
    """Every schedule of one mode; each ends with all covered. Raises `Broken` at the first that breaks something."""
    start = Node(EMPTY, Account(), (), (), START, None, None)
    start = say(_set(start, window=1, coalesce=coalesce))
    walked = Walked()

    def go(node: Node, said: int, open_: tuple[int, ...], disturbed: int, late: tuple[Input, ...], flags: int) -> None:
        flying = len(node.state.open_requests)
        flags |= 2 if flying > 1 else 0
        if said < turns:
            go(say(node), said + 1, (*open_, said + 1), disturbed, late, flags)
        for number in open_:
            rest = tuple(other for other in open_ if other != number)
            unasked = 1 if number > len(node.asked) else 0
            for outcome in outcomes:
                go(answered(node, number, outcome), said, rest, disturbed, late, flags | unasked)
        if not disturbed:
            for disturb in disturbances:
                other, coming = disturb(node)
                go(other, said, open_, 1, coming, flags | (4 if flying else 0))
        if said == turns and not open_:
            walked.schedules += 1
            walked.all_asked += not flags & 1
            walked.overlapping += bool(flags & 2)
            walked.in_flight += bool(flags & 4)
            _finish(node, late)

    go(start, 0, (), 0, (), 0)
    return walked


def _finish(node: Node, late: tuple[Input, ...]) -> None:
    """Answers that come once more, then good ones only: in the end everything displaced is covered, and shown so."""
    for heard in late:
        node = hear(node, heard)
    for _ in range(ROUNDS_MAX):
        state = node.state
        if state.open_requests:
            node = answered(node, state.open_requests[0].version, "good")
        elif wait_s(state) is not None:
            node = hear(node, ClockRead(at=node.now, why="wait"))
        else:
            break
    require(not node.state.pending and not node.state.open_requests, "it is never covered")
    node.account.check_context(assemble(KEY, node.state, now=node.now), node.now, node.state.settings)


def count(turns: int, disturbances: int, outcomes: int = len(OUTCOMES)) -> int:
    """How many schedules one mode has.

    >>> count(1, 0), count(2, 1)
    (3, 162)
    """
    orders: int = prod(range(1, 2 * turns, 2))
    kinds: int = outcomes**turns
    return orders * kinds * (1 + disturbances * (2 * turns + 1))
