"""Canaries: the hooks of pykka that are private by name, one test each. A red one means: read the new pykka first."""

from __future__ import annotations

import inspect
import re
import threading
from importlib.metadata import version
from queue import SimpleQueue
from typing import Any, cast

import pykka
from structlog.testing import CapturingLogger

from pace_actors.runtime.plain import WAKE_UP, PlainActor, PlainHost
from pace_actors.runtime.pooled import PooledActor, PooledHost
from pace_actors.runtime.supervision import Incidents
from pace_actors.runtime.threaded import LocalAddress


def test_pykka_is_the_version_that_was_read() -> None:
    assert version("pykka") == "4.5.0"


def test_an_actor_takes_its_inbox_from_the_hook_when_it_is_made() -> None:
    """`_create_actor_inbox` is called by `__init__`, and what it gives is the inbox."""
    address = LocalAddress("probe", Incidents(cast("Any", CapturingLogger()), lambda: 0.0))
    actor = PooledActor(address, SimpleQueue())
    assert actor.actor_inbox is cast("Any", address.mailbox)
    assert actor.actor_ref.actor_inbox is cast("Any", address.mailbox)


def test_the_loop_is_begun_by_a_hook_of_its_own_that_starts_no_thread() -> None:
    """`_start_actor_loop` is all that pykka's `start` calls besides its registry."""
    source = inspect.getsource(pykka.Actor.start)
    assert "ActorRegistry.register(obj.actor_ref)" in source
    assert "obj._start_actor_loop()" in source
    before = threading.active_count()
    ready: SimpleQueue[LocalAddress | None] = SimpleQueue()
    address = LocalAddress("probe", Incidents(cast("Any", CapturingLogger()), lambda: 0.0))
    PooledActor(address, ready)._start_actor_loop()
    address.mailbox.put(cast("Any", _Request()))
    assert ready.get_nowait() is address
    assert threading.active_count() == before


def test_the_loop_on_a_thread_uses_only_what_a_simple_queue_and_a_wake_up_have() -> None:
    """`_create_actor_inbox` is the hook; the loop reads `message` and `reply_to` of what `get` gives, and `empty`."""
    source = inspect.getsource(pykka.Actor._actor_loop_running) + inspect.getsource(pykka.Actor._actor_loop_teardown)
    assert set(re.findall(r"actor_inbox\.(\w+)", source)) == {"get", "empty"}
    assert set(re.findall(r"envelope\.(\w+)", source)) == {"message", "reply_to"}
    assert (WAKE_UP.message, WAKE_UP.reply_to) == (None, None)
    host = PlainHost(cast("Any", CapturingLogger()))
    inbox = PlainActor(LocalAddress("probe", host.incidents), host).actor_inbox
    assert isinstance(inbox, SimpleQueue)
    host.close()


def test_pooled_actors_are_in_no_registry_of_pykka() -> None:
    """Leaving the registry takes time in proportion to all actors; ours must never be in it."""
    host = PooledHost(cast("Any", CapturingLogger()))
    before = len(pykka.ActorRegistry.get_all())
    host.spawn(cast("Any", _Silent()), "silent")
    assert len(pykka.ActorRegistry.get_all()) == before
    host.close()


def test_the_hooks_are_abstract_or_plain_methods_of_the_base_class() -> None:
    for name in ("_create_actor_inbox", "_create_future", "_start_actor_loop"):
        assert name in pykka.Actor.__abstractmethods__


class _Request:
    control = False


class _Silent:
    def start(self, me: Any) -> None:
        """Nothing to build."""

    def receive(self, message: Any, reply: Any) -> None:
        """Nothing to say."""

    def failed(self, error: BaseException) -> None:
        """Nothing to give up."""

    def stop(self) -> None:
        """Nothing to release."""
