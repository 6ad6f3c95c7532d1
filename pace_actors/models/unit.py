"""Vectors of length 1, or what is wrong with those that an embedder gave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Final

from pace_actors.models.port import ModelFailure, Vector

DIMENSIONS_MAX: Final = 16_384


def checked(vectors: Sequence[Vector], count: int) -> list[Vector]:
    """The same vectors, each scaled to length 1. Raises `ModelFailure`, kind `malformed`, saying what is wrong."""
    if len(vectors) != count:
        raise ModelFailure("malformed", f"{len(vectors)} vectors for {count} texts")
    scaled = list(map(_scaled, vectors))
    dimensions = {len(vector) for vector in scaled}
    if len(dimensions) > 1:
        raise ModelFailure("malformed", f"vectors of {len(dimensions)} different dimensions")
    return scaled


def _scaled(vector: Vector) -> Vector:
    try:
        numbers = [float(number) for number in vector]
        length = math.sqrt(math.fsum(map(mul, numbers, numbers)))
    except (TypeError, ValueError, OverflowError):
        raise ModelFailure("malformed", "a vector is missing, or holds what is no number") from None
    if not 1 <= len(numbers) <= DIMENSIONS_MAX:
        raise ModelFailure("malformed", f"a vector of {len(numbers)} numbers")
    if not math.isfinite(length):
        raise ModelFailure("malformed", "a vector is not finite")
    if length == 0:
        raise ModelFailure("malformed", "a vector is zero")
    return [number / length for number in numbers]
