"""Pictures of rounding: SVG in the text's own colour, made of softnum's results."""

from __future__ import annotations

import numpy as np

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES

SCALE, HALF = 46, 2.75  # pixels a unit; the picture shows -HALF .. HALF in both directions


def _x(value: float) -> float:
    return round((value + HALF) * SCALE, 2)


def _y(value: float) -> float:
    return round((HALF - value) * SCALE, 2)


def _frame(title: str, body: str) -> str:
    size = 2 * HALF * SCALE
    axes = "".join(
        f'<line x1="{_x(a)}" y1="{_y(b)}" x2="{_x(c)}" y2="{_y(d)}" stroke="currentColor" stroke-width="{w}" '
        'opacity="0.35"/>'
        for a, b, c, d, w in (
            (-HALF, 0, HALF, 0, 1), (0, -HALF, 0, HALF, 1), (-HALF, -HALF, HALF, HALF, 0.7),
        )
    )  # fmt: skip
    ticks = "".join(
        f'<text x="{_x(v)}" y="{_y(0) + 12}" font-size="9" text-anchor="middle" fill="currentColor" opacity="0.7">'
        f"{v}</text>"
        for v in (-2, -1, 1, 2)
    )
    return (
        f'<g>{axes}{ticks}{body}<text x="{size / 2}" y="{size + 15}" font-size="13" text-anchor="middle" '
        f'font-family="monospace" fill="currentColor">{title}</text></g>'
    )


def _steps(mode: str) -> str:
    """The graph of a deterministic mode: for each integer the interval of numbers that round to it, ends told apart."""
    fine = 64
    x = np.arange(-int(HALF * fine), int(HALF * fine) + 1) / fine
    got = sn.quantize(x, "q4.0", rounding=mode)
    parts = []
    for value in np.unique(got[abs(got) <= HALF]):
        inside = x[got == value]
        first, last = inside.min(), inside.max()
        # the end of an interval lies on the grid of x, or just short of the next point
        left = first if first == -x[-1] or _is_end(first) else first - 1 / fine
        right = last if last == x[-1] or _is_end(last) else last + 1 / fine
        parts.append(
            f'<line x1="{_x(left)}" y1="{_y(value)}" x2="{_x(right)}" y2="{_y(value)}" stroke="#2f7fd6" '
            'stroke-width="3"/>'
        )
        for end, closed in ((left, left == first), (right, right == last)):
            if abs(end) < HALF:
                fill = "#2f7fd6" if closed else "var(--color-background-primary, white)"
                parts.append(
                    f'<circle cx="{_x(end)}" cy="{_y(value)}" r="3.4" fill="{fill}" stroke="#2f7fd6" '
                    'stroke-width="1.5"/>'
                )
    return "".join(parts)


def _is_end(x: float) -> bool:
    return (2 * x).is_integer()


def _shades(mode: str) -> str:
    """The graph of a stochastic mode with r = 3: how many of the 8 random words give each integer, as opacity."""
    r, fine = 3, 32
    words = np.arange(1 << r, dtype=np.uint32)
    x = (np.arange(-int(HALF * fine), int(HALF * fine)) + 0.5) / fine
    got = sn.quantize(
        np.broadcast_to(x[:, None], (len(x), len(words))), "q4.0", rounding=mode, stochastic_bits=r, random_bits=words
    )
    parts = []
    for value in np.unique(got):
        if abs(value) > HALF:
            continue
        share = (got == value).mean(axis=1)
        for at in np.flatnonzero(share):
            parts.append(
                f'<rect x="{_x(x[at] - 0.5 / fine)}" y="{_y(value) - 3}" width="{SCALE / fine:.2f}" height="6" '
                f'fill="#2f7fd6" opacity="{share[at]:.3f}"/>'
            )
    return "".join(parts)


def _grid(figures: list[tuple[str, str]], columns: int, caption: str) -> str:
    size = 2 * HALF * SCALE
    step, rows = size + 24, -(-len(figures) // columns)
    body = "".join(
        f'<g transform="translate({12 + i % columns * step},{8 + i // columns * (step + 4)})">{_frame(*figure)}</g>'
        for i, figure in enumerate(figures)
    )
    width, height = columns * step, rows * (step + 4) + 8
    return (
        f'<figure class="rounding"><svg viewBox="0 0 {width} {height}" role="img" aria-label="{caption}" '
        f'xmlns="http://www.w3.org/2000/svg">{body}</svg></figure>\n\n'
    )


def rounding_modes() -> str:
    """All deterministic modes, rounding to integers."""
    names = [m for m in ROUNDING_MODES if not m.startswith("stochastic")]
    return _grid([(m, _steps(m)) for m in names], 4, "what each rounding mode makes of a number")


def stochastic_modes() -> str:
    """The stochastic modes, rounding to integers with three random bits."""
    names = [m for m in ROUNDING_MODES if m.startswith("stochastic")]
    return _grid([(m, _shades(m)) for m in names], 3, "how often each stochastic mode gives each integer")


MAKERS = {"rounding-modes": rounding_modes, "stochastic-modes": stochastic_modes}
