"""Blocks of results of a unit's fast path: the entries that fast.py calls, in C over device/steps.h.

``compute`` takes a thread's block of results through some steps of k (steps.py), reading a and b from shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from string import Template

from softnum.formats.c_text import source_text
from softnum.kernels.device.products.mad.steps import Steps, second_key, step_text
from softnum.kernels.device.runtime.source import TYPES, Entry, Library, literal
from softnum.mac.products.engines import fast_of

__all__ = ["Block", "steps_library"]

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


def _chunk(steps: Steps) -> str:
    """A chunk's length in C; products of CUDA arrays are shorter than 2**31."""
    return f"{min(steps.chunk, 2**31)}u"


def _plain_compute(steps: Steps, block: Block) -> str:
    c, chunk = TYPES[steps.kind], _chunk(steps)
    body = [
        "const sn_u32 until = (sn_u32)(depth - k0 - 1);",
        "(void)until, (void)outer;",
        f"sn_u32 left = {chunk} - (sn_u32)k0 % {chunk};" if steps.chunk else "",
        "for (sn_u32 k = 0; k < (sn_u32)count; k++) {",
        f"{c} x[{block.rows}], y[{block.columns}];",
        _read_both(block),
        _each(block, "acc[$o] = _step(acc[$o], x[$i], y[$j], 0, 0);"),
    ]
    if steps.chunk:
        body += [
            "if (--left == 0 || k == until) {",
            _each(block, "outer[$o] = _outer(outer[$o], acc[$o], 0);\nacc[$o] = 0;"),
            f"left = {chunk};\n}}",
        ]
    return "\n".join([*body, "}"])


_PHILOX = """typedef struct {
    sn_u32 n, m, batch, key[4];
} _counter;
SN_FN sn_philox_words _words(const _counter *c, sn_u32 block, sn_u32 i, sn_u32 j, sn_i32 second) {
    const sn_source s = _source();
    return sn_source_philox(&s, block, c->n + j, c->m + i, c->batch, c->key + second);
}
SN_FN sn_u32 _chosen(const sn_philox_words *w, sn_u32 k) {
    const sn_u32 low = k & 1 ? w->w[1] : w->w[0], high = k & 1 ? w->w[3] : w->w[2];
    return k & 2 ? high : low;
}
"""


def _random_compute(steps: Steps, block: Block) -> str:
    """Four steps for each result in turn, which share a Philox block; a chunk may end among them."""
    c, chunk, own = TYPES[steps.kind], _chunk(steps), second_key(steps.unit)

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
        f"sn_u32 left = {chunk} - (sn_u32)k0 % {chunk};" if steps.chunk else "",
        "for (sn_u32 k = 0; k < end;) {",
        "const sn_u32 at = k & ~3u, block = ((sn_u32)k0 + k) / 4, first = k - at;",
        "sn_u32 last = end - at < 4 ? end - at : 4;",
        "if (last - first > left) last = first + left;" if steps.chunk else "",
        "\n".join(f"{c} x{q}[{block.rows}], y{q}[{block.columns}];" for q in range(4)),
        read,
        f"if (first == 0 && last == 4) {{\n{_each(block, words + steps_all)}\n}} else {{",
        f"{_each(block, words + steps_some)}\n}}",
        "k = at + last;",
    ]
    if steps.chunk:
        lines += [
            "left -= last - first;",
            "if (left == 0 || whole - end + k == (sn_u32)depth) {",
            f"const sn_u32 reduction = (sn_u32)depth + ((sn_u32)k0 + k - 1) / {chunk};",
            _each(
                block,
                f"const sn_philox_words u = _words(&counter, reduction / 4, {row}, {column}, {2 if own else 0});\n"
                "outer[$o] = _outer(outer[$o], acc[$o], _chosen(&u, reduction));\nacc[$o] = 0;",
            ),
            f"left = {chunk};\n}}",
        ]
    return "\n".join([*lines, "}"])


def _enter(name: str, given: str, kind: str, fmt) -> Entry:
    """``name(raw)``: a value as a number of shared memory; of integers, in last places; -0 as +0 if there is none."""
    if kind in ("int32", "int64"):
        exact = f"sn_multiply32(raw, {literal(2.0**fmt.fraction_bits)})"  # 16 bits of an operand
        if given == "float64" or fmt.bits > 16:
            wide = "raw" if given == "float64" else "sn_widen(raw)"
            exact = f"(sn_i64)sn_multiply64({wide}, {literal(2.0**fmt.fraction_bits, 'float64')})"
        return Entry(name, kind, ((given, "raw"),), f"return ({TYPES[kind]}){exact};")
    wide = kind == "float64"
    value = "raw" if given == kind else "sn_widen(raw)" if wide else "sn_narrow(raw)"
    if not fmt.codec.core_format(fmt).negative_zero:
        value = f"sn_add{64 if wide else 32}({value}, 0)"
    return Entry(name, kind, ((given, "raw"),), f"return {value};")


def _leave(steps: Steps, out: str) -> Entry:
    """``leave(value, start)``: a result as a carrier, NaNs canonical; start: C, where it is added at the end."""
    arguments = ((steps.kind, "value"), (steps.kind, "start"))
    bits = 64 if out == "float64" else 32
    if steps.kind in ("float32", "float64"):
        value = "value" if out == steps.kind else "sn_narrow(value)" if bits == 32 else "sn_widen(value)"
        return Entry("leave", out, arguments, f"(void)start;\nreturn sn_canonical{bits}({value});")
    gemm, acc = fast_of(steps.unit), steps.unit.accumulator
    if steps.late:
        code = f"((sn_u64)(sn_i64)value << {gemm.shift}) + (sn_u64)(sn_i64)start"
        total = f"sn_integer_of_code({code}, {acc.bits}, {int(acc.signed)})"
    else:
        total = "value"
    body = f"(void)start;\nreturn ({TYPES[out]})sn_multiply64((double){total}, {literal(gemm.scale, 'float64')});"
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
    text = (
        step_text(steps)
        + _read_text(steps.kind, block.group)
        + (source_text("_source", unit.random_source) + _PHILOX if steps.words else "")
    )
    return Library(text, entries, "softnum/device/steps.h softnum/word/source.h")
