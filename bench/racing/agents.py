"""The sessions of the OpenAI Agents SDK with their compaction, under a load of the simulation, on a virtual clock.

The library's own `OpenAIResponsesCompactionSession` runs, as its documentation has it: around a store, with the default
threshold, and with compaction between the turns. The store keeps items in memory, behind the library's own protocol;
`responses.compact` is answered by a stand-in after the load's durations. What a compacted item stands for is carried in
it, so that a lost turn would be seen. Raises `ImportError` where the library is not installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import json
import selectors
from collections.abc import Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

from bench.racing.report import OtherRow
from pace_actors.simulation.races.load import INTERVAL_S, Load, Model, steps
from pace_actors.simulation.races.race import PERCENT, Ratios

PACKAGE = "openai-agents"
NOTE = (
    "The session holds a lock from the moment it reads the history until the compacted one has replaced it, so nothing "
    "is lost: what is said meanwhile waits for the model to be stored, and a context asked meanwhile lacks it. The "
    "compacted history replaces all items; there is no window of words as they were said apart from what the service "
    "leaves. Calls of the service are stand-ins; their durations are those of the other tables."
)


class _Selector(selectors.DefaultSelector):
    """Waits by moving the clock."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing from outside ever comes."""
        ready = super().select(0)
        if not ready and timeout:
            self._clock[0] += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock."""

    def __init__(self) -> None:
        self._virtual = [0.0]
        super().__init__(_Selector(self._virtual))

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual[0]


class _Store:
    """A store of items in memory, with the verbs of the library's sessions."""

    session_settings = None

    def __init__(self) -> None:
        self.session_id = "race"
        self.items: list[Any] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The newest, oldest first."""
        return list(self.items if limit is None else self.items[-limit:] if limit else [])

    async def add_items(self, items: list[Any]) -> None:
        """Append."""
        self.items += items

    async def pop_item(self) -> Any:
        """The newest."""
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        """All of them."""
        self.items.clear()


class _Service:
    """`client.responses.compact`: one item that stands for everything it was given."""

    def __init__(self, load: Load, seed: int) -> None:
        self._model = Model(load, seed)
        self.responses = self
        self.calls = 0

    async def compact(self, **given: Any) -> Any:
        """After the time that the load says. Raises `RuntimeError` where the call fails."""
        self.calls += 1
        call = self._model.call(asyncio.get_running_loop().time())
        await asyncio.sleep(call.seconds)
        if call.fails:
            raise RuntimeError("the service is gone")
        kept = sorted(_turns(given["input"]))
        item = {"type": "compaction", "id": f"cmp_{self.calls}", "encrypted_content": json.dumps(kept)}
        return SimpleNamespace(output=[item], usage=None)


def _turns(items: Sequence[Any]) -> set[int]:
    """The turns that items stand for."""
    found: set[int] = set()
    for item in items:
        if item.get("type") == "compaction":
            found |= set(json.loads(item["encrypted_content"]))
        elif item.get("role") == "user":
            found.add(int(item["content"].split()[1]))
    return found


class _Run:
    """What came of one conversation."""

    def __init__(self) -> None:
        self.lost = self.calls = 0
        self.hidden: set[int] = set()
        self.waits_s: list[float] = []


async def _converse(load: Load, seed: int) -> _Run:
    made: Any = importlib.import_module("agents.memory").OpenAIResponsesCompactionSession
    found, loop = _Run(), asyncio.get_running_loop()
    service, store = _Service(load, seed), _Store()
    client: Any = service
    session = made("race", store, client=client, compaction_mode="input")
    tasks: list[asyncio.Task[None]] = []

    async def turn(number: int) -> None:
        said = loop.time()
        await session.add_items(
            [
                {"role": "user", "content": f"Turn {number} of a long talk."},
                {"role": "assistant", "content": "Noted."},
            ]
        )
        found.waits_s.append(loop.time() - said)
        with contextlib.suppress(RuntimeError):  # tried again behind the next turn
            await session.run_compaction({"compaction_mode": "input"})

    for number, step in enumerate(steps(load, seed), 1):
        await asyncio.sleep(step.pause_s)
        found.hidden |= set(range(1, number)) - _turns(await session.get_items())
        tasks.append(loop.create_task(turn(number)))
    await asyncio.gather(*tasks)
    found.lost = load.turns - len(_turns(await session.get_items()) & set(range(1, load.turns + 1)))
    found.calls = service.calls
    return found


def _run(conversation: Coroutine[Any, Any, _Run]) -> _Run:
    loop = _Loop()
    try:
        return loop.run_until_complete(conversation)
    finally:
        loop.close()


def measure_agents(runs: int, seed: int, means: Sequence[float]) -> list[OtherRow]:
    """The library at each mean call, log-normal, nothing else goes wrong."""
    name = f"{PACKAGE} {importlib.metadata.version(PACKAGE)}, `OpenAIResponsesCompactionSession`"
    rows = []
    for mean in means:
        load = Load(mean_call=mean)
        found = [_run(_converse(load, seed + number)) for number in range(runs)]
        waits = sorted(wait / INTERVAL_S for one in found for wait in one.waits_s)
        ratio, turns = Ratios(runs), [load.turns] * runs
        rows.append(
            OtherRow(
                library=name,
                mean_call=mean,
                runs=runs,
                displaced=sum(turns),
                lost=ratio.of([one.lost for one in found], turns, PERCENT),
                hidden=ratio.of([len(one.hidden) for one in found], turns, PERCENT),
                waited_mean=sum(waits) / len(waits),
                waited_p99=waits[len(waits) * 99 // 100],
                calls=sum(one.calls for one in found) / sum(turns),
                note=NOTE,
            )
        )
    return rows
