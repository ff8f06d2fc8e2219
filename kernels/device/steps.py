"""A unit's fast path (`softnum.plan`) as C text over csrc/softnum/steps.h: the entries that gemm_blocks.py calls.

``compute`` takes a thread's block of results through some steps of k, reading a and b from shared memory: all of the
arithmetic is here. The constants of a plan become C literals.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import lru_cache
from string import Template

from softnum.custom import CustomFormat
from softnum.kernels.device.patterns import pattern_facts, pattern_text
from softnum.kernels.device.source import TYPES, Entry, Library
from softnum.modes import ROUNDING_MODES
from softnum.plan import FastPlan, IntegerPlan, integer_plan_of, plan_of

__all__ = ["LEVELS", "Block", "Steps", "outcomes_of", "second_key", "steps_library", "steps_of"]

LEVELS = ("full", "signed", "tested", "bare")  # as in csrc/softnum/steps.h
_DOWN, _STOCHASTIC = ROUNDING_MODES["down"], ROUNDING_MODES["stochastic"]
_VECTORS = {"float32": ("float4", 4), "int32": ("int4", 4), "int64": ("longlong2", 2), "float64": ("double2", 2)}


@dataclass(frozen=True)
class Block:
    """The shape of a block of threads and of what each computes: groups of `group` neighbours, the threads' in turn."""

    threads_m: int
    threads_n: int
    rows: int
    columns: int
    group: int
    depth: int

    @property
    def m(self) -> int:
        return self.threads_m * self.rows

    @property
    def n(self) -> int:
        return self.threads_n * self.columns

    @property
    def threads(self) -> int:
        return self.threads_m * self.threads_n

    @property
    def size(self) -> int:
        """Results of a thread."""
        return self.rows * self.columns

    @property
    def slots(self) -> int:
        """How many of them are in shared memory at a time, on their way."""
        return min(self.size, 8)

    @property
    def pitch_a(self) -> int:
        """Between a's rows of k in shared memory: no two of 32 threads that store meet in a bank."""
        return self.m + 4

    @property
    def pitch_b(self) -> int:
        return self.n + 4


@dataclass(frozen=True)
class Steps:
    """How a kernel computes a unit.

    kind: the type of sums and of what is in shared memory; words: whether a Philox key is needed; late: C is added at
    the end (and the sum starts from 0).
    """

    unit: object
    level: str
    kind: str
    words: bool = False
    chunk: int = 0
    late: bool = False


def _bits(x: float) -> str:
    """A binary32 literal, by its bits."""
    return f"sn_float32({struct.unpack('<I', struct.pack('<f', x))[0]:#x}u)"


def _bits64(x: float) -> str:
    return f"sn_float64({struct.unpack('<Q', struct.pack('<d', x))[0]:#x}ull)"


def _magic_text(name: str, r) -> str:
    """A C function that returns an sn_magic, of a softnum.plan.Round32."""
    high, low = r.overflow
    alike = (math.isnan(high) and math.isnan(low)) or high == -low
    symmetric = bool(r.sign_of_zero and r.limit[0] == r.limit[1] and alike)
    fields = (
        f"{r.emin:#x}u, {r.emax:#x}u, {r.sign_of_zero:#x}u, {int(symmetric)}, {_bits(r.scale)}, "
        f"{{{_bits(r.limit[0])}, {_bits(r.limit[1])}}}, {{{_bits(high)}, {_bits(low)}}}"
    )
    return f"SN_FN sn_magic {name}(void) {{\nconst sn_magic r = {{{fields}}};\nreturn r;\n}}\n"


def steps_of(unit, level: str = "full", careful: bool = True) -> Steps | None:
    """How a MadUnit is computed at a level; None if no fast path takes it.

    careful: sums of integers may saturate.
    """
    integers = integer_plan_of(unit)
    if integers is not None:
        if careful and not integers.wrap:
            return Steps(unit, "careful", "int64")
        return Steps(unit, "plain", "int32", late=True)
    plan = plan_of(unit)
    if plan is None:
        return None
    return Steps(unit, level, "float64" if plan.wide else "float32", unit.stochastic, plan.chunk)


def second_key(unit) -> bool:
    """Whether the sum takes a random word of its own."""
    return unit.two_roundings and unit.stochastic_bits > 16


# ---- one step, by path: functions _step(acc, x, y, word, word2), _outer(outer, acc, word) ---

_SIGNATURES = {
    "step": "SN_FN {T} _step({T} acc, {T} x, {T} y, sn_u32 word, sn_u32 word2)",
    "outer": "SN_FN {T} _outer({T} outer, {T} acc, sn_u32 word)",
}


def _functions(kind: str, step: str, outer: str) -> str:
    c = TYPES[kind]
    return (
        f"{_SIGNATURES['step'].format(T=c)} {{\n(void)word, (void)word2;\n{step}\n}}\n"
        f"{_SIGNATURES['outer'].format(T=c)} {{\n(void)word;\n{outer}\n}}\n"
    )


def _magic_steps(plan: FastPlan, level: str) -> str:
    product, total, outer = plan.magic
    constants = _magic_text("_rp", product) + _magic_text("_rs", total) + _magic_text("_ro", outer)
    take = "const sn_magic rs = _rs();\n"
    if plan.path == "fixed":
        step = take + "return sn_round_to_fixed(&rs, sn_multiply_add32(x, y, acc));"
        last = "const sn_magic ro = _ro();\nreturn sn_round_to_fixed(&ro, sn_add32(outer, acc));"
    else:
        rounding = f"sn_magic_{level}"
        of_product = "sn_magic_product_bare" if level == "bare" else rounding
        if plan.product == "exact":
            step = take + f"return {rounding}(&rs, sn_multiply_add32(x, y, acc));"
        else:
            step = (
                take
                + "const sn_magic rp = _rp();\n"
                + f"return {rounding}(&rs, sn_add32(acc, {of_product}(&rp, sn_multiply32(x, y))));"
            )
        last = f"const sn_magic ro = _ro();\nreturn {rounding}(&ro, sn_add32(outer, acc));"
    return constants + _functions("float32", step, last)


_NATIVE = {
    "exact": "return sn_multiply_add32(x, y, acc);",
    "nearest": "return sn_add32(acc, sn_multiply32(x, y));",
    "fused": "return sn_fma32(x, y, acc);",
}


def _rounded(what: str, value: str, word: str = "0", bits: int = 32) -> str:
    """An expression: a value rounded as sn_pattern p<what> says."""
    return f"sn_float{bits}(sn_round_pattern{bits}(&p{what}, sn_bits{bits}({value}), {word}))"


def _patterns(plan: FastPlan, carrier: str) -> tuple[str, str]:
    """(functions that return the sn_pattern of product, sum and outer sum, the statements that call them)"""
    texts = [pattern_text(f"_pattern_{x}", *target, carrier) for x, target in zip("pso", plan.targets, strict=True)]
    if None in texts:
        raise ValueError(f"{plan.targets} lie outside the domain of rounding {carrier} patterns")
    return "".join(texts), "".join(f"const sn_pattern p{x} = _pattern_{x}();\n(void)p{x};\n" for x in "pso")


def _odd_steps(plan: FastPlan, level: str) -> str:
    down = int(plan.targets[1][1][0] == _DOWN)
    constants, take = _patterns(plan, "float32")

    def rounded(what: str, value: str) -> str:
        return f"sn_magic_signed(&m{what}, {value})" if level == "signed" else _rounded(what, value)

    if level == "signed":
        constants += _magic_text("_magic_s", plan.magic[1]) + _magic_text("_magic_o", plan.magic[2])
        take += "".join(f"const sn_magic m{x} = _magic_{x}();\n(void)m{x};\n" for x in "so")
    step = take
    if plan.product == "exact":
        step += f"return {rounded('s', f'sn_fma_odd32(x, y, acc, {down})')};"
    else:
        step += (
            "const float odd = sn_fma_odd32(x, y, sn_float32(0x80000000u), 0);\n"
            f"const float product = {_rounded('p', 'odd')};\n"
            f"return {rounded('s', f'sn_fma_odd32(product, 1.0f, acc, {down})')};"
        )
    return constants + _functions(
        "float32", step, take + f"return {rounded('o', f'sn_fma_odd32(acc, 1.0f, outer, {down})')};"
    )


def _stochastic_steps(plan: FastPlan, level: str) -> str:
    constants, take = _patterns(plan, "float32")
    (_, product_env), (total, env), _ = plan.targets
    shift = 16 if plan.two_roundings else 0
    bare = level == "bare"

    if plan.product == "exact":
        value = "sn_fma_zero32(x, y, acc)"
    elif bare:
        r = plan.magic[0]
        value = (
            f"sn_add_zero32(acc, sn_stochastic_product({r.emin:#x}u, {_bits(r.scale)}, {product_env[3]}, "
            "sn_multiply32(x, y), word))"
        )
    else:
        value = f"sn_add_zero32(acc, {_rounded('p', 'sn_multiply32(x, y)', 'word')})"
    if level == "tested":
        constants_of_test = f"{total.mantissa_bits}, {env[3]}, " + ", ".join(f"{x:#x}u" for x in outcomes_of(plan))
        step = f"return sn_stochastic_tested({constants_of_test}, {value}, word2);"
    elif bare:
        step = f"return sn_stochastic_sum({total.mantissa_bits}, {env[3]}, {value}, word2 >> {shift});"
    else:
        step = f"return {_rounded('s', value, f'word2 >> {shift}')};"
    last = f"return {_rounded('o', 'sn_add_zero32(outer, acc)', f'word >> {shift}')};"
    return constants + _functions("float32", take + step, take + last)


@lru_cache(maxsize=256)
def outcomes_of(plan: FastPlan) -> tuple[int, int] | None:
    """Of sums that round stochastically: the largest value, and what lies beyond it and infinities become, as patterns
    of magnitudes; None if that is not one number for each sign."""
    fmt, env = plan.targets[1]
    facts = pattern_facts(fmt, env, "float32")
    (high, low), sign = facts["value_overflow"], 1 << 31
    alike = high ^ low == sign and facts["value_infinity"] == (high, low) and not high & sign
    if not alike or not fmt.negative_zero or facts["value_nan"] & ~sign <= 0x7F800000:
        return None
    return struct.unpack("<I", struct.pack("<f", float(fmt.max)))[0], high


def _wide_steps(plan: FastPlan, unit) -> str:
    constants, take = _patterns(plan, "float64")
    stochastic = plan.targets[1][1][0] == _STOCHASTIC
    shift = 16 if plan.two_roundings and not second_key(unit) else 0
    product = "sn_multiply64(x, y)"
    if plan.product != "exact":
        product = _rounded("p", product, "word" if plan.product == "stochastic" else "0", 64)
    words = [f"{word} >> {shift}" if stochastic else "0" for word in ("word2", "word")]
    step = f"return {_rounded('s', f'sn_add_odd64(acc, {product})', words[0], 64)};"
    last = f"return {_rounded('o', 'sn_add_odd64(outer, acc)', words[1], 64)};"
    return constants + _functions("float64", take + step, take + last)


def _integer_steps(plan: IntegerPlan, careful: bool) -> str:
    if careful:
        step = f"return sn_saturated(acc + x * y * {1 << plan.shift}, {_i64(plan.least)}, {_i64(plan.most)});"
        return _functions("int64", step, "(void)acc;\nreturn outer;")
    step = "return (sn_i32)((sn_u32)acc + (sn_u32)x * (sn_u32)y);"
    return _functions("int32", step, "(void)acc;\nreturn outer;")


def _i64(x: int) -> str:
    return f"(-{-x}ll)" if x < 0 else f"{x}ll"


def _step_text(steps: Steps) -> str:
    unit = steps.unit
    integers = integer_plan_of(unit)
    if integers is not None:
        return _integer_steps(integers, steps.level == "careful")
    plan = plan_of(unit)
    if plan.path == "native":
        return _functions("float32", _NATIVE[plan.product], "return sn_add32(outer, acc);")
    if plan.path in ("magic", "mixed", "fixed"):
        return _magic_steps(plan, steps.level)
    if plan.path == "odd":
        return _odd_steps(plan, steps.level)
    if plan.path == "stochastic":
        return _stochastic_steps(plan, steps.level)
    return _wide_steps(plan, unit)


# ---- a block of steps ------------------------------------------------------------------------------------------------


def _read_text(kind: str, group: int) -> str:
    """``_read(from, to)``: a group of neighbours in shared memory; in one load or two where that is possible."""
    c = TYPES[kind]
    vector, width = _VECTORS[kind]
    lines = [f"SN_FN void _read(const {c} *from, {c} *to) {{"]
    if group % width == 0:
        lines.append("#if defined(__CUDACC_RTC__)")
        for i in range(0, group, width):
            names = ", ".join(f"to[{i + j}] = v{i}.{'xyzw'[j]}" for j in range(width))
            lines.append(f"const {vector} v{i} = *(const {vector} *)(from + {i});\n{names};")
        lines.append("#else")
    lines += [f"to[{i}] = from[{i}];" for i in range(group)]
    if group % width == 0:
        lines.append("#endif")
    return "\n".join([*lines, "}\n"])


def _read_both(block: Block, at: str = "", k: str = "k") -> str:
    """Statements: the values of a and b that a thread needs for one step."""
    lines = []
    for name, count, threads, pitch in (
        ("x", block.rows, block.threads_m, block.pitch_a), ("y", block.columns, block.threads_n, block.pitch_b),
    ):  # fmt: skip
        source = "a" if name == "x" else "b"
        for g in range(0, count, block.group):
            lines.append(f"_read({source} + ({k}) * {pitch} + {g * threads}, {name}{at} + {g});")
    return "\n".join(lines)


def _each(block: Block, body: str) -> str:
    """Statements for each of a thread's results, with $i, $j, and $o, its place, replaced: no loop, whose arrays some
    compilers would leave in memory."""
    places = ((i, j) for i in range(block.rows) for j in range(block.columns))
    texts = (Template(body).substitute(i=i, j=j, o=i * block.columns + j) for i, j in places)
    return "\n".join(f"{{\n{text}\n}}" for text in texts)


def _plain_compute(steps: Steps, block: Block) -> str:
    c = TYPES[steps.kind]
    body = [
        "const sn_u32 until = (sn_u32)(depth - k0 - 1);",
        "(void)until, (void)outer;",
    ]
    if steps.chunk:
        body.append(f"sn_u32 left = {min(steps.chunk, 2**31)}u - (sn_u32)k0 % {min(steps.chunk, 2**31)}u;")
    body += [
        "for (sn_u32 k = 0; k < (sn_u32)count; k++) {",
        f"{c} x[{block.rows}], y[{block.columns}];",
        _read_both(block),
        _each(block, "acc[$o] = _step(acc[$o], x[$i], y[$j], 0, 0);"),
    ]
    if steps.chunk:
        body += [
            "if (--left == 0 || k == until) {",
            _each(block, "outer[$o] = _outer(outer[$o], acc[$o], 0);\nacc[$o] = 0;"),
            f"left = {min(steps.chunk, 2**31)}u;\n}}",
        ]
    return "\n".join([*body, "}"])


_PHILOX = """typedef struct {
    sn_u32 n, m, batch, key[4];
} _counter;
SN_FN sn_philox_words _words(const _counter *c, sn_u32 block, sn_u32 i, sn_u32 j, sn_i32 second) {
    return sn_philox(block, c->n + j, c->m + i, c->batch, c->key[second], c->key[second + 1]);
}
SN_FN sn_u32 _chosen(const sn_philox_words *w, sn_u32 k) {
    const sn_u32 low = k & 1 ? w->w[1] : w->w[0], high = k & 1 ? w->w[3] : w->w[2];
    return k & 2 ? high : low;
}
"""


def _random_compute(steps: Steps, block: Block) -> str:
    """Four steps for each result in turn, which share a Philox block; a chunk may end among them."""
    c = TYPES[steps.kind]
    own, short = second_key(steps.unit), steps.level in ("bare", "tested")

    def place(i: str, threads: int) -> str:
        return f"(sn_u32)({i} / {block.group} * {block.group * threads} + {i} % {block.group})"

    row, column = place("$i", block.threads_m), place("$j", block.threads_n)
    words = f"const sn_philox_words w = _words(&counter, block, {row}, {column}, 0);\n"
    words += f"const sn_philox_words v = _words(&counter, block, {row}, {column}, 2);\n" if own else ""
    w2 = "v" if own else "w"
    steps_all = "\n".join(f"acc[$o] = _step(acc[$o], x{q}[$i], y{q}[$j], w.w[{q}], {w2}.w[{q}]);" for q in range(4))
    steps_some = "\n".join(
        f"if (first <= {q} && {q} < last) acc[$o] = _step(acc[$o], x{q}[$i], y{q}[$j], w.w[{q}], {w2}.w[{q}]);"
        for q in range(4)
    )
    read = "\n".join(_read_both(block, str(q), f"at + {q}") for q in range(4))
    lines = [
        "const _counter counter = {n, m, batch, {key0, key1, key2, key3}};",
        "const sn_u32 end = (sn_u32)count, whole = (sn_u32)k0 + end;\n(void)outer, (void)whole, (void)depth;",
        f"sn_u32 left = {_length(steps)};" if steps.chunk else "",
        "for (sn_u32 k = 0; k < end;) {",
        "const sn_u32 at = k & ~3u, block = ((sn_u32)k0 + k) / 4, first = k - at;",
        "sn_u32 last = end - at < 4 ? end - at : 4;",
        "if (last - first > left) last = first + left;" if steps.chunk else "",
        "\n".join(f"{c} x{q}[{block.rows}], y{q}[{block.columns}];" for q in range(4)),
        read,
        # a step that is not short need not be there twice
        *(["if (first == 0 && last == 4) {", _each(block, words + steps_all), "} else"] if short else []),
        f"{{\n{_each(block, words + steps_some)}\n}}",
        "k = at + last;",
    ]
    if steps.chunk:
        length = min(steps.chunk, 2**31)
        lines += [
            "left -= last - first;",
            "if (left == 0 || whole - end + k == (sn_u32)depth) {",
            f"const sn_u32 reduction = (sn_u32)depth + ((sn_u32)k0 + k - 1) / {length}u;",
            _each(
                block,
                f"const sn_philox_words u = _words(&counter, reduction / 4, {row}, {column}, {2 if own else 0});\n"
                "outer[$o] = _outer(outer[$o], acc[$o], _chosen(&u, reduction));\nacc[$o] = 0;",
            ),
            f"left = {length}u;\n}}",
        ]
    return "\n".join([*lines, "}"])


def _length(steps: Steps) -> str:
    """What is left of a chunk at k0."""
    length = min(steps.chunk, 2**31)
    return f"{length}u - (sn_u32)k0 % {length}u"


def _enter(name: str, given: str, kind: str, fmt) -> Entry:
    """``name(raw)``: a value as a number of shared memory; of integers, in last places; -0 as +0 if there is none."""
    if kind in ("int32", "int64"):
        exact = f"sn_multiply32(raw, {_bits(2.0**fmt.fraction_bits)})"  # 16 bits of an operand
        if given == "float64" or fmt.bits > 16:
            wide = "raw" if given == "float64" else "sn_widen(raw)"
            exact = f"(sn_i64)sn_multiply64({wide}, {_bits64(2.0**fmt.fraction_bits)})"
        return Entry(name, kind, ((given, "raw"),), f"return ({TYPES[kind]}){exact};")
    wide = kind == "float64"
    value = "raw" if given == kind else "sn_widen(raw)" if wide else "sn_narrow(raw)"
    if not isinstance(fmt, CustomFormat) and not (fmt.kind == "float" and fmt.negative_zero):
        value = f"sn_add{64 if wide else 32}({value}, 0)"
    return Entry(name, kind, ((given, "raw"),), f"return {value};")


def _leave(steps: Steps, out: str) -> Entry:
    """``leave(value, start)``: a result as a carrier, NaNs canonical; start: C, where it is added at the end."""
    arguments = ((steps.kind, "value"), (steps.kind, "start"))
    bits = 64 if out == "float64" else 32
    if steps.kind in ("float32", "float64"):
        value = "value" if out == steps.kind else "sn_narrow(value)" if bits == 32 else "sn_widen(value)"
        return Entry("leave", out, arguments, f"(void)start;\nreturn sn_canonical{bits}({value});")
    plan, acc = integer_plan_of(steps.unit), steps.unit.accumulator
    if steps.late:
        code = f"((sn_u64)(sn_i64)value << {plan.shift}) + (sn_u64)(sn_i64)start"
        total = f"sn_integer_of_code({code}, {acc.bits}, {int(acc.signed)})"
    else:
        total = "value"
    body = f"(void)start;\nreturn ({TYPES[out]})sn_multiply64((double){total}, {_bits64(plan.scale)});"
    return Entry("leave", out, arguments, body)


def _fetch(name: str, given: str, kind: str) -> Entry:
    """``name(from, at, to, slot)``: four neighbours, entered, to a thread's own array."""
    vector, width = _VECTORS[given]
    lines = ["#if defined(__CUDACC_RTC__)"]
    for i in range(0, 4, width):
        lines.append(f"const {vector} v{i} = *(const {vector} *)(from + at + {i});")
        lines += [f"to[slot + {i + j}] = _enter_{name[-1]}(v{i}.{'xyzw'[j]});" for j in range(width)]
    lines += ["#else", f"for (sn_i32 i = 0; i < 4; i++)\n    to[slot + i] = _enter_{name[-1]}(from[at + i]);", "#endif"]
    arguments = ((f"{given}*", "from"), ("int64", "at"), (f"{kind}*", "to"), ("int64", "slot"))
    return Entry(name, "void", arguments, "\n".join(lines))


def _moves(kind: str, block: Block) -> tuple[Entry, ...]:
    """``clear(acc)``; ``to_spare(acc, spare, at, step, turn)`` and ``of_spare``: results number turn * block.slots and
    on, to and from other memory. With constant places alone they stay in registers."""

    def moved(text: str) -> str:
        return "\n".join(
            f"if (turn == {turn}) {{\n"
            + "\n".join(text.format(o=turn * block.slots + s, at=f"at + {s} * step") for s in range(block.slots))
            + "\n}"
            for turn in range(block.size // block.slots)
        )

    pointers = ((f"{kind}*", "acc"), (f"{kind}*", "spare"))
    numbers = (("int64", "at"), ("int64", "step"), ("int64", "turn"))
    return (
        Entry("clear", "void", pointers[:1], "\n".join(f"acc[{o}] = 0;" for o in range(block.size))),
        Entry("to_spare", "void", pointers + numbers, moved("spare[{at}] = acc[{o}];")),
        Entry("of_spare", "void", pointers + numbers, moved("acc[{o}] = spare[{at}];")),
    )


@lru_cache(maxsize=512)
def steps_library(steps: Steps, block: Block, given: tuple[str, str, str], out: str) -> Library:
    """The entries ``enter_a``, ``_b`` and ``_c``, ``fetch_a`` and ``_b``, those of `_moves`, ``compute`` and ``leave``.

    given: types of the elements of a, b and c; out: of results.
    """
    unit, c = steps.unit, TYPES[steps.kind]
    arguments = [
        (f"{steps.kind}*", "acc"), (f"{steps.kind}*", "outer"), (f"{steps.kind}*", "from_a"), ("int64", "at_a"),
        (f"{steps.kind}*", "from_b"), ("int64", "at_b"), ("int64", "k0"), ("int64", "count"), ("int64", "depth"),
    ]  # fmt: skip
    if steps.words:
        arguments += [("uint32", name) for name in ("n", "m", "batch", "key0", "key1", "key2", "key3")]
    body = f"const {c} *a = from_a + at_a, *b = from_b + at_b;\n"
    body += (_random_compute if steps.words else _plain_compute)(steps, block)
    formats = (*unit.operand, unit.c_format)
    entries = (
        *(_enter(f"enter_{x}", g, steps.kind, f) for x, g, f in zip("abc", given, formats, strict=True)),
        *(_fetch(f"fetch_{x}", g, steps.kind) for x, g in zip("ab", given, strict=False)),
        *_moves(steps.kind, block),
        Entry("compute", "void", tuple(arguments), body),
        _leave(steps, out),
    )
    text = _step_text(steps) + _read_text(steps.kind, block.group) + (_PHILOX if steps.words else "")
    return Library(text, entries, "softnum/steps.h")
