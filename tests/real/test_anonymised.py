"""Goal: what people have really said is not in a log in stand-ins. Method: import, write each thread anonymised, look.

A word is any run of three letters, in any text of the log, ids, names and keys among them. Allowed are the words that
are kept, and those that the product writes itself: names of fields, reasons, kinds, versions of libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import regex

import eventlog
from eventlog import EventLog
from pace_actors import Pace
from pace_actors.events import REGISTRY
from pace_actors.replay import check, replay, small_log
from pace_actors.replay.anonymise import Anonymiser
from pace_actors.replay.shrink import in_memory
from pace_actors.replay.stand_ins import KEPT
from pace_actors.replay.tape import Tape, written
from tests.real.test_conversations import import_file
from tests.support.conversations import Conversation, beam, blns, locomo, realmem, write_lines, xpersona
from tests.support.lived import keys_of

pytestmark = pytest.mark.soak
LANGUAGES = ("en", "fr", "id", "it", "ja", "ko", "zh")
_CODES = "turn thread facts sentencex patterns extractive scripted redacted withheld characters preference default"
IN_BYTES_MIN = 6
"""Shorter words come about in digests by chance."""
SETS: dict[str, Callable[[], list[Conversation]]] = {
    "locomo": locomo,
    "realmem": lambda: realmem(3, [{}, {"resume": "always"}, {"coalesce": False, "window": 2, "zone": "Europe/Oslo"}]),
    "beam": lambda: [beam("beam/100K/4")],
    "blns": lambda: [blns()],
    "xpersona": lambda: [each._replace(user=f"{each.user} {n}") for n, each in enumerate(xpersona(LANGUAGES))],
}


def words(text: str) -> set[str]:
    return {word.casefold() for word in regex.findall(r"\p{L}{3,}", text)}


def of_the_product() -> set[str]:
    """Names of types and fields, and everything that a field may hold out of a fixed list."""
    found = {*_CODES.split()}
    seen: set[type] = set()

    def look(struct: type) -> None:
        if struct in seen:
            return
        seen.add(struct)
        for field in msgspec.structs.fields(struct):
            found.update(words(field.encode_name))
            for inner in inside(field.type):
                if isinstance(inner, str):
                    found.update(words(inner))
                elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                    look(inner)

    for name in REGISTRY.names:
        found.update(words(name))
        look(REGISTRY.struct_of(name))
    return found


def kinds_of_secrets(log: EventLog) -> set[str]:
    """What redaction has called them."""
    heard = (REGISTRY.decode(event) for event in log.read_all() if event.place == 0)
    return {word for one in heard for mask in getattr(one, "masked", ()) for word in words(mask.kind.replace("_", " "))}


def of_an_empty_log(place: Path) -> set[str]:
    """Names of tables."""
    eventlog.open(place, REGISTRY).close()
    return words(read([*place.rglob("*")]))


def inside(kind: Any) -> Iterator[Any]:
    yield kind
    for inner in get_args(kind):
        yield from inside(inner)


def texts(log: EventLog) -> Iterator[str]:
    def strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from strings(inner)

    for event in log.read_all():
        yield from strings(msgspec.msgpack.decode(event.payload))
        yield event.stream
        yield event.correlation
        yield event.key.decode(errors="ignore")


@pytest.mark.parametrize("name", SETS)
def test_no_word_of_a_conversation_is_in_its_log_in_stand_ins(name: str, tmp_path: Path, data_dir: Path) -> None:  # noqa: ARG001 - without it nothing runs
    write_lines(SETS[name](), tmp_path / "set.jsonl")
    with Pace.open(tmp_path / "memory", mode="relaxed") as pace:
        import_file(pace, tmp_path / "set.jsonl")
        assert pace.wait_idle(600)
    allowed = KEPT | of_the_product() | of_an_empty_log(tmp_path / "empty.pace")
    found = 0
    with eventlog.open(tmp_path / "memory", REGISTRY, readonly=True, create=False) as log:
        for number, key in enumerate(keys_of(log)):
            tape = Tape(log, key, log.head())
            numbers = range(len(tape))
            before = in_memory(written(tape, numbers))
            anonymiser = Anonymiser(written(tape, numbers))
            after = in_memory(anonymiser.all(written(tape, numbers)))
            said = set().union(*map(words, texts(before))) - allowed - kinds_of_secrets(before)
            found += len(said)
            assert said & set().union(*map(words, texts(after))) == set()
            assert check(after, every=True).divergence_count == 0
            assert replay(after).broken == ()
            if number < 3:
                place = tmp_path / f"{number}.pace"
                small_log(log, key, None, place, anonymise=True)
                here = words(read(sorted(place.rglob("*"))))
                assert {word for word in said if is_looked_for(word, allowed)} & here == set()
    assert found > 100


def is_looked_for(word: str, allowed: Collection[str]) -> bool:
    """Not what is short, nor the name of a field or table that has a byte more or less, which is a number's."""
    longer = {word[:-1], word[1:]} & {*allowed}
    shorter = word in {part for each in allowed for part in (each[:-1], each[1:])}
    return len(word) >= IN_BYTES_MIN and not longer and not shorter


def read(files: Sequence[Path]) -> str:
    """All bytes of a directory, as far as they are text."""
    return b"\n".join(file.read_bytes() for file in files if file.is_file()).decode(errors="ignore")
