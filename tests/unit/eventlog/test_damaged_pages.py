"""Damage between the records: pages, the list of free pages, and rows that cannot be found or are hidden.

What the engine would believe is refused when a log is opened, or found by `check`; nothing is written over it.
"""

from __future__ import annotations

import random
import shutil
import struct
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

import eventlog
from eventlog import BadRecord, DamagedLog
from eventlog.exchange import export_lines
from eventlog.lmdb.checking import check_directory
from eventlog.lmdb.layout import in_order
from tests.damage.hostile import variants as of_strangers
from tests.damage.logs import data_file, make_small
from tests.damage.pages import BRANCH, FREE, KEYS, REGIONS, PageMap
from tests.damage.pool import run_all
from tests.damage.runs import violation
from tests.damage.variants import Outcome, Variant
from tests.support.skips import LINUX_ONLY
from tests.unit.eventlog.damaged import damage

LAST = 316
SAMPLE_OF_REGION = 8
STRANGERS_EVERY = 71
NEVER = float("inf")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with trees of several pages, closed. Tests work on copies."""
    directory = tmp_path_factory.mktemp("whole") / "log"
    make_small(directory)
    return directory


@pytest.fixture
def log(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "log"))


def change(directory: Path, edit: Callable[[bytearray, PageMap], None]) -> bytes:
    """Change the file; what it is then."""
    data = data_file(directory)
    text = bytearray(data.read_bytes())
    edit(text, PageMap(bytes(text)))
    data.write_bytes(text)
    return bytes(text)


def refused(directory: Path, left: bytes, *, reading: bool = True) -> str:
    """That a log cannot be opened and stays as it is; the reason."""
    reasons = []
    for readonly in (True, False) if reading else (False,):
        with pytest.raises(DamagedLog) as caught:
            eventlog.open(directory, readonly=readonly)
        reasons.append(str(caught.value.fields["reason"]))
    assert data_file(directory).read_bytes() == left
    return " ".join(reasons)


def test_a_whole_log_has_whole_pages(whole: Path) -> None:
    assert check_directory(whole).well
    with eventlog.open(whole, readonly=True) as opened:
        assert opened.head() == LAST


# --- what is refused --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("less", [1, 2, 3, 4])
def test_the_state_before_the_last_is_not_taken_for_the_last(log: Path, less: int) -> None:
    """The number of the newest meta page is damaged: the engine would append over what it does not see."""

    def edit(text: bytearray, _: PageMap) -> None:
        numbers = [struct.unpack_from("=Q", text, at)[0] for at in (144, 4240)]
        at = 144 if numbers[0] > numbers[1] else 4240
        struct.pack_into("=Q", text, at, max(numbers) - less)

    assert "transaction" in refused(log, change(log, edit))


def test_a_table_that_is_missing_is_not_made_anew(log: Path) -> None:
    """An empty one would hide what was there: a second append under a key that is known, or the whole log."""
    for name in (b"log", b"keys", b"views"):
        copy = Path(shutil.copytree(log, log.parent / f"without {name.decode()}"))

        def edit(text: bytearray, pages: PageMap, name: bytes = name) -> None:
            for at in [at for at in pages.offsets(KEYS) if text.startswith(name, at)]:
                if text[at - 2 : at] == struct.pack("=H", len(name)):  # the length of a node's key
                    text[at] ^= 1

        assert "lacks a table" in refused(copy, change(copy, edit))


@pytest.mark.parametrize("page", [1, 10_000, 1 << 51, 1 << 62, (1 << 64) - 2])
def test_a_list_of_free_pages_that_begins_far_away_is_refused(log: Path, page: int) -> None:
    def edit(text: bytearray, _: PageMap) -> None:
        newest = max((144, 4240), key=lambda at: int(struct.unpack_from("=Q", text, at)[0]))
        struct.pack_into("=Q", text, newest - 64, page)

    assert "list of free pages" in refused(log, change(log, edit))


def test_a_table_that_says_it_is_of_another_kind_is_refused(log: Path) -> None:
    """Its rows would be looked for in the order of their bytes from behind, and not found."""

    def edit(text: bytearray, pages: PageMap) -> None:
        for at in [at for at in pages.offsets(KEYS) if text.startswith(b"views", at)]:
            text[at + len(b"views") + 4] ^= 0x02

    assert "'views' is of another kind" in refused(log, change(log, edit))


def test_a_transaction_whose_number_has_thousands_of_bytes_is_refused(log: Path) -> None:
    """The last key of the list of free pages says that it is so long; Python does not even print such numbers."""

    def edit(text: bytearray, _: PageMap) -> None:
        newest = max((144, 4240), key=lambda at: int(struct.unpack_from("=Q", text, at)[0]))
        page = struct.unpack_from("=Q", text, newest - 64)[0] * 4096
        lower = struct.unpack_from("=H", text, page + 12)[0]
        node = struct.unpack_from("=H", text, page + lower - 2)[0]
        text[page + node + 7] ^= 0x80

    assert "list of free pages" in refused(log, change(log, edit))


def test_rows_that_are_hidden_are_not_written_over(log: Path) -> None:
    """The last rows are cut off the page that they are in: the next position would be one that is taken."""

    def edit(text: bytearray, pages: PageMap) -> None:
        page = next(page for page, positions in pages.positions.items() if LAST in positions)
        (lower,) = struct.unpack_from("=H", text, page * 4096 + 12)
        struct.pack_into("=H", text, page * 4096 + 12, lower - 6)

    left = change(log, edit)
    assert "rows" in refused(log, left, reading=False)
    assert not check_directory(log).well


def test_a_meta_page_that_could_not_be_written_is_no_damage(log: Path) -> None:
    """The engine puts the number of before back, and that of the last page, and leaves the rest: nothing is lost then.

    The commit that failed is not there, and the one before it is.
    """
    ends = {at: slice(at - 8, at + 8) for at in (144, 4240)}
    before = data_file(log).read_bytes()
    with eventlog.open(log) as opened:
        opened.append("s", [eventlog.NewEvent("a", bytes(50_000))])

    def edit(text: bytearray, _: PageMap) -> None:
        at = max(ends, key=lambda at: int(struct.unpack_from("=Q", text, at)[0]))
        text[ends[at]] = before[ends[at]]

    change(log, edit)
    assert check_directory(log).well
    with eventlog.open(log) as opened:
        assert opened.head() == LAST
        assert opened.append("s", [eventlog.NewEvent("a", b"on")]).first_position == LAST + 1


# --- what is found ----------------------------------------------------------------------------------------------------
def free_a_page_in_use(text: bytearray, pages: PageMap) -> None:
    at = next(at for at in pages.offsets(FREE) if struct.unpack_from("=Q", text, at)[0] == max(pages.freed))
    struct.pack_into("=Q", text, at, next(iter(pages.positions)))


def another_number(text: bytearray, pages: PageMap) -> None:
    text[next(iter(pages.positions)) * 4096] ^= 1


def another_kind(text: bytearray, pages: PageMap) -> None:
    text[next(iter(pages.positions)) * 4096 + 11] ^= 0x80


def a_page_twice(text: bytearray, pages: PageMap) -> None:
    one, other = list(pages.positions)[:2]
    text[one * 4096 : (one + 1) * 4096] = text[other * 4096 : (other + 1) * 4096]


def a_branch_that_misleads(text: bytearray, pages: PageMap) -> None:
    at = next(at for at in pages.offsets(BRANCH) if text.startswith(b"0", at) and text[at : at + 4].isdigit())
    text[at] ^= 0x40


def a_branch_that_hides_one_row(text: bytearray, pages: PageMap) -> None:
    at = next(at for at in pages.offsets(BRANCH) if text[at] in b"123456789" and text[at - 3 : at + 1].isdigit())
    text[at] -= 1


def free_space_where_a_row_lies(text: bytearray, pages: PageMap) -> None:
    place = next(iter(pages.positions)) * 4096 + 14
    struct.pack_into("=H", text, place, struct.unpack_from("=H", text, place)[0] + 64)


@pytest.mark.parametrize(
    ("edit", "what", "detail"),
    [
        (free_a_page_in_use, "file_damaged", " free"),
        (another_number, "file_damaged", "where page"),
        (another_kind, "file_damaged", "of a kind that there is not"),
        (a_page_twice, "file_damaged", "where page"),
        (a_branch_that_misleads, "table_disordered", "is not found by its key"),
        (a_branch_that_hides_one_row, "table_disordered", "is not found by its key"),
        (free_space_where_a_row_lies, "file_damaged", "has room"),
    ],
)
def test_damage_that_no_row_tells_is_found(log: Path, edit: Callable[..., None], what: str, detail: str) -> None:
    change(log, edit)
    findings = [finding for finding in check_directory(log).findings if detail in finding.detail]
    assert [finding.what for finding in findings] == [what]


# --- what a reader does -----------------------------------------------------------------------------------------------
def test_rows_that_lead_in_a_circle_end() -> None:
    rows = [(b"a", b"1"), (b"b", b"2"), (b"a", b"1")]
    with pytest.raises(BadRecord):
        list(in_order(iter(rows)))  # type: ignore[arg-type]


@pytest.mark.parametrize("position", [10**9, 2**63, 2**64 - 1])
def test_a_position_far_away_is_not_walked_to(log: Path, position: int) -> None:
    """All that is missing before it is passed over at once."""
    damage(log, f"txn.put(struct.pack('>Q', {position}), b'junk', db=log)")
    with eventlog.open(log, readonly=True) as opened:
        assert [event.position for event in opened.read_all(on_bad="skip")] == list(range(1, LAST + 1))
        assert [event.position for event in opened.read_all(on_bad="raw")][-1] == position
        with pytest.raises(BadRecord) as caught:
            list(opened.read_all())
        assert caught.value.fields["position"] == LAST + 1


def test_a_branch_that_leads_back_ends_no_reading_and_no_process(log: Path) -> None:
    """Its key says that later positions lie before it: what cannot be found is passed over, and nothing comes twice."""

    def edit(text: bytearray, pages: PageMap) -> None:
        for at in pages.offsets(BRANCH):
            if text[at - 2 : at + 6] == b"\x08\0" + bytes(6):  # the length of a node's key, and a position
                text[at] ^= 0x10

    change(log, edit)
    with eventlog.open(log, readonly=True) as opened:
        found = [event.position for event in islice(opened.read_all(on_bad="skip"), 2 * LAST)]
    assert found == sorted(set(found))
    assert found[0] == 1


def test_a_name_under_a_key_that_nothing_writes_is_told(log: Path) -> None:
    damage(log, "key = b'\\xff' * 8; txn.put(key, seal(key, b'name'), db=names)")
    with eventlog.open(log, readonly=True) as opened, pytest.raises(BadRecord):
        list(opened.streams())


def test_an_export_of_a_closed_stream_that_has_lost_its_events(log: Path) -> None:
    damage(log, "txn.delete(b't', db=numbers)")
    with eventlog.open(log, readonly=True) as opened, pytest.raises(BadRecord):
        list(export_lines(opened))


# --- a part of `make damage` ------------------------------------------------------------------------------------------
def outcomes(whole: Path, scratch: Path, variants: list[Variant]) -> list[Outcome]:
    found = list(run_all(variants, "small", whole, scratch, 1, NEVER))
    assert len(found) == len(variants)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
def test_bytes_of_every_kind_are_told_answered_rightly_or_found(whole: Path, tmp_path: Path) -> None:
    """Some of each kind, flipped one at a time in a process of its own."""
    data = data_file(whole).read_bytes()
    pages, rng = PageMap(data), random.Random(1)
    variants = []
    for region in REGIONS:
        offsets = list(pages.offsets(region))
        for at in rng.sample(offsets, min(SAMPLE_OF_REGION, len(offsets))):
            bit = bytes((data[at] ^ (1 << rng.randrange(8)),))
            variants.append(Variant(at, region, ((at, bit),), steps="read write"))
    found = outcomes(whole, tmp_path, variants)
    assert [(one, violation(one)) for one in found if violation(one)] == []
    assert {one.said["read"] for one in found} >= {"right", "told"}


@pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)
def test_records_of_strangers_are_told_or_read(whole: Path, tmp_path: Path) -> None:
    """D10, a part: unknown tags, lengths of 2 GB and nesting behind a right checksum, within bounds."""
    variants = list(of_strangers(1, 20))
    chosen = [one for one in variants if "nested" in one.kind][2::3] + variants[::STRANGERS_EVERY]
    found = outcomes(whole, tmp_path, chosen)
    assert [(one, violation(one)) for one in found if violation(one)] == []


def test_a_verdict_can_be_bad() -> None:
    """What breaks a promise is said to."""
    for kind, said in (
        ("record bytes", {"read": "wrong", "check": "found"}),
        ("branch", {"read": "wrong", "check": "well"}),
        ("branch", {"read": "died of SIGBUS", "check": "well"}),
        ("branch", {"read": "untyped"}),
        ("branch", {"read": "slow"}),
        ("unused page", {"read": "told", "write": "right"}),
        ("cut off", {"read": "right", "write": "refused"}),
        ("cut off", {"read": "told", "write": "right"}),
    ):
        assert violation(Outcome(0, kind, said))
    assert not violation(Outcome(0, "branch", {"read": "wrong", "check": "found"}))
    assert not violation(Outcome(0, "record bytes", {"read": "told", "write": "right"}))
