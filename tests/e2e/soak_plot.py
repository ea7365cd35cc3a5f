"""Curves as an SVG file, for the report of `make soak`: one panel above another over the same time."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

_WIDTH, _HEIGHT, _LEFT, _GAP = 900, 180, 70, 50
_COLOURS = ("#1b6ca8", "#c8553d", "#3d8b40", "#8e5ea2", "#b8860b", "#444444", "#00838f", "#ad1457")

type Curve = Sequence[tuple[float, float]]
"""Points of seconds since the beginning and a value."""


def write_plot(path: Path, panels: Mapping[str, Mapping[str, Curve]]) -> None:
    """Writes panels (title → name → curve) to a file."""
    last = max((at for curves in panels.values() for curve in curves.values() for at, _ in curve), default=1.0) or 1.0
    height = len(panels) * (_HEIGHT + _GAP) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 230} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH + 230}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (title, curves) in enumerate(panels.items()):
        lines += _panel(title, curves, _GAP + number * (_HEIGHT + _GAP), last)
    lines += [f'<text x="{_WIDTH}" y="{height - 15}" text-anchor="end">{last / 60:.1f} minutes</text>', "</svg>"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _panel(title: str, curves: Mapping[str, Curve], top: int, last: float) -> list[str]:
    most = max((value for curve in curves.values() for _, value in curve), default=1.0) * 1.05 or 1.0
    bottom = top + _HEIGHT
    lines = [
        f'<text x="{_LEFT}" y="{top - 8}" font-weight="bold">{escape(title)}</text>',
        f'<path d="M{_LEFT} {top}V{bottom}H{_WIDTH}" fill="none" stroke="#888888"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * _HEIGHT
        lines.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{share * most:.0f}</text>')
        lines.append(f'<path d="M{_LEFT} {y:.0f}H{_WIDTH}" stroke="#dddddd"/>')
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(
            f"{_LEFT + at / last * (_WIDTH - _LEFT):.1f},{bottom - value / most * _HEIGHT:.1f}" for at, value in curve
        )
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines.append(f'<text x="{_WIDTH + 12}" y="{top + 14 + 16 * number}" fill="{colour}">{escape(name)}</text>')
    return lines
