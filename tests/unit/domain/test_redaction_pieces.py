"""A long text is searched in pieces, so that no call of a pattern keeps the interpreter for long: nothing is missed.

Method: what the patterns may look at is counted from their parsed form, and both ways are compared on texts whose
secrets lie across the borders of pieces.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pace_actors.domain import secret_shapes
from pace_actors.domain.redaction import redact
from pace_actors.domain.secret_shapes import PIECE_CHARS, REACH_CHARS, SHAPES, Shape, pieces, spans_across, spans_in

parser: Any = re._parser  # type: ignore[attr-defined]  # the patterns as the engine reads them
SINGLE = {"LITERAL", "NOT_LITERAL", "IN", "ANY"}
REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
BLANKS = [" ", "\n", "\t", "\r", "\x0b", "\x0c", "\x85", "\xa0", "\u2003"]
SECRETS = [
    "my password is hunter2",
    "password = 'a1 b2 c3 d4'",
    "sk-proj-Ab12Cd34Ef56Gh78Ij90",
    f"api_key={'Ab1-' * 700}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "authorization: Bearer aBcDeFgHiJ0123456789",
    "postgres://ann:s3cr3t@host/db",
    "curl -u ann:s3cr3tpw x",
    "4111 1111 1111 1111",
    "--password hunter22",
    "das Passwort lautet 'geheim12'",
    "パスワードは「abc123」",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
    "bypass the pass:",
    "token for the big old house on the hill is 'x1y2z3'",
]


class Reach:
    """How far a pattern may look: over `width` characters, runs that end before a blank, and `peeks` behind those."""

    def __init__(self, *, has_run: bool = False) -> None:
        self.width = 0
        self.peeks = 0
        self.has_run = has_run

    def then(self, width: int, *, blank: bool, run: bool = False) -> None:
        """The next thing that it goes over. Behind a run there may be no blank, or another run begins behind that."""
        assert not (self.has_run and blank), "what follows a run without an end looks over a blank"
        self.width += width
        self.has_run = self.has_run or run

    def inside(self, parsed: Any, flags: int) -> Reach:
        """What a part of the pattern looks at that comes next."""
        inner = Reach(has_run=self.has_run)
        reach_of(parsed, flags, inner)
        self.peeks += inner.peeks
        return inner


def matches_blank(item: Sequence[Any], flags: int) -> bool:
    """Whether one character of a class may be a blank."""
    one = parser.SubPattern(parser.State(), [item])
    return any(_compiled(one, flags).match(blank) for blank in BLANKS)


def _compiled(parsed: Any, flags: int) -> re.Pattern[str]:
    compiler: Any = re._compiler  # type: ignore[attr-defined]
    parsed.state.str = ""
    parsed.state.flags = flags
    compiled: re.Pattern[str] = compiler.compile(parsed)
    return compiled


def reach_of(parsed: Any, flags: int, reach: Reach) -> None:
    """Add what a sequence looks at. Of what is looked at without going over it, all is counted, wherever it stands."""
    for op, argument in parsed:
        name = str(op)
        if name in SINGLE:
            reach.then(1, blank=matches_blank((op, argument), flags))
        elif name in REPEATS:
            _, most, what = argument
            inner = reach.inside(what, flags)
            if most == parser.MAXREPEAT:
                assert not may_be_blank(what, flags), "a run without an end goes over blanks"
                reach.then(inner.width, blank=False, run=True)
            else:
                reach.then(most * inner.width, blank=may_be_blank(what, flags), run=inner.has_run)
        elif name == "BRANCH":
            branches = [reach.inside(branch, flags) for branch in argument[1]]
            blank = any(may_be_blank(branch, flags) for branch in argument[1])
            reach.then(max(one.width for one in branches), blank=blank, run=any(one.has_run for one in branches))
        elif name in {"ASSERT", "ASSERT_NOT"}:
            for inside in subpatterns(name, argument):
                ahead = reach.inside(inside, flags)
                reach.peeks += ahead.width
        else:
            for inside in subpatterns(name, argument):
                reach_of(inside, flags, reach)


def subpatterns(name: str, argument: Any) -> Iterator[Any]:
    """The sequences inside a group, a condition or an assertion. What looks back reaches nowhere ahead."""
    if name == "SUBPATTERN":
        yield argument[3]
    elif name in {"ASSERT", "ASSERT_NOT"}:
        direction, inside = argument
        if direction > 0:
            yield inside
    elif name == "GROUPREF_EXISTS":
        yield from (branch for branch in argument[1:] if branch is not None)
    elif name == "ATOMIC_GROUP":
        yield argument
    else:
        assert name == "AT", f"the test does not know {name}"


def may_be_blank(parsed: Any, flags: int) -> bool:
    """Whether any character in it may be a blank."""
    for op, argument in parsed:
        name = str(op)
        if name in SINGLE:
            if matches_blank((op, argument), flags):
                return True
        elif name in REPEATS:
            if may_be_blank(argument[2], flags):
                return True
        elif name == "BRANCH":
            if any(may_be_blank(branch, flags) for branch in argument[1]):
                return True
        elif any(may_be_blank(inside, flags) for inside in subpatterns(name, argument)):
            return True
    return False


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.pattern.pattern[:30])
def test_a_pattern_looks_no_further_than_the_reach_of_a_piece(shape: Shape) -> None:
    """Counted from the parsed pattern: its bounded parts, and runs that end before the next blank."""
    reach = Reach()
    reach_of(parser.parse(shape.pattern.pattern, shape.pattern.flags & ~re.UNICODE), shape.pattern.flags, reach)
    assert 1 < reach.width + reach.peeks < REACH_CHARS


def test_the_count_finds_patterns_that_look_too_far() -> None:
    for pattern in (r"a{16,}+\s{1,3}b{4,}+", r"x[^y]{3,}+", r"key \s{1,2} \S++ \s end", r"a++(?=\s)"):
        with pytest.raises(AssertionError):
            reach_of(parser.parse(pattern), re.compile(pattern).flags, Reach())


def prose(draw: random.Random, least: int) -> str:
    """Words, blanks of all kinds, and secrets, at least so many characters."""
    parts: list[str] = []
    chars = 0
    while chars < least:
        kind = draw.random()
        if kind < 0.02:
            part = draw.choice(SECRETS)
        elif kind < 0.03:
            part = "x" * draw.randrange(1, 3 * REACH_CHARS)
        else:
            part = draw.choice(("and", "the", "key", "house,", "again", "pass", "über", "is", "-u", "4 4 4", "'", '"'))
        parts.append(part + draw.choice(BLANKS))
        chars += len(part) + 1
    return "".join(parts)


@pytest.mark.parametrize("seed", range(6))
def test_in_pieces_the_same_is_found_as_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = prose(random.Random(seed), 6 * (PIECE_CHARS + REACH_CHARS))
    assert len(list(pieces(text))) > 3
    found, across = sorted(spans_in(text)), sorted(spans_across(text))
    monkeypatch.setattr(secret_shapes, "PIECE_CHARS", len(text))
    assert sorted(spans_in(text)) == found
    assert sorted(spans_across(text)) == across
    assert len(found) > 20


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_at_any_place_around_a_border_is_found(secret: str) -> None:
    """The end of the first piece and the end of what may be looked at for it, one character after the other."""
    alone = [(span.start, span.end, span.kind) for span in spans_in(f" {secret} ")]
    around = {
        PIECE_CHARS - len(secret),
        PIECE_CHARS,
        PIECE_CHARS + REACH_CHARS - len(secret),
        PIECE_CHARS + REACH_CHARS,
    }
    for border in around:
        for at in range(border - 15, border + 15):
            text = "on and " * (at // 7) + "x" * (at % 7 - 1)
            whole = f"{text} {secret} " + "and so " * 500
            found = {(s.start - len(text), s.end - len(text), s.kind) for s in spans_in(whole)}
            assert found >= set(alone), at


def test_pieces_follow_one_another_and_each_reaches_beyond_its_end() -> None:
    for text in (prose(random.Random(1), 100_000), "x" * 100_000, "x" * 50_000 + " y" * 20_000, "short", ""):
        at = 0
        for start, to, end in pieces(text):
            assert start == at
            assert to <= end
            assert to == end == len(text) or text[end - 1].isspace()
            assert to == len(text) or end - to > REACH_CHARS
            at = to
        assert at == len(text)


def test_what_nobody_sees_is_taken_out_across_the_border_of_a_piece() -> None:
    for at in range(PIECE_CHARS - 3, PIECE_CHARS + 3):
        text = "a" * (at - 20) + " my password is hun\u200b\u200bter2 and more " + "b " * PIECE_CHARS
        assert "ter2" not in redact([text], "mask")[0][0]
