"""What a specification of a dot product leaves open, as data and as text."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from itertools import product as every
from typing import Any

from softnum.formats.base import AnyFormat
from softnum.formats.checks import check_float, check_scalar
from softnum.formats.modes import ROUNDING_MODES, overflow_of_formats, rounding_name
from softnum.formats.names import format
from softnum.mac.expressions import evaluated
from softnum.mac.mad import operand_pair, shown

__all__ = ["Freedom", "ImeFreedom", "freedom_of"]

_ORDERS = ("any", "given")
_GROUPINGS = ("any", "sequential")
_PRODUCTS = ("rounded", "fused", "exact")
_PLACES = ("any", "first", "last")
_ZEROS = ("padded", "ieee", "either")
_INTERMEDIATES = ("rounded", "exact", "either")
_FLUSHES = (None, "before", "after", "subnormal")


def _one_of(name: str, value, known) -> None:
    if value not in known:
        raise ValueError(f"Freedom: {name} must be one of {', '.join(map(repr, known))}, got {value!r}")


def _check_sums(fmt, what: str) -> None:
    """ValueError unless sums can be of this format: a float with signs and a zero."""
    check_float(fmt, f"{what} must be a floating-point format of up to 64 bits, not {{}}")
    if not (fmt.has_zero and fmt.signed):
        raise ValueError(f"{what} must have signs and a zero, which {fmt} lacks")


def _several(name: str, value, known) -> tuple:
    """A choice or several of them, in the order of those known."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for x in given:
        _one_of(name, x, known)
    if not given:
        raise ValueError(f"Freedom: {name} needs at least one of {', '.join(map(repr, known))}")
    return tuple(x for x in known if x in given)


@dataclass(frozen=True, repr=False)
class Freedom:
    """A specification of dot products that permits several computations.

    A computation is a binary tree: its leaves are the K products, and C where there is one; each inner node adds two
    numbers. Every choice that is left open may be made anew at each node. `softnum.permitted` computes the possible
    results.

    Parameters
    ----------
    accumulator : FloatFormat or str
        The format that sums are rounded to, and that of C.
    operand : format, or a pair of formats, optional
        The format of a and b: floats or fixed point. Default: the accumulator.
    product : FloatFormat or str, optional
        The format that products are rounded to, where they are. Default: the accumulator.
    output : FloatFormat or str, optional
        The format of the result, to which the finished sum is rounded once more. Default: the accumulator.
    rounding : str, or several
        The mode of each rounding, or those that each may take; ("down", "up") is faithful rounding, and covers
        stochastic rounding but for the sign of an exact zero.
    order : {"any", "given"}
        Whether the products may be permuted.
    grouping : {"any", "sequential"}
        Any binary tree (over neighbours, where the order is given), or one running sum.
    products : str, or several
        How a product is added: "rounded" first; "fused": unrounded, to a number (a fused multiply-add; the first of a
        chain adds +0); "exact": unrounded, to anything, including another such product.
    c : {"any", "first", "last"}
        The place of C: any leaf; that in front of the first product; in the last addition, to the finished sum.
    zeros : {"padded", "ieee", "either"}
        "ieee": signs of zeros as in IEEE 754, and no terms other than the products and C. "padded": +0 may be added
        to anything besides, as where sums start from it and lengths are filled up. "either": that too, and any zero may
        have either sign.
    intermediate : {"rounded", "exact", "either"}
        Whether sums are rounded before the last one.
    flush_inputs : bool or "either"
        Whether subnormal operands of each operation are read as zeros (of their sign).
    flush_results : {None, "before", "after", "subnormal"}, or several
        Whether tiny results of each rounding become zeros, as in `softnum.add`; of a machine whose tininess is not
        known, ("before", "after").
    overflow : str, optional
        As in `softnum.quantize`; of a format that does not know the rule, its own.

    Raises
    ------
    ValueError
        If a name is unknown, a mode is stochastic, or a format is not of the kinds above, or without zero or signs.

    Notes
    -----
    IEEE 754-2019 clause 9.4 lets a reduction associate in any order; languages' and libraries' contraction of products
    and sums (clause 10.4) is ``products=("rounded", "fused")``. NaNs are one result: which of them, clause 6.2 leaves
    open.

    Examples
    --------
    >>> import softnum as sn
    >>> print(sn.Freedom("binary32"))
    any tree of additions of binary32 in any order (nearest_even), products of binary32 x binary32 rounded to binary32 \
or fused, C anywhere, +0 added anywhere
    >>> sn.Freedom("binary32", "binary16", order="given", grouping="sequential", products="fused").expression
    "Freedom('binary32', operand='binary16', order='given', grouping='sequential', products='fused')"
    """

    accumulator: object
    operand: object = None
    product: object = None
    output: object = None
    rounding: object = ("nearest_even",)
    order: str = "any"
    grouping: str = "any"
    products: object = ("rounded", "fused")
    c: str = "any"
    zeros: str = "padded"
    intermediate: str = "rounded"
    flush_inputs: bool | str = False
    flush_results: object = (None,)
    overflow: str | None = None

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("accumulator", format(self.accumulator))
        if self.operand is None:
            put("operand", self.accumulator)
        put("operand", operand_pair(self))
        for name in ("product", "output"):
            made = getattr(self, name)
            put(name, self.accumulator if made is None else format(made))
        for name in ("accumulator", "product", "output"):
            fmt = getattr(self, name)
            _check_sums(fmt, f"Freedom: {name}")
        for fmt in self.operand:
            check_scalar(fmt, "Freedom: operands must be floats or fixed point of up to 64 bits, not {}")
        modes = self.rounding if isinstance(self.rounding, (tuple, list)) else (self.rounding,)
        modes = tuple(map(rounding_name, modes))
        for mode in modes:
            if mode.startswith("stochastic"):
                raise ValueError(
                    f"Freedom: {mode} takes random bits; what it may give is rounding=('down', 'up'), with "
                    "zeros='either' for the sign of what cancels"
                )
        put("rounding", _several("rounding", modes, tuple(ROUNDING_MODES)))
        _one_of("order", self.order, _ORDERS)
        _one_of("grouping", self.grouping, _GROUPINGS)
        put("products", _several("products", self.products, _PRODUCTS))
        _one_of("c", self.c, _PLACES)
        _one_of("zeros", self.zeros, _ZEROS)
        _one_of("intermediate", self.intermediate, _INTERMEDIATES)
        if self.flush_inputs != "either":
            if isinstance(self.flush_inputs, str):
                raise ValueError(f"Freedom: flush_inputs must be a bool or 'either', got {self.flush_inputs!r}")
            put("flush_inputs", bool(self.flush_inputs))
        put("flush_results", _several("flush_results", self.flush_results, _FLUSHES))
        overflow_of_formats(self.overflow, self.accumulator, self.product, self.output)  # raises if none knows it

    def overflow_of(self, fmt: AnyFormat) -> str | None:
        """The overflow rule of one of the formats: None if it does not know the one that is stated."""
        return self.overflow if self.overflow in fmt.overflow_rules else None

    @property
    def ways(self) -> tuple[tuple[str, str | None], ...]:
        """The (rounding, flush_results) that a rounding may take."""
        return tuple(every(self.rounding, self.flush_results))

    @property
    def reads(self) -> tuple[bool, ...]:
        """Whether an operand may be kept, flushed, or both."""
        return (False, True) if self.flush_inputs == "either" else (self.flush_inputs,)

    @property
    def expression(self) -> str:
        """The Python expression that makes it, formats by name."""
        parts = [shown(self.accumulator)]
        for f in fields(self):
            value = getattr(self, f.name)
            if f.default is MISSING or value == f.default:
                continue
            if f.name in ("product", "output") and value == self.accumulator:
                continue
            if f.name == "operand" and value == (self.accumulator, self.accumulator):
                continue
            single = f.name in ("rounding", "products", "flush_results") and len(value) == 1
            parts.append(f"{f.name}={value[0]!r}" if single else f"{f.name}={shown(value)}")
        return f"Freedom({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.expression

    def __str__(self) -> str:
        a, b = self.operand
        tree = {"any": "any tree of additions", "sequential": "a running sum"}[self.grouping]
        order = {"any": "in any order", "given": "in the order given"}[self.order]
        forms = {"rounded": f"rounded to {self.product}", "fused": "fused", "exact": "exact"}
        products = " or ".join(forms[x] for x in self.products)
        text = f"{tree} of {self.accumulator} {order} ({' or '.join(self.rounding)}), products of {a} x {b} {products}"
        text += {"any": ", C anywhere", "first": ", C first", "last": ", C last"}[self.c]
        text += {"padded": ", +0 added anywhere", "ieee": "", "either": ", zeros of either sign"}[self.zeros]
        text += {"rounded": "", "exact": ", sums rounded at the end", "either": ", sums rounded or not"}[
            self.intermediate
        ]
        text += ", subnormal operands read as zero" if self.flush_inputs else ""
        text += " or not" if self.flush_inputs == "either" else ""
        if self.flush_results != (None,):
            told = {
                None: "kept", "before": "zero if tiny before rounding", "after": "zero if tiny after rounding",
                "subnormal": "zero if subnormal",
            }  # fmt: skip
            text += f", tiny results {' or '.join(told[x] for x in self.flush_results)}"
        if self.overflow is not None:
            text += f", overflow {self.overflow}"
        return text + (f", result rounded to {self.output}" if self.output != self.accumulator else "")


_FRM = ("nearest_even", "toward_zero", "down", "up", "nearest_away")
_RND = ("frm", "rto", "xct")


@dataclass(frozen=True, repr=False)
class ImeFreedom:
    """The freedom that RISC-V's Integrated Matrix Extension leaves to an implementation that discloses (G, psm = 0,
    rnd).

    A step takes lambda sub-dot-products of W products each, in groups of G consecutive ones. The partial sum S of a
    group's products is exact (psm = 0); C becomes ``round_frm(C + S)``, where S is rounded before to C's format by the
    mode in frm (rnd = "frm"), rounded to odd ("rto") or not ("xct").

    Parameters
    ----------
    accumulator : FloatFormat or str
        C's format.
    operand : format, or a pair of formats, optional
        Of a and b. Default: the accumulator.
    lam, w : int
        lambda, a power of two up to 64, and W: 1, 2, 4 or 8. K is a multiple of their product: LMUL steps in order.
    groups : int, or several, optional
        The G that are possible, powers of two up to lambda. Default: all of them.
    rnd : str, or several
    rounding : str
        The mode in frm: one of RISC-V's five.

    Raises
    ------
    ValueError
        If a number or name is out of range, or a format is no float.

    Notes
    -----
    RISC-V Integrated Matrix Extension, section "Accumulation and rounding model (floating-point)", of the repository
    riscv/integrated-matrix-extension, src/unpriv/integrated-matrix.adoc (a draft of 2026). With psm = 1 the reduction
    is the implementation's own and has to be published by it: any result may be one, so there is none to refute, and
    it is left out; so is microscaling. The draft states neither the sign of a partial sum that is zero nor where
    rounding to odd overflows to: both answers are permitted.

    Examples
    --------
    >>> import softnum as sn
    >>> spec = sn.ImeFreedom("binary16", lam=4)
    >>> found = sn.permitted([1024, 0.5, 0.5, 0.5], [1, 1, 1, 1], spec, 1024.0)
    >>> found.results
    (2048.0, 2050.0)
    >>> print(sn.permitted([1024, 0.5, 0.5, 0.5], [1, 1, 1, 1], spec, 1024.0, result=2050.0).witness)
    G = 4, psm = 0, rnd = frm
    """

    accumulator: object
    operand: object = None
    lam: int = 4
    w: int = 1
    groups: object = None
    rnd: object = _RND
    rounding: str = "nearest_even"

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("accumulator", format(self.accumulator))
        if self.operand is None:
            put("operand", self.accumulator)
        put("operand", operand_pair(self))
        _check_sums(self.accumulator, "ImeFreedom: accumulator")
        for fmt in self.operand:
            check_float(fmt, "ImeFreedom: operands must be floats of up to 64 bits, not {}")
        for name, known in (("lam", (1, 2, 4, 8, 16, 32, 64)), ("w", (1, 2, 4, 8))):
            if getattr(self, name) not in known:
                raise ValueError(f"ImeFreedom: {name} must be one of {known}, got {getattr(self, name)!r}")
        known = tuple(1 << i for i in range(self.lam.bit_length()))
        groups = known if self.groups is None else self.groups
        groups = tuple(groups) if isinstance(groups, (tuple, list)) else (groups,)
        if not groups or any(g not in known for g in groups):
            raise ValueError(f"ImeFreedom: groups must be powers of two up to lambda, {known}, got {self.groups!r}")
        put("groups", tuple(g for g in known if g in groups))
        rnd = self.rnd if isinstance(self.rnd, (tuple, list)) else (self.rnd,)
        if not rnd or any(x not in _RND for x in rnd):
            raise ValueError(f"ImeFreedom: rnd must be of {', '.join(_RND)}, got {self.rnd!r}")
        put("rnd", tuple(x for x in _RND if x in rnd))
        put("rounding", rounding_name(self.rounding))
        if self.rounding not in _FRM:
            raise ValueError(f"ImeFreedom: frm is one of {', '.join(_FRM)}, got {self.rounding!r}")

    @property
    def output(self) -> Any:
        """The format of the result."""
        return self.accumulator

    @property
    def expression(self) -> str:
        """The Python expression that makes it, formats by name."""
        parts = [shown(self.accumulator)]
        if self.operand != (self.accumulator, self.accumulator):
            parts.append(f"operand={shown(self.operand)}")
        parts += [f"lam={self.lam}", f"w={self.w}"]
        if self.groups != tuple(1 << i for i in range(self.lam.bit_length())):
            parts.append(f"groups={self.groups!r}")
        parts += [f"rnd={self.rnd!r}"] if self.rnd != _RND else []
        parts += [f"rounding={self.rounding!r}"] if self.rounding != "nearest_even" else []
        return f"ImeFreedom({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.expression

    def __str__(self) -> str:
        a, b = self.operand
        return (
            f"IME: {a} x {b} -> {self.accumulator}, lambda = {self.lam}, W = {self.w}, "
            f"G of {', '.join(map(str, self.groups))}, psm = 0, rnd of {', '.join(self.rnd)}, frm {self.rounding}"
        )


def freedom_of(what: Any) -> Freedom | ImeFreedom:
    """A specification, given itself or by the expression that its `repr` shows.

    Raises ValueError for other text.

    >>> from softnum.inspect.permitted.freedom import freedom_of
    >>> freedom_of("Freedom('binary32', operand='e4m3fn', order='given')").order
    'given'
    """
    if isinstance(what, (Freedom, ImeFreedom)):
        return what
    if not isinstance(what, str):
        raise TypeError(f"a Freedom, or its expression, is needed, got {what!r}")
    kinds = {"Freedom": Freedom, "ImeFreedom": ImeFreedom}
    return evaluated(what, kinds, "specification", "Freedom('binary32', operand='binary16')")
