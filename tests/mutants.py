"""Planted faults: each must make a test fail. ``make test-mutants`` (half an hour; interrupted, it goes on later).

A fault is a line of csrc changed in a copy of the tree. First the C tests run; where they notice nothing, the fuzzer's
driver, and then the Python tests that the fault names. A copy serves one fault after another, so that only what a fault
changes is compiled anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Fault:
    """`old` becomes `new` in csrc/`file`, once; `tests`: pytest's arguments for what C tests do not reach."""

    name: str
    file: str
    old: str
    new: str
    tests: str = "tests/core/test_operations.py"


MATMUL = "tests/core/test_matmul_paths.py"

FAULTS = (
    Fault("short floats forget INEXACT", "elementwise/short/floats.h",
          "*flags = (0 - (sn_u32)(fraction != 0)) & t->inexact;",
          "*flags = 0;"),
    Fault("vectors forget what an addend lost", "lanes/wide.h", "| N_(jam)(lost);", ";"),
    Fault("quotients are one too small", "lanes/wide.h", "((first << 32) + second - one)", "((first << 32) + second)"),
    Fault("roots are one too small", "lanes/wide.h", "whole -= one;", ""),
    Fault("a vector's subnormals are normal", "lanes/normal.h", "*low |= (N_U)(magnitude < (N_u)f->first);", ""),
    Fault("a vector's infinities are finite", "lanes/normal.h",
          "*high |= (N_U)(magnitude > (N_u)(f->first + f->span));", ""),
    Fault("what rounds up to a normal number is tiny", "lanes/normal.h", "(N_U)(sig >> (N_BITS - 1 - m) == ones);",
          "(N_U){0};", "tests/core/test_lanes.py"),
    Fault("a vector's tiny results keep no sticky bit", "lanes/normal.h",
          "placed | N_(jam)(N_LEFT(placed, shift) ^ sig);", "placed;", "tests/core/test_lanes.py"),
    Fault("short fixed point saturates one too low", "elementwise/short/fixed.h",
          "floor = limit;", "floor = limit - 1;"),
    Fault("lanes divide b by a", "elementwise/operate.h", "EACH(SN_(divide_odd)(x, y))", "EACH(SN_(divide_odd)(y, x))",
          "tests/core/test_lanes.py"),
    Fault("lanes forget that an inexact sum is odd", "lanes/lanes.h", "(bits - beyond) | 1u", "(bits - beyond)",
          "tests/core/test_lanes.py"),
    Fault("decoding loses -0", "lanes/convert.h", "if (!d->negative_zero) sign &=", "sign &="),
    Fault("decoding takes NaN for -0", "lanes/convert.h", "d->negative_zero && !d->nan_is_negative_zero;",
          "(d->negative_zero || d->nan_is_negative_zero);"),
    Fault("ties away become ties to zero", "lanes/magic.h", "(x.whole + (L_u)r->bump)", "(x.whole + 0u)"),
    Fault("odd forgets the lost bits", "lanes/magic.h",
          "(L_V)x.whole - (L_V)x.part != (L_V)u) & 1u", "(L_V)u != (L_V)u) & 1u"),
    Fault("the gap's tie goes up", "dispatch/prepare.c",
          "r->half_gap + !goes_up", "r->half_gap", "tests/core/test_quantize.py"),
    Fault("one more than the largest is easy", "dispatch/prepare.c", "r->easy = largest < last ? largest : last;",
          "r->easy = largest < last ? largest + ((sn_i64)1 << (M - r->mantissa_bits)) : last;"),
    Fault("m = 0 by the magic constant", "dispatch/prepare.c", "r->mantissa_bits == 0 &&", "0 &&",
          "tests/core/test_quantize.py tests/core/test_exhaustive.py --case nearest_even"),
    Fault("P3109's older draft rounds to odd as the newer", "softnum/rounding/round.h", "(f->is_signed || v3)",
          "f->is_signed", "tests/core/test_p3109.py"),
    Fault("P3109's older draft has NaN below zero", "softnum/rounding/specialize.h",
          "f->p3109 && env->overflow == SN_OVERFLOW_INFINITY && (infinite",
          "f->p3109 && env->overflow != SN_OVERFLOW_SATURATE && (infinite", "tests/core/test_p3109.py"),
    Fault("tininess before is after", "softnum/rounding/round.h", "env->tininess == SN_TININESS_BEFORE || !grown",
          "!grown"),
    Fault("the Arm profile takes the first NaN", "softnum/rounding/specialize.h", "env->nan == SN_NAN_ARM &&", "0 &&",
          "tests/core/test_profiles.py"),
    Fault("the x86 default NaN is positive", "softnum/rounding/specialize.h",
          "f->nan_code | f->sign_mask : f->nan_code",
          "f->nan_code : f->nan_code", "tests/core/test_profiles.py"),
    Fault("flushed operands lose their sign", "softnum/rounding/specialize.h",
          "n.sign &= f->negative_zero;", "n.sign = 0;"),
    Fault("minimum takes +0 for -0", "softnum/operations/order.h",
          "x.sign == y.sign ? SN_EQUAL : x.sign ? SN_LESS : SN_GREATER",
          "SN_EQUAL"),
    Fault("tables forget their flags", "elementwise/fast_loop.c",
          "if (width == 1) look_up_8(two, mask, args, n, steps, x->table_flags, flags, flags_step);", ""),
    Fault("strided results go astray", "elementwise/fast_loop.c",
          "if (out_step != width) copy_strided(", "if (0) copy_strided(",
          "tests/core/test_paths.py"),
    Fault("random words of the next block", "elementwise/quantize.h",
          "SN_(philox_block)((random->first + i) / 4, random->key[0]",
          "SN_(philox_block)((random->first + i) / 4 + 1, random->key[0]"),
    Fault("what overflows does not count as saturated", "softnum/units/tally.h",
          "infinite || (raised & SN_FLAG_OVERFLOW) != 0", "infinite"),
    Fault("counted sums take the short way", "products/gemm/gemm.c",
          "!u->compensated && !told->tally", "!u->compensated"),
    Fault("the alignment makes a rounding inexact", "softnum/units/fused.h", "        told->cut = s.cut;",
          "        told->cut = s.cut;\n        if (s.cut) told->raised |= SN_INEXACT;"),
    Fault("the probe does not see the sticky bit", "elementwise/probe.c", "n->fraction << 2 != 0 || n->sticky",
          "n->fraction << 2 != 0"),
    Fault("the probe tells the cut before the subnormals'", "softnum/rounding/round.h",
          "        sn_note_cut(env, x, c, last, up);", "", "tests/core/test_probe.py"),
    Fault("scaled sums of blocks are doubled", "softnum/units/block_steps.h", "s.exp = x->exp + y->exp;",
          "s.exp = x->exp + y->exp + 1;", "tests/core/test_block_unit.py"),
    Fault("a block's sum takes its product's bits", "softnum/word/philox.h", "s.sum.w[i] >>= 16;", "",
          "tests/core/test_block_unit.py"),
    Fault("an exact zero sum of a block is negative", "softnum/units/block_steps.h",
          "kind.kind == SN_INF ? kind.sign : s->scale.sign", "1", "tests/core/test_block_unit.py"),
    Fault("two pieces of a block's sum round twice", "products/blocks/body.h", "SN_(add_odd)(th, SN_(add_odd)(tl, ul))",
          "th + SN_(add_odd)(tl, ul)", "tests/core/test_block_paths.py"),
    Fault("a block's sum rounds twice", "products/blocks/body.h", "SN_(add_odd)(z, (x) * (y))", "(z) + (x) * (y)",
          "tests/core/test_block_paths.py"),
    Fault("directed sums are not odd", "targets/dots_avx512.c",
          "SN_FMA64_TO(x, y, z, _MM_FROUND_TO_NEG_INF), _mm512_set1_epi64(1)",
          "SN_FMA64_TO(x, y, z, _MM_FROUND_TO_NEG_INF), _mm512_set1_epi64(0)",
          "tests/core/test_block_paths.py"),
    Fault("tensor scales are cut unevenly", "products/blocks/body.h",
          "0x1fffffff", "0xffff", "tests/core/test_block_paths.py"),
    Fault("wide sums round twice", "products/gemm/wide.h", "SN_(add_odd)(acc[v], p), word)", "acc[v] + p, word)",
          "tests/core/test_matmul_paths.py"),
    Fault("wide sums of chunks round twice", "products/gemm/wide.h", "SN_(add_odd)(outer[v], acc[v]), word)",
          "outer[v] + acc[v], word)", "tests/core/test_matmul_paths.py"),
    Fault("blocks take the words of products", "products/blocks/body.h", "g->k + block);", "block);",
          "tests/core/test_block_paths.py"),
    # what path computes a unit's products: a condition of its domain left out
    Fault("wrapping fixed point rounds by the paths of saturating", "products/gemm/paths.c",
          "env->overflow != SN_OVERFLOW_WRAP && !specials", "!specials", MATMUL),
    Fault("formats without subnormals round as if they had them", "products/gemm/paths.c",
          "!f->is_signed || f->lowest != SN_LOWEST_SUBNORMAL || f->mantissa_bits < 1",
          "!f->is_signed || f->mantissa_bits < 1", MATMUL),
    Fault("infinities saturate like what overflows", "products/gemm/paths.c",
          "if (env->overflow == SN_OVERFLOW_SATURATE_FINITE && f->has_inf) return 0;", "", MATMUL),
    Fault("inf - inf without a NaN", "products/gemm/paths.c",
          "return f->has_nan || !(specials || f->has_inf);", "return 1;", MATMUL),
    Fault("the magic constant in other modes", "products/gemm/paths.c",
          "env->rounding != SN_NEAREST_EVEN || !rounds_here(f, env, addend.specials)",
          "!rounds_here(f, env, addend.specials)", MATMUL),
    Fault("fixed-point sums that binary32 does not hold", "products/gemm/paths.c",
          "biggest_sum + 1 - smaller(addend.last, -m) > 24", "0", MATMUL),
    Fault("fixed-point sums of any size", "products/gemm/paths.c",
          "biggest_sum + 1 + m > 22 || biggest_sum + 1 - smaller(addend.last, -m) > 24", "0", MATMUL),
    Fault("the magic constant overflows", "products/gemm/paths.c", "f->emax + 24 - m > 127", "0", MATMUL),
    Fault("odd patterns one bit short", "products/gemm/paths.c", "x.precision + extra > 24", "x.precision > 24",
          MATMUL),
    Fault("wide sums in other modes", "products/gemm/paths.c",
          "(env->rounding != SN_NEAREST_EVEN && !randomly) || !rounds_here", "!rounds_here", MATMUL),
    Fault("wide sums see less than the random bits", "products/gemm/paths.c",
          "m + 1 + (randomly ? env->stochastic_bits : 2) > 52", "m + 1 > 52", MATMUL),
    Fault("binary32 with any overflow is the hardware's", "products/gemm/paths.c",
          "env->rounding == SN_NEAREST_EVEN &&\n           env->overflow == SN_OVERFLOW_INFINITY;",
          "env->rounding == SN_NEAREST_EVEN;", MATMUL),
    Fault("the hardware's products without fma", "products/gemm/paths.c",
          ": exact_in_32(d) ? SN_PRODUCT_EXACT\n", ": 1 ? SN_PRODUCT_EXACT\n", MATMUL),
    Fault("inexact sums of magic operands", "products/gemm/paths.c",
          "term.precision <= sum.precision && sum.precision <= 11", "sum.precision <= 24", MATMUL),
    Fault("inexact products by the magic constant", "products/gemm/paths.c",
          "if (!operands_fit(d, 32) || !exact_in_32(d)) return 0;\n    if (!u->fused && !magic32",
          "if (!operands_fit(d, 32)) return 0;\n    if (!u->fused && !magic32", MATMUL),
    Fault("inexact products of stochastic sums", "products/gemm/paths.c",
          "!operands_fit(d, 32) || !exact_in_32(d) || d->product.top > 126", "!operands_fit(d, 32)", MATMUL),
    Fault("bounds of sums below the last place", "products/gemm/paths.c",
          "return d->addend.last >= d->sum.last && d->sum.last >= d->outer.last;", "return 1;", MATMUL),
    Fault("products that binary64 does not hold", "products/gemm/paths.c",
          "d->product.precision > 53 || d->product.last < -1074 || d->product.top > 1000", "0", MATMUL),
    Fault("lanes and compensation are ignored", "products/gemm/paths.c",
          "if (u->lanes > 1 || u->compensated || ", "if (", "tests/core/test_mad_unit.py"),
    Fault("integers are cut", "products/gemm/paths.c", "if (shift < 0 || shift > 16) return 0;", "", MATMUL),
    Fault("integers overflow", "products/gemm/paths.c",
          "return products < 0x1p31 && total <= (double)g->most &&", "return", MATMUL),
    Fault("negative sums of unsigned integers", "products/gemm/paths.c",
          "if (!f->is_signed && (a->is_signed || b->is_signed) && !wraps) return 0;", "", MATMUL),
    Fault("fused units whose output is rounded apart", "products/fused/fused.c", "if (!u->same_output || u->period",
          "if (u->period", "tests/core/test_fused_unit.py"),
    Fault("fused products longer than 24 bits", "products/fused/fused.c",
          "sn_facts_of(&u->a).precision + sn_facts_of(&u->b).precision > 24 || F > 29", "F > 29",
          "tests/core/test_fused_unit.py"),
    Fault("fused sums without a code are no error", "products/fused/fused.c",
          "if (!acc->has_nan && (can_be_special", "if (0 && (can_be_special", "tests/core/test_fused_unit.py"),
    Fault("fused sums are cut and then rounded", "products/fused/fused.c", "if (cut >= 0 || m < 1 || m > 21",
          "if (m < 1 || m > 21", "tests/core/test_fused_unit.py"),
    Fault("exact products longer than 53 bits", "products/exact/exact.c",
          "a.precision + b.precision > 53 || c.precision + seen > 52", "c.precision + seen > 52",
          "tests/core/test_exact_paths.py"),
    Fault("exact sums keep no bit beyond the last place", "products/exact/exact.c", "c.precision + seen > 52",
          "c.precision > 53", "tests/core/test_exact_paths.py"),
    Fault("the last place in a range is too high", "dispatch/facts.h", "? binade - x.precision + 1 : x.last",
          "? binade - x.precision + 2 : x.last", "tests/core/test_exact_paths.py tests/core/test_block_paths.py"),
    Fault("blocks whose sums are cut", "products/blocks/block.c", "sums.precision + longer > 53", "sums.precision > 53",
          "tests/core/test_block_paths.py"),
    Fault("scales of several bits are powers of two", "products/blocks/block.c",
          "sn_fits(x, 32) && sn_fits(y, 32) && x.precision + y.precision <= 24", "sn_fits(x, 32) && sn_fits(y, 32)",
          "tests/core/test_block_paths.py"),
    Fault("a block's sum that cancels is +0", "products/blocks/block.c",
          "if (u->sum_env.rounding == SN_DOWN) return 0;", "", "tests/core/test_block_paths.py"),
    Fault("narrow blocks of 25 bits", "products/blocks/block.c", "+ log_of(size) <= 24 &&", "+ log_of(size) <= 30 &&",
          "tests/core/test_block_paths.py"),
)  # fmt: skip


def plant(fault: Fault, tree: Path) -> None:
    """Change the line in the copy; ValueError if it is not there (then the fault wants a new place)."""
    path = tree / "csrc" / fault.file
    text = path.read_text()
    if fault.old not in text:
        raise ValueError(f"{fault.name}: csrc/{fault.file} no longer holds {fault.old!r}")
    path.write_text(text.replace(fault.old, fault.new, 1))


def noticed_by(fault: Fault, tree: Path) -> str | None:
    """What fails in a tree with the fault, or None."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tree, "env": environment()}
    flags = "CFLAGS=-std=c11 -O1 -ffp-contract=off -fno-math-errno -w -Icsrc -Ifuzz"
    for what, program, *arguments in (
        ("the C tests", "csrc/tests/test_core"),
        ("the fuzzer", "fuzz/driver", "-n", "400000"),
    ):
        subprocess.run(["make", program, flags, "SANITIZE="], check=True, **quiet)
        if subprocess.run([program, *arguments], **quiet).returncode:
            return what
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "-i"], check=True, **quiet)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *fault.tests.split()]
    return "pytest" if subprocess.run(command, **quiet).returncode == 1 else None


def environment() -> dict[str, str]:
    """Of the compilers and the tests."""
    return {name: value for name, value in os.environ.items() if name != "SOFTNUM_CPU"}


def copy(files: Sequence[str], tree: Path) -> Path:
    """A copy of these files, and of the objects that were compiled here, as far as they are up to date."""
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    if (ROOT / "build/objects").is_dir():
        shutil.copytree(ROOT / "build/objects", tree / "build/objects")
    return tree


def result_of(fault: Fault, trees: SimpleQueue[Path]) -> str | None:
    """`noticed_by`, in the next tree that is free."""
    tree = trees.get()
    try:
        plant(fault, tree)
        return noticed_by(fault, tree)
    finally:
        shutil.copy(ROOT / "csrc" / fault.file, tree / "csrc" / fault.file)
        trees.put(tree)


class Ledger:
    """What has been found of faults in these files, kept in a file; that of other files is forgotten."""

    def __init__(self, path: Path, files: Sequence[str]):
        told = hashlib.sha256()
        for name in files:
            told.update(f"{name} {hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}\n".encode())
        self.path, first = path, json.dumps(told.hexdigest())
        lines = path.read_text().splitlines() if path.exists() else []
        if lines[:1] != [first]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{first}\n")
        self.known = dict(json.loads(line) for line in lines[1:]) if lines[:1] == [first] else {}

    def add(self, fault: Fault, what: str | None) -> None:
        with self.path.open("a") as file:
            file.write(f"{json.dumps([fault.name, what])}\n")


def main() -> int:
    """Plant the faults one by one; exit status 1 if one goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose name or file holds this")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--record", type=Path, default=ROOT / "build/mutants.txt", help="where what was found is kept")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if options.only in fault.name or options.only in fault.file]
    if not chosen:
        parser.error(f"no fault's name or file holds {options.only!r}")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    ledger = Ledger(options.record, [name for name in files if not name.startswith("docs/")])
    todo = [fault for fault in chosen if fault.name not in ledger.known]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for job in range(options.jobs if todo else 0):
            trees.put(copy(files, Path(folder) / str(job)))
        found = dict(zip((fault.name for fault in todo), (pool.submit(result_of, f, trees) for f in todo), strict=True))
        for fault in chosen:
            if fault.name in found:
                what = found[fault.name].result()
                ledger.add(fault, what)
            else:
                what = ledger.known[fault.name]
            unnoticed += what is None
            print(f"{'NOT NOTICED' if what is None else 'noticed by ' + what}: {fault.name}", flush=True)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} faults noticed")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main())
