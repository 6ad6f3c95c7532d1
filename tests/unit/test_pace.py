"""Pace as applications hold it: wrong arguments, shared openings, forked children, floods, resume="never"."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlog import InvalidArgument, OpenedInAnotherProcess
from pace_actors import Pace
from pace_actors.errors import (
    CloseTimeout,
    InvalidInput,
    InvalidSetting,
    MailboxFull,
    OptionsDiffer,
    PaceClosed,
    PaceError,
    ResumeFixed,
    TurnConflict,
    TurnTooLarge,
)
from pace_actors.models.port import FoldReply, FoldTask, ModelFailure
from pace_actors.runtime.mailbox import INBOX_MAX
from tests.support.skips import POSIX_ONLY

# --- wrong arguments --------------------------------------------------------------------------------------------------


def test_a_misspelt_argument_is_an_error_and_stores_nothing(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        thread: Any = pace.thread("t")
        for call in (thread.record, thread.record_nowait, thread.context, thread.reset):
            with pytest.raises(TypeError, match="turnid"):
                call("words", "reply", turnid="1")
        with pytest.raises(InvalidSetting, match="windw"):
            thread.settings(windw=3)
        assert pace.log.head() == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"redaction": "none"},
        {"redaction": None},
        {"deadline_s": 0},
        {"deadline_s": "x"},
        {"deadline_s": float("nan")},
        {"awake_max": 0},
        {"awake_max": True},
        {"window": 99},
        {"no_such": 1},
        {"model": 7},
        {"mode": "fast"},
    ],
)
def test_an_impossible_option_is_refused_before_anything_is_made(tmp_path: Path, wrong: dict[str, Any]) -> None:
    place = tmp_path / "a.pace"
    with pytest.raises((InvalidInput, InvalidArgument)):
        Pace.open(place, **wrong)
    assert not place.exists()


def test_an_empty_path_is_refused_and_the_class_itself_says_how_to_open() -> None:
    with pytest.raises(InvalidInput):
        Pace.open("")
    with pytest.raises(TypeError, match=r"Pace\.open"):
        Pace("x.pace")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "a", "context": "zz"},
        {"user": "a", "at": 17},
        {"user": "a", "turn_id": ""},
        {"user": "a", "actions": [{"outcome": "no name"}], "channel": 5},
        {"user": 5},
        {"user": "", "assistant": ""},
        {"actions": [7]},
    ],
)
def test_what_makes_no_turn_is_an_invalid_input_and_the_thread_goes_on(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        with pytest.raises(InvalidInput):
            pace.thread("t").record(**wrong)
        assert pace.thread("t").record(actions=[{"name": "wave"}]).turn == 1
        assert pace.stats().restarts == 0


def test_a_time_far_ahead_of_the_clock_is_refused(tmp_path: Path) -> None:
    """One turn from next year would keep its session alive until then: silence is measured from the latest turn."""
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        with pytest.raises(InvalidInput, match="ahead"):
            thread.record("hello", at=datetime.now(UTC) + timedelta(days=2))
        assert thread.record("hello", at=datetime.now(UTC) + timedelta(hours=14)).turn == 1


def test_the_limit_of_a_turn_is_that_of_its_words(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace", max_turn_bytes=1000) as pace:
        thread = pace.thread("t")
        assert thread.record("x" * 600, "y" * 400, turn_id="a long id " * 10, channel="voice").turn == 1
        with pytest.raises(TurnTooLarge) as caught:
            thread.record("x" * 600, "y" * 401)
        assert (caught.value.fields["bytes"], caught.value.fields["limit"]) == (1001, 1000)
        with pytest.raises(InvalidInput, match="channel"):
            thread.record("hello", channel="x" * 251)


def test_a_naive_now_is_in_the_threads_zone(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace", zone="Asia/Tokyo") as pace:
        thread = pace.thread("t")
        thread.record("hello", at=datetime(2026, 3, 1, 9, 0))  # noqa: DTZ001 - naive on purpose
        assert len(thread.context(now=datetime(2026, 3, 1, 9, 5)).window) == 1  # noqa: DTZ001
        assert len(thread.context(now=datetime(2026, 3, 1, 0, 5, tzinfo=UTC)).window) == 1
        assert thread.context(now=datetime(2026, 3, 1, 9, 5, tzinfo=UTC)).window == ()


# --- openings ---------------------------------------------------------------------------------------------------------


def test_opening_a_directory_again_in_one_process_is_the_same_memory(tmp_path: Path) -> None:
    """Also by another path to it, and until the last opening is closed."""
    place = tmp_path / "a.pace"
    first = Pace.open(place)
    (tmp_path / "link").symlink_to(place)
    second = Pace.open(tmp_path / "link")
    first.thread("t").record("hello")
    assert [pair.user for pair in second.thread("t").context().window] == ["hello"]
    with pytest.raises(OptionsDiffer, match="settings"):
        Pace.open(place, window=2)
    first.close()
    with pytest.raises(PaceClosed):
        first.thread("t").record("more")
    assert second.thread("t").record("more").turn == 2
    second.close()
    with Pace.open(place, window=2) as third:
        assert third.thread("t").context().receipt.window == (1, 2)


def test_many_threads_of_execution_open_a_fresh_directory_at_once(tmp_path: Path) -> None:
    """W3: one store and no error. Method: 32 threads open, record and close behind a barrier."""
    barrier, errors = threading.Barrier(32), []

    def use(number: int) -> None:
        try:
            barrier.wait(30)
            with Pace.open(tmp_path / "a.pace") as pace:
                pace.thread("t").record(f"turn of {number}")
        except Exception as error:  # noqa: BLE001 - what went wrong is told below
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with Pace.open(tmp_path / "a.pace") as pace:
        assert len(list(pace.log.read_all(types=frozenset({"TurnHeard"})))) == 32


@pytest.mark.skipif(sys.platform == "win32", reason=POSIX_ONLY)
def test_a_forked_child_is_told_at_once(tmp_path: Path) -> None:
    """D3: the child must not hang on threads that it does not have; the parent goes on."""
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        thread.record("before")
        child = os.fork()
        if child == 0:
            told = 0
            for call in (lambda: thread.record("in the child"), thread.context, pace.stats):
                try:
                    call()
                except OpenedInAnotherProcess:
                    told += 1
                except BaseException:  # noqa: BLE001 - any other end is the wrong one
                    os._exit(99)
            os._exit(told)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 3
        assert thread.record("after").turn == 2


# --- the end, floods, policies ----------------------------------------------------------------------------------------


def test_no_time_is_enough_for_what_is_idle(tmp_path: Path) -> None:
    pace = Pace.open(tmp_path / "a.pace")
    pace.thread("t").record("hello")
    assert pace.wait_idle(30)
    assert pace.wait_idle(0)
    pace.close(0)
    pace.close(0)


def test_a_flood_is_told_at_the_call_and_leaves_no_hole(tmp_path: Path) -> None:
    """A7-like: turns are recorded without waiting until one is refused; all before it are stored, in order."""
    with Pace.open(tmp_path / "a.pace", mode="relaxed") as pace:
        thread = pace.thread("t")
        futures = []

        def flood() -> None:
            for number in range(50 * INBOX_MAX):
                futures.append(thread.record_nowait(f"turn {number}"))  # noqa: PERF401 - it must raise in between

        with pytest.raises(MailboxFull):
            flood()
        assert [future.result(60).turn for future in futures] == list(range(1, len(futures) + 1))
        assert thread.record("and on").turn == len(futures) + 1


def test_a_retry_with_another_time_is_a_conflict_that_says_so(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        thread.record("same", turn_id="1", at=datetime(2026, 1, 1, tzinfo=UTC))
        with pytest.raises(TurnConflict, match="another `at`"):
            thread.record("same", turn_id="1", at=datetime(2026, 1, 2, tzinfo=UTC))


def test_a_thread_that_never_resumes_leaves_nothing_on_disk_and_works_until_the_end(tmp_path: Path) -> None:
    """`resume="never"`: a memory log with a summariser of its own."""
    with Pace.open(tmp_path / "a.pace", window=1) as pace:
        passing = pace.thread("secret garden")
        assert passing.settings(resume="never").resume == "never"
        for number in range(4):
            passing.record(f"roses number {number}")
        assert pace.wait_idle(30)
        assert passing.context().receipt.covers is not None
        with pytest.raises(ResumeFixed):
            passing.settings(resume="always")
        pace.thread("kept").record("tulips")
        with pytest.raises(ResumeFixed):
            pace.thread("kept").settings(resume="never")
        assert {key.thread for key in pace.threads()} == {"kept", "secret garden"}  # its choice is stored, and no word
    found = b"".join(path.read_bytes() for path in (tmp_path / "a.pace").rglob("*") if path.is_file())
    assert b"tulips" in found
    assert b"roses" not in found
    with Pace.open(tmp_path / "a.pace") as pace:
        again = pace.thread("secret garden")
        assert again.context().window == ()
        again.record("roses once more")
        assert again.settings().resume == "never"
    found = b"".join(path.read_bytes() for path in (tmp_path / "a.pace").rglob("*") if path.is_file())
    assert b"roses" not in found


def test_a_thread_can_be_kept_although_none_is_by_default(tmp_path: Path) -> None:
    """Method: open with `resume="never"`, ask for one thread to be kept, and look for both after a restart."""
    with Pace.open(tmp_path / "a.pace", resume="never") as pace:
        kept = pace.thread("kept")
        assert kept.settings(resume="always").resume == "always"
        kept.record("remember me")
        pace.thread("passing").record("forget me")
    with Pace.open(tmp_path / "a.pace") as pace:
        assert [key.thread for key in pace.threads()] == ["kept"]
        assert [pair.user for pair in pace.thread("kept").context().window] == ["remember me"]


def test_a_thread_whose_settings_alone_are_stored_can_still_be_one_that_never_resumes(tmp_path: Path) -> None:
    """Method: settings in one run, `resume="never"` at the next open: its words must not reach the disk."""
    with Pace.open(tmp_path / "a.pace") as pace:
        pace.thread("t").settings(window=6)
    with Pace.open(tmp_path / "a.pace", resume="never") as pace:
        pace.thread("t").record("CANARY")
        assert pace.thread("t").context().receipt.window == (1,)
    found = b"".join(path.read_bytes() for path in (tmp_path / "a.pace").rglob("*") if path.is_file())
    assert b"CANARY" not in found


# --- code of the user's -----------------------------------------------------------------------------------------------


class Odd:
    """A summariser that does one thing wrong."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    @property
    def name(self) -> str:
        return "odd"

    def fold(self, task: FoldTask) -> Any:
        outcomes: dict[str, Any] = {
            "none": None,
            "text": "a plain text",
            "number": FoldReply(text=7),  # type: ignore[arg-type]
            "finish": FoldReply(text="The user said hello.", finish="end_turn"),  # type: ignore[arg-type]
            "chars": FoldReply(text="The user said hello.", input_chars=1.5),  # type: ignore[arg-type]
        }
        if self.wrong == "exit":
            raise SystemExit(3)
        if self.wrong == "kind":
            raise ModelFailure("no such kind")  # type: ignore[arg-type]
        good = FoldReply(text="The user said hello.", input_chars=len(task.base) + 500)
        return outcomes.get(self.wrong, good)

    def patience_s(self, asked_s: float) -> float:
        if self.wrong == "patience":
            raise RuntimeError("none")
        return asked_s if self.wrong != "for ever" else float("nan")

    def close(self) -> None:
        """Nothing is held."""


WRONG = ["none", "text", "number", "finish", "chars", "exit", "kind", "patience", "for ever", "counter", "counter none"]


@pytest.mark.parametrize("wrong", WRONG)
def test_whatever_code_of_the_users_does_each_request_is_decided_and_no_actor_is_rebuilt(
    tmp_path: Path, wrong: str
) -> None:
    """T12. Method: the odd summariser is asked, the log must hold a decision, and the thread answers all the while."""

    def counter(text: str) -> Any:
        if wrong == "counter":
            raise ValueError(text)

    options: dict[str, Any] = {"token_counter": counter} if wrong.startswith("counter") else {}
    with Pace.open(tmp_path / "a.pace", model=Odd(wrong), window=1, **options) as pace:
        thread = pace.thread("t")
        for number in range(3):
            thread.record(f"hello {number}")
        assert pace.wait_idle(30)
        stats = pace.stats()
        assert stats.restarts == 0
        decided = stats.summaries.accepted + sum(stats.summaries.rejected.values())
        assert decided == stats.summaries.requested >= 1
        assert bool(stats.summaries.accepted) == (wrong in {"patience", "for ever"})
        assert thread.record("and on").turn == 4


def test_a_callback_may_use_the_thread_that_it_belongs_to(tmp_path: Path) -> None:
    """Goal: what hangs on a future does not hold up the actor. Method: it asks for a context and records."""
    seen: list[Any] = []
    done = threading.Event()
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")

        def after(_future: Any) -> None:
            seen.append(thread.context().receipt.window)
            seen.append(thread.record("from the callback").turn)
            done.set()

        thread.record_nowait("first").add_done_callback(after)
        assert done.wait(30)
        assert seen == [(1,), 2]
        assert thread.record("after it").turn == 3
        assert pace.stats().restarts == 0


@pytest.mark.parametrize("timeout", [10.0, 0.0])
def test_after_a_close_no_future_is_without_an_end(tmp_path: Path, timeout: float) -> None:
    """Also when there was no time: the outcome is open then, and says so."""
    pace = Pace.open(tmp_path / "a.pace")
    futures = [pace.thread(f"t{number % 7}").record_nowait(f"turn {number}") for number in range(600)]
    with contextlib.suppress(CloseTimeout):
        pace.close(timeout)
    ended = [future.exception(30) for future in futures]
    assert all(error is None or isinstance(error, PaceError) for error in ended)
    if timeout:
        assert ended == [None] * 600


@pytest.mark.parametrize("at", ["yesterday", 17, object()])
def test_a_wrong_time_is_refused_before_the_thread_hears_of_it(tmp_path: Path, at: Any) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        thread.record("hello")
        for call in (
            lambda: thread.reset(at=at),
            lambda: thread.settings(at=at, window=3),
            lambda: thread.record("x", at=at),
            lambda: thread.context(now=at),
        ):
            with pytest.raises(InvalidInput):
                call()
        assert pace.stats().restarts == 0


def test_actions_are_recorded_as_they_were_at_the_call(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        actions = [{"name": "wave", "outcome": "done"}]
        future = pace.thread("t").record_nowait("hello", actions=actions)
        actions[0]["outcome"] = "CHANGED LATER"
        future.result(30)
        assert pace.thread("t").context().window[0].assistant == "[wave: done]"


def test_ids_that_look_alike_are_different_turns_and_a_retry_is_known_also_when_memory_is_off(tmp_path: Path) -> None:
    alike = ["turn-" + "ab" * 16, "turn-" + "AB" * 16, "0123456789abcdef", "turn-" + b"0123456789abcdef".hex()]
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        assert [thread.record("same", turn_id=turn_id).turn for turn_id in alike] == [1, 2, 3, 4]
        thread.settings(enabled=False)
        assert thread.record("same", turn_id=alike[2]).turn == 3
        assert not thread.record("new").stored


def test_waiting_until_idle_and_hashing_do_not_mind_threads_that_go_to_sleep(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace", mode="relaxed", awake_max=1) as pace:
        stop = threading.Event()

        def keep_waking() -> None:
            while not stop.is_set():
                for number in range(8):
                    pace.thread(f"t{number}").record("hello")

        busy = threading.Thread(target=keep_waking)
        busy.start()
        try:
            for _ in range(20):
                pace.wait_idle(0.05)
                pace.state_hash()
        finally:
            stop.set()
            busy.join(30)
        assert pace.wait_idle(30)


def test_the_bound_of_a_summary_is_the_callers_count_of_the_cleaned_reply(tmp_path: Path) -> None:
    """Method: a counter of one token a character; thoughts that are dropped must not lengthen what is allowed."""

    class Thinking(Odd):
        def fold(self, task: FoldTask) -> Any:  # noqa: ARG002 - it thinks the same of all
            return FoldReply(text=f"<think>{'w ' * 2000}</think>" + "word " * 400, input_chars=9000)

    with Pace.open(tmp_path / "a.pace", model=Thinking(""), window=1, summary_tokens=40, token_counter=len) as pace:
        thread = pace.thread("t")
        for number in range(2):
            thread.record(f"hello {number}")
        assert pace.wait_idle(30)
        assert 0 < len(thread.context().summary) <= 40


def test_turns_before_1970_have_sessions_too(tmp_path: Path) -> None:
    with Pace.open(tmp_path / "a.pace") as pace:
        thread = pace.thread("t")
        sessions = [thread.record("hello", at=datetime(year, 1, 1, tzinfo=UTC)).session for year in (1960, 1961, 1962)]
    assert sessions == [1, 2, 3]
