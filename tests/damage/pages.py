"""What each byte of a file of LMDB 0.9 is for, on a 64-bit machine: read from its pages, not by the engine."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

META, FREE, BRANCH, LEAF, KEYS, INDEX, RECORD, OVERFLOW, SPACE, UNUSED = (
    "meta page", "free list", "branch", "leaf, its structure", "leaf, keys", "leaf, rows of indexes", "record bytes",
    "overflow, its header", "space in a page", "unused page",
)  # fmt: skip
REGIONS: Final = (META, FREE, BRANCH, LEAF, KEYS, INDEX, RECORD, OVERFLOW, SPACE, UNUSED)

_HEAD: Final = struct.Struct("=QHHHH")
_NODE: Final = struct.Struct("=HHHH")
_OVERFLOW_PAGES: Final = struct.Struct("=12xI")
_DATABASE: Final = struct.Struct("=IHHQQQQQ")
_META: Final = struct.Struct("=16xIIQQ48s48sQQ")
_BRANCH_PAGE, _LEAF_PAGE, _FIXED_PAGE = 0x01, 0x02, 0x20
_BIG, _TREE, _DUPLICATES = 0x01, 0x02, 0x04
_NONE: Final = 0xFFFF_FFFF_FFFF_FFFF
_META_BYTES: Final = _META.size


class PageMap:
    """The region of every byte of a whole file, and which records lie in each page."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        metas = [_META.unpack_from(data, 0)]
        self.page_size: int = _DATABASE.unpack(metas[0][4])[0]
        metas.append(_META.unpack_from(data, self.page_size))
        newest = max(metas, key=lambda meta: int(meta[7]))
        self.pages = len(data) // self.page_size
        self.last_page: int = newest[6]
        self.positions: dict[int, list[int]] = {}
        """Of pages with whole or part of records of the log: their positions."""
        self.freed: list[int] = []
        """Numbers on the list of free pages."""
        self._pages_of: dict[str, list[int]] = {}
        self._code = bytearray([REGIONS.index(UNUSED)]) * len(data)
        for page in (0, 1):
            self._mark(page * self.page_size, self.page_size, SPACE)
            self._mark(page * self.page_size, _META_BYTES, META)
        self._walk(_DATABASE.unpack(newest[4])[7], "free")
        self._walk(_DATABASE.unpack(newest[5])[7], "main")

    def region(self, at: int) -> str:
        """What the byte at an offset is for."""
        return REGIONS[self._code[at]]

    def counts(self) -> dict[str, int]:
        """Bytes by region."""
        return {region: count for code, region in enumerate(REGIONS) if (count := self._code.count(code))}

    def offsets(self, region: str) -> Iterator[int]:
        """All bytes of a region."""
        code, at = REGIONS.index(region), -1
        while (at := self._code.find(code, at + 1)) >= 0:
            yield at

    def pages_of(self, region: str) -> list[int]:
        """Pages that have a byte of a region."""
        if region not in self._pages_of:
            code, size = REGIONS.index(region), self.page_size
            self._pages_of[region] = [
                page for page in range(self.pages) if self._code.find(code, page * size, (page + 1) * size) >= 0
            ]
        return self._pages_of[region]

    def near(self, at: int) -> list[int]:
        """Positions of the records in the page of a byte."""
        return self.positions.get(at // self.page_size, [])

    def _mark(self, at: int, length: int, region: str) -> None:
        self._code[at : at + length] = bytes([REGIONS.index(region)]) * length

    def _walk(self, root: int, table: str) -> None:
        if root == _NONE:
            return
        waiting = [root]
        while waiting:
            page = waiting.pop()
            start = page * self.page_size
            _, pad, flags, lower, upper = _HEAD.unpack_from(self.data, start)
            self._mark(start, self.page_size, SPACE)
            if flags & _FIXED_PAGE:
                used = _HEAD.size + pad * ((lower - _HEAD.size) // 2)
                self._mark(start, used, INDEX)
                self._mark(start, _HEAD.size, LEAF)
                continue
            nodes = struct.unpack_from(f"={(lower - _HEAD.size) // 2}H", self.data, start + _HEAD.size)
            if flags & _BRANCH_PAGE:
                region = FREE if table == "free" else BRANCH
                self._mark(start, lower, region)
                for at in nodes:
                    low, high, rest, length = _NODE.unpack_from(self.data, start + at)
                    waiting.append(low | high << 16 | rest << 32)
                    self._mark(start + at, _NODE.size + length, region)
            else:
                self._mark(start, lower, FREE if table == "free" else LEAF)
                for at in nodes:
                    self._leaf_node(page, start + at, table)
            assert upper >= lower

    def _leaf_node(self, page: int, at: int, table: str) -> None:
        low, high, flags, length = _NODE.unpack_from(self.data, at)
        size = low | high << 16
        key = self.data[at + _NODE.size : at + _NODE.size + length]
        body = at + _NODE.size + length
        if table == "log":
            self.positions.setdefault(page, []).append(int.from_bytes(key, "big"))
        if table == "free":
            self._mark(at, _NODE.size + length + (8 if flags & _BIG else size), FREE)
            if not flags & _BIG:
                self.freed += struct.unpack_from(f"={size // 8 - 1}Q", self.data, body + 8)
            if flags & _BIG:
                self._overflow(int.from_bytes(self.data[body : body + 8], "little"), size, FREE, FREE, 0)
            return
        self._mark(at, _NODE.size, LEAF)
        self._mark(at + _NODE.size, length, KEYS)
        region = RECORD if table == "log" else INDEX
        if flags & _BIG:
            self._mark(body, 8, LEAF)
            position = int.from_bytes(key, "big") if table == "log" else 0
            self._overflow(int.from_bytes(self.data[body : body + 8], "little"), size, OVERFLOW, region, position)
        elif flags & _TREE:
            self._mark(body, _DATABASE.size, LEAF)
            root = _DATABASE.unpack_from(self.data, body)[7]
            self._walk(root, key.decode() if table == "main" and not flags & _DUPLICATES else table)
        else:
            self._mark(body, size, region)

    def _overflow(self, page: int, size: int, head: str, region: str, position: int) -> None:
        (count,) = _OVERFLOW_PAGES.unpack_from(self.data, page * self.page_size)
        start = page * self.page_size
        self._mark(start, count * self.page_size, SPACE)
        self._mark(start, _HEAD.size, head)
        self._mark(start + _HEAD.size, size, region)
        if position:
            for one in range(page, page + count):
                self.positions.setdefault(one, []).append(position)
