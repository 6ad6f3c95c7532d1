"""How much of what people say the pattern extractor learns, and how much of that is right, on real conversations.

Each set is halved by a digest of each text. The rules were made on one half ("made on"); the other ("aside") was
measured when they were complete, and its wrong finds were mended afterwards, kind by kind. Whether a find is right was
judged by hand, find by find; the judgements are stored as digests, so that a changed rule shows as finds that nobody
has judged. `--full` prints those, with their words, to be judged.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.harness import Case, Figure, Options, Report, compare, main
from pace_actors.domain.patterns import LOOK_CHARS_MAX, Found, extract, is_sensitive
from tests.support.data import data_root

Rows = Callable[[str], list[dict[str, Any]]]
JUDGED = Path(__file__).with_name("facts_judged.json")
STATING_INTENTS = frozenset({"change_user_name"})
"""Intents of voice commands that do state a fact of the user: what they are called."""
CHATS = (
    "noncommercial/locomo", "free/realmem", "sharealike/beam100k", "sharealike/beam500k", "free/memorybank",
)  # fmt: skip
PREFERENCES = (
    "prefers", "likes", "dislikes", "avoids", "refuses", "fears", "is allergic to", "follows diet", "only", "usually",
    "never", "does not", "has condition",
)  # fmt: skip
LANGUAGES = ("fr", "it", "id", "ja", "ko", "zh")
"""In which nothing may be found: the patterns are English."""
Z = 1.96


def is_aside(text: str) -> bool:
    """Whether a text is of the half that was only measured."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] % 2 == 1


def wilson(right: int, total: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson's score).

    >>> tuple(round(edge, 2) for edge in wilson(90, 100))
    (0.83, 0.94)
    """
    if not total:
        return 0.0, 1.0
    share, spread = right / total, Z * Z / total
    middle, half = share + spread / 2, Z * math.sqrt(share * (1 - share) / total + spread / total / 4)
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def commands(rows: Rows) -> Iterator[tuple[str, str]]:
    """Intent and words of each voice command; `oos` are those of no intent."""
    for row in rows("free/clinc150"):
        for part in row["utterances"].values():
            for text in part:
                yield row["intent"], text


def stated_preferences(rows: Rows) -> list[str]:
    """Sentences that state one preference each."""
    return [each["preference"] for row in rows("noncommercial/prefeval") for each in row["explicit"]]


def user_turns(rows: Rows) -> Iterator[str]:
    """What users say in conversations; in LoCoMo both speakers are people."""
    for name in CHATS:
        for row in rows(name):
            for session in row["sessions"]:
                for turn in session["turns"]:
                    if turn.get("role", "user") == "user":
                        yield turn["text"]


def chat_of(rows: Rows, language: str) -> Iterator[str]:
    """Personas and turns of short chats in one language; none for a language that is not there."""
    for row in rows("free/xpersona"):
        if row["lang"] == language:
            yield from row["persona"]
            yield from (turn["text"] for turn in row["turns"])


def finds_a_preference(text: str) -> bool:
    """Whether anything that is found in a text is a preference."""
    return any(found.predicate.startswith(PREFERENCES) for found in extract(text))


def digest_of(text: str, found: Found) -> str:
    """Names a find without its words."""
    words = f"{text}\x1f{found.subject}\x1f{found.predicate}\x1f{found.value}"
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:12]


def _share(name: str, hits: int, total: int, **bounds: float) -> Figure:
    return Figure(name=f"{name} ({hits} of {total})", value=100 * hits / max(total, 1), unit="%", **bounds)


def command_figures(rows: Rows) -> list[Figure]:
    """Utterances from which anything is learnt, counted over all but those that state a name."""
    said = list(commands(rows))
    found = []
    for half, aside in (("made on", False), ("aside", True)):
        texts = [(intent, text) for intent, text in said if is_aside(text) is aside and intent not in STATING_INTENTS]
        hits = sum(bool(extract(text)) for _, text in texts)
        found.append(_share(f"voice commands learnt from, {half}", hits, len(texts), at_most=2.0))
    names = [text for intent, text in said if intent in STATING_INTENTS]
    return [
        *found,
        _share("sentences to change one's name learnt from", sum(bool(extract(t)) for t in names), len(names)),
    ]


def preference_figures(rows: Rows) -> list[Figure]:
    """Stated preferences in which one is found."""
    found = []
    for half, aside in (("made on", False), ("aside", True)):
        texts = [text for text in stated_preferences(rows) if is_aside(text) is aside]
        hits = sum(map(finds_a_preference, texts))
        found.append(_share(f"stated preferences found, {half}", hits, len(texts)))
    return found


def language_figures(rows: Rows) -> list[Figure]:
    """Finds in chats of other languages: the patterns are English, so each would be nonsense."""
    found = []
    for language in LANGUAGES:
        texts = list(chat_of(rows, language))
        found.append(
            _share(f"sentences learnt from, {language}", sum(bool(extract(t)) for t in texts), len(texts), at_most=0.0)
        )
    texts = list(chat_of(rows, "en"))
    return [*found, _share("sentences learnt from, en", sum(bool(extract(t)) for t in texts), len(texts))]


def judged_figures(name: str, texts: Iterable[str], judged: dict[str, bool], *, show: bool) -> list[Figure]:
    """Share of right finds among those that were judged by hand, its interval, and how many were not judged."""
    finds = {digest_of(text, found): (text, found) for text in texts for found in extract(text)}
    known = [judged[digest] for digest in finds if digest in judged]
    low, high = wilson(sum(known), len(known))
    if show:
        for digest, (text, found) in finds.items():
            if digest not in judged:
                print(f"{digest} {name}: ({found.subject}, {found.predicate}, {found.value}) in {text[:300]!r}")
    return [
        _share(f"right finds, {name}", sum(known), len(known)),
        Figure(name=f"right finds, {name}: lower edge of 95 %", value=100 * low, unit="%"),
        Figure(name=f"right finds, {name}: upper edge of 95 %", value=100 * high, unit="%"),
        Figure(name=f"finds nobody has judged, {name}", value=len(finds) - len(known), unit=f"of {len(finds)}"),
    ]


def sensitive_figure(turns: Iterable[str]) -> Figure:
    """How many finds the keyword rule and the topics keep out of the context."""
    finds = [found for text in turns for found in extract(text)]
    hits = sum(is_sensitive(found.subject, found.predicate, found.value, found.topics) for found in finds)
    return _share("finds in conversations that are sensitive", hits, len(finds))


def read_judged() -> dict[str, bool]:
    """Digest of a find → whether it is right."""
    stored = json.loads(JUDGED.read_text(encoding="utf-8"))
    return {digest: verdict == "right" for verdict, digests in stored.items() for digest in digests}


def _rows(root: Path) -> Rows:
    def rows(name: str) -> list[dict[str, Any]]:
        with gzip.open(root / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            return [json.loads(line) for line in lines]

    return rows


def _figures(rows: Rows, *, show: bool) -> list[Figure]:
    turns = list(user_turns(rows))
    judged = read_judged()
    return [
        *command_figures(rows),
        *preference_figures(rows),
        *judged_figures("conversations, made on", (t for t in turns if not is_aside(t)), judged, show=show),
        *judged_figures("conversations, aside", (t for t in turns if is_aside(t)), judged, show=show),
        *language_figures(rows),
        sensitive_figure(turns),
        Figure(
            name="conversations: turns learnt from", value=sum(bool(extract(t)) for t in turns), unit=f"of {len(turns)}"
        ),
    ]


def measure(options: Options) -> Report:
    """The figures on the data, where it lies; and how long one turn takes."""
    root = data_root()
    short = "My name is Ada and I live in Oslo. I prefer dark mode, can you switch it on?"
    large = ("I love hiking, and “my mom” 's dog is really, really big. " * 20_000)[:1_000_000]
    cases = [
        Case("a turn of two sentences", lambda: [extract(short) for _ in range(100)], operations=100),
        Case(f"a turn of 1 MB, its first {LOOK_CHARS_MAX:,} characters", lambda: extract(large)),
    ]
    figures = [] if root is None or options.quick else _figures(_rows(root), show=options.full)
    note = "" if root else "The data does not lie beside the project: no figures of quality."
    return compare("facts", cases, options, [], figures=figures, note=note)


if __name__ == "__main__":
    main(measure, __doc__)
