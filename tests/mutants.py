"""Planted faults: each must make a test fail. ``make test-mutants`` (minutes: every fault is a build of its own).

A fault is a line of csrc changed in a copy of the tree. First the C tests run; where they notice nothing, the Python
tests that the fault names.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Fault:
    """`old` becomes `new` in csrc/`file`, once; `tests`: pytest's arguments for what C tests do not reach."""

    name: str
    file: str
    old: str
    new: str
    tests: str = "tests/core/test_operations.py"


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
    Fault("ties away become ties to zero", "lanes/magic.h", "(x.whole + (L_u)r->bump)", "(x.whole + 0u)"),
    Fault("odd forgets the lost bits", "lanes/magic.h",
          "(L_V)x.whole - (L_V)x.part != (L_V)u) & 1u", "(L_V)u != (L_V)u) & 1u"),
    Fault("the gap's tie goes up", "dispatch/prepare.c",
          "r->half_gap + !goes_up", "r->half_gap", "tests/core/test_quantize.py"),
    Fault("one more than the largest is easy", "dispatch/prepare.c", "r->easy = largest < last ? largest : last;",
          "r->easy = largest < last ? largest + ((sn_i64)1 << (M - r->mantissa_bits)) : last;"),
    Fault("m = 0 by the magic constant", "dispatch/prepare.c", "r->mantissa_bits == 0 &&", "0 &&",
          "tests/core/test_quantize.py tests/core/test_exhaustive.py --case nearest_even"),
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
    Fault("directed sums are not odd", "products/blocks/block_avx512.c", "_mm512_set1_epi64(1)", "_mm512_set1_epi64(0)",
          "tests/core/test_block_paths.py"),
    Fault("tensor scales are cut unevenly", "products/blocks/body.h",
          "0x1fffffff", "0xffff", "tests/core/test_block_paths.py"),
    Fault("wide sums round twice", "products/gemm/wide.h", "SN_(add_odd)(acc[v], p), word)", "acc[v] + p, word)",
          "tests/core/test_matmul_paths.py"),
    Fault("wide sums of chunks round twice", "products/gemm/wide.h", "SN_(add_odd)(outer[v], acc[v]), word)",
          "outer[v] + acc[v], word)", "tests/core/test_matmul_paths.py"),
    Fault("blocks take the words of products", "products/blocks/body.h", "g->k + block);", "block);",
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
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tree}
    subprocess.run(
        ["make", "csrc/tests/test_core", "CFLAGS=-std=c11 -O1 -ffp-contract=off -fno-math-errno -w -Icsrc"],
        check=True,
        **quiet,
    )
    if subprocess.run(["csrc/tests/test_core"], **quiet).returncode:
        return "C tests"
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "-i"], check=True, **quiet)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *fault.tests.split()]
    return "pytest" if subprocess.run(command, **quiet).returncode == 1 else None


def main() -> int:
    """Plant the faults one by one; exit status 1 if one goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose name holds this")
    only = parser.parse_args().only
    unnoticed = 0
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for fault in (f for f in FAULTS if only in f.name):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            for name in files:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
            plant(fault, tree)
            what = noticed_by(fault, tree)
        unnoticed += what is None
        print(f"{'NOT NOTICED' if what is None else 'noticed by ' + what}: {fault.name}", flush=True)
    return int(unnoticed > 0)


if __name__ == "__main__":
    os.environ.pop("SOFTNUM_CPU", None)
    sys.exit(main())
