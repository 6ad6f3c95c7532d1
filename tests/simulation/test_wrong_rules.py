"""The checks that simulations rest on can fail: each wrong rule, put in place of the right one, is found.

Method: the schedules of consecutive seeds are run with the wrong rule until one breaks something. How many that takes
with every kind of fault at once is printed by `make soak ARGS='-k wrong_rule'` and stands in docs/races.md; here each
rule is given the kinds of fault that show it soonest.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog import DiskFull
from pace_actors import messages as m
from pace_actors.actors import thread_actor
from pace_actors.actors.thread_actor import ThreadActor
from pace_actors.domain import thread
from pace_actors.domain.prepare import prepare_turn
from pace_actors.events import ResetAsked, SessionEnded, SettingsChanged
from pace_actors.runtime.port import Address
from pace_actors.simulation.explore import Violation, attempt, explore, shrink
from pace_actors.simulation.faults import Schedule, schedule
from pace_actors.simulation.invariants import Broken
from pace_actors.simulation.ports import held
from pace_actors.simulation.world import World
from tests.support import wrong_rules as wrong
from tests.support.wrong_rules import WRONG, Patch

SEEDS = 150
BLOCKS, BLOCK = 9, 5000
"""So many times the seeds are counted anew, so far at most."""
SOON: dict[Patch, Sequence[str]] = {
    wrong.stale_counts_as_failure: ("overlap", "late"),
    wrong.base_is_the_current_one: ("late", "withdraw", "overlap"),
    wrong.the_wait_is_of_a_failure_seen: ("failing", "crash"),
    wrong.pending_are_numbers: ("late", "withdraw"),
    wrong.the_window_fills_again: ("late", "withdraw"),
    wrong.a_smaller_window_displaces_nothing: ("settings",),
    wrong.withdrawal_keeps_the_summary: ("withdraw",),
    wrong.only_what_is_covered_is_invalidated: ("late", "withdraw", "overlap"),
    wrong.an_answer_is_delivered_once: ("disk",),
    wrong.a_request_is_done_when_it_is_answered: ("disk", "crash"),
}
OVERLAPPING_ONLY: Sequence[Patch] = (
    wrong.last_arrival_wins,
    wrong.what_is_late_can_fail,
    wrong.stale_counts_as_failure,
    wrong.the_same_is_asked_twice,
)
COALESCED_ONLY: Sequence[Patch] = (wrong.coalescing_asks_all_the_same,)


def name_of(rule: object) -> str:
    return getattr(rule, "__name__", "")


def always(coalesce: bool) -> Callable[[Schedule], Schedule]:  # noqa: FBT001 - a setting
    """The same schedules, all of them with this setting from beginning to end."""

    def change(script: Schedule) -> Schedule:
        acts = tuple(act for act in script.acts if act.what != "coalesce")
        return replace(script, settings=script.settings | {"coalesce": coalesce}, acts=acts)

    return change


def seeds_until_found(rule: Patch, first: int, most: int, faults: Sequence[str] = (), **more: Any) -> int | None:
    """How many schedules were run until one broke something; None where none of them did."""
    with pytest.MonkeyPatch.context() as patch:
        rule(patch)
        found = explore(range(first, first + most), faults, again_every=0, **more)
    return found.runs + 1 if found.violation else None


@pytest.mark.parametrize("rule", WRONG, ids=name_of)
def test_a_wrong_rule_is_found(rule: Patch) -> None:
    """Goal: no rule that a turn depends on can be broken without a simulation that says so."""
    assert seeds_until_found(rule, 0, SEEDS, SOON.get(rule, ()))


@pytest.mark.parametrize("rule", OVERLAPPING_ONLY, ids=name_of)
def test_some_show_only_when_folds_overlap(rule: Patch) -> None:
    assert seeds_until_found(rule, 0, SEEDS, ("late", "overlap", "cut"), change=always(coalesce=False))
    assert seeds_until_found(rule, 0, SEEDS // 2, ("late", "cut"), change=always(coalesce=True)) is None


@pytest.mark.parametrize("rule", COALESCED_ONLY, ids=name_of)
def test_some_show_only_when_folds_coalesce(rule: Patch) -> None:
    assert seeds_until_found(rule, 0, SEEDS, ("late", "cut"), change=always(coalesce=True))
    assert seeds_until_found(rule, 0, SEEDS // 2, ("late", "overlap", "cut"), change=always(coalesce=False)) is None


@pytest.mark.parametrize("seed", [1, 2])
def test_what_breaks_is_shrunk_to_what_is_needed(seed: int) -> None:
    """Goal: a person reads what is left. Nothing of it can be taken out, and with the right rules it breaks nothing."""
    assert not isinstance(attempt(schedule(seed)), Violation)
    with pytest.MonkeyPatch.context() as patch:
        wrong.text_without_boundary(patch)
        found = attempt(schedule(seed))
        assert isinstance(found, Violation)
        least = shrink(found)
        assert len(least.schedule.acts) < len(found.schedule.acts)
        assert isinstance(attempt(least.schedule), Violation)
        acts = least.schedule.acts
        for place in range(len(acts)):
            fewer = replace(least.schedule, acts=(*acts[:place], *acts[place + 1 :]))
            assert not isinstance(attempt(fewer), Violation)
    assert not isinstance(attempt(least.schedule), Violation)


def test_a_run_that_differs_from_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: "every 20th twice" would see a rule that looks at something else than its input."""
    number = iter(range(10**6))
    right = prepare_turn
    monkeypatch.setattr(thread_actor, "prepare_turn", lambda **given: replace(right(**given), prepared=next(number)))
    found = explore(range(3), ["late"])
    assert found.violation is not None
    assert found.violation.words == "the same schedule gave another log"


def test_an_actor_whose_state_is_not_that_of_the_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The actor forgets a turn that its log holds, as a rebuild from a wrong place would."""
    right = thread.evolve
    world = World(held, window=1, coalesce=False, summary_deadline_s=600, idle_minutes=60)
    world.record_many(3)
    monkeypatch.setattr(
        thread_actor, "evolve", lambda state, heard, decided: replace(right(state, heard, decided), window=())
    )
    with pytest.raises(Broken):
        world.record("one more")


@pytest.mark.parametrize("another", [False, True])
def test_an_actor_that_keeps_what_has_failed_is_found(monkeypatch: pytest.MonkeyPatch, another: bool) -> None:  # noqa: FBT001
    """It goes on with an append that failed; also when another append of the same length stands in its place.

    That the account of the failed one agrees with it is no excuse.
    """
    right = ThreadActor.start

    def start(self: ThreadActor, me: Address) -> None:
        before = getattr(self, "_ahead", None)
        right(self, me)
        self._ahead = before or self._ahead

    world = World(held)
    world.record_many(2)
    monkeypatch.setattr(ThreadActor, "start", start)
    world.log.fail_next(DiskFull(), 1)
    world.record_nowait("one more")
    world.host.step()
    if another:
        world.foreign([ResetAsked(at=world.host.now()), SessionEnded(reason="reset")])
    with pytest.raises(Broken):
        world.run()


def test_many_appends_that_fail_do_not_hide_the_one_that_is_stored() -> None:
    """Goal: the account is that of the append that was made, however many failed before it at the same version.

    Turns and erasures fail, then a larger window is stored and a turn meets a conflict behind it: at the version that
    the turn leads to in the end, the failed ones would have led to a window of one and to no turns at all.
    """
    world = World(held, window=1, coalesce=False)
    world.record_many(2)
    for _ in range(4):
        world.log.fail_next(DiskFull(), 2)
        world.record_nowait("never stored")
        world.run()
        world.ask(m.EraseThread(at=world.host.now()))
        world.run()
    world.settings(window=4)
    promise = world.record_nowait("stored once")
    world.host.step()
    world.foreign([SettingsChanged(at=world.host.now(), settings=world.state().settings)])
    assert world.ended(promise).turn == 3
    assert world.context().receipt.window == (2, 3)
    world.finish()


@pytest.mark.soak
@pytest.mark.parametrize("rule", WRONG, ids=name_of)
def test_how_many_schedules_a_wrong_rule_survives(rule: Patch) -> None:
    """With every kind of fault at once; the median of nine countings, each from another seed on."""
    counted = [seeds_until_found(rule, BLOCK * block, BLOCK) for block in range(BLOCKS)]
    found = [count for count in counted if count is not None]
    assert len(found) == BLOCKS
    print(f"| {name_of(rule).replace('_', ' ')} | {statistics.median(found):.0f} | {max(found)} |")  # noqa: T201
