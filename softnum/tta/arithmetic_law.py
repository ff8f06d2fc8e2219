"""A scaling law of several designs: operands and sums of an arithmetic as terms of the law.

    L(N, D, design) = E + A exp(s) / N**a + B / D**b
    s = g(operands) + C (K / K0)**r 4**(-q (bits - bits0))

s is the logarithm of what the arithmetic multiplies A / N**a by: training in it is as training exp(-s / a) times as
many parameters, the effective parameters of T. Kumar et al., "Scaling Laws for Precision", 2024. There that factor is a
function of the bits of weights, activations and cache; here g is a number for each set of operands' roundings, zero for
the baseline's, since formats, scales and transforms of recipes are not told by bits alone (X. Sun et al., "Scaling Laws
for Floating-Point Quantization Training", 2025, tell exponent, mantissa and block size apart, and let the term grow
with D; neither has the accumulator).

The second term is the sums'. A sum of K products of mean zero that keeps so many bits errs, by the variance of K
independent roundings, by K 4**-bits of its own variance times a constant (N. Higham and T. Mary, "A new approach to
probabilistic rounding error analysis", 2019): r = q = 1. K0 and bits0 are the geometric mean of the runs' K and their
least bits, so that C is the term at these.

A term enters only if its interval excludes what it would be without it: with all g free, C enters if its bootstrap
interval excludes 0, where r is 0 and q is 1; then K, if the interval of r excludes 0; then another power of bits, if
that of q excludes 1; at last those g stay whose intervals exclude 0. Each interval is of its own confidence, not all
together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softnum.tta.law_fit import LOG4, Columns, TermFit
from softnum.tta.law_runs import UNNAMED, LawRun
from softnum.tta.outcomes.intervals import percentiles
from softnum.tta.quantities import check_keys
from softnum.tta.scaling_law import BEYOND, ScalingLaw, check_fit, fit_law, parse_law, read_law_facts

__all__ = ["ArithmeticLaw", "Term", "fit_designs", "read_any_law"]

SCHEMA = "softnum.arithmetic-law/1"
_SAME = 1e-6  # of s: what K changes less need not be asked
_LEAST_RATIO = 1.5  # of K, for its power to be asked


class Term(NamedTuple):
    """A term that was tried: its name, its value and interval where it was free, whether it entered, and what to say.

    Names are "operands <design>", "C" (bits of sums), "r" (K) and "q" (the power of bits).
    """

    name: str
    value: float
    low: float
    high: float
    entered: bool
    said: str


@dataclass(frozen=True)
class ArithmeticLaw:
    """A fitted law of several designs; `of` is that of one of them.

    Parameters
    ----------
    base : ScalingLaw
        Of the baseline's operands and exact sums, with its own draws.
    operands : mapping of str to float
        g of each set of operands' roundings, by its name, or that of the design of the widest sums that has them; 0
        where it did not enter.
    sums : (float, float, float)
        C, r and q.
    draws : tuple of tuple of float
        The values of `operands` and `sums` of each drawing of ``base.draws``, in that order.
    middle : (float, float)
        K0 and bits0.
    designs : mapping of str to (str, float or None, float or None, float or None)
        Each design's operands, the bits of its sums, and the least and the most K of its runs.
    terms : tuple of Term
        What was tried.

    Examples
    --------
    >>> base = ScalingLaw(400.0, 400.0, 1.7, 0.34, 0.28, (), (1e6, 1e9), (1e8, 1e10), 9)
    >>> designs = {"float32": ("float32", 23.0, 64.0, 256.0), "narrow": ("float32", 4.0, 64.0, 256.0)}
    >>> law = ArithmeticLaw(base, {"float32": 0.0}, (0.1, 0.0, 1.0), (), (128.0, 4.0), designs, ())
    >>> [round(law.of(design).loss(1e8, 1e9).value, 3) for design in ("float32", "narrow")]
    [3.67, 3.75]
    >>> round(law.effective("narrow"), 3)
    0.745
    """

    base: ScalingLaw
    operands: Mapping[str, float]
    sums: tuple[float, float, float]
    draws: tuple[tuple[float, ...], ...]
    middle: tuple[float, float]
    designs: Mapping[str, tuple[str, float | None, float | None, float | None]]
    terms: tuple[Term, ...]

    def of(self, design: str, products: float | None = None, bits: float | None = None) -> ScalingLaw:
        """The law of a design.

        Parameters
        ----------
        design : str
            One of `designs`.
        products : float, optional
            K of its sums; needed where the law of the design depends on K and its runs have several.
        bits : float, optional
            In place of the design's: sums of other widths.

        Raises
        ------
        ValueError
            If there is no such design, K is needed and not stated, or K or bits lie beyond those of the runs: bits at
            all, K more than ten times.
        """
        at = self._at(design, products, bits)
        facts = asdict(self.base) | {"A": self.base.A * self._factor(design, self._own, at)}
        facts["draws"] = tuple(
            (draw[0] * self._factor(design, own, at), *draw[1:])
            for draw, own in zip(self.base.draws, self.draws, strict=True)
        )
        return ScalingLaw(**facts)

    def effective(self, design: str, products: float | None = None, bits: float | None = None) -> float:
        """How many of the baseline's parameters one parameter of a design is worth; arguments and errors as of `of`."""
        return self._factor(design, self._own, self._at(design, products, bits)) ** (-1.0 / self.base.a)

    def kept(self) -> dict[str, tuple[float, float, float]]:
        """Each g by the name of its operands, and C, r and q, in the law as it is: the value and its interval.

        A number that is not fitted has an interval of its value alone. `terms` has the intervals of when each was
        tried, with other numbers free.
        """
        columns = zip(*self.draws, strict=True) if self.draws else ((value,) for value in self._own)
        found = zip((*self.operands, "C", "r", "q"), self._own, columns, strict=True)
        return {name: (value, *percentiles(column, self.base.confidence)) for name, value, column in found}

    @property
    def _own(self) -> tuple[float, ...]:
        return (*self.operands.values(), *self.sums)

    def _factor(self, design: str, values, at) -> float:
        """What A / N**a is multiplied by."""
        try:
            found = math.exp(self._shift(values, at))
        except OverflowError:
            found = math.inf
        if not 1e-100 < found < 1e100:
            raise ValueError(
                f"the law has no number for {design} with K = {at[2]}: its term of sums is too large there; ask nearer "
                "to the runs"
            )
        return found

    def _at(self, design, products, bits) -> tuple[str, float | None, float | None]:
        if design not in self.designs:
            raise ValueError(f"the law has no design {design!r}; it was fitted to {', '.join(self.designs)}")
        operands, own, low, high = self.designs[design]
        power, known = self.sums[1], [facts[1] for facts in self.designs.values() if facts[1] is not None]
        if bits is not None and (not known or not min(known) <= bits <= max(known)):
            seen = f"{min(known):g} to {max(known):g}" if known else "none"
            raise ValueError(f"sums of {bits:g} bits lie beyond those of the runs, {seen}; fit the law with such runs")
        bits = own if bits is None else bits
        if products is not None:
            spans = [facts[2:] for facts in self.designs.values() if facts[2] is not None]
            least, most = (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else (1.0, 1.0)
            if not (math.isfinite(products) and least / BEYOND <= products <= most * BEYOND):
                raise ValueError(
                    f"K = {products:g} is far from the {least:g} to {most:g} of the runs: a law is asked at most "
                    f"{BEYOND:g} times beyond them"
                )
        elif power and bits is not None:
            shorter, longer = (self._shift(self._own, (operands, bits, each)) for each in (low, high))
            if abs(longer - shorter) > _SAME:
                raise ValueError(
                    f"the law depends on K, and the runs of {design} have {low:g} to {high:g}: state products, the K "
                    "of the network that is asked about"
                )
            products = low
        return operands, bits, products

    def _shift(self, values, at) -> float:
        """s, of g of all operands, C, r and q."""
        operands, bits, products = at
        factor, power, slope = values[-3:]
        shift = dict(zip(self.operands, values, strict=False))[operands]
        if bits is None or not factor:
            return shift
        ratio = power * math.log(products / self.middle[0]) if power else 0.0
        return shift + factor * math.exp(ratio - slope * LOG4 * (bits - self.middle[1]))

    def to_json(self) -> str:
        """It as text, for `read_any_law`."""
        facts = asdict(self) | {"base": json.loads(self.base.to_json()), "terms": [t._asdict() for t in self.terms]}
        law = "E + A exp(g + C (K / K0)**r 4**(-q (bits - bits0))) / N**a + B / D**b"
        return json.dumps({"schema": SCHEMA, "law": law, **facts}, indent=1, allow_nan=False) + "\n"


def fit_designs(
    runs: Iterable[LawRun], *, baseline: str | None = None, bootstrap: int = 200, seed: int = 1,
    confidence: float = 0.95, metric: str = "loss",
) -> ArithmeticLaw:  # fmt: skip
    """Fit a law to runs of several designs.

    Parameters
    ----------
    runs : iterable of LawRun
        At least 6 of three numbers of parameters and three of tokens, of two designs or more.
    baseline : str, optional
        A design whose operands have g = 0. Default: that of the widest sums.
    bootstrap : int
        Drawings of runs, at least 20, as they decide which terms enter.
    seed, confidence, metric
        As of `softnum.tta.scaling_law.fit_law`.

    Returns
    -------
    ArithmeticLaw

    Raises
    ------
    ValueError
        As of `softnum.tta.scaling_law.fit_law`; if a run names no design, two runs of a design differ in operands or
        bits, there are less
        than two designs, the baseline is none of them, or a set of operands has less than three runs.

    Examples
    --------
    >>> def loss(n, d, bits):
    ...     return 1.5 + 50 * 2.718281828 ** (0.2 * 4.0 ** (4 - bits)) / n**0.3 + 80 / d**0.3
    >>> runs = [LawRun(n, d, loss(n, d, bits), f"f{bits}", "fp8", bits, 64)
    ...         for n in (1e4, 1e5, 1e6) for d in (1e5, 1e6, 1e7) for bits in (4, 5, 6, 13)]
    >>> law = fit_designs(runs, bootstrap=20)
    >>> [(term.name, term.entered) for term in law.terms], round(law.sums[0], 3)
    ([('C', True), ('q', False)], 0.2)
    """
    runs = list(runs)
    designs, names = _designs(runs, baseline)
    check_fit(runs, bootstrap, confidence, seed)
    if bootstrap < 20:
        raise ValueError(f"the bootstrap decides which terms enter, which takes 20 drawings or more, got {bootstrap}")
    table, middle = _columns(runs, designs, names)
    fit = TermFit(runs, table, len(names) - 1, bootstrap, seed, confidence, fit_law(runs, bootstrap=0, metric=metric))
    labels = {f"g{index}": f"operands {name}" for index, name in enumerate(names[1:], start=1)}
    lengths, widths = table.known(table.length), table.known(table.bits)
    seen, free, terms = _seen(runs), list(labels), []

    def tried(name: str, what: str, without: float, where: str) -> bool:
        """Whether a term's interval excludes what it is without, with all others that are free."""
        values, draws = fit.run(list(dict.fromkeys([*free, name])))
        low, high = fit.interval(draws, name)
        entered = not low <= without <= high
        said = f"{what}: {'enters' if entered else f'not seen{where}'}"
        terms.append(Term(labels.get(name, name), fit.value(values, name), low, high, entered, said))
        return entered

    if _within(table) and tried("C", "bits of sums", 0.0, seen):
        free.append("C")
        if np.ptp(lengths) > math.log(_LEAST_RATIO) and tried("r", "K of sums", 0.0, seen):
            free.append("r")
        if len(set(widths)) > 2 and tried("q", "another power of bits than 4**-bits", 1.0, ""):
            free.append("q")
    kept = [name for name in labels if tried(name, labels[name], 0.0, "")]
    free = [name for name in free if name in kept or name not in labels]
    values, draws = fit.run(free)
    base, more = fit.split(values)
    pairs = [fit.split(draw) for draw in draws]
    spans = [tuple(float(end(column)) for end in (min, max)) for column in zip(*(run[:2] for run in runs), strict=True)]
    law = ScalingLaw(*base, tuple(pair[0] for pair in pairs), *spans, len(runs), confidence, metric)
    chosen = dict(zip(names, more[:-3], strict=True))
    return ArithmeticLaw(law, chosen, more[-3:], tuple(pair[1] for pair in pairs), middle, designs, tuple(terms))


def _designs(runs: list[LawRun], baseline: str | None):
    """Each design's operands, bits and span of K; and the names of operands, the baseline's first."""
    found: dict[str, list[LawRun]] = {}
    for run in runs:
        if not run.design:
            raise ValueError("a law of several designs takes runs that each name their design, and one names none")
        found.setdefault(run.design, []).append(run)
    if len(found) < 2:
        raise ValueError(f"a law of several designs takes two or more, got {', '.join(found) or 'none'}; see fit_law")
    for design, own in found.items():
        if len({(run.operands, run.bits) for run in own}) > 1:
            raise ValueError(
                f"the runs of {design} differ in the roundings of operands or in the bits of sums: two designs of one "
                "name; rename one and train it again"
            )
    order = sorted(found, key=lambda design: (-(found[design][0].bits or math.inf), design))
    if baseline is not None and baseline not in found:
        raise ValueError(f"the baseline {baseline!r} is no design of the runs; they are of {', '.join(order)}")
    names: dict[str, str] = {}
    for design in ([baseline] if baseline else []) + order:
        operands = found[design][0].operands
        names.setdefault(operands, design if operands.startswith(UNNAMED) else operands)
    for operands, name in names.items():
        if (count := sum(run.operands == operands for run in runs)) < 3:
            raise ValueError(
                f"the operands of {name} have {count} runs, and a term takes 3; train more, or leave it out"
            )
    designs = {}
    for design in sorted(found):
        lengths = [run.products for run in found[design] if run.products is not None]
        span = (min(lengths), max(lengths)) if lengths else (None, None)
        designs[design] = (names[found[design][0].operands], found[design][0].bits, *span)
    return designs, list(names.values())


def _columns(runs: list[LawRun], designs, names) -> tuple[Columns, tuple[float, float]]:
    known = [run for run in runs if run.bits is not None]
    least = min((run.bits for run in known), default=0.0)
    middle = math.exp(sum(math.log(run.products) for run in known) / len(known)) if known else 1.0
    length = [math.nan if run.products is None else math.log(run.products / middle) for run in runs]
    bits = [math.nan if run.bits is None else run.bits - least for run in runs]
    group = [names.index(designs[run.design][0]) for run in runs]
    logs = np.log(np.array([run[:3] for run in runs], np.float64))
    return Columns(logs, np.array(group), np.array(length), np.array(bits)), (middle, float(least))


def _within(table: Columns) -> bool:
    """Whether some operands have sums of several widths: else bits and operands cannot be told apart."""
    known = np.isfinite(table.bits)
    return any(len(set(table.bits[known & (table.group == group)])) > 1 for group in set(table.group))


def _seen(runs: list[LawRun]) -> str:
    known = [run for run in runs if run.bits is not None]
    if not known:
        return ""
    return f" up to K = {max(run.products for run in known):g}, down to {min(run.bits for run in known):g} bits"


def read_any_law(path: str | Path) -> ScalingLaw | ArithmeticLaw:
    """Read a law that `softnum.tta.scaling_law.ScalingLaw.to_json` or `ArithmeticLaw.to_json` wrote.

    Raises
    ------
    ValueError
        If the file is not there, is none, or contradicts itself.
    """
    facts = read_law_facts(path)
    if facts.get("schema") != SCHEMA:
        return parse_law(facts, str(path))
    names = list(ArithmeticLaw.__dataclass_fields__)
    check_keys(facts, (*names, "schema", "law"), (), str(path))
    try:
        base = parse_law(facts["base"], str(path))
        terms = tuple(Term(**term) for term in facts["terms"])
        designs = {name: (str(of[0]), *of[1:]) for name, of in facts["designs"].items()}
        values = {name: tuple(map(float, facts[name])) for name in ("sums", "middle")}
        draws = tuple(tuple(map(float, draw)) for draw in facts["draws"])
        operands = {name: float(value) for name, value in facts["operands"].items()}
        law = ArithmeticLaw(base, operands, values["sums"], draws, values["middle"], designs, terms)
        numbers = [*operands.values(), *law.sums, *law.middle, *(value for draw in draws for value in draw)]
        right = all(map(math.isfinite, numbers)) and len(law.sums) == 3 and len(law.middle) == 2
        right &= law.middle[0] > 0 and len(draws) == len(base.draws)
        right &= all(len(draw) == len(operands) + 3 for draw in draws)
        for name, (of, bits, low, high) in designs.items():
            right &= of in operands and (bits is None) == (low is None) == (high is None)
            right &= bits is None or (bits > 0 and 0 < low <= high)
            right &= isinstance(name, str)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: not a whole law ({error!r}); fit it again") from error
    if not right:
        raise ValueError(f"{path}: its numbers contradict each other; fit it again")
    return law
