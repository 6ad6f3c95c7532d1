"""What a model is asked and what it answers. Every implementation is called on a worker thread and may block."""

from __future__ import annotations

from collections.abc import Sequence
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
    """What a model wrote, without its thoughts; cleaning and judging are the domain's."""

    text: str
    model: str = ""
    """The model that the reply names."""
    finish: Finish = "stop"
    input_chars: int = 0
    """Characters of base and turns that the model was really given."""
    by: RequestedBy = "model"
    """`extractive` for words that were picked from the task and not written: they are not judged as a model's."""


class ExtractTask(msgspec.Struct, frozen=True):
    """One turn of which facts are wanted, as it is stored: redacted."""

    user: str
    assistant: str
    shown: tuple[str, ...]
    """Facts that the turn's context had shown, `subject predicate value` each: the model is told not to repeat them."""
    deadline_s: float
    """Total time, whatever the server does meanwhile."""


class ExtractItem(msgspec.Struct, frozen=True):
    """One candidate. The texts have words, stand on one line and are within the bounds of `models.items`."""

    subject: str
    predicate: str
    value: str
    confidence_milli: int
    """0 to 1000."""
    topics: tuple[str, ...]
    """Of `models.items.TOPICS`, each once."""


class ExtractReply(msgspec.Struct, frozen=True):
    """What could be read of a model's answer. Without items and with `malformed` 0 the model found nothing to keep."""

    items: tuple[ExtractItem, ...]
    """Each triple once."""
    malformed: int
    """Items that could not be read, that the answer's end cut off, or that are of another turn."""
    model: str
    """The model that the reply names."""
    finish: Finish


class ModelFailure(Exception):
    """There is no answer. `kind` says why; `detail` in at most 200 characters what the other side said.

    `status` is the status of HTTP, where that was what said no.
    """

    def __init__(self, kind: Failure, detail: str = "", *, status: int | None = None) -> None:
        self.kind: Failure = kind
        self.detail = detail[:200]
        self.status = status
        super().__init__(f"{kind}: {self.detail}" if detail else kind)


class Unreadable(ModelFailure):
    """A server answered as it should, and nothing of what its model wrote can be read. Kind `malformed`."""

    def __init__(self, detail: str = "") -> None:
        super().__init__("malformed", detail)


class Model(Protocol):
    """What all models have."""

    @property
    def name(self) -> str:
        """For logs and `stats()`."""
        ...

    def patience_s(self, asked_s: float) -> float:
        """How long a call with that deadline may really take now: longer while a server loads its model."""
        ...

    def close(self) -> None:
        """Give connections back. Calls that are running may fail."""
        ...


class Summariser(Model, Protocol):
    """Writes a new summary from an earlier one and the turns since."""

    def fold(self, task: FoldTask) -> FoldReply:
        """Answer within `task.deadline_s` or raise `ModelFailure`; nothing else is raised."""
        ...


class Extractor(Model, Protocol):
    """Finds in a turn what will still matter. Its name says its version too, for it is stored with what it found."""

    def extract(self, task: ExtractTask) -> ExtractReply:
        """Answer within `task.deadline_s` or raise `ModelFailure`; nothing else is raised."""
        ...


Vector = Sequence[float]


class Embedder(Model, Protocol):
    """Turns texts into vectors, near each other where they mean the same. Its name is that of its model.

    The name says which vectors may be compared: it changes when the model does. An embedder that has the attribute
    `on_this_machine` and it is true is given sensitive texts as well.
    """

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        """A vector for each text, in their order, all of one dimension, finite and not zero.

        Answers within `deadline_s`, also a first call (`patience_s` says how long that one should be given), or raises
        `ModelFailure`; nothing else is raised.
        """
        ...
