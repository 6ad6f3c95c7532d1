"""What the first pages of a file say of its transactions, read past the engine.

The engine believes the meta page with the higher transaction number. A number that was damaged can lead it to the state
in front of the last commit, where everything fits: nothing in the tables tells. Two things do. The numbers of the two
meta pages follow one another. And every commit replaces pages and writes down which, under its number, so that the last
entry in a meta page's list of free pages has the number of that meta page.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import BinaryIO, Final

from eventlog.lmdb.directory import Meta, read_metas

_PAGE: Final = struct.Struct("=QHHHH")
"""Number, room for a pad, flags, and where the free space in the middle begins and ends."""
_NODE: Final = struct.Struct("=HHHH")
"""Length or page number in two halves, flags or the rest of it, length of the key."""
_BRANCH: Final = 1
_NO_PAGE: Final = 0xFFFF_FFFF_FFFF_FFFF
_DEPTH_MAX: Final = 32
_TRIES: Final = 5


def damaged_meta(data: Path) -> str:
    """What is wrong with the meta pages of a file; empty if nothing is, or if a busy writer lets nobody tell."""
    with data.open("rb") as file:
        for _ in range(_TRIES):
            metas = read_metas(file)
            if None in metas:
                return "a meta page is damaged"
            wrong = _wrong(file, [meta for meta in metas if meta is not None])
            if read_metas(file) == metas:  # nobody has written meanwhile
                return wrong
    return ""


def _wrong(file: BinaryIO, metas: list[Meta]) -> str:
    numbers = [meta.transaction for meta in metas]
    if any(numbers) and abs(numbers[0] - numbers[1]) != 1:
        return f"the meta pages are of the transactions {numbers[0]} and {numbers[1]}, which do not follow one another"
    for meta in metas:
        last = _last_freed(file, meta)
        if last not in (None, meta.transaction):
            return f"a meta page says transaction {meta.transaction}, and its list of free pages {last}"
    return ""


def _last_freed(file: BinaryIO, meta: Meta) -> int | None:
    """The last key in the list of free pages; None in an empty one, which a file has at first."""
    number = meta.free_root
    if number == _NO_PAGE:
        return None
    for _ in range(_DEPTH_MAX):
        file.seek(number * meta.page_size)
        page = file.read(meta.page_size)
        try:
            _, _, flags, lower, _ = _PAGE.unpack_from(page)
            (at,) = struct.unpack_from("=H", page, lower - 2)
            low, high, rest, key_bytes = _NODE.unpack_from(page, at)
        except struct.error:
            return -1
        if not flags & _BRANCH:
            start = at + _NODE.size
            return int.from_bytes(page[start : start + key_bytes], sys.byteorder)
        number = low | high << 16 | rest << 32
    return -1
