"""What a summariser is asked and what it answers. Every implementation is called on a worker thread and may block."""

from __future__ import annotations

from typing import Protocol

import msgspec

from pace_actors.values import Failure, Finish, RequestedBy


class FoldTurn(msgspec.Struct, frozen=True):
    """One turn as a model is given it: redacted, and capped with a mark where it alone is too long."""

    turn: int
    user: str
    assistant: str
    actions: tuple[str, ...] = ()
    """One line an action, `[name: outcome]`."""


class FoldTask(msgspec.Struct, frozen=True):
    """One fold: the earlier summary and the turns that followed it."""

    base: str
    turns: tuple[FoldTurn, ...]
    sentences: int
    chars: int
    """Most characters of the new summary."""
    deadline_s: float
    """Total time, whatever the server does meanwhile."""

    @property
    def input_chars(self) -> int:
        """Characters of the base and of the turns."""
        texts = (len(turn.user) + len(turn.assistant) + sum(map(len, turn.actions)) for turn in self.turns)
        return len(self.base) + sum(texts)


class FoldReply(msgspec.Struct, frozen=True):
    """What a model wrote, raw; cleaning and judging are the domain's."""

    text: str
    model: str = ""
    """The model that the reply names."""
    finish: Finish = "stop"
    input_chars: int = 0
    """Characters of base and turns that the model was really given."""
    by: RequestedBy = "model"
    """`extractive` for words that were picked from the task and not written: they are not judged as a model's."""


class ModelFailure(Exception):
    """There is no text. `kind` says why; `detail` in at most 200 characters what the other side said."""

    def __init__(self, kind: Failure, detail: str = "") -> None:
        self.kind: Failure = kind
        self.detail = detail[:200]
        super().__init__(f"{kind}: {self.detail}" if detail else kind)


class Summariser(Protocol):
    """Writes a new summary from an earlier one and the turns since."""

    @property
    def name(self) -> str:
        """For logs and `stats()`."""
        ...

    def fold(self, task: FoldTask) -> FoldReply:
        """Answer within `task.deadline_s` or raise `ModelFailure`; nothing else is raised."""
        ...

    def patience_s(self, asked_s: float) -> float:
        """How long a fold with that deadline may really take now: longer while a server loads its model."""
        ...

    def close(self) -> None:
        """Give connections back. Folds that are running may fail."""
        ...
