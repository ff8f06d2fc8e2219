"""Units against rows that a box answered: which agree, what of a unit could be otherwise, and which row says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter

import numpy as np

from softnum.arrays.container import Array
from softnum.arrays.conversion import decode
from softnum.inspect.identify.blocks import array_of, is_block_pair, parts
from softnum.inspect.identify.box import REFUSED, Box, bits_of, in_halves
from softnum.inspect.identify.families import Facts, Family
from softnum.inspect.identify.pools import Rows, last_places, pools
from softnum.mac.mad import Unit
from softnum.mac.products.matrices import matmul

__all__ = ["Data", "Row", "fit", "kicked", "predicted", "race", "undecided"]

_CLOSE = 60  # answers that a unit may have wrong and still be worth changing several fields at a time
_ENDS = 8  # starts that may lead nowhere before the best of them is taken


def predicted(unit: Unit, a, b, c=None) -> np.ndarray:
    """The bits of a unit's results, of matrices or of stacks of them; `REFUSED` where it has no code for one."""
    try:
        got = _product(a, b, unit, c)
    except ValueError:
        if a.ndim == 3:
            each = zip(a, b, [None] * len(a) if c is None else c, strict=True)
            return np.stack([predicted(unit, *x) for x in each])
        return in_halves(lambda *x: predicted(unit, *x), a, b, c)
    return _numbers(got)


def _product(a, b, unit: Unit, c):
    if is_block_pair(unit.operand):
        a, b = array_of(a, unit.operand[0], -1), array_of(b, unit.operand[1], -2)
    return matmul(a, b, unit, c)


def _numbers(got) -> np.ndarray:
    return bits_of(decode(got.codes, got.format) if isinstance(got, Array) else got)


@dataclass(frozen=True)
class Row:
    """One dot product that the box was asked for, and its answer, in bits of binary64."""

    kind: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    c: float | None
    bits: int

    @property
    def output(self) -> float | None:
        """The result; None where the box refused."""
        return None if self.bits == int(REFUSED) else float(np.uint64(self.bits).view(np.float64))

    def predicted(self, unit: Unit) -> int:
        """A unit's answer."""
        c = None if self.c is None else np.array([[self.c]])
        return int(predicted(unit, np.array([self.a]), np.array(self.b)[:, None], c)[0, 0])

    @property
    def size(self) -> tuple:
        """What makes one row simpler than another: products that are not zero, length, bits of the numbers."""
        numbers = [*self.a, *self.b, *([] if self.c is None else [self.c])]
        terms = sum(1 for x, y in zip(self.a, self.b, strict=True) if x or y) + bool(self.c)
        special = sum(1 for x in numbers if not np.isfinite(x))
        return terms, len(self.a), special, sum(1 for x in numbers if x not in (0.0, 1.0, -1.0))


@dataclass
class Group:
    """Rows of one shape and the box's answers, (B, M, K), (B, K, N) and (B, M, N); ``hits``: units refuted.

    ``operand``: the block formats of a and b, which have one scale of the array each; None of other formats.
    """

    kinds: list[str]
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    bits: np.ndarray
    hits: int = 0
    operand: tuple | None = None

    @cached_property
    def _arrays(self) -> tuple:
        """a and b as units take them."""
        if self.operand is None:
            return self.a, self.b
        return array_of(self.a, self.operand[0], -1), array_of(self.b, self.operand[1], -2)

    def wrong(self, unit: Unit) -> np.ndarray:
        """Which answers are not a unit's."""
        try:
            got = _numbers(matmul(*self._arrays, unit, self.c))
        except ValueError:  # it has no code for one
            got = predicted(unit, self.a, self.b, self.c)
        return got != self.bits

    def row(self, i: int, m: int, n: int) -> Row:
        """One answer."""
        c = None if self.c is None else float(self.c[i, m, n])
        return Row(self.kinds[i], tuple(self.a[i, m].tolist()), tuple(self.b[i, :, n].tolist()), c,
                   int(self.bits[i, m, n]))  # fmt: skip


class Data:
    """All rows that a box has answered, in blocks."""

    def __init__(self, box: Box, facts: Facts) -> None:
        self.box, self.facts = box, facts
        self.groups: dict[tuple, Group] = {}
        self.lengths: list[int] = []
        self._new: dict[tuple, list[tuple[Rows, np.ndarray]]] = {}
        self._pools: dict[int, list[Rows]] = {}

    @property
    def formats(self) -> tuple:
        """What rows are drawn from."""
        return self.facts.operand, self.facts.c_formats[0], self.facts.outputs[0]

    def ask(self, rows: Rows) -> np.ndarray:
        """Ask the box, and keep its answers."""
        bits = self.box.block(rows.a, rows.b, rows.c)
        key = (*rows.a.shape, rows.b.shape[1], *self._of_arrays(rows), rows.c is None)
        self._new.setdefault(key, []).append((rows, bits))
        return bits

    def _of_arrays(self, rows: Rows) -> list[float]:
        """The scales of the arrays, where the formats have one."""
        if self.box.blocks is None:
            return []
        pairs = zip((rows.a, rows.b.T), self.box.blocks, strict=True)
        wholes = [parts(x, fmt)[2] for x, fmt in pairs]
        return [float(whole.flat[0]) for whole in wholes if whole is not None]

    def _gathered(self) -> list[Group]:
        """All answers, those that refuted most units first."""
        for shape, new in self._new.items():
            old = self.groups.get(shape)
            self.groups[shape] = Group(
                [*([] if old is None else old.kinds), *(x.kind for x, _ in new)],
                _joined(old and old.a, [x.a for x, _ in new]), _joined(old and old.b, [x.b for x, _ in new]),
                None if shape[-1] else _joined(old and old.c, [x.c for x, _ in new]),
                _joined(old and old.bits, [bits for _, bits in new]), 0 if old is None else old.hits, self.box.blocks,
            )  # fmt: skip
        self._new = {}
        return sorted(self.groups.values(), key=lambda x: -x.hits)  # stable

    def fill(self, lengths: list[int], seed: int = 0) -> None:
        """Ask the rows of all kinds."""
        self.lengths = lengths
        for rows in last_places(self.formats, self.start):
            self.ask(rows)
        for rows in pools(self.formats, self.start, lengths, seed):
            self.ask(rows)

    @property
    def start(self) -> str | float | None:
        """Where sums start: at "C", at +0 (None), or at -0, as those do that begin with their first product."""
        return "C" if self.box.takes_c else self.facts.start

    def pool(self, seed: int) -> list[Rows]:
        """Rows of all kinds that the box was not asked."""
        if seed not in self._pools:
            self._pools[seed] = list(pools(self.formats, self.start, self.lengths, seed))
        return self._pools[seed]

    def wrong(self, unit: Unit, most: float = np.inf) -> int:
        """How many answers are not a unit's, or more than `most` as soon as that is clear."""
        count = 0
        for group in self._gathered():
            wrong = int(group.wrong(unit).sum())
            if wrong:
                group.hits += 1
                count += wrong
                if count > most:
                    return count
        return count

    def refuting(self, unit: Unit, most: int = 6) -> list[Row]:
        """Rows whose answers are not a unit's, the simplest first, of up to so many shapes."""
        found = []
        for group in sorted(self._gathered(), key=lambda x: x.a.shape[2]):
            at = np.argwhere(group.wrong(unit))
            found += [group.row(*i) for i in at[:40].tolist()]
            most -= bool(len(at))
            if most <= 0:
                break
        return sorted(found, key=lambda row: row.size)


def _joined(before: np.ndarray | None, more: list) -> np.ndarray:
    return np.stack(more) if before is None else np.concatenate([before, np.stack(more)])


def _field(unit: Unit, name: str):
    """A field by its name, or by "field.name" that of the unit in it."""
    return attrgetter(name)(unit)


def _changed(unit: Unit, values: dict[str, object]) -> Unit:
    """A unit with other values of fields, named as for `_field`."""
    own, inner = {}, {}
    for name, value in values.items():
        field, _, rest = name.partition(".")
        if rest:
            inner.setdefault(field, {})[rest] = value
        else:
            own[field] = value
    return replace(unit, **own, **{field: _changed(getattr(unit, field), x) for field, x in inner.items()})


def _otherwise(unit: Unit, names, choices) -> Iterator[tuple[tuple, Unit]]:
    """Units with other values of these fields."""
    for values in product(*(choices.get(name, ()) for name in names)):
        if all(_field(unit, name) == value for name, value in zip(names, values, strict=True)):
            continue
        try:
            yield values, _changed(unit, dict(zip(names, values, strict=True)))
        except ValueError:  # these do not go together
            continue


def better(unit: Unit, score: int, family: Family, data: Data, fixed: str = "") -> tuple[Unit, int]:
    """The best unit with another value of one field, or of a few where one leads nowhere, and its wrong answers.

    The unit itself where none is better. ``fixed``: a field that stays as it is.
    """
    choices = family.choices(unit, data.facts)
    found = unit
    for names in [*((name,) for name in choices), *family.joint]:
        if fixed in names or (len(names) > 1 and (found is not unit or score > _CLOSE)):
            continue
        for _, other in _otherwise(unit, names, choices):
            wrong = data.wrong(other, score - 1)
            if wrong < score:
                found, score = other, wrong
                if not score:
                    return found, 0
    return found, score


def fit(unit: Unit, family: Family, data: Data, fixed: str = "") -> tuple[Unit, int]:
    """The unit that a start leads to, and how many answers are not its."""
    score = data.wrong(unit)
    while score:
        found, score = better(unit, score, family, data, fixed)
        if found is unit:
            break
        unit = found
    return unit, score


def race(starts: list[tuple[Family, Unit]], data: Data) -> tuple[Unit, int, Family]:
    """The unit that the best of several starts leads to: always the one that has the fewest answers wrong goes on."""
    running = [(data.wrong(unit), i, unit, family) for i, (family, unit) in enumerate(starts)]
    ended: list[tuple] = []
    while running:
        running.sort(key=lambda x: x[:2])
        score, i, unit, family = running.pop(0)
        if not score:
            return unit, 0, family
        found, score = better(unit, score, family, data)
        if found is unit:
            ended.append((score, i, unit, family))
            if len(ended) == _ENDS:
                break
        else:
            running.append((score, i, found, family))
    score, _, unit, family = min(ended, key=lambda x: x[:2])
    return unit, score, family


def kicked(unit: Unit, family: Family, data: Data, wrong: float) -> tuple[Unit, int]:
    """The unit that leads on where no field alone does: one field is set to the least bad of its other values, and the
    rest fitted again."""
    best, score = unit, wrong
    choices = family.choices(unit, data.facts) if wrong <= _CLOSE else {}
    for name in choices:
        limit = 3 * wrong + 20
        others = [(data.wrong(x, limit), i, x) for i, (_, x) in enumerate(_otherwise(unit, (name,), choices))]
        for bad, _, other in sorted(others, key=lambda x: x[:2])[:1]:
            if bad > limit:
                continue
            found, count = fit(other, family, data, fixed=name)
            if count < score:
                best, score = found, count
            if not score:
                return best, score
    return best, int(score)


def _tell(unit: Unit, other: Unit, data: Data, seeds) -> Row | None:
    """Ask what would tell two units apart, and give the row if it refutes the second; None if nothing does."""
    for seed in seeds:
        for rows in data.pool(seed):
            mine, its = (predicted(x, rows.a, rows.b, rows.c) for x in (unit, other))
            at = np.argwhere(mine != its)
            if len(at):
                i, j = at[0]
                c = None if rows.c is None else rows.c[i : i + 1, j : j + 1]
                bits = data.ask(Rows(rows.kind, rows.a[i : i + 1], rows.b[:, j : j + 1], c))
                start = None if c is None else float(c[0, 0])
                row = Row(rows.kind, tuple(rows.a[i].tolist()), tuple(rows.b[:, j].tolist()), start, int(bits[0, 0]))
                return row if row.predicted(other) != row.bits else None
    return None


@dataclass(frozen=True)
class Decided:
    """Of one field: its value, what refutes others, and which others nothing refutes."""

    name: str
    value: object
    refuted: tuple[tuple[object, Row], ...]
    open: tuple


def undecided(unit: Unit, family: Family, data: Data, told: Callable[[str], None]) -> Iterator[Decided]:
    """For each field, the values that are refuted, each with a row, and those that nothing tells from the unit's."""
    for name, values in family.choices(unit, data.facts).items():
        own = _field(unit, name)
        refuted, left = [], []
        for (value,), other in _otherwise(unit, (name,), {name: _some(own, values)}):
            if other == unit:
                continue
            rows = data.refuting(other, 3)
            row = rows[0] if rows else _tell(unit, other, data, (1, 2) if len(left) < 4 else ())
            if row is None:
                left.append(value)
            else:
                refuted.append((value, row))
        told(name)
        yield Decided(name, own, tuple(refuted), tuple(left))


def _some(own, values) -> tuple:
    """Of many numbers, those next to a field's own, and a few farther away."""
    numbers = sorted({v for v in values if isinstance(v, int) and not isinstance(v, bool)})
    rest = [v for v in values if v not in numbers or isinstance(v, bool)]
    if len(numbers) < 12:
        formats = [v for v in rest if v is not None and not isinstance(v, str)]
        return tuple(values) if len(formats) < 20 else tuple(rest[:14])
    if own is None:
        return (*rest, *numbers[:: max(1, len(numbers) // 8)])
    place = numbers.index(own) if own in numbers else 0
    near = numbers[max(0, place - 2) : place + 3]
    return (*rest, *near, *numbers[:: max(1, len(numbers) // 4)])
