"""What a disclosure says, carried out: written from the pages of disclosures alone, in fractions.

It reads the data of a page, a dictionary of plain data, and imports nothing of softnum: whoever has the page has the
unit. Only the words of the page's definition say what the code below does; nothing was taken from softnum's sources.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple


class NoResult(Exception):
    """A NaN or infinity that a format has no code for."""


class V(NamedTuple):
    """A value: kind "number", "infinity" or "nan"; sign; magnitude of a number."""

    kind: str
    s: int = 0
    x: Fraction = Fraction(0)

    @property
    def signed(self) -> Fraction:
        return -self.x if self.s else self.x

    @property
    def is_zero(self) -> bool:
        return self.kind == "number" and not self.x


NAN = V("nan")
ZERO = V("number")


def log2(x: Fraction) -> int:
    """floor(log2 x)"""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


@lru_cache(maxsize=4096)
def power(e: int) -> Fraction:
    return Fraction(2) ** e


# -- formats -----------------------------------------------------------------------------------------------------------
def decode(f: dict, code: int) -> V:
    if f["kind"] == "float":
        return decode_float(f, code)
    if f["kind"] == "fixed":
        i = code - (1 << f["bits"]) if f["signed"] and code >> f["bits"] - 1 else code
        return V("number", int(i < 0), abs(i) * power(-f["fraction_bits"]))
    if f["kind"] == "table":
        x = float.fromhex(f["values"][code])
        if x != x:
            return NAN
        s = int(str(x).startswith("-"))
        return V("infinity", s) if abs(x) == float("inf") else V("number", s, abs(Fraction(x)))
    return decode_string(f, f["bits"], code)


def decode_float(f: dict, code: int) -> V:
    e, m, bits = f["exponent_bits"], f["mantissa_bits"], f["bits"]
    s = code >> bits - 1 if f["signed"] else 0
    u = code - (s << bits - 1)
    field, fraction = u >> m, u & (1 << m) - 1
    nan = {
        "ieee": field == (1 << e) - 1 and fraction != 0,
        "all_ones": u == (1 << e + m) - 1,
        "negative_zero": s == 1 and u == 0,
        "none": False,
    }[f["nan_codes"]]
    if nan:
        return NAN
    if f["infinity_code"] is not None and u == int(f["infinity_code"], 16):
        return V("infinity", s)
    scale = f["bias"] + m
    if f["lowest_binade"] == "normal":
        x = Fraction(0) if u == 0 and f["has_zero"] else ((1 << m) + fraction) * power(field - scale)
    elif field == 0:
        x = fraction * power(1 - scale) if f["lowest_binade"] == "subnormal" else Fraction(0)
    else:
        x = ((1 << m) + fraction) * power(field - scale)
    return V("number", s if x or f["negative_zero"] else 0, x)


def decode_string(f: dict, n: int, code: int) -> V:
    """A posit or linear takum, of n bits."""
    if code == 0:
        return ZERO
    if code == 1 << n - 1:
        return NAN
    s = code >> n - 1
    bits = [int(c) for c in f"{(1 << n) - code if s else code:0{n}b}"][1:]
    if f["kind"] == "posit":
        run = next((i for i, bit in enumerate(bits) if bit != bits[0]), len(bits))
        r = run - 1 if bits[0] else -run
        rest = bits[run + 1 :]
        exponent = (rest + [0] * f["es"])[: f["es"]]
        fraction = rest[f["es"] :]
        e = int("".join(map(str, exponent)) or "0", 2)
        size = power(r * (1 << f["es"]) + e)
    else:
        bits = bits + [0] * 20
        d, r3 = bits[0], int("".join(map(str, bits[1:4])), 2)
        r = r3 if d else 7 - r3
        c = int("".join(map(str, bits[4 : 4 + r])) or "0", 2)
        size = power((1 << r) - 1 + c if d else -(2 << r) + 1 + c)
        fraction = bits[4 + r :]
    return V("number", s, size * (1 + sum((bit * power(-1 - i) for i, bit in enumerate(fraction)), Fraction(0))))


def is_subnormal(f: dict, code: int) -> bool:
    if f["kind"] != "float" or f["lowest_binade"] != "subnormal":
        return False
    u = code & (1 << f["exponent_bits"] + f["mantissa_bits"]) - 1
    return 0 < u < 1 << f["mantissa_bits"]


# -- roundings ---------------------------------------------------------------------------------------------------------
def goes_up(mode: str, r, w: int, s: int, u: int, t: Fraction) -> bool:
    if t == 0:
        return False
    half, odd = Fraction(1, 2), u % 2 == 1
    if mode.startswith("stochastic"):
        n = 1 << r
        w %= n
        scaled = t * n
        whole, part = divmod(scaled, 1)
        if mode == "stochastic":
            return whole + w >= n
        if mode == "stochastic_fast":
            return scaled + w + half >= n
        if mode == "stochastic_equal":
            return 2 * w >= n
        if mode == "stochastic_floor":
            return whole + (part > 0) > w if s else whole + w >= n
        tie = whole % 2 == (1 if mode == "stochastic_even" else 0)
        return whole + (part > half or (part == half and tie)) + w >= n
    return {
        "nearest_even": t > half or (t == half and odd),
        "nearest_away": t >= half,
        "nearest_zero": t > half,
        "nearest_up": t > half or (t == half and s == 0),
        "nearest_down": t > half or (t == half and s == 1),
        "toward_zero": False,
        "away_from_zero": True,
        "up": s == 0,
        "down": s == 1,
        "to_odd": not odd,
    }[mode]


def given(code: str | None) -> int:
    if code is None:
        raise NoResult
    return int(code, 16)


class Page:
    """A disclosure's data; `dot` computes one sum."""

    def __init__(self, data: dict) -> None:
        self.data, self.formats = data, data["formats"]
        self.values = lru_cache(maxsize=1 << 17)(lambda name, code: decode(self.formats[name], code))
        self.top = Node(self, data)

    def dot(self, row: dict) -> int:
        """The code of a row's result, as the page's vectors have rows."""
        codes = lambda name: [int(x, 16) for x in row.get(name, [])]  # noqa: E731
        c = None if row["c"] is None else int(row["c"], 16)
        words = row.get("random_bits")
        of_blocks = {"BlockDotUnit": self.top.block_dot, "BlockFusedDotUnit": self.top.block_fused_dot}
        if self.data["family"] in of_blocks:
            tensors = []
            for text, name in zip(row.get("tensor_scales", [None, None]), (self.top.a, self.top.b), strict=True):
                f = self.formats[name]["tensor_scale"]
                tensors.append(V("number", 0, Fraction(1)) if f is None else decode(self.formats[f], int(text, 16)))
            return of_blocks[self.data["family"]](
                codes("a"), codes("b"), codes("a_scales"), codes("b_scales"), tensors, c, words
            )  # fmt: skip
        return self.top.dot(codes("a"), codes("b"), c, words)


class Node:
    """A unit of a page, or one inside another."""

    def __init__(self, page: Page, data: dict) -> None:
        self.formats, self.value = page.formats, page.values
        self.data, self.p = data, data["parameters"]
        self.a, self.b, self.c = (data["inputs"][x] for x in "abc")
        self.inner = None if data["inner"] is None else Node(page, data["inner"])

    def read(self, name: str, code: int, operand: bool = False) -> V:
        """A value, zero if it is subnormal and the unit reads it so; operand: whether it is one of a or b."""
        v = self.value(name, code)
        if self.p.get("flush_inputs") in ((True,) if operand else (True, "sums")) and is_subnormal(
            self.formats[name], code
        ):
            return V("number", v.s if self.formats[name]["negative_zero"] else 0)
        return v

    def dot(self, a, b, c, words=None) -> int:
        return getattr(self, self.data["family"])(a, b, c, words)

    @property
    def stochastic(self) -> bool:
        return any(r["stochastic_bits"] is not None for r in self.data["roundings"].values())

    def steps(self, k: int) -> int:
        """How many steps have random words, without C."""
        if self.data["family"] == "ExactDotUnit":
            return 1
        order = self.data["order"]
        lanes, chunk = order.get("lanes", 1), order.get("chunk")
        return k + (lanes - 1 if chunk is None else -(-k // chunk) * lanes)

    # R(v)
    def round(self, name: str, v: V, word: int = 0) -> int:
        r = self.data["roundings"][name]
        f = self.formats[r["format"]]
        if v.kind == "nan":
            return given(r["nan"])
        if v.kind == "infinity":
            return given(r["infinity"][v.s])
        if f["kind"] == "float":
            return self.round_float(r, f, v, word)
        if f["kind"] == "fixed":
            return self.round_fixed(r, f, v, word)
        return self.round_string(r, f, v)

    def round_float(self, r, f, v, word) -> int:
        m, emin, bits = f["mantissa_bits"], f["emin"], f["bits"]
        zero = v.s << bits - 1 if f["signed"] and f["negative_zero"] else 0
        if not v.x:
            return zero

        def rounded(e):
            q = power(e - m)
            n = v.x // q
            t = v.x / q - n
            u = int(n) + (e - emin) * (1 << m) - ((1 << m) if f["lowest_binade"] == "normal" else 0)
            return u + goes_up(r["mode"], r["stochastic_bits"], word, v.s, u, t)

        normal = int(f["smallest_normal_code"], 16)
        least = decode(f, normal).x
        flush = r["flush_results"]
        below = v.x < least
        if flush in ("before", "after") and below:
            free = rounded(log2(v.x))
            if flush == "before" or r["mode"].startswith("stochastic") or free < normal:
                return zero
            u = normal
        elif below and f["lowest_binade"] != "subnormal":
            u = normal if goes_up(r["mode"], r["stochastic_bits"], word, v.s, 0, v.x / least) else 0
        else:
            u = rounded(max(log2(v.x), emin))
        if flush == "subnormal" and 0 < u < normal:
            return zero
        if u and v.s and not f["signed"]:
            return given(r["negative"])
        if u > int(f["largest_code"], 16):
            return given(r["too_large"][v.s])
        if u == 0:
            return zero
        return u | (v.s << bits - 1 if f["signed"] else 0)

    def round_fixed(self, r, f, v, word) -> int:
        q = power(-f["fraction_bits"])
        u = int(v.x // q)
        u += goes_up(r["mode"], r["stochastic_bits"], word, v.s, u, v.x / q - u)
        i, bits = -u if v.s else u, f["bits"]
        low = -(1 << bits - 1) if f["signed"] else 0
        if r["too_large"] != "modulo":
            if i > low + (1 << bits) - 1:
                return given(r["too_large"][0])
            if i < low:
                return given(r["too_large"][1])
        return i % (1 << bits)

    def round_string(self, r, f, v) -> int:
        if not v.x:
            return 0
        n, top = f["bits"], int(r["too_large"][0], 16)
        c = 1
        step = 1 << n
        c = 0
        while step:  # the least code that the rule takes, by halves: P(c) rises
            if c + step < top and not self._within(f, v.x, c + step):
                c += step
            step >>= 1
        c = min(c + 1, top)
        return (1 << n) - c if v.s else c

    @staticmethod
    def _within(f, x, c) -> bool:
        """Whether c is no longer too small for x."""
        point = decode_string(f, f["bits"] + 1, 2 * c + 1).x
        return x < point or (x == point and c % 2 == 0)

    # exact operations
    @staticmethod
    def product(x: V, y: V) -> V:
        if "nan" in (x.kind, y.kind):
            return NAN
        if "infinity" in (x.kind, y.kind):
            return NAN if x.is_zero or y.is_zero else V("infinity", x.s ^ y.s)
        return V("number", x.s ^ y.s, x.x * y.x)

    def sum(self, x: V, y: V, rounding: str) -> V:
        if "nan" in (x.kind, y.kind):
            return NAN
        infinities = {v.s for v in (x, y) if v.kind == "infinity"}
        if len(infinities) == 2:
            return NAN
        if infinities:
            return V("infinity", infinities.pop())
        total = x.signed + y.signed
        if total:
            return V("number", int(total < 0), abs(total))
        if x.is_zero and y.is_zero and x.s == y.s:
            return x
        return V("number", int(self.data["roundings"][rounding]["mode"] == "down"))

    # -- the families --------------------------------------------------------------------------------------------------
    def MadUnit(self, a, b, c, words):
        data, p = self.data, self.p
        order, roundings = data["order"], data["roundings"]
        accumulator = roundings["R_sum"]["format"]
        k_all = len(a)
        if p["flush_inputs"] == "positive":
            small = lambda name, code: is_subnormal(self.formats[name], code) or self.value(name, code).is_zero  # noqa: E731
            a = [0 if small(self.a, x) else x for x in a]
            b = [0 if small(self.b, x) else x for x in b]
            c = None if c is None else 0 if small(self.c, c) else c
        if k_all == 0:
            return 0 if c is None else c
        word = lambda step, which: 0 if words is None else words[step][which]  # noqa: E731
        kahan = p["compensated"] == "kahan"

        def add(total, error, v, rounding, fmt, step):
            """A running sum and its e after v."""
            acc = self.read(fmt, total)
            if not kahan:
                return self.round(rounding, self.sum(acc, v, rounding), word(step, 1)), error
            minus = lambda x: x._replace(s=1 - x.s)  # noqa: E731
            e = self.read(fmt, error)
            y = self.read(fmt, self.round(rounding, self.sum(v, minus(e), rounding)))
            total = self.round(rounding, self.sum(acc, y, rounding))
            t = self.read(fmt, total)
            moved = self.read(fmt, self.round(rounding, self.sum(t, minus(acc), rounding)))
            return total, self.round(rounding, self.sum(moved, minus(y), rounding))

        lanes, chunk = order["lanes"], order["chunk"] or k_all
        step = k_all
        outer, outer_error = (0 if c is None else c), 0
        for first in range(0, k_all, chunk):
            last = min(first + chunk, k_all)
            starts = [0] * lanes
            if order["chunk"] is None and lanes == 1 and c is not None:
                starts = [c]
            sums, errors = starts, [0] * lanes
            for k in range(first, last):
                i = (k - first) % lanes
                v = self.product(self.read(self.a, a[k], True), self.read(self.b, b[k], True))
                if "R_product" in roundings:
                    v = self.read(roundings["R_product"]["format"], self.round("R_product", v, word(k, 0)))
                sums[i], errors[i] = add(sums[i], errors[i], v, "R_sum", accumulator, k)
            if lanes > 1:
                additions = order["additions"]
                if order["chunk"] is None and c is not None:
                    sums, additions = [c, *sums], order["additions_with_c"]
                for i, j in additions:
                    x, y = self.read(accumulator, sums[i]), self.read(accumulator, sums[j])
                    sums[i] = self.round("R_sum", self.sum(x, y, "R_sum"), word(step, 1))
                    step += 1
            if order["chunk"] is None:
                return sums[0]
            part = self.read(accumulator, sums[0])
            outer, outer_error = add(outer, outer_error, part, "R_outer", roundings["R_outer"]["format"], step)
            step += 1
        return outer

    def FmaChainUnit(self, a, b, c, words):
        order = self.data["order"]
        period = order["period"]
        places = order["k_order"] or [0]
        acc = 0 if c is None else c
        for first in range(0, len(a), period):
            for k in (first + i for i in places):
                x = self.read(self.a, a[k] if k < len(a) else 0)
                y = self.read(self.b, b[k] if k < len(a) else 0)
                acc = self.round("R", self.sum(self.read(self.c, acc), self.product(x, y), "R"))
        return acc

    def FusedDotUnit(self, a, b, c, words):
        p, roundings = self.p, self.data["roundings"]
        after = p["c"] == "after"
        if not a:
            if c is None:
                return 0
            return self.round("R_convert", self.value(self.c, c)) if "R_convert" in roundings else c
        period, terms = self.data["order"]["period"], self.data["order"]["terms"]
        places = self.data["order"]["k_order"] or list(range(terms))
        accumulator = p["accumulator"]
        order = [first + i for first in range(0, len(a), period) for i in places]
        sum_code = 0 if after or c is None else c
        for first in range(0, len(order), terms):
            products = self.products(a, b, [k for k in order[first : first + terms] if k < len(a)])
            acc = self.value(accumulator, sum_code)
            last = first + terms >= len(order) and "R_output" in roundings
            sum_code = self.fused_step([*products, (acc, self.exponent(accumulator, acc))], "R_output" if last else "R")
        if not after:
            return sum_code
        total, start = self.value(accumulator, sum_code), self.value(self.c, 0 if c is None else c)
        return self.round("R_c", self.sum(total, start, "R_c"))

    def exponent(self, name: str, v: V):
        if v.kind != "number":
            return None
        if v.is_zero:
            return self.p.get("zero_exponent")
        return max(log2(v.x), self.formats[name]["emin"])

    def fused_step(self, terms, rounding: str) -> int:
        p = self.p
        signs = {v.s for v, _ in terms if v.kind == "infinity"}
        if any(v.kind == "nan" for v, _ in terms) or len(signs) == 2:
            return self.round(rounding, NAN)
        if signs:
            return self.round(rounding, V("infinity", signs.pop()))
        exponents = [e for _, e in terms if e is not None]
        if not exponents:
            return 0
        largest = max(exponents)
        if p["min_exponent"] is not None:
            largest = max(largest, p["min_exponent"])
        unit = power(largest - p["fraction_bits"])
        total = Fraction(0)
        for v, _ in terms:
            cut = v.x // unit * unit
            total += -cut if v.s else cut
        s, x = int(total < 0), abs(total)
        if not x:
            return 0
        if p["truncate_fraction"] is not None:
            q = power(log2(x) - p["truncate_fraction"])
            x = x // q * q
        code = self.round(rounding, V("number", s, x))
        return 0 if self.value(self.data["roundings"][rounding]["format"], code).is_zero else code

    def products(self, a, b, ks):
        """(a product, the sum of its factors' exponents, None if one has none) of each k."""
        found = []
        for k in ks:
            x, y = self.read(self.a, a[k], True), self.read(self.b, b[k], True)
            es = self.exponent(self.a, x), self.exponent(self.b, y)
            found.append((self.product(x, y), None if None in es else sum(es)))
        return found

    def TwoStageDotUnit(self, a, b, c, words):
        terms, n = self.data["order"]["terms"], self.data["order"]["interleave"]
        acc = 0 if c is None else c
        for first in range(0, len(a), terms):
            products = self.products(a, b, range(first, min(first + terms, len(a))))
            acc = self.two_stage_step([products[i::n] for i in range(n)], self.value(self.c, acc))
        return acc

    def two_stage_step(self, streams, c: V) -> int:
        p = self.p
        products = [v for stream in streams for v, _ in stream]
        signs = {v.s for v in (*products, c) if v.kind == "infinity"}
        if any(v.kind == "nan" for v in (*products, c)):
            return self.round("R", NAN)
        if not signs and p["product_limit"] is not None:
            signs = {v.s for v in products if v.x >= power(p["product_limit"])}
        if signs:
            return self.round("R", NAN if len(signs) == 2 else V("infinity", signs.pop()))

        def align(x: Fraction, q: Fraction) -> Fraction:
            return x // q * q if p["alignment"] == "down" else (abs(x) // q * q) * (-1 if x < 0 else 1)

        sums = []
        for stream in streams:
            exponents = [e for _, e in stream if e is not None]
            if exponents:
                q = power(max(exponents) - p["fraction_bits"])
                s = sum((v.x // q * q * (-1 if v.s else 1) for v, _ in stream), Fraction(0))
                sums.append((max(exponents), s))
        own = self.exponent(self.c, c)
        s = Fraction(0)
        if sums:
            m = max(e for e, _ in sums)
            s = sum(align(x, power(m - p["fraction_bits"])) for _, x in sums) if len(streams) > 1 else sums[0][1]
        tops = [e for e, _ in sums] + ([] if own is None else [own])
        if not tops:
            return 0
        top = max(tops)
        t = align(s, power(top - p["sum_fraction_bits"]))
        if p["c_reach"] is None or own is None or own >= top - p["c_reach"]:
            t += align(c.signed, power(top - p["c_fraction_bits"]))
        return self.round("R", V("number", int(t < 0), abs(t))) if t else 0

    def GroupedDotUnit(self, a, b, c, words):
        p, roundings = self.p, self.data["roundings"]
        terms, acc = self.data["order"]["terms"], 0 if c is None else c
        for first in range(0, len(a), terms):
            products = self.products(a, b, range(first, min(first + terms, len(a))))
            values = [v if v.kind != "number" else V("number", v.s, v.x * power(p["scale"])) for v, _ in products]
            if p["zeros"] == "signed":
                values += [ZERO] * (terms - len(values))
            if p["reduction"] == "rounded":
                s = self.sum_in_turn(values)
            elif p["reduction"] == "exact":
                mode = roundings["R_partial" if "R_partial" in roundings else "R_sum"]["mode"]
                s = exact_sum(values if p["zeros"] == "signed" else [ZERO, *values], int(mode == "down"))
            else:
                s = exact_sum(values, 0)
                if s.kind == "number":
                    exponents = [None if e is None else e + p["scale"] for _, e in products]
                    s = self.bulk_sum(list(zip(values, exponents, strict=True)))
            if "R_partial" in roundings and p["reduction"] != "rounded":
                s = self.partial("R_partial", s)
            acc = self.round("R_sum", self.sum(self.read(self.c, acc), s, "R_sum"))
        return acc

    def partial(self, name: str, v: V) -> V:
        return self.read(self.data["roundings"][name]["format"], self.round(name, v))

    def sum_in_turn(self, values) -> V:
        s = None if self.p["zeros"] == "signed" else ZERO
        for v in values:
            v = self.partial("R_partial", v)
            s = v if s is None else self.partial("R_partial", self.sum(s, v, "R_partial"))
        return s

    def bulk_sum(self, products) -> V:
        exponents = [e for v, e in products if not v.is_zero]
        if not exponents:
            return ZERO
        partial = self.formats[self.p["partial"] or self.p["accumulator"]]["mantissa_bits"]
        guard = self.p["guard_bits"]
        guard = (self.data["order"]["terms"] - 1).bit_length() if guard is None else guard
        unit, total = power(max(exponents) - partial - guard), 0
        for v, _ in products:
            n = int(v.x // unit)
            n += v.x % unit != 0 and n % 2 == 0
            total += -n if v.s else n
        return V("number", int(total < 0), abs(total) * unit)

    def ExactDotUnit(self, a, b, c, words):
        if not a:
            return 0 if c is None else c
        start = ZERO if c is None else self.value(self.c, c)
        terms = [
            start,
            *(self.product(self.value(self.a, x), self.value(self.b, y)) for x, y in zip(a, b, strict=True)),
        ]
        down = self.data["roundings"]["R"]["mode"] == "down"
        return self.round("R", exact_sum(terms, int(down)), 0 if words is None else words[0][1])

    def ChunkedDotUnit(self, a, b, c, words):
        outer, chunk = 0 if c is None else c, self.data["order"]["chunk"]
        name = self.data["roundings"]["R_outer"]["format"]
        for first in range(0, len(a), chunk):
            part = self.inner.dot(a[first : first + chunk], b[first : first + chunk], None)
            total = self.sum(self.value(name, outer), self.inner.value(self.inner.data["result"], part), "R_outer")
            outer = self.round("R_outer", total)
        return outer

    def block_dot(self, a, b, a_scales, b_scales, tensors, c, words) -> int:
        roundings = self.data["roundings"]
        if not a:
            return 0 if c is None else c
        fa, fb = self.formats[self.a], self.formats[self.b]
        name = roundings["R_sum"]["format"]
        whole = fa["tensor_scale"] is not None or fb["tensor_scale"] is not None
        size = self.data["order"]["block_size"] or len(a)
        acc = 0 if whole or c is None else c
        step = len(a)
        word = lambda step, which: 0 if words is None else words[step][which]  # noqa: E731
        for j, first in enumerate(range(0, len(a), size)):
            x, y = a[first : first + size], b[first : first + size]
            if self.inner is None:
                elements = fa["element"], fb["element"]
                pairs = zip(x, y, strict=True)
                s = exact_sum(
                    [self.product(self.value(elements[0], p), self.value(elements[1], q)) for p, q in pairs], 0
                )
                s = ZERO if s.is_zero else s
            else:
                count = self.inner.steps(len(x)) if words is not None else 0
                own = [first + i if i < len(x) else step + i - len(x) for i in range(count)]
                own_words = [words[i] for i in own] if self.inner.stochastic else None
                if self.inner.stochastic:
                    step += max(0, count - len(x))
                s = self.inner.value(self.inner.data["result"], self.inner.dot(x, y, None, own_words))
            scale = self.product(self.value(fa["scale"], a_scales[j]), self.value(fb["scale"], b_scales[j]))
            t = self.product(s, scale)
            if "R_product" in roundings:
                t = self.value(roundings["R_product"]["format"], self.round("R_product", t, word(step, 0)))
            acc = self.round("R_sum", self.sum(self.value(name, acc), t, "R_sum"), word(step, 1))
            step += 1
        if whole:
            t = self.product(self.value(name, acc), self.product(*tensors))
            if c is not None:
                t = self.sum(t, self.value(name, c), "R_sum")
            acc = self.round("R_sum", t, word(step, 1))
        return acc

    def block_fused_dot(self, a, b, a_scales, b_scales, tensors, c, words) -> int:
        if not a:
            return 0 if c is None else c
        fa, fb = self.formats[self.a], self.formats[self.b]
        order, whole = self.data["order"], "R_tensor" in self.data["roundings"]
        group, size = order["group"], order["block_size"]
        acc = 0 if whole or c is None else c
        for first in range(0, len(a), order["terms"]):
            last = min(first + order["terms"], len(a))
            start = self.value(self.c, acc)
            terms = [(start, self.exponent(self.c, start))]
            for k in range(first, last, group):
                names = [fa["scale"], fb["scale"]]
                factors = [
                    self.value(f, scales[k // size]) for f, scales in zip(names, (a_scales, b_scales), strict=True)
                ]
                factors = [x._replace(s=0) for x in factors]
                scale = self.product(*factors)
                ks = range(k, min(k + group, last))
                pairs = [(self.value(fa["element"], a[i]), self.value(fb["element"], b[i])) for i in ks]
                products = [self.product(x, y) for x, y in pairs]
                if group == 1:
                    names, factors = [*names, fa["element"], fb["element"]], [*factors, *pairs[0]]
                special = [(v, None) for v in (self.product(x, scale) for x in products) if v.kind != "number"]
                es = [self.exponent(f, x) for f, x in zip(names, factors, strict=True)]
                if not special:
                    terms.append((self.product(exact_sum(products, 0), scale), None if None in es else sum(es)))
                terms += special
            acc = self.fused_step(terms, "R")
        if whole:
            total = self.product(self.value(self.c, acc), self.product(*tensors))
            if c is not None:
                total = self.sum(total, self.value(self.c, c), "R_tensor")
            acc = self.round("R_tensor", total)
        return acc


def exact_sum(terms: list[V], zero: int) -> V:
    """The exact sum of any number of values; zero: the sign of a sum that is 0 and not of zeros of one sign."""
    if any(v.kind == "nan" for v in terms):
        return NAN
    infinities = {v.s for v in terms if v.kind == "infinity"}
    if infinities:
        return NAN if len(infinities) == 2 else V("infinity", infinities.pop())
    total = sum((v.signed for v in terms), Fraction(0))
    if total:
        return V("number", int(total < 0), abs(total))
    signs = {v.s for v in terms}
    return V("number", signs.pop()) if len(signs) == 1 and all(v.is_zero for v in terms) else V("number", zero)
