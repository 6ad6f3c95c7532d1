"""Several summarisers in a row, under one deadline."""

from __future__ import annotations

import pytest

from pace_actors.errors import InvalidInput
from pace_actors.models.fallback import FallbackSummariser
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from tests.unit.models.helpers import Clock, Inner, answering, failing, task_of


@pytest.mark.parametrize("kind", ["timeout", "connection", "http_status", "malformed", "unavailable"])
def test_when_a_server_fails_the_next_is_asked(kind: str) -> None:
    first, second, third = Inner(failing(kind)), Inner(answering("two")), Inner(answering("three"))
    assert FallbackSummariser([first, second, third]).fold(task_of(("a", "b"))).text == "two"
    assert (len(first.tasks), len(second.tasks), len(third.tasks)) == (1, 1, 0)


@pytest.mark.parametrize("kind", ["refused", "fenced"])
def test_a_failure_that_is_not_the_servers_ends_the_row(kind: str) -> None:
    second = Inner(answering("two"))
    with pytest.raises(ModelFailure, match=kind):
        FallbackSummariser([Inner(failing(kind)), second], last_resort=second).fold(task_of(("a", "b")))
    assert second.tasks == []


def test_the_last_failure_is_the_one_that_is_told() -> None:
    row = FallbackSummariser([Inner(failing("connection", "one")), Inner(failing("http_status", "two"))])
    with pytest.raises(ModelFailure, match="http_status: two"):
        row.fold(task_of(("a", "b")))


def test_the_deadline_is_shared_and_a_spent_one_ends_the_row() -> None:
    clock = Clock()

    def slow(_: FoldTask) -> FoldReply:
        clock.now += 25
        raise ModelFailure("timeout", "slow")

    row = [Inner(slow) for _ in range(4)]
    with pytest.raises(ModelFailure, match="timeout: slow"):
        FallbackSummariser(row, clock=clock).fold(task_of(("a", "b"), deadline_s=60))
    assert [[task.deadline_s for task in inner.tasks] for inner in row] == [[60], [35], [10], []]


def test_the_last_resort_is_asked_also_when_the_deadline_is_spent() -> None:
    clock = Clock()

    def slow(_: FoldTask) -> FoldReply:
        clock.now += 61
        raise ModelFailure("timeout")

    row = FallbackSummariser([Inner(slow)], last_resort=Inner(answering("extract"), "extractive"), clock=clock)
    assert row.fold(task_of(("a", "b"))).text == "extract"
    assert row.name == "inner, else extractive"


@pytest.mark.parametrize(
    ("first_calls_s", "expected"), [((0, 0), 60), ((180, 0), 180), ((0, 180), 240), ((300, 180), 300), ((10, 10), 60)]
)
def test_the_row_is_as_patient_as_its_slowest_member_that_may_begin_late(
    first_calls_s: tuple[float, float], expected: float
) -> None:
    row = [Inner(answering("a"), first_call_s=first_call_s) for first_call_s in first_calls_s]
    assert FallbackSummariser(row).patience_s(60) == expected


def test_all_are_closed_and_an_empty_row_is_refused() -> None:
    row = [Inner(answering("a")), Inner(answering("b")), Inner(answering("c"))]
    FallbackSummariser(row[:2], last_resort=row[2]).close()
    assert [inner.closed for inner in row] == [1, 1, 1]
    with pytest.raises(InvalidInput):
        FallbackSummariser([])
