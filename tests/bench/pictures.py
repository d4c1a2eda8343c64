"""Charts as SVG, by hand: points or lines over logarithmic scales, side by side. A few kilobytes each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 20, 40, 46
COLOURS = ("#2563eb", "#d97706", "#6b7280", "#059669", "#9333ea")
_TICKS = 5
"""On a scale that is not logarithmic."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """What belongs together: a name and its points, in the order in which a line joins them."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Scale:
    """One axis."""

    label: str
    low: float
    high: float
    logarithmic: bool = True

    def share(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Powers of ten, or even steps."""
        if self.logarithmic:
            return [10.0**power for power in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)]
        return [self.low + (self.high - self.low) * step / _TICKS for step in range(_TICKS + 1)]


@dataclass(frozen=True)
class Chart:
    """A pair of axes and what is drawn between them."""

    title: str
    x: Scale
    y: Scale
    series: Sequence[Series]


def decades(label: str, values: Sequence[float]) -> Scale:
    """A logarithmic scale of whole decades that has room for all of the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scale(label, 10.0**low, 10.0 ** max(high, low + 1))


def svg(charts: Sequence[Chart]) -> str:
    """The charts beside each other, as one picture."""
    body = "".join(
        f'<g transform="translate({number * WIDTH} 0)">{_chart(each)}</g>' for number, each in enumerate(charts)
    )
    width = WIDTH * len(charts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="11" fill="#111">'
        f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>{body}</svg>\n'
    )


def _chart(chart: Chart) -> str:
    drawn = [_text(LEFT, 16, chart.title, "start", "font-weight='bold'")]
    for value in chart.x.ticks():
        x = _x(chart, value)
        drawn += [_line(x, TOP, x, HEIGHT - BOTTOM), _text(x, HEIGHT - BOTTOM + 15, _number(value))]
    for value in chart.y.ticks():
        y = _y(chart, value)
        drawn += [_line(LEFT, y, WIDTH - RIGHT, y), _text(LEFT - 6, y + 4, _number(value), "end")]
    drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, chart.x.label))
    drawn.append(_text(LEFT, TOP - 8, chart.y.label, "start"))
    for number, series in enumerate(chart.series):
        drawn.append(_series(chart, series, COLOURS[number % len(COLOURS)]))
    return "".join(drawn)


def _series(chart: Chart, series: Series, colour: str) -> str:
    places = [(_x(chart, x), _y(chart, y)) for x, y in series.points]
    if not places:
        return ""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places)
    x, y = places[-1]
    end = x > (LEFT + WIDTH) / 2
    name = _text(x - 7 if end else x + 7, y - 7, series.name, "end" if end else "start")
    drawn = f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>{dots}{name}'
    return f'<g fill="{colour}">{drawn}</g>'


def _x(chart: Chart, value: float) -> float:
    return LEFT + chart.x.share(value) * (WIDTH - LEFT - RIGHT)


def _y(chart: Chart, value: float) -> float:
    return HEIGHT - BOTTOM - chart.y.share(value) * (HEIGHT - TOP - BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#e5e7eb"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
