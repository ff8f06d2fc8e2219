"""Circuits in files for provers: SMT-LIB, AIGER and BTOR2 say what the core computes, and solvers find it."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from softnum.vectors import Space, UnitSpec, VectorSpec, plan
from softnum.vectors.formal import EXPORTS, export
from softnum.vectors.formal.bulk import codes_of, planes_of
from softnum.vectors.formal.solvers import SOLVERS, installed, solve
from tests.support.cases import cases


def terms_of(text):
    """S-expressions as nested lists."""
    stack = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";.*", "", text)):
        if token == "(":
            stack.append([])
        elif token == ")":
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(token)
    return stack[0]


def smt_values(text, inputs):
    """The defined words' values: an interpreter of what SMT-LIB says of these functions."""
    known = {}

    def term(t):
        if isinstance(t, str):
            return known[t] if t in known else (int(t[2:], 2), len(t) - 2)
        if t[0] == "_":
            return int(t[1][2:]), int(t[2])
        if t[0] == "ite":
            return term(t[2]) if term(t[1]) else term(t[3])
        (a, n), *rest = (term(x) for x in t[1:])
        if isinstance(t[0], list):
            if t[0][1] == "zero_extend":
                return a, n + int(t[0][2])
            high, low = map(int, t[0][2:])
            return a >> low & (1 << high - low + 1) - 1, high - low + 1
        if t[0] == "bvnot":
            return a ^ (1 << n) - 1, n
        ((b, k),) = rest
        if t[0] == "concat":
            return a << k | b, n + k
        assert n == k
        if t[0] in ("=", "bvult"):
            return a == b if t[0] == "=" else a < b
        found = {
            "bvand": a & b, "bvor": a | b, "bvxor": a ^ b, "bvadd": a + b, "bvsub": a - b, "bvmul": a * b,
            "bvshl": a << min(b, n), "bvlshr": a >> min(b, n), "bvudiv": a // b if b else -1,
        }[t[0]]  # fmt: skip
        return found & (1 << n) - 1, n

    for command in terms_of(text):
        if command[0] == "declare-const":
            known[command[1]] = inputs[command[1]], int(command[2][2])
        elif command[0] == "define-fun":
            known[command[1]] = term(command[4])
            assert known[command[1]][1] == int(command[3][2])
    return known


def test_smt_lib_says_what_the_core_computes():
    for spec in (VectorSpec.make("fma", "e4m3fnuz"), VectorSpec.make("divide", "e2m3fn", rounding="rup")):
        text = export(spec).decode()
        assert text == export(spec).decode() and text.splitlines()[1] == "(set-logic QF_BV)"
        block = next(plan(spec, count=40, seed=3).blocks())
        for i in range(len(block)):
            values = smt_values(text, {n: int(o[i]) for n, o in zip("abc", block.operands, strict=False)})
            assert (values["result"][0], values["flags"][0]) == (block.result[i], block.flags[i])


def test_aiger_says_what_the_core_computes():
    spec = VectorSpec.make("add", "e2m3fn", rounding="rdn")
    text = export(spec, "aag").decode()
    head, *lines = text.splitlines()
    _, _, inputs, _, outputs, gates = (int(x) if x.isdecimal() else x for x in head.split())
    values = {0: 0}
    block = next(plan(spec).blocks())
    planes = [p for o in block.operands for p in planes_of(o, 6)]
    values.update((int(line), plane) for line, plane in zip(lines[:inputs], planes, strict=True))
    read = lambda literal: ~values[literal & ~1] if literal & 1 else values[literal & ~1]  # noqa: E731
    for line in lines[inputs + outputs : inputs + outputs + gates]:
        out, a, b = map(int, line.split())
        assert out > a >= b
        values[out] = read(a) & read(b)
    found = [np.broadcast_to(np.asarray(read(int(line))).astype(np.uint64), planes[0].shape)
             for line in lines[inputs : inputs + outputs]]  # fmt: skip
    assert np.array_equal(codes_of(found[:6], np.uint8, len(block)), block.result)
    assert np.array_equal(codes_of(found[6:], np.uint8, len(block)), block.flags)
    assert lines[inputs + outputs + gates] == "i0 a[0]" and "\no6 flags[0]\n" in text
    assert lines[-1].startswith("softnum: add --format e2m3fn --rounding down")


def test_abc_reads_the_binary_file(tmp_path):
    if shutil.which("yosys-abc") is None:
        pytest.skip("not installed: yosys-abc")
    for name, mode in (("a", "rne"), ("b", "rna")):
        (tmp_path / f"{name}.aig").write_bytes(export(VectorSpec.make("multiply", "e2m1fn", rounding=mode), "aig"))
    said = {}
    for other in "ab":
        command = ["yosys-abc", "-c", f"cec -n a.aig {other}.aig"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        said[other] = done.stdout
    assert "Networks are equivalent" in said["a"] and "NOT EQUIVALENT" in said["b"]


@cases("solver", SOLVERS)
def test_solvers_find_what_the_core_computes(solver):
    if solver not in installed():
        pytest.skip(f"not installed: {SOLVERS[solver][0]}")
    spec = VectorSpec.make("multiply", "binary8p3se")
    text = export(spec).decode() + "(declare-const r (_ BitVec 8))\n(assert (= r result))\n"
    block = next(plan(spec, count=1, seed=11).blocks())
    for i in range(len(block)):
        given = f"{text}(assert (= a (_ bv{block.operands[0][i]} 8)))\n(assert (= b (_ bv{block.operands[1][i]} 8)))\n"
        assert solve(solver, given, ["r"], 60) == ("sat", {"r": block.result[i]})
    assert solve(solver, f"{given}(assert (distinct r (_ bv{block.result[i]} 8)))\n", [], 60).verdict == "unsat"
    with pytest.raises(RuntimeError, match=f"the solver {solver} failed: "):
        solve(solver, f"{text}(assert (= a", [], 60)


#: a spec for each kind of definition, of the small formats that SMT-LIB's own theory lacks among others
SOLVED = [
    ("divide", "e2m1fn", dict(rounding="up")), ("fma", "e3m2fn", {}), ("sqrt", "e4m3fn", dict(flush_inputs=True)),
    ("multiply", "e4m3fnuz", dict(flush_results="after")), ("add", "binary8p4se", dict(rounding="to_odd")),
    ("multiply", "posit8", {}), ("add", "posit8_es1", {}), ("remainder", "e3m2", {}), ("fnmsub", "e2m1fn", {}),
    ("convert", "e4m3fn", dict(out_fmt="e3m2fn", rounding="sr", stochastic_bits=4)), ("logb", "e5m2", {}),
    ("to_integer", "e4m3", dict(out_fmt="i8", nan="x86")), ("minimum", "e4m3", dict(minmax="x86")),
    ("classify", "e4m3", {}), ("tanh", "e4m3fn", {}), ("add", "e5m2", dict(space=Space(no_subnormal=True))),
]  # fmt: skip


@cases("op, fmt, options", SOLVED, ids=[f"{op}-{fmt}" for op, fmt, _ in SOLVED])
@pytest.mark.slow
def test_solvers_agree_on_every_kind_of_definition(op, fmt, options):
    """Given operands, the one result that there can be is the core's, by each solver."""
    spec = VectorSpec.make(op, fmt, **options)
    text = export(spec).decode()
    block = next(plan(spec, count=64, seed=9).blocks())
    inputs = block.columns[: len(spec.input_columns)]
    for i in {n % len(block) for n in (3, 20, 41)}:
        given = "".join(f"(assert (= {c.name} (_ bv{x[i]} {c.width})))\n"
                        for x, c in zip(inputs, spec.input_columns, strict=True))  # fmt: skip
        right = f"(and (= result (_ bv{block.result[i]} {spec.out_fmt.bits})) (= flags (_ bv{block.flags[i]} 5)))"
        for solver in installed():
            assert solve(solver, f"{text}{given}(assert {right})\n", [], 60).verdict == "sat"
            assert solve(solver, f"{text}{given}(assert (not {right}))\n", [], 60).verdict == "unsat"


@cases(
    "unit",
    [
        "FusedDotUnit(2, 4, 'e5m3', operand='e4m3fn')",
        "GroupedDotUnit(2, 'e5m2', operand='e4m3')",
        "ChunkedDotUnit(ExactDotUnit('e5m3', operand='e4m3fn'), 2, accumulator='e6m4')",
    ],
)
@pytest.mark.slow
def test_solvers_agree_on_sums_of_units(unit):
    spec = UnitSpec.make("dot", unit, length=3, with_c=True)
    text = export(spec).decode()
    block = next(plan(spec, count=64, seed=9).blocks())
    for i in (3, 20, 41):
        given = ""
        for elements, c in zip(block.operands, spec.operand_columns, strict=True):
            word = sum(int(code) << k * c.bits for k, code in enumerate(np.ravel(elements[i])))
            given += f"(assert (= {c.name} (_ bv{word} {c.width})))\n"
        right = f"(= result (_ bv{block.result[i]} {spec.out_fmt.bits}))"
        for solver in installed():
            assert solve(solver, f"{text}{given}(assert {right})\n", [], 60).verdict == "sat"
            assert solve(solver, f"{text}{given}(assert (not {right}))\n", [], 60).verdict == "unsat"


def btor2_value(op, n, args, words):
    values = [words[i][0] for i in (args[:1] if op in ("slice", "uext") else args)]
    a, b = values[0], values[-1]
    return {
        "not": lambda: ~a, "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b, "add": lambda: a + b,
        "sub": lambda: a - b, "mul": lambda: a * b, "udiv": lambda: a // b if b else -1, "eq": lambda: a == b,
        "ult": lambda: a < b, "ite": lambda: values[1] if a else b, "sll": lambda: a << min(b, n),
        "srl": lambda: a >> min(b, n), "slice": lambda: a >> int(args[2]), "uext": lambda: a,
        "concat": lambda: a << words[args[1]][1] | b,
    }[op]()  # fmt: skip


def btor2_values(text, inputs):
    """The outputs' values, by an interpreter of BTOR2's lines."""
    widths, words, found = {}, {}, {}
    for line in text.splitlines():
        if line.startswith(";"):
            continue
        number, op, kind, *args = line.split()
        if op == "sort":
            widths[number] = int(args[0])
            continue
        if op == "output":
            found[args[0]] = words[kind][0]
            continue
        n = widths[kind]
        if op in ("input", "constd"):
            words[number] = (inputs[args[0]] if op == "input" else int(args[0])), n
            continue
        value = btor2_value(op, n, args, words)
        words[number] = value & (1 << n) - 1, n
    return found


def test_btor2_says_what_the_core_computes():
    spec = VectorSpec.make("divide", "e3m2fn", rounding="rna")
    text = export(spec, "btor2").decode()
    block = next(plan(spec, count=30, seed=5).blocks())
    for i in range(len(block)):
        found = btor2_values(text, {n: int(o[i]) for n, o in zip("ab", block.operands, strict=True)})
        assert found == {"result": block.result[i], "flags": block.flags[i]}


def test_files_are_the_same_every_time():
    spec = VectorSpec.make("add", "e5m2")
    for kind in EXPORTS:
        assert export(spec, kind) == export(VectorSpec.make("add", "e5m2"), kind)
