"""A summariser that asks a chat server, and what every model behind such a server needs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

import msgspec

from pace_actors.domain.escaping import escape_block
from pace_actors.domain.extracts import cut_at_word
from pace_actors.domain.prompt import fold_instructions
from pace_actors.models.deadline import Clock
from pace_actors.models.decode import ChatReply, InputTooLong
from pace_actors.models.http import Message
from pace_actors.models.port import ExtractTask, FoldReply, FoldTask, FoldTurn, ModelFailure

T = TypeVar("T", FoldTask, ExtractTask)
R = TypeVar("R")
CHARS_A_TOKEN: Final = 4
TOKENS_AIR: Final = 64
"""Tokens above the bound, so that a model that keeps to it is not cut off in its last sentence."""
ASK: Final = "Write the updated summary."

_OUR_TAGS = re.compile(
    r"<(?=[\s/\\]{0,9}(?:(?:earlier|new)[\s_-]{0,9}(?:summary|turns)|known[\s_-]{0,9}facts|turn\b))", re.IGNORECASE
)


class Client(Protocol):
    """What is needed of a chat client; `ChatClient` is one."""

    @property
    def server(self) -> str:
        """Its address."""
        ...

    @property
    def model(self) -> str:
        """The model that is asked for; empty: whichever the server has."""
        ...

    def patience_s(self, asked_s: float) -> float:
        """How long a call gets that asks for this long."""
        ...

    def chat(
        self,
        messages: list[Message],
        *,
        max_tokens: int,
        deadline_s: float,
        response_format: Mapping[str, Any] | None = None,
        patient: bool = True,
    ) -> ChatReply:
        """What the model wrote; `patient` as for `ChatClient`. Raises `ModelFailure`."""
        ...

    def close(self) -> None:
        """End all calls."""
        ...


class Calls:
    """Calls of one task: the first is as patient as the client is now, and all together take no longer than it."""

    def __init__(self, client: Client, clock: Clock, deadline_s: float) -> None:
        self._client = client
        self._clock = clock
        self._until = clock() + client.patience_s(deadline_s)
        self._deadline_s = deadline_s
        self._before: ModelFailure | None = None

    def __call__(
        self, messages: list[Message], *, max_tokens: int, response_format: Mapping[str, Any] | None = None
    ) -> ChatReply:
        """The client's reply. Raises `ModelFailure`: `timeout` where nothing of the time is left."""
        first = self._before is None
        left_s = self._deadline_s if first else self._until - self._clock()
        if left_s <= 0:
            raise ModelFailure("timeout", f"no time was left for a second try; {self._before}")
        try:
            return self._client.chat(
                messages, max_tokens=max_tokens, deadline_s=left_s, response_format=response_format, patient=first
            )
        except ModelFailure as failure:
            self._before = failure
            raise


def halving(client: Client, clock: Clock, task: T, ask: Callable[[T, Calls], R], halve: Callable[[T], T]) -> R:
    """What `ask` gives for a task; where the server says that the input is too long, once more for half of it.

    Both within the task's deadline, or the client's patience if that is longer. Raises `ModelFailure`.
    """
    calls = Calls(client, clock, task.deadline_s)
    try:
        return ask(task, calls)
    except InputTooLong:
        shorter = halve(task)
    return ask(shorter, calls)


def title(client: Client) -> str:
    """Model and server."""
    return f"{client.model or 'the model'} at {client.server}"


class ChatSummariser:
    """Asks a chat server for the updated summary. The domain cleans and judges what comes back.

    When the server says that the input is longer than its context, it is asked once more, within the same deadline,
    with half of every text of the turns; the reply's `input_chars` says how much that was. The first call of a server
    may take longer than the task's deadline: see `ChatClient`.
    """

    def __init__(self, client: Client, *, clock: Clock = time.monotonic) -> None:
        self._client = client
        self._clock = clock

    @property
    def name(self) -> str:
        """Model and server."""
        return title(self._client)

    def fold(self, task: FoldTask) -> FoldReply:
        """The model's text. Raises `ModelFailure`."""
        return halving(self._client, self._clock, task, self._asked, halved)

    def patience_s(self, asked_s: float) -> float:
        """The client's: longer for the first call of a server."""
        return self._client.patience_s(asked_s)

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _asked(self, task: FoldTask, calls: Calls) -> FoldReply:
        reply = calls(messages_of(task), max_tokens=tokens_max(task.chars))
        return FoldReply(text=reply.text, model=reply.model, finish=reply.finish, input_chars=task.input_chars)


def messages_of(task: FoldTask) -> list[Message]:
    """The instructions as the system's words; the earlier summary and the new turns as inert data in the user's."""
    system = f"{fold_instructions(task.sentences)} Use at most {task.chars} characters."
    turns = "\n\n".join(map(_turn, task.turns))
    parts = [f"<new_turns>\n{turns}\n</new_turns>", ASK]
    if task.base:
        parts.insert(0, f"<earlier_summary>\n{inert(task.base)}\n</earlier_summary>")
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(parts)}]


def tokens_max(chars: int) -> int:
    """Tokens that a text of `chars` characters may take, with some air.

    >>> tokens_max(1600)
    564
    """
    return chars // CHARS_A_TOKEN * 5 // 4 + TOKENS_AIR


def halved(task: FoldTask) -> FoldTask:
    """The task with every text of its turns cut to half its length, with a mark. The earlier summary stays whole."""
    turns = (
        msgspec.structs.replace(
            turn,
            user=cut_at_word(turn.user, len(turn.user) // 2),
            assistant=cut_at_word(turn.assistant, len(turn.assistant) // 2),
        )
        for turn in task.turns
    )
    return msgspec.structs.replace(task, turns=tuple(turns))


def _turn(turn: FoldTurn) -> str:
    lines = [f"User: {inert(turn.user)}"] if turn.user else []
    if turn.assistant:
        lines.append(f"Assistant: {inert(turn.assistant)}")
    return "\n".join([*lines, *map(inert, turn.actions)])


def inert(text: str) -> str:
    """Text that cannot close or open a block, ours of this request included."""
    return _OUR_TAGS.sub("‹", escape_block(text))
