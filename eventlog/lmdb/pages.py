"""What the pages of a file say of its transactions and of one another, read past the engine.

The engine believes the meta page with the higher transaction number. A number that was damaged can lead it to the
state in front of the last commit, where everything fits: nothing in the tables tells. Two things do, nearly always. The
numbers of the two meta pages follow one another. And every commit replaces pages and writes down which, under its
number, so that the last entry in a meta page's list of free pages has the number of that meta page.

Nor does anything in the tables tell that a page which is in use is on the list of free pages too: the next commits
would write over it. `wrong_pages` looks at every page.
"""

from __future__ import annotations

import os
import struct
import sys
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

from eventlog.lmdb.directory import Meta, read_metas

_PAGE: Final = struct.Struct("=QHHHH")
"""Number, room for a pad, flags, and where the free space in the middle begins and ends."""
_NODE: Final = struct.Struct("=HHHH")
"""Length or page number in two halves, flags or the rest of it, length of the key."""
_BRANCH: Final = 0x01
_FIXED: Final = 0x20
"""Flags of a page: of a branch; of duplicates of a fixed size, which have no nodes."""
_LONG: Final = 0x04
_KINDS: Final = frozenset({_BRANCH, 0x02, 0x02 | _FIXED, _LONG})
_BIG: Final = 0x01
_TREE: Final = 0x02
"""Flags of a node: its value is on pages of its own; its value is a tree."""
_ADDRESS: Final = 8
"""Bytes of the number of such a page, which stands in the place of the value."""
_ROOT: Final = 40
"""Where the number of its first page stands in what describes a tree."""
_NUMBER: Final = 8
"""Bytes of a transaction's number, which is a key in the list of free pages."""
_METAS: Final = 2
_NO_PAGE: Final = 0xFFFF_FFFF_FFFF_FFFF
_DEPTH_MAX: Final = 32
_TRIES: Final = 5


def damaged_meta(data: Path, *, doubt: bool = False) -> str:
    """What is wrong with the meta pages of a file; empty if nothing is, or if a busy writer lets nobody tell.

    With `doubt` also what may come of a meta page that could not be written, where that cannot be told from damage.
    """
    with data.open("rb") as file:
        for _ in range(_TRIES):
            metas = read_metas(file)
            if not file.seek(0, os.SEEK_END):
                return ""  # the engine has not begun it
            if None in metas:
                return "a meta page is damaged"
            wrong = _wrong(file, [meta for meta in metas if meta is not None], doubt=doubt)
            if read_metas(file) == metas:  # nobody has written meanwhile
                return wrong
    return ""


def _wrong(file: BinaryIO, metas: list[Meta], *, doubt: bool) -> str:
    numbers = [meta.transaction for meta in metas]
    if any(numbers) and abs(numbers[0] - numbers[1]) != 1:
        return f"the meta pages are of the transactions {numbers[0]} and {numbers[1]}, which do not follow one another"
    other, newest = sorted(metas, key=lambda meta: meta.transaction)
    last = _last_freed(file, newest)
    if last not in (None, newest.transaction):
        return f"a meta page says transaction {newest.transaction}, and its list of free pages {last}"
    # What the other one leads to may be written over already (a power cut can take back the newest there was, in the
    # mode "relaxed"), but it may be the newest, with two taken off its number. It looks alike where the engine could
    # not write a meta page: it puts the number of before back, and that of the last page.
    last = _last_freed(file, other)
    if last == other.transaction + 2 and other.last_page + doubt > newest.last_page:
        return f"a meta page says transaction {other.transaction}, and its list of free pages {last}"
    return ""


def _last_freed(file: BinaryIO, meta: Meta) -> int | None:
    """The last key in the list of free pages; None in an empty one, which a file has at first."""
    number = meta.free_root
    if number == _NO_PAGE:
        return None
    for _ in range(_DEPTH_MAX):
        if number > meta.last_page:
            return -1
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
            return int.from_bytes(page[start : start + key_bytes], sys.byteorder) if key_bytes == _NUMBER else -1
        number = low | high << 16 | rest << 32
    return -1


# --- every page -------------------------------------------------------------------------------------------------------
def wrong_pages(data: Path, transaction: int) -> str:
    """What is wrong with the pages of a transaction's state, which a read transaction must keep meanwhile.

    Every page is looked at once: whether it has its own number, whether two places lead to it, whether it is free as
    well. Empty if nothing is wrong, or if a busy writer has replaced both meta pages since.
    """
    with data.open("rb") as file:
        for meta in read_metas(file):
            if meta is not None and meta.transaction == transaction:
                try:
                    _Pages(file, meta).look()
                except _Wrong as wrong:
                    return str(wrong)
                except struct.error:
                    return "a page of a tree is damaged"
    return ""


class _Wrong(Exception):
    """What is wrong."""


class _Pages:
    """One pass over the trees of one state."""

    def __init__(self, file: BinaryIO, meta: Meta) -> None:
        self._file = file
        self._meta = meta
        self._used = bytearray(meta.last_page + 1)
        self._freed: list[int] = []
        self._freed_by = 0
        """The last transaction whose freed pages were noted."""

    def look(self) -> None:
        """Raises `_Wrong`, `struct.error`."""
        self._tree(self._meta.main_root, free=False)
        self._tree(self._meta.free_root, free=True)
        for number in self._freed:
            if not _METAS <= number <= self._meta.last_page:
                raise _Wrong(f"page {number} of {self._meta.last_page} is on the list of free pages")
            if self._used[number]:
                raise _Wrong(f"page {number} is in use and on the list of free pages, or twice on that")
            self._used[number] = 1

    def _take(self, number: int) -> bytes:
        """The bytes of a page that a tree leads to."""
        if not _METAS <= number <= self._meta.last_page:
            raise _Wrong(f"a tree leads to page {number} of {self._meta.last_page}")
        if self._used[number]:
            raise _Wrong(f"two places lead to page {number}")
        self._used[number] = 1
        self._file.seek(number * self._meta.page_size)
        page = self._file.read(self._meta.page_size)
        own, _, flags, lower, upper = _PAGE.unpack_from(page)
        if own != number:
            raise _Wrong(f"where page {number} should be, there is page {own}")
        if flags not in _KINDS:  # the engine keeps notes of its own in other bits, in memory only
            raise _Wrong(f"page {number} is of a kind that there is not, {flags:#x}")
        if flags != _LONG and not _PAGE.size <= lower <= upper <= self._meta.page_size:
            raise _Wrong(f"the free space of page {number} begins at {lower} and ends at {upper}")
        return page

    def _tree(self, root: int, *, free: bool) -> None:
        waiting = [] if root == _NO_PAGE else [root]
        while waiting:
            page = self._take(waiting.pop())
            _, _, flags, lower, upper = _PAGE.unpack_from(page)
            if flags & _FIXED:
                continue
            end = len(waiting)  # children are taken in their order
            spans = []
            for at in struct.unpack_from(f"={(lower - _PAGE.size) // 2}H", page, _PAGE.size):
                low, high, rest, key_bytes = _NODE.unpack_from(page, at)
                body = at + _NODE.size + key_bytes
                if flags & _BRANCH:
                    waiting.insert(end, low | high << 16 | rest << 32)
                    spans.append((at, body))
                    continue
                size = low | high << 16
                spans.append((at, body + (_ADDRESS if rest & _BIG else size)))
                value = page[body : body + size]
                if rest & _BIG:
                    value = self._long(page, body, size if free else 0)
                elif rest & _TREE:
                    (number,) = struct.unpack_from("=Q", page, body + _ROOT)
                    if number != _NO_PAGE:
                        waiting.append(number)
                if free:
                    self._free(page[at + _NODE.size : body], value)
            self._apart(page, upper, spans)

    def _apart(self, page: bytes, upper: int, spans: list[tuple[int, int]]) -> None:
        """The rows of a page lie side by side behind its free space, where the next one is put."""
        for at, end in sorted(spans):
            if at < upper:
                number = _PAGE.unpack_from(page)[0]
                raise _Wrong(f"on page {number} a row begins at {at}, where only what begins at {upper} has room")
            upper = end
        if upper > self._meta.page_size:
            raise _Wrong(f"the last row of page {_PAGE.unpack_from(page)[0]} ends behind it")

    def _free(self, key: bytes, value: bytes) -> None:
        """Note the pages that one transaction has freed, the last of them first."""
        transaction = int.from_bytes(key, sys.byteorder)
        if not self._freed_by < transaction <= self._meta.transaction:
            raise _Wrong(f"transaction {transaction} is not at its place in the list of free pages")
        self._freed_by = transaction
        (count,) = struct.unpack_from("=Q", value)
        if (count + 1) * 8 > len(value):
            raise _Wrong(f"transaction {transaction} has freed {count} pages, in {len(value)} bytes")
        pages = struct.unpack_from(f"={count}Q", value, 8)
        if any(one <= other for one, other in pairwise(pages)):
            raise _Wrong(f"the pages that transaction {transaction} has freed are not in order")
        self._freed.extend(pages)

    def _long(self, page: bytes, at: int, size: int) -> bytes:
        """Take the pages of a long value; its first bytes."""
        (first,) = struct.unpack_from("=Q", page, at)
        head = self._take(first)
        (count,) = struct.unpack_from("=I", head, _PAGE.size - 4)
        if not first + count <= self._meta.last_page + 1 or any(self._used[first + 1 : first + count]):
            raise _Wrong(f"a long value of {count} pages from page {first} takes others' pages")
        self._used[first + 1 : first + count] = b"\1" * (count - 1)
        self._file.seek(first * self._meta.page_size + _PAGE.size)
        return self._file.read(size)
