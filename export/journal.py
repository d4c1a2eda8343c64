"""What a training run tells: lines on the terminal, log.jsonl for programs, loss.svg for eyes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LOG = "log.jsonl"
PLOT = "loss.svg"
TELL_SECONDS = 10.0
"""At least so long between two lines of progress."""
_WIDTH, _HEIGHT, _MARGIN = 720, 320, 48
_POINTS = 300
"""Most points of a curve; more are averaged."""
_COLOURS = {"loss": "#c0392b", "valid_mrr": "#2c6fbb"}


class Journal:
    """The log of a run in its folder. A run that goes on drops what the killed one wrote after its last state."""

    def __init__(self, folder: Path, steps: int, step: int) -> None:
        """`steps`: of the whole run; `step`: where it starts now."""
        self._folder, self._steps = folder, steps
        self._started, self._first = time.monotonic(), step
        self._pairs = 0
        self._rows = [row for row in read_log(folder) if row["step"] <= step] if step else []
        (folder / LOG).write_text("".join(json.dumps(row) + "\n" for row in self._rows), encoding="utf-8")

    def trained(self, step: int, loss: float, rate: float, pairs: int, tell: bool) -> None:
        """`step` steps are done; the last one had this loss, learning rate and number of pairs."""
        self._pairs += pairs
        seconds = time.monotonic() - self._started
        speed = self._pairs / seconds
        left = seconds / (step - self._first) * (self._steps - step)
        self._write(step=step, loss=round(loss, 5), rate=rate, pairs_per_s=round(speed, 2), seconds_left=round(left))
        if tell:
            share = f"step {step}/{self._steps}"
            say(f"{share}  loss {loss:.4f}  rate {rate:.1e}  {speed:.1f} pairs/s  {clock(left)} left")

    def validated(self, step: int, figures: dict[str, float]) -> None:
        """After `step` steps, these are the figures on held-out pairs."""
        rounded = {f"valid_{name}": round(value, 5) for name, value in figures.items()}
        self._write(step=step, **rounded)
        say(f"step {step}/{self._steps}  validation " + "  ".join(f"{name} {figures[name]:.4f}" for name in figures))
        self.draw()

    def draw(self) -> None:
        """Writes the plot."""
        (self._folder / PLOT).write_text(plot(self._rows), encoding="utf-8")

    def _write(self, **row: Any) -> None:
        self._rows.append(row)
        with (self._folder / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a run's log; none if there is no log. A kill may have left half a line at the end."""
    path = folder / LOG
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def plot(rows: Sequence[dict[str, Any]]) -> str:
    """An SVG of the loss, and of the validation MRR on a scale from 0 to 1 at the right."""
    losses = _thinned([(row["step"], row["loss"]) for row in rows if "loss" in row])
    mrrs = [(row["step"], row["valid_mrr"]) for row in rows if "valid_mrr" in row]
    last = max([step for step, _ in losses + mrrs], default=1) or 1
    top = max([loss for _, loss in losses], default=1.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_MARGIN, _HEIGHT - 16, "step 0"),
        _text(_WIDTH - _MARGIN, _HEIGHT - 16, str(last), "end"),
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        parts.append(f'<path d="M{_MARGIN} {y}H{_WIDTH - _MARGIN}" stroke="#ddd"/>')
        parts.append(_text(_MARGIN - 6, y, f"{share * top:.2f}", "end", _COLOURS["loss"]))
        parts.append(_text(_WIDTH - _MARGIN + 6, y, f"{share:.2f}", "start", _COLOURS["valid_mrr"]))
    for place, (name, points, full) in enumerate((("loss", losses, top), ("valid_mrr", mrrs, 1.0))):
        at = " ".join(f"{_x(step / last)},{_y(value / full)}" for step, value in points)
        colour = _COLOURS[name]
        parts.append(f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(_text(_MARGIN + 90 * place, 20, name.replace("_", " "), colour=colour))
    return "\n".join([*parts, "</svg>\n"])


def _thinned(points: list[tuple[int, float]]) -> list[tuple[float, float]]:
    run = -(-len(points) // _POINTS) or 1
    groups = [points[start : start + run] for start in range(0, len(points), run)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def _x(share: float) -> float:
    return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1)


def _y(share: float) -> float:
    return round(_HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN), 1)


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "black") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def progress(what: str) -> Callable[[int, int], None]:
    """A function that is told how many of how many are done, and says so, but no oftener than every TELL_SECONDS."""
    started = said = time.monotonic()

    def tell(done: int, whole: int) -> None:
        nonlocal started, said
        now = time.monotonic()
        if now - said >= TELL_SECONDS and done < whole:
            said = now
            say(f"{what} {done}/{whole}  {clock((now - started) / done * (whole - done))} left")
        if done == whole:
            started = said = now

    return tell


def clock(seconds: float) -> str:
    """1:02:03, or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def say(line: str) -> None:
    """One line on stderr."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201
