"""Writes what the documents say of events, from the code: docs/events.md, and the table in ARCHITECTURE.md.

`python -m tests.support.event_tables` writes; tests/unit/test_event_tables.py compares.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import msgspec

from pace_actors.actors import summarizer_actor
from pace_actors.actors.embedder_actor import EmbedderActor
from pace_actors.actors.eraser_actor import EraserActor
from pace_actors.actors.extractor_actor import ExtractorActor, ModelExtractorActor
from pace_actors.actors.index_actor import IndexActor
from pace_actors.actors.withdrawer_actor import WithdrawerActor
from pace_actors.events import CAUSES, FACT_CAUSES, REGISTRY, THREAD_CAUSES, Causes, Decided, Heard
from tests.support.architecture import REPO_ROOT

ARCHITECTURE = REPO_ROOT / "ARCHITECTURE.md"
EVENTS = REPO_ROOT / "docs" / "events.md"
OPEN, CLOSE = "<!-- events -->", "<!-- /events -->"

FOLLOWERS = {
    "SummarizerActor": summarizer_actor.TYPES,
    **{
        follower.__name__: follower.types
        for follower in (ExtractorActor, ModelExtractorActor, IndexActor, EmbedderActor, WithdrawerActor, EraserActor)
    },
}
"""Follower → the types that it reads."""
DECIDERS = {
    "`domain.thread` in the ThreadActor": THREAD_CAUSES,
    "`domain.facts` in the FactStoreActor": FACT_CAUSES,
}


def architecture_table() -> str:
    """Event → who decides → who follows."""
    rows: list[str] = []
    for decider, causes in DECIDERS.items():
        rows += ["", f"| heard | decided by {decider} | followed by |", "|---|---|---|"]
        rows += _rows(causes)
    return "\n".join(rows[1:])


def _rows(causes: Causes) -> Iterator[str]:
    for heard, decided in causes.items():
        names = [heard.__name__, *(kind.__name__ for kind in decided)]
        followers = sorted(who for who, types in FOLLOWERS.items() if types & set(names))
        told = ", ".join(f"{who} ({', '.join(name for name in names if name in FOLLOWERS[who])})" for who in followers)
        decisions = ", ".join(f"`{name}`" for name in names[1:])
        yield f"| `{names[0]}` | {decisions or '–'} | {told or '–'} |"


def events_page() -> str:
    """Every event with its fields; texts, which an erasure empties, are marked."""
    parts = [
        "# Events",
        "",
        "Generated from `pace_actors/events.py` by `make docs`. A batch in the log is one input followed by the",
        "decisions that it caused. Fields marked *text* hold somebody's words: an erasure empties them, and no rule",
        "folds over them. A field that holds its default takes no bytes.",
    ]
    for title, base in (("Heard", Heard), ("Decided", Decided)):
        parts += ["", f"## {title}"]
        for name in REGISTRY.names:
            struct = REGISTRY.struct_of(name)
            if issubclass(struct, base):
                parts += ["", *_section(name, struct)]
    return "\n".join(parts) + "\n"


def _section(name: str, struct: type[msgspec.Struct]) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    yield inspect.cleandoc(struct.__doc__ or "").replace("\n", " ")
    yield ""
    if issubclass(struct, Heard):
        causes = ", ".join(f"`{kind.__name__}`" for kind in CAUSES[struct])
        yield f"Can cause: {causes}." if causes else "Causes nothing but itself."
        yield ""
    texts = REGISTRY.texts_of(name)
    yield "| field | default | |"
    yield "|---|---|---|"
    for field in msgspec.structs.fields(struct):
        required = field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
        default = "required" if required else _default(field)
        inside = [path for path in texts if path == field.name or re.match(rf"{field.name}[\[.{{]", path)]
        kind = "" if not inside else "text" if inside == [field.name] else "text: " + ", ".join(inside)
        yield f"| `{field.name}` | {default} | {kind} |"


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"`{value!r}`" if not isinstance(value, msgspec.Struct) else "its defaults"


def with_table(text: str) -> str:
    """ARCHITECTURE.md with the table between its marks. Raises `ValueError` where the marks are missing."""
    start, end = text.index(OPEN) + len(OPEN), text.index(CLOSE)
    return f"{text[:start]}\n\n{architecture_table()}\n\n{text[end:]}"


def main() -> None:
    """Write both."""
    ARCHITECTURE.write_text(with_table(ARCHITECTURE.read_text(encoding="utf-8")), encoding="utf-8")
    EVENTS.write_text(events_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
