"""Vectors of units of blocks, whose scales are columns: results, files, what is left out, and the causes of faults."""

import re
import shlex
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.reference.block_dot import block_dot
from softnum.reference.block_fused import block_fused_dot
from softnum.vectors import Space, UnitSpec, VectorFileError, VectorSpec, check, coverage_of, plan, write
from softnum.vectors.checks.evidence import Evidence
from softnum.vectors.checks.unit_models import UnitModels
from softnum.vectors.plans.spec import Block
from tests.support.cases import cases

MXFP4 = "BlockDotUnit('binary32', operand='mxfp4_e2m1')"
NVFP4 = "BlockDotUnit('binary32', operand='nvfp4')"
OTHERS = {
    "two formats": "BlockDotUnit('bfloat16', operand=(BlockFormat('e4m3fn', 'e4m3fn', 8), "
    "BlockFormat('q2.6', 'e8m0fnu', 8)), rounding='up')",
    "rounded": "BlockDotUnit('binary32', operand='mxfp8_e5m2', product='binary16')",
    "nvfp4": NVFP4,
    "fused": "BlockFusedDotUnit(32, 25, 'binary32', operand='mxfp6_e2m3')",
    "groups": "nvidia_tcgen05_mxf4",
}


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], catch_exceptions=False)


def by_integers(spec, row) -> int:
    """One result by `softnum.reference`, in Python's integers."""
    unit, names = spec.unit, [c.name for c in spec.operand_columns]
    codes = {name: np.atleast_1d(x).tolist() for name, x in zip(names, row, strict=True)}
    tensors = None
    if unit.tensor_scales:
        of = lambda x: Fraction(float(np.uint32(codes[f"tensor_{x}"][0]).view(np.float32)))  # noqa: E731
        tensors = of("a"), of("b")
    given = [codes[name] for name in ("a", "scale_a", "b", "scale_b")]
    shared = dict(operand=unit.operand, accumulator=unit.accumulator, tensor_scales=tensors,
                  c=codes["c"][0] if spec.with_c else None)  # fmt: skip
    if isinstance(unit, sn.BlockDotUnit):
        return block_dot(*given, **shared, product=unit.product, rounding=unit.rounding)[0]
    return block_fused_dot(
        *given, **shared, terms=unit.terms, fraction_bits=unit.fraction_bits, group=unit.group,
        min_exponent=unit.min_exponent, output_rounding=unit.output_rounding, zero_exponent=unit.zero_exponent,
        truncate_fraction=unit.truncate_fraction, overflow=unit.overflow,
    )[0]  # fmt: skip


@cases("with_c", [False, True])
@cases("name", OTHERS)
def test_results_are_those_of_the_reference(name, with_c):
    spec = UnitSpec.make("dot", OTHERS[name], length=40, with_c=with_c)
    (block,) = plan(spec, count=64, seed=5).blocks()
    for i in range(0, 64, 3):
        row = [x[i] for x in block.operands]
        tensors = [x for x, c in zip(row, spec.operand_columns, strict=True) if c.name.startswith("tensor")]
        if all(0 < float(np.uint32(x).view(np.float32)) < np.inf for x in tensors):  # what a reference's scales are
            assert int(block.result[i]) == by_integers(spec, row), i


def test_random_words_are_those_of_matmul():
    unit = "BlockDotUnit('binary16', operand='mxfp4_e2m1', inner=MadUnit('binary16', operand='e2m1fn', rounding='sr'), "
    spec = UnitSpec.make("dot", unit + "rounding='sr', stochastic_bits=8)", length=40)
    (block,) = plan(spec, count=20).blocks()
    a, b, scale_a, scale_b = block.operands
    for i in range(20):
        x = sn.BlockArray(a[i, None], scale_a[i, None], "mxfp4_e2m1", -1)
        y = sn.BlockArray(b[i, :, None], scale_b[i, :, None], "mxfp4_e2m1", -2)
        want = sn.matmul(x, y, spec.unit, random_bits=block.random_bits[i].reshape(1, 1, -1, 2))
        assert int(block.result[i]) == int(sn.encode(want, "binary16")[0, 0]), i


def test_tiles_are_dot_products():
    spec = UnitSpec.make("gemm", NVFP4, shape=(2, 3, 20), with_c=True)
    (block,) = plan(spec, count=12).blocks()
    a, b, scale_a, scale_b, tensor_a, tensor_b, c = block.operands
    dot = UnitSpec.make("dot", NVFP4, length=20, with_c=True)
    for i in range(2):
        for j in range(3):
            parts = (
                a.reshape(12, 2, 20)[:, i], b.reshape(12, 20, 3)[:, :, j], scale_a.reshape(12, 2, 2)[:, i],
                scale_b.reshape(12, 2, 3)[:, :, j], tensor_a, tensor_b, c.reshape(12, 6)[:, 3 * i + j],
            )  # fmt: skip
            assert (dot.evaluate(parts).result == block.result.reshape(12, 6)[:, 3 * i + j]).all()


@cases("dialect", ["softnum", "readmemb", "csv", "npz"])
def test_files(tmp_path, dialect):
    path = tmp_path / "v"
    spec = UnitSpec.make("dot", NVFP4, with_c=True)
    assert write(plan(spec, count=40), path, dialect=dialect) == 40
    report = check(path, dialect=dialect)
    assert report.ok and (report.vectors, report.spec.columns) == (40, spec.columns)


def test_header_and_command(tmp_path):
    path, again = tmp_path / "v.txt", tmp_path / "w.txt"
    space = Space.make(no_nan=True, no_subnormal=True)
    spec = UnitSpec.make("dot", OTHERS["two formats"], length=24, with_c=True, space=space)
    write(plan(spec, count=50), path)
    text = path.read_text()
    command = next(line for line in text.splitlines() if line.startswith("# command: ")).removeprefix("# command: ")
    assert run(*shlex.split(command)[1:], "-o", again).exit_code == 0
    assert again.read_text() == text and "# columns: a:192 b:192 scale_a:24 scale_b:24 c:16 result:16" in text


def test_every_class_of_scales_is_met():
    spec = UnitSpec.make("dot", NVFP4, length=32, with_c=True)
    coverage = coverage_of(spec)
    for block in plan(spec, count=4000).blocks():
        coverage.add(block)
    for name in ("a", "b", "scale_a", "scale_b"):
        assert not coverage.groups[f"classes of {name}"].missed
    assert coverage.groups["binades of scale_a"].hit == 16
    assert coverage.groups["classes of result"].hit >= 8


def test_what_is_left_out(tmp_path):
    space, path = Space.make(no_nan=True, no_inf=True, no_subnormal=True), tmp_path / "v.txt"
    spec = UnitSpec.make("dot", "BlockDotUnit('binary32', operand='mxfp8_e5m2')", with_c=True, space=space)
    for block in plan(spec, count=600).blocks():
        for column, codes in zip(spec.operand_columns, block.operands, strict=True):
            f = column.format
            assert not (f.is_nan(codes) | f.is_infinite(codes) | f.is_subnormal(codes)).any()
    write(plan(spec, count=20), path)
    assert check(path).ok
    head, last = path.read_text().rsplit("\n", 2)[:2]
    fields = last.split()
    path.write_text(head + "\n" + " ".join([*fields[:3], "FF", fields[4], "7FC00000"]) + "\n")
    with pytest.raises(VectorFileError, match=r"scale_b=FF .* lies outside the space .* --no-nan --no-inf"):
        check(path)
    assert check(path, ignore_header=True, op="dot", unit=spec.unit, with_c=True).ok
    report = check(path, ignore_header=True, op="dot", unit=spec.unit, with_c=True, space=Space.make(no_nan=True))
    assert report.ok and report.skipped == {"outside --no-nan": 1}


def test_sums_in_fixed_point():
    unit, space = "BlockDotUnit('q8.8', operand='mxint8')", Space.make(no_nan=True)
    with pytest.raises(ValueError, match="--no-nan and --no-inf leave .* out"):
        list(plan(UnitSpec.make("dot", unit, with_c=True), count=4000).blocks())
    blocks = plan(UnitSpec.make("dot", unit, with_c=True, space=space), count=600).blocks()
    results = {code for block in blocks for code in block.result.tolist()}
    assert len(results) > 100 and {0x7FFF, 0x8000} <= results


@cases(
    "options, message",
    [
        (["--op", "mac"], "takes? one product at a time"),
        (["--op", "dot", "--only", "ties"], "no exponents and no results are asked for: leave out --only ties"),
        (["--op", "dot", "--exponents=-1:1"], "leave out --exponents=-1:1"),
        (["--op", "dot", "--length", "0"], r"K must lie in 1\.\.4096"),
        (["--op", "dot", "--lanes", "2"], "lanes of words are of operations"),
    ],
)
def test_unusable(options, message):
    done = run("vectors", "generate", "--unit", MXFP4, "-n", 4, *options)
    assert done.exit_code == 2 and re.search(message, done.output), done.output


# -- causes ------------------------------------------------------------------------------------------------------------
def answers(spec, changes, path, count=600):
    """What `check` says of a file of a wrong design's answers."""

    class Planned:
        method, seed = "random", 0

        def blocks(self):
            for block in plan(spec, count=count, seed=2).blocks():
                n = len(block)
                no = np.zeros(n, bool)
                evidence = Evidence(np.arange(n), np.arange(n), block, block, no, no, no)
                yield Block(block.operands, None, UnitModels(spec).predict(changes, evidence)[0], None)

    planned = Planned()
    planned.spec, planned.count = spec, count
    write(planned, path)
    return check(path)


PLANTED = [
    ({"scales": ((0, "one"),)}, "scale-ignored (of a)"),
    ({"scale_bias": 1}, "scale-bias (a factor of 1/2)"),
    ({"scale_bias": 127}, "scale-bias (the bias is taken off once too often)"),
    ({"scale_nan": "largest"}, "scale-nan-ignored (read as the largest scale)"),
    ({"scales": ((1, "first"),)}, "shared-scale (of b: the first block's for all)"),
    ({"scales": ((0, "reversed"), (1, "reversed"))},
     "swapped-lanes (of the scales of a and of b, from the last block to the first)"),
    ({"scales": ((1, "other"),)}, "ignored-operand (the scales of b, read as the other's)"),
    ({"block_size": 8}, "chunk-length (8 products instead of 32 at a time)"),
    ({"accumulator": "binary64", "rounding": "to_odd"}, "accumulator-width (not rounded to binary32 between blocks)"),
    ({"as_fused": (1, 23)}, "alignment-bits (products are cut off 23 bits below the largest exponent)"),
]  # fmt: skip
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("changes", "cause"), [case if i == 3 else pytest.param(*case, marks=SLOW) for i, case in enumerate(PLANTED)]
)
def test_causes_are_named(tmp_path, changes, cause):
    spec = UnitSpec.make("dot", MXFP4, length=64, with_c=True)
    report = answers(spec, changes, tmp_path / "v.npz", 2000)
    first = report.causes[0]
    assert report.failures and f"{first.cause} ({first.detail})" == cause
    assert first.trace is not None and "scaled sum" in str(first.trace)


def test_scales_of_arrays(tmp_path):
    spec = UnitSpec.make("dot", NVFP4, length=16, with_c=True)
    report = answers(spec, {"scales": ((3, "one"),)}, tmp_path / "v.npz", 300)
    assert [(c.cause, c.detail) for c in report.causes] == [("scale-ignored", "of the array b")]
    fused = UnitSpec.make("dot", "nvidia_tcgen05_mxf4", length=64, with_c=True)
    report = answers(fused, {"fraction_bits": 24}, tmp_path / "v.npz", 300)
    assert [(c.cause, c.detail) for c in report.causes] == [("alignment-bits", "24 instead of 35")]


def test_reports(tmp_path):
    spec, path = UnitSpec.make("dot", MXFP4, with_c=True), tmp_path / "v.txt"
    answers(spec, {"scales": ((0, "one"), (1, "one"))}, path, 200)
    out = [tmp_path / name for name in ("r.html", "r.xml", "r.sarif")]
    done = run("vectors", "check", path, "--html", out[0], "--junit", out[1], "--sarif", out[2])
    assert done.exit_code == 1 and "cause: scale-ignored (of a and of b)" in done.output
    assert all("scale-ignored" in file.read_text() for file in out)


@cases(("old", "new"), [(" scale_a:8", ""), ("scale_a:8", "scale_b:8"), ("a:128", "a:8"), ("c:32", "c:32 d:4")])
def test_a_header_lists_the_columns_that_there_are(tmp_path, old, new):
    path = tmp_path / "v.txt"
    write(plan(UnitSpec.make("dot", MXFP4, length=32, with_c=True), count=20), path)
    text = path.read_text()
    assert check(path).ok and old in text.split("# columns:")[1].split("\n")[0]
    head, tail = text.split("# columns:")
    path.write_text(f"{head}# columns:{tail.replace(old, new, 1)}")
    with pytest.raises(VectorFileError, match="the header says columns"):
        check(path)


def test_flags_may_be_left_out_of_the_columns(tmp_path):
    path = tmp_path / "v.txt"
    write(plan(VectorSpec.make("add", "e5m2"), count=20), path)
    path.write_text("".join(line.rsplit(" ", 1)[0] + "\n" if not line.startswith("#") else line.replace(" flags:5", "")
                            for line in path.read_text().splitlines(True)))  # fmt: skip
    assert check(path, ignore_flags=True).ok
