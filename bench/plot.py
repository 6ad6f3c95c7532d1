"""Lines as SVG, made of what a report says alone: the same report, the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 240, 78, 58
COLOURS = ("#b3261e", "#d97706", "#6b7280", "#2563eb", "#047857")
"""Distinct also in grey; each line has its name at its end."""
LABEL_GAP = 17.0


class Line(NamedTuple):
    """Points from left to right, each with the interval around it."""

    name: str
    points: Sequence[tuple[float, float, float, float]]
    """x, y, low, high."""


def plot(lines: Sequence[Line], title: str, subtitle: str, across: str, up: str, top: float) -> str:
    """Lines over one axis of named places, which lie at equal distances; the upper end of the other axis is `top`."""
    xs = sorted({x for line in lines for x, _, _, _ in line.points})
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    top = max(top, 1.0)

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + wide * xs.index(x) / max(1, len(xs) - 1), TOP + high * (1 - y / top)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(16, 26, title, size=17, weight="bold"),
        _text(16, 46, subtitle, size=11.5, colour="#4b5563"),
        _text(LEFT - 50, TOP - 10, up, size=11.5, colour="#4b5563"),
    ]
    for part in range(5):
        y = top * part / 4
        _, v = at(xs[0], y)
        out.append(f'<line x1="{LEFT}" y1="{v:.1f}" x2="{LEFT + wide}" y2="{v:.1f}" stroke="#e5e7eb"/>')
        out.append(_text(LEFT - 8, v + 4, f"{y:,g}", size=11.5, anchor="end", colour="#4b5563"))
    for x in xs:
        u, _ = at(x, 0)
        out.append(_text(u, TOP + high + 20, f"{x:g}", size=11.5, anchor="middle", colour="#4b5563"))
    out.append(_text(LEFT + wide / 2, HEIGHT - 16, across, size=12, anchor="middle", colour="#4b5563"))
    labels = _apart([at(line.points[-1][0], line.points[-1][1])[1] for line in lines])
    for line, colour, label in zip(lines, COLOURS, labels, strict=False):
        out += _line(line, colour, [at(x, y) for x, y, _, _ in line.points], at)
        u, _ = at(line.points[-1][0], line.points[-1][1])
        words = f"{line.name}: {_short(line.points[-1][1])}"
        out.append(_text(u + 12, label + 4, words, size=12, colour=colour, weight="bold"))
    return "\n".join([*out, "</svg>", ""])


def _line(line: Line, colour: str, points: Sequence[tuple[float, float]], at: object) -> list[str]:
    assert callable(at)
    path = " ".join(f"{u:.1f},{v:.1f}" for u, v in points)
    out = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>']
    for (u, v), (x, _, low, high) in zip(points, line.points, strict=True):
        (_, below), (_, above) = at(x, low), at(x, high)
        if below - above > 1:
            out.append(f'<line x1="{u:.1f}" y1="{below:.1f}" x2="{u:.1f}" y2="{above:.1f}" stroke="{colour}"/>')
        out.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4" fill="{colour}"/>')
    return out


def _apart(heights: Sequence[float]) -> list[float]:
    """Heights of labels, moved so that none covers another."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    found = list(heights)
    for before, place in pairwise(order):
        found[place] = max(found[place], found[before] + LABEL_GAP)
    lowest = HEIGHT - BOTTOM + 6.0
    for place in reversed(order):
        found[place] = min(found[place], lowest)
        lowest = found[place] - LABEL_GAP
    return found


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 or not value else f"{value:.1f}"


def _text(x: float, y: float, words: str, *, size: float, **style: str) -> str:
    anchor, weight = style.get("anchor", "start"), style.get("weight", "normal")
    colour = style.get("colour", "#111827")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{colour}">{escape(words)}</text>'
    )
