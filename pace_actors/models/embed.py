"""An embedder that asks a server: `POST {base}/embeddings`, in the manner of OpenAI."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from pace_actors.models.decode import opened, useless
from pace_actors.models.http import ServerClient
from pace_actors.models.port import ModelFailure, Vector
from pace_actors.models.unit import checked

EMBED_BYTES_MAX: Final = 32 * 1024 * 1024
"""64 vectors of 4,096 numbers in words have some 6 MB."""


class EmbeddingClient(ServerClient):
    """One server of embeddings. A call is one request, whatever the number of texts.

    Texts go out as they are: a model that wants a word before each (`query: `, `passage: `) works without, a little
    worse. The vectors are the server's, scaled to length 1.
    """

    endpoint: ClassVar[str] = "/embeddings"
    reply_bytes_max: ClassVar[int] = EMBED_BYTES_MAX

    @property
    def name(self) -> str:
        """Model and server: vectors of another model, or of the same name elsewhere, are not compared with these."""
        return f"{self.model or 'the model'} at {self.server}"

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        """A vector for each text, within the deadline, also on a first call.

        Raises `ModelFailure`: `malformed` for a wrong count, a number that is none, a vector that is empty or zero, and
        vectors of different dimensions.
        """
        if not texts:
            return []

        def read(status: int, body: bytes) -> list[Vector]:
            return decode_vectors(status, body, len(texts), hint=self._hint, hide=self._key)

        return self._ask({"input": list(texts)}, read, deadline_s=deadline_s, patient=False)


def decode_vectors(status: int, body: bytes, count: int, *, hint: str = "", hide: str = "") -> list[Vector]:
    """The vectors of a reply in the order of the texts, or why there are none.

    Raises `ModelFailure`, and nothing else whatever the bytes are.
    """
    found, said = opened(status, body, hint=hint, hide=hide)
    items = found.get("data") if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise useless("the reply has no data", hint, said)
    if len(items) != count:
        raise ModelFailure("malformed", f"{len(items)} vectors for {count} texts")
    return checked(list(map(_numbers, _in_order(items))), count)


def _in_order(items: list[Any]) -> list[Any]:
    """Items by their `index`, where each has its own; else as they came."""
    places = [item.get("index") for item in items if isinstance(item, dict)]
    if len(places) < len(items) or any(type(place) is not int for place in places):
        return items
    by_place = dict(zip(places, items, strict=True))
    if by_place.keys() != set(range(len(items))):
        raise ModelFailure("malformed", "the numbers of the vectors are not 0, 1, 2 …")
    return [by_place[place] for place in range(len(items))]


def _numbers(item: Any) -> Vector:
    """The numbers of one item: a list, a list of one list, or base64 of 32-bit floats, little-endian."""
    given = item.get("embedding") if isinstance(item, dict) else item
    if isinstance(given, str):
        try:
            data = base64.b64decode(given, validate=True)
            return struct.unpack(f"<{len(data) // 4}f", data)
        except (binascii.Error, ValueError, struct.error):
            raise ModelFailure("malformed", "a vector is neither numbers nor base64 of them") from None
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], list):
        given = given[0]
    if not isinstance(given, list) or any(isinstance(number, bool | str) for number in given):
        raise ModelFailure("malformed", "a vector is missing, or holds what is no number")
    return given
