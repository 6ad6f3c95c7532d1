"""Vectors for benches: computed once a text and model, then read from `bench/out`, so that a second run is quick."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
import threading
from collections.abc import Sequence
from pathlib import Path

from pace_actors.models.port import Embedder, Vector

PLACE = Path(__file__).parent / "out" / "vectors.sqlite"
TOGETHER = 64


class Remembering:
    """An embedder that computes no text twice."""

    def __init__(self, inner: Embedder, place: Path = PLACE) -> None:
        self.name = inner.name
        self.on_this_machine = bool(getattr(inner, "on_this_machine", False))
        self._inner = inner
        self._lock = threading.Lock()
        place.parent.mkdir(parents=True, exist_ok=True)
        self._known = sqlite3.connect(place, check_same_thread=False, timeout=60)
        self._known.execute("create table if not exists vectors (key blob primary key, numbers blob) without rowid")

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        """See `Embedder`."""
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if self._find(text) is None]
            for start in range(0, len(missing), TOGETHER):
                some = missing[start : start + TOGETHER]
                for text, vector in zip(some, self._inner.embed(some, deadline_s), strict=True):
                    self._known.execute(
                        "insert or replace into vectors values (?, ?)", (self._key(text), _packed(vector))
                    )
                self._known.commit()
            found = [self._find(text) for text in texts]
        return [vector for vector in found if vector is not None]

    def patience_s(self, asked_s: float) -> float:
        """See `Embedder`."""
        return self._inner.patience_s(asked_s)

    def close(self) -> None:
        """Close both."""
        self._known.close()
        self._inner.close()

    def _find(self, text: str) -> Vector | None:
        row = self._known.execute("select numbers from vectors where key = ?", (self._key(text),)).fetchone()
        return None if row is None else struct.unpack(f"<{len(row[0]) // 2}e", row[0])

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.name}\0{text}".encode(errors="surrogatepass"), digest_size=16).digest()


def _packed(vector: Vector) -> bytes:
    return struct.pack(f"<{len(vector)}e", *vector)
