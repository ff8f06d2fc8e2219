"""Units: how a sum of products is computed. The order of summation and every rounding are part of the definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike

from softnum.arrays.environment import environment
from softnum.arrays.sources import DEFAULT_SOURCE, RandomSource, random_source
from softnum.formats.annotations import Key
from softnum.formats.base import AnyFormat
from softnum.formats.blocks import shown_format
from softnum.formats.checks import check_narrow
from softnum.formats.modes import overflow_of_formats, rounding_name
from softnum.formats.names import format
from softnum.formats.scalar import FixedFormat
from softnum.mac.family import register
from softnum.mac.order import reduction_order

__all__ = [
    "MAX_LANES", "ONE", "MadUnit", "Unit", "check_sum_formats", "in_lanes", "operand_pair", "put_order", "put_source",
    "shown", "shown_source", "use_disclosures", "use_tracer", "unit_of_disclosure",
]  # fmt: skip

#: The most lanes a unit has: their sums stand side by side while a chunk lasts.
MAX_LANES = 1024
#: The values 0 and 1, of what sums multiply their addends by: such a product is exact, and what it was.
ONE = FixedFormat(1, 0, signed=False)
_REDUCTIONS = ("sequential", "tree", "pairwise")
_COMPENSATIONS = ("kahan",)
_FLUSHED_INPUTS = ("sums", "positive")  # besides all and none
_tracers: list[Callable] = []  # at most one
_disclosures: list[tuple[Callable, Callable]] = []  # at most one


def use_tracer(trace: Callable) -> None:
    """Let `trace` be the body of `Unit.trace`: it takes the unit and that method's arguments."""
    _tracers[:] = [trace]


def use_disclosures(disclose: Callable, read: Callable) -> None:
    """Let `disclose` be the body of `Unit.disclosure`, which takes the unit, and `read` what makes the unit again."""
    _disclosures[:] = [(disclose, read)]


def unit_of_disclosure(given: Any) -> Unit:
    """The unit of a disclosure: of its data, their text or the path of a file."""
    return _disclosures[-1][1](given)


class Unit:
    """What every unit has; what else there is to a kind of units is its ``softnum.mac.family.Family``.

    ``operand``: the formats of a and b. ``result``: that of the sum. ``c_format``: that of C, the sum's start.
    ``stochastic``: whether a random key is needed. ``two_roundings``: whether a step has two stochastic roundings.
    ``steps(k)``, ``steps_with_c(k)``: how many pairs of random words a sum of length k takes, without C and with it.
    ``rounded_to``: the formats that a NaN may be missing in, a bit of the definition's answer each. ``roundings``: what
    kinds of roundings its definition counts, by the names that statistics have for them; None for one that it lacks.
    ``on_codes``: whether the engine takes codes of custom formats as they are, and not their values. ``random``: the
    source of its random bits (`random_source`).

    ``str(unit)`` is the formula, ``unit.expression`` the Python that makes the unit; ``repr(unit)`` is both, the
    formula as a comment, so that ``eval`` of it gives the unit again.

    >>> import softnum as sn
    >>> sn.MadUnit("e6m3", operand="e5m2")
    MadUnit('e6m3', operand='e5m2')  # acc = round(acc + a * b): e5m2 x e5m2 -> e6m3, one rounding (nearest_even)
    """

    operand: tuple[Any, ...]
    stochastic: bool = False
    two_roundings: bool = False
    roundings: tuple[str | None, ...] = ("sum",)
    on_codes: bool = False
    random: str = DEFAULT_SOURCE
    evidence: dict[str, Any] = {}  # of a preset: what each property rests on (softnum.mac.presets.Evidence)
    preset: tuple[Any, ...] | None = None  # of a preset: its name, output and disputed, as `softnum.unit` took them

    @property
    def result(self) -> Any:
        """The format of the sum."""
        return self.accumulator

    @property
    def rounded_to(self) -> tuple[Any, ...]:
        """The formats that are rounded to: the sum's alone, if nothing else is."""
        return (self.accumulator,)

    @property
    def c_format(self) -> Any:
        """The format of C."""
        return self.result

    @property
    def random_source(self) -> RandomSource:
        """What `random` names."""
        return random_source(self.random, type(self).__name__)

    def steps(self, k: int) -> int:
        """Number of random words of a sum of length k."""
        return k

    def steps_with_c(self, k: int) -> int:
        """Number of random words of a sum of length k that starts from C."""
        return self.steps(k)

    @property
    def expression(self) -> str:
        """The Python expression that makes the unit, formats by name."""
        needed = [shown(getattr(self, f.name)) for f in fields(self) if f.default is MISSING]
        stated = [
            f"{f.name}={shown(getattr(self, f.name))}"
            for f in fields(self)
            if f.default is not MISSING and (f.name == "operand" or getattr(self, f.name) != f.default)
        ]
        return f"{type(self).__name__}({', '.join(needed + stated)})"

    def __repr__(self) -> str:
        return f"{self.expression}  # {self}"

    def _mode(self, rounding: str) -> str:
        return f"{rounding}, r = {self.stochastic_bits}" if rounding.startswith("stochastic") else rounding

    def trace(
        self,
        a: ArrayLike,
        b: ArrayLike,
        c: ArrayLike | None = None,
        *,
        key: Key | None = None,
        random_bits: ArrayLike | None = None,
    ) -> Any:
        """Every step of one dot product: what is exact, what each rounding keeps and loses, and the flags.

        Parameters
        ----------
        a, b : array_like of float32 or float64, or Array, shape (K,)
            Values of the unit's operand formats (checked). BlockArrays under a BlockDotUnit.
        c : float or Array, optional
            Where the sum starts: a value of the result's format. Default +0.
        key : int, (int, int) or Stream, optional
            As in `softnum.dot`, whose random words (those of output 0, 0) the trace takes.
        random_bits : ndarray of uint32, shape (steps, 2), optional
            The random words themselves, [product, sum] for each step.

        Returns
        -------
        Trace
            ``.steps``, ``.code``, ``.result`` (what `softnum.dot` returns), ``.flags``, ``.to_dicts()``; printed, a
            table. It is computed by `softnum.reference`, in Python integers, and shares no code with `softnum.dot`; a
            CustomMadUnit's function is called as it is in Python, and of its result only the value is told.

        Raises
        ------
        TypeError
            If no trace of this kind of unit is known: of a MadUnit that computes in custom formats.
        ValueError
            As `softnum.dot`.

        Examples
        --------
        >>> import softnum as sn
        >>> t = sn.MadUnit("e5m2", operand="e5m2").trace([1.25, 8], [1.25, 1])
        >>> print(t)
        acc = round(acc + a * b): e5m2 x e5m2 -> e5m2, one rounding (nearest_even)
        #  k  step           computes     exact   kept  lost    GRS  rounds  result  code  flags
        0  0  exact product  a * b        1.5625
        1  0  sum            acc + a * b  1.5625  1.5   0.25    010  down    1.5     0x3e  inexact
        2  1  exact product  a * b        8
        3  1  sum            acc + a * b  9.5     8     0.75    110  up      10      0x49  inexact
        result: 10 = 0x49 in e5m2; flags: inexact
        >>> t.result, t.steps[3].exact, t.steps[3].lost
        (np.float32(10.0), Fraction(19, 2), Fraction(3, 4))
        """
        return _tracers[-1](self, a, b, c, key=key, random_bits=random_bits)

    def disclosure(self) -> Any:
        """All that is needed to compute what the unit computes, as a page and as data.

        Returns
        -------
        Disclosure
            Printed, a page in Markdown: formats, parameters, the definition in steps, roundings, evidence and test
            vectors. ``.to_dict()`` and ``.to_json()`` are the same as data, which `softnum.unit` reads.

        Raises
        ------
        TypeError
            If the unit's family states no definition: of a CustomMadUnit, whose step is a function of the user's.
        ValueError
            If a format's values cannot be stated, as those of logarithms or of functions of the user's; or a format has
            the name of another.

        Examples
        --------
        >>> import softnum as sn
        >>> unit = sn.MadUnit("e5m2", operand="e5m2", chunk=4)
        >>> page = unit.disclosure()
        >>> [line for line in str(page).splitlines() if line.startswith("#")][:3]
        ['# Disclosure of a MadUnit', '## Inputs and result', '## Parameters']
        >>> page.to_dict()["vectors"][0]["result"], sn.unit(page.to_json()) == unit
        ('0x3c', True)
        """
        return _disclosures[-1][0](self)


def shown(value: object) -> str:
    """A field's value as an expression: a pair of equal formats as one."""
    if isinstance(value, Unit):
        return value.expression
    if isinstance(value, tuple) and all(isinstance(part, AnyFormat) for part in value):
        return shown(value[0]) if value[0] == value[1] else f"({', '.join(map(shown, value))})"
    return shown_format(value) if isinstance(value, AnyFormat) else repr(value)


def check_sum_formats(unit: Any, *names: str, custom: bool = False) -> None:
    """ValueError unless sums can be kept in the unit's formats of these names: floats or fixed point, with a zero."""
    for what in names:
        fmt, caller = getattr(unit, what), type(unit).__name__
        if fmt is not None and not custom and fmt.codec.core_format(fmt) is not fmt:
            raise ValueError(f"{caller}: {what} must be a float or fixed-point format, got {fmt.described}")
        if fmt is not None and not fmt.has_zero:
            raise ValueError(f"{caller}: {what}={fmt} has no zero to start a sum from")


def put_order(unit: Any) -> None:
    """Check a unit's lanes, reduction and chunk, and make the numbers plain integers."""
    me = type(unit).__name__
    if isinstance(unit.lanes, bool) or not isinstance(unit.lanes, Integral) or not 1 <= unit.lanes <= MAX_LANES:
        raise ValueError(f"{me}: lanes must be an integer from 1 to {MAX_LANES}, got {unit.lanes!r}")
    object.__setattr__(unit, "lanes", int(unit.lanes))
    if unit.reduction not in _REDUCTIONS:
        raise ValueError(f"{me}: reduction must be one of {', '.join(_REDUCTIONS)}, got {unit.reduction!r}")
    if unit.chunk is not None:
        if isinstance(unit.chunk, bool) or not isinstance(unit.chunk, Integral) or not 1 <= unit.chunk < 2**62:
            raise ValueError(f"{me}: chunk must be a positive integer below 2**62, got {unit.chunk!r}")
        object.__setattr__(unit, "chunk", int(unit.chunk))


def put_source(unit: Any, stochastic: bool) -> None:
    """Check a unit's source of random bits, and name it as all do; stochastic: whether its own roundings take them."""
    source = unit.random_source
    object.__setattr__(unit, "random", source.name)
    source.check_steps(type(unit).__name__)
    if stochastic:
        source.check(unit.stochastic_bits, unit.two_roundings, type(unit).__name__)


def shown_source(unit: Any) -> str:
    """Where a unit's random bits come from, in words, if it takes some and they are none of the default's."""
    if not unit.stochastic or unit.random == DEFAULT_SOURCE:
        return ""
    return f", random bits {'given' if unit.random == 'given' else 'of ' + unit.random}"


def operand_pair(unit: Any) -> tuple[Any, ...]:
    """The formats of a unit's two factors, of one given or two."""
    me = type(unit).__name__
    if unit.operand is None:
        raise ValueError(f"{me}: state operand=, the format (or pair of formats) of the factors")
    pair = unit.operand if isinstance(unit.operand, tuple) else (unit.operand, unit.operand)
    if len(pair) != 2:
        raise ValueError(f"{me}: operand is one format or a pair, got {len(pair)}")
    pair = tuple(format(f) for f in pair)
    for fmt in pair:
        check_narrow(fmt, f"{me}: operand={{}}")
    return pair


@dataclass(frozen=True, repr=False)
class MadUnit(Unit):
    """A multiply-accumulate (MAC) unit: ``acc = R(acc + R_product(a * b))`` for k = 0, 1, ..., K-1, from +0 or C.

    Parameters
    ----------
    accumulator : format or str
        The format of the running sum.
    operand : format or str, or a pair of them
        The format of a and b; operands of `matmul` are checked to be values of it.
    product : format or str, optional
        The format each product is rounded to. None: the product stays exact, and a step rounds once (fma).
    rounding : str
        The mode of the sum.
    product_rounding : str, optional
        The mode of the product; None means `rounding`.
    overflow : str, optional
        The overflow rule. None: each format's default. A format that does not support the rule ("wrap" in a float,
        "infinity" in fixed point, P3109's older one in other formats) keeps its default.
    stochastic_bits : int
        r of the stochastic modes, 1 to 32.
    lanes : int
        The number L of partial accumulators, 1 to 1024: product k of a chunk goes to partial accumulator (k - the
        chunk's first k) mod L. Each starts from +0, and all L are added at the end of the chunk, including those
        without a product.
    chunk : int, optional
        Sum n products at a time, each chunk from +0, then add the chunks' sums in order to an outer sum (from +0 or C).
    reduction : {"sequential", "tree", "pairwise"}
        The order in which partial accumulators are added, in the accumulator's format. "sequential": ``((l0 + l1) + l2)
        + ...``. "tree": neighbours are added level by level; an odd last one passes to the next level unrounded.
        "pairwise": the sum of the first half plus that of the second, recursively; of an odd count the first half is
        the larger one. For a power of two, tree and pairwise give the same sums, executed in a different order, which
        matters for random words.
    outer_accumulator : format or str, optional
        The format of the outer sum; None means `accumulator`.
    compensated : {None, "kahan"}
        "kahan": each running sum, those of partial accumulators and that of the chunks, carries a compensation e, from
        +0. To add p is ``y = R(p - e)``, ``t = R(acc + y)``, ``e = R(R(t - acc) - y)``, ``acc = t``, all in the sum's
        format; p is the rounded product, or the exact one, so that ``R(a * b - e)`` is one rounding. The final e of a
        sum is dropped, and the additions of partial accumulators are not compensated. An infinite sum becomes NaN at
        the next step.
    flush_inputs : bool, "sums" or "positive"
        True: every operation reads subnormal operands as zeros of their sign: a and b, products, sums and C. "sums":
        products, sums and C, but not a and b. "positive": a, b and C are read as +0 where they are subnormal or zero;
        products and sums are read as they are.
    flush_results : {None, "before", "after", "subnormal"}
        Every rounding gives a zero of the same sign if the result is tiny before, or after, rounding with unbounded
        exponent, or is subnormal once it is rounded.
    random : str
        The source of the bits of stochastic roundings:

        - "philox4x32-10": a word of 32 bits per step, from Philox4x32-10 (Salmon et al. 2011) under the key.
        - "philox4x32-7": the same counters, 7 rounds.
        - either with "/2" or "/4": this many consecutive steps share a word; the first uses its lowest bits. Step k has
          bits (k mod D) 32/D and on, 32/D of them, of the word that step k div D of a word a step has.
        - "lfsrW", "lfsrW-TAPS": linear feedback shift registers of W bits, 8 to 32, one for each output. For a step it
          moves once, to the right; if a 1 left, its state is exclusive or TAPS, a mask in hexadecimal (of 16, 24 and
          32 bits there is one without). A step's bits are the complement of the state before it moves. The first
          state is the low W bits of word 0 of Philox4x32-10 counter (0, n, m, batch), all ones if they are 0.
        - "lfsr...xN": N moves a step.
        - "lfsr...@hart": column n begins with the complement of the key + n, modulo 2**W, in every row: PULP's SDOTP
          unit of core key + n, that is "lfsr32@hart" with r = 12 (pulp-platform/cvfpu, src/lfsr_sr.sv).
        - "given": the caller passes the bits of every product as random_bits=; a key is refused.

        Where product and sum of a step both round stochastically, the product has a step's low bits and the sum those
        from their middle on. Every output has its own steps, numbered as the notes say: a step of an addition of
        lanes or chunks, K or above, has the bits of an LFSR that has moved that often.

    Notes
    -----
    In user-defined formats (`CustomFormat`) a step uses the operations of the format: ``acc = add(acc,
    multiply(a, b))``, or without `product` ``acc = fma(a, b, acc)``, and sums of partial accumulators and chunks are
    ``add(first, second)``. They support neither stochastic rounding nor compensation.

    C is the start of the outer sum if ``chunk`` is given. Otherwise it is the start of the accumulator or, with several
    partial accumulators, the first operand of their reduction, which then has L + 1 operands. An empty sum (K = 0) is C
    or +0.

    A stochastic rounding takes the random words of its step. Step k is product k and its addition; the additions of
    partial accumulators and chunks are steps K, K + 1, ... in the order of execution: the reduction of chunk 0, its
    addition to the outer sum, the reduction of chunk 1, ...; "tree" level by level, "pairwise" the first half before
    the second.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    Examples
    --------
    >>> import softnum as sn
    >>> wang = sn.MadUnit("e6m9", operand="e5m2", chunk=64)
    >>> print(wang)
    acc = round(acc + a * b): e5m2 x e5m2 -> e6m9, one rounding (nearest_even), in chunks of 64 summed in e6m9
    """

    accumulator: object
    operand: object = None
    product: object = None
    rounding: str = "nearest_even"
    product_rounding: str | None = None
    overflow: str | None = None
    stochastic_bits: int = 32
    lanes: int = 1
    chunk: int | None = None
    reduction: str = "sequential"
    outer_accumulator: object = None
    compensated: str | None = None
    flush_inputs: bool | str = False
    flush_results: str | None = None
    random: str = DEFAULT_SOURCE

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("operand", operand_pair(self))
        put("accumulator", format(self.accumulator))
        put("product", None if self.product is None else format(self.product))
        put("outer_accumulator", None if self.outer_accumulator is None else format(self.outer_accumulator))
        check_sum_formats(self, "accumulator", "product", "outer_accumulator", custom=True)
        put("rounding", rounding_name(self.rounding))
        if self.product_rounding is not None:
            if self.product is None:
                raise ValueError("MadUnit: product_rounding needs product=, the format to round the product to")
            put("product_rounding", rounding_name(self.product_rounding))
        if self.overflow is not None:
            put("overflow", self._known_overflow())
        put_order(self)
        if self.compensated is not None:
            if self.compensated not in _COMPENSATIONS:
                raise ValueError(f"MadUnit: compensated must be None or 'kahan', got {self.compensated!r}")
            if self.rounding.startswith("stochastic"):
                raise ValueError(
                    f"MadUnit: compensated={self.compensated!r} rounds four times a step, and a step has no random "
                    f"words for them; take a rounding other than {self.rounding!r} (product_rounding may be stochastic)"
                )
        if self.chunk is None and self.outer_accumulator is not None:
            raise ValueError("MadUnit: outer_accumulator needs chunk=, the length of the inner sums")
        environment(self.accumulator, self.rounding, None, self.stochastic_bits)  # checks r
        if self.flush_inputs not in _FLUSHED_INPUTS:
            if isinstance(self.flush_inputs, str):
                raise ValueError(
                    f"MadUnit: flush_inputs must be a bool, {' or '.join(map(repr, _FLUSHED_INPUTS))}, got "
                    f"{self.flush_inputs!r}"
                )
            put("flush_inputs", bool(self.flush_inputs))
        self.environments  # noqa: B018  checks flush_results
        put_source(self, self.stochastic)
        self._check_custom()

    def _check_custom(self) -> None:
        """ValueError for what custom formats do not know."""
        modes = ((self.product, self.product_mode), (self.accumulator, self.rounding), (self.outer, self.rounding))
        for fmt, mode in modes:
            if fmt is not None and fmt.codec.core_format(fmt) is not fmt:
                fmt.check_modes(mode, self.overflow)
                if self.compensated or self.stochastic or self.flushes:
                    what = f"compensated={self.compensated!r}" if self.compensated else "stochastic rounding"
                    what = "flushing" if self.flushes else what
                    raise ValueError(
                        f"MadUnit: {what} is not defined where products or sums are of {fmt}; a CustomMadUnit whose "
                        "function takes a last parameter named word may round as it likes"
                    )

    def _known_overflow(self) -> str:
        formats = [f for f in (self.product, self.outer_accumulator) if f is not None]
        overflow_of_formats(self.overflow, self.accumulator, *formats)  # raises if no format of the unit knows the rule
        return self.overflow

    def overflow_of(self, fmt: AnyFormat) -> str | None:
        """The overflow rule of one of the unit's formats: None if it does not know that of the unit."""
        return self.overflow if self.overflow in fmt.overflow_rules else None

    def _environment(self, fmt, rounding: str, reads: tuple) -> tuple[int, ...]:
        return environment(
            fmt, rounding, self.overflow_of(fmt), self.stochastic_bits, flush_inputs=self.flush_inputs in reads,
            flush_results=self.flush_results,
        )  # fmt: skip

    @property
    def on_codes(self) -> bool:
        """Whether the unit computes in a custom format, on its codes (``softnum.mac.products.custom.codes``), or on
        operands whose values are not exact."""
        if not all(fmt.values_are_exact for fmt in self.operand):
            return True
        formats = (self.product, self.accumulator, self.outer)
        return any(fmt is not None and fmt.codec.core_format(fmt) is not fmt for fmt in formats)

    @property
    def outer(self) -> Any:
        """The format of the result: the outer sum's under chunk, else the accumulator."""
        return self.outer_accumulator or self.accumulator

    @property
    def result(self) -> Any:
        """The format of the sum."""
        return self.outer

    @property
    def rounded_to(self) -> tuple[Any, ...]:
        """The formats that products, sums and the outer sum are rounded to."""
        return self.product, self.accumulator, self.outer

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The kinds of roundings, in the order of csrc/softnum/units/mad.h."""
        return (
            None if self.product is None else "product", "sum", None if self.compensated is None else "compensation",
            "lanes" if self.lanes > 1 else None, None if self.chunk is None else "outer sum",
        )  # fmt: skip

    @property
    def product_mode(self) -> str:
        """The mode that products round in."""
        return self.product_rounding or self.rounding

    @cached_property
    def environments(self) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
        """(product, sum, outer sum): (rounding, overflow, tininess, r) each, in the core's numbers. a and b are read in
        the first, sums and rounded products in the others."""
        return (
            self._environment(self.product or self.accumulator, self.product_mode, (True,)),
            self._environment(self.accumulator, self.rounding, (True, "sums")),
            self._environment(self.outer, self.rounding, (True, "sums")),
        )

    @property
    def flushes(self) -> bool:
        """Whether subnormal operands or results are flushed."""
        return bool(self.flush_inputs) or self.flush_results is not None

    @property
    def stochastic(self) -> bool:
        """Whether a random key is needed."""
        return self._product_is_stochastic or self.rounding.startswith("stochastic")

    @property
    def two_roundings(self) -> bool:
        """Whether both the product and the sum of a step round stochastically."""
        return self._product_is_stochastic and self.rounding.startswith("stochastic")

    @property
    def _product_is_stochastic(self) -> bool:
        return self.product is not None and self.product_mode.startswith("stochastic")

    def steps(self, k: int) -> int:
        """Number of steps of a sum of length k from +0: K, and one for each addition of lanes and of chunks."""
        if self.chunk is None:
            return k + (self.lanes - 1 if k else 0)
        return k + -(-k // self.chunk) * self.lanes

    def steps_with_c(self, k: int) -> int:
        """Number of steps of a sum of length k from C: one more if C meets the lanes in their reduction."""
        return self.steps(k) + (1 if k and self.chunk is None and self.lanes > 1 else 0)

    def __str__(self) -> str:
        a, b = self.operand
        p = "a * b" if self.product is None else "round(a * b)"
        step = f"acc = round(acc + {p})"
        if self.compensated:
            step = f"y = round({p} - e), t = round(acc + y), e = round(round(t - acc) - y), acc = t"
        if self.product is None:
            once = "" if self.compensated else ", one rounding"
            text = f"{step}: {a} x {b} -> {self.accumulator}{once} ({self._mode(self.rounding)})"
        else:
            text = (
                f"{step}: {a} x {b} -> {self.product} ({self._mode(self.product_mode)}) "
                f"-> {self.accumulator} ({self._mode(self.rounding)})"
            )
        if self.compensated:
            text += ", compensated (Kahan)"
        if self.overflow:
            text += f", overflow {self.overflow}"
        text += shown_flushes(self)
        if self.lanes > 1:
            text += in_lanes(self.lanes, self.reduction)
        text += shown_source(self)
        return text + (f", in chunks of {self.chunk} summed in {self.outer}" if self.chunk else "")


def shown_flushes(unit: Any) -> str:
    """What a unit flushes, in words."""
    text = ""
    if unit.flush_inputs:
        how = {"positive": "subnormal and zero inputs read as +0", "sums": "subnormal sums read as zero"}
        text += f", {how.get(unit.flush_inputs, 'subnormal inputs read as zero')}"
    if unit.flush_results == "subnormal":
        return text + ", subnormal results become zero"
    return text + (f", results tiny {unit.flush_results} rounding become zero" if unit.flush_results else "")


def in_lanes(lanes: int, reduction: str) -> str:
    """How the sums of lanes are added, in words, and the formula for up to eight of them."""
    how = {"sequential": "in order", "tree": "as a tree", "pairwise": "by halves"}[reduction]
    if lanes > 8:
        return f", in {lanes} lanes reduced {how}"
    sums = [f"l{i}" for i in range(lanes)]
    for i, j in reduction_order(lanes, reduction):
        sums[i] = f"({sums[i]} + {sums[j]})"
    return f", in {lanes} lanes reduced {how}: {sums[0][1:-1]}"


def _sequence(unit: MadUnit) -> str | None:
    if unit.lanes > 1:
        return None
    once = unit.flush_inputs == "positive"  # C is, and sums are not
    return "steps" if unit.chunk is None and unit.compensated is None and not once else "sums"


register(MadUnit, kind="mad", formats=("accumulator", "product", "outer_accumulator"), sequence=_sequence)
