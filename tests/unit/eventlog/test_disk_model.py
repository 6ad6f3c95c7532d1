"""The model of a disk after a power cut: calls as strace writes them, and what may be left of them."""

from __future__ import annotations

import random
import re

import pytest

from eventlog.faults.disk import Disk
from eventlog.faults.play import NotModelled, Player
from eventlog.faults.states import Bounds, Painter, states
from eventlog.faults.trace import StraceError, parse, plain, strings

ALL = Bounds(writes=1 << 12, pages=256, torn=256, lengths=64)
Files = dict[str, bytes]


def line(text: str, thread: int = 7) -> str:
    """A line of a trace. Strings become hexadecimal, as they are traced."""

    def escaped(found: re.Match[str]) -> str:
        return '"' + "".join(f"\\x{byte:02x}" for byte in found[1].encode()) + '"'

    return f"{thread} " + re.sub(r'"([^"]*)"', escaped, text)


def left(*texts: str, bounds: Bounds = ALL) -> list[Files]:
    """Every different set of files that a power cut behind the last call leaves."""
    player = Player("/d", Disk(), mapped=lambda _: False)
    for _ in player.play(list(parse([text if text[0].isdigit() else line(text) for text in texts]))):
        pass
    painter, chance = Painter(player.disk, ()), random.Random(0)
    found = []
    for _, chosen in states(painter.pending(), bounds, chance):
        image = painter.image(chosen, chance)
        files = dict(sorted({**dict.fromkeys(image.directories, b"/"), **image.files}.items()))
        if files not in found:
            found.append(files)
    return found


MADE = 'openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 3'
HERE = ('openat(AT_FDCWD, "/d", O_RDONLY) = 9', "fsync(9) = 0")


def test_nothing_of_a_file_is_sure_until_it_and_its_directory_are_flushed() -> None:
    written = (MADE, 'write(3, "one", 3) = 3')
    anything: list[Files] = [{}, {"a": b""}, {"a": b"one"}, {"a": b"\0\0\0"}]
    assert sorted(left(*written), key=str) == sorted(anything, key=str)
    assert sorted(left(*written, "fsync(3) = 0"), key=str) == sorted([{}, {"a": b"one"}], key=str)
    assert all("a" in files for files in left(*written, *HERE))
    assert left(*written, "fdatasync(3) = 0", *HERE) == [{"a": b"one"}]


def test_a_flush_promises_nothing_of_what_is_written_while_it_runs() -> None:
    texts = (
        MADE, *HERE, 'write(3, "one", 3) = 3', line("fsync(3 <unfinished ...>"), line('write(3, "two", 3) = 3', 8),
        line("<... fsync resumed>) = 0"),
    )  # fmt: skip
    clone = "clone3({flags=CLONE_VM|CLONE_FILES, stack_size=0x7fff80} => {parent_tid=[8]}, 88) = 8"
    assert sorted(files["a"] for files in left(clone, *texts)) == [b"one", b"one\0\0\0", b"onetwo"]


def test_a_write_through_a_descriptor_that_waits_is_sure_and_nothing_else() -> None:
    texts = (MADE, *HERE, 'pwrite64(3, "x", 1, 600) = 1', 'openat(AT_FDCWD, "/d/a", O_WRONLY|O_DSYNC) = 4')
    found = {files["a"] for files in left(*texts, 'pwrite64(4, "meta", 4, 0) = 4')}
    assert found == {b"meta" + bytes(508), b"meta" + bytes(596) + b"x", b"meta" + bytes(597)}


def test_a_renaming_is_whole_or_not_and_says_nothing_of_other_names() -> None:
    texts = (MADE, 'write(3, "one", 3) = 3', "fsync(3) = 0", *HERE, 'mkdir("/d/b", 0700) = 0')
    found = left(*texts, 'rename("/d/a", "/d/c") = 0')
    wanted: list[Files] = [{"a": b"one"}, {"a": b"one", "b": b"/"}, {"c": b"one"}, {"b": b"/", "c": b"one"}]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert left(*texts, 'rename("/d/a", "/d/c") = 0', "fsync(9) = 0") == [{"b": b"/", "c": b"one"}]


def test_what_is_removed_may_come_back_with_its_directory() -> None:
    texts = ('mkdir("/d/b", 0700) = 0', 'openat(AT_FDCWD, "/d/b/a", O_WRONLY|O_CREAT, 0600) = 3', *HERE)
    settled = (*texts, 'openat(AT_FDCWD, "/d/b", O_RDONLY) = 8', "fsync(8) = 0")
    gone = (*settled, 'unlink("/d/b/a") = 0', 'rmdir("/d/b") = 0')
    assert sorted(left(*gone), key=str) == sorted([{"b": b"/", "b/a": b""}, {"b": b"/"}, {}], key=str)
    assert left(*gone, "fsync(9) = 0") == [{}]


def test_a_sector_is_as_it_was_at_some_moment() -> None:
    """The second write to it is there with the first one, or not at all."""
    texts = (MADE, *HERE, 'write(3, "aaaa", 4) = 4', "fsync(3) = 0", 'pwrite64(3, "b", 1, 0) = 1')
    assert sorted(files["a"] for files in left(*texts, 'pwrite64(3, "c", 1, 1) = 1')) == [b"aaaa", b"baaa", b"bcaa"]


def test_a_write_is_torn_at_512_bytes() -> None:
    text = "x" * 512 + "y" * 512 + "z" * 10
    found = {files["a"] for files in left(MADE, *HERE, f'write(3, "{text}", 1034) = 1034')}
    assert text[:512].encode() in found
    assert bytes(512) + text[512:1024].encode() in found
    assert text[:512].encode() + bytes(512) + text[1024:].encode() in found
    assert all(part in (b"x" * 512, bytes(512)) for part in {contents[:512] for contents in found if contents})


def test_a_file_may_be_cut_off_or_not() -> None:
    texts = (MADE, *HERE, 'write(3, "one", 3) = 3', "fsync(3) = 0")
    assert sorted(files["a"] for files in left(*texts, "ftruncate(3, 1) = 0")) == [b"o", b"one"]
    again = 'openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 5'
    found = sorted(files["a"] for files in left(*texts, again, 'writev(5, [{iov_base="t", iov_len=1}], 1) = 1'))
    assert found == [b"", b"\0", b"one", b"t", b"tne"]


def test_a_call_that_the_model_has_no_rule_for_is_refused() -> None:
    for text in ('link("/d/a", "/d/b") = 0', "fallocate(3, 0, 0, 4096) = 0", 'truncate("/d/a", 0) = 0'):
        with pytest.raises(NotModelled, match=text.partition("(")[0]):
            left(MADE, text)
        elsewhere = text.replace("/d/", "/e/").replace("(3,", "(4,")
        assert left(MADE, elsewhere) == left(MADE)
    for text in ('rename("/d/a", "/e/a") = 0', "mmap(NULL, 9, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f"):
        with pytest.raises(NotModelled):
            left(MADE, text)


def test_what_a_call_that_failed_would_have_done_is_not_done() -> None:
    failed = (
        'unlink("/d/a") = -1 EACCES (Permission denied)',
        'openat(AT_FDCWD, "/d/b", O_CREAT) = -1 ENOSPC (No space left on device)',
    )
    assert left(MADE, *HERE, *failed) == [{"a": b""}]


def test_a_program_says_lines_and_those_of_its_children_are_not_taken_for_it() -> None:
    player = Player("/d", Disk(), mapped=lambda _: False)
    texts = [line('write(1, "{half", 5) = 5'), line('write(1, " and whole}\nwords\n", 18) = 18')]
    assert list(player.play(list(parse(texts)))) == ["end"]
    assert player.said == [b"{half and whole}"]


def test_arguments_are_told_apart() -> None:
    text = line('pwrite64(3, "a, b", 4, 512) = 4')
    (call,) = parse([text])
    assert (call.name, call.thread, call.result) == ("pwrite64", 7, 4)
    assert (plain(call.arguments), strings(call.arguments)) == (["3", '""', "4", "512"], [b"a, b"])
    with pytest.raises(StraceError, match="line 1 of the trace"):
        list(parse(["7 pwrite64(3, what is this"]))
