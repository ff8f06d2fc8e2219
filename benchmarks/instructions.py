"""Instructions of inner loops, NEON beside AVX2: ``python -m benchmarks.instructions``.

Times of an emulated processor say nothing, so what is compared is what the compilers made. The texts of csrc/lanes are
compiled for both instruction sets with the options of setup.py; a loop is the shortest way through a function's
instructions that leads from one of them back to it, so that what is rare is not counted. A vector has 8 numbers of
binary32 with AVX2 and 4 with NEON; all instructions count, addresses and branches too.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GOAL = 1.3


class Loop(NamedTuple):
    """An inner loop: `marks` of its instructions match `avx2`, or `neon`, for each vector of results."""

    name: str
    source: str
    function: str
    avx2: str
    neon: str
    marks: float = 1
    lacks: str = "nothing at all"  #: what no instruction of it matches
    each: bool = False  #: the mean of all the function's loops with the mark, not the shortest of them


_STORE = (r"vmov(aps|ups|apd|upd|dqu|dqa)\s+%ymm\d+,.*\(", r"st(r|p)\s+q")
_FMA = (r"vfmadd...ps\s.*%ymm", r"fmla\s+v\d+\.4s")
_FNMADD = (r"vfnmadd...ps\s.*%ymm", r"fmls\s+v\d+\.4s")
_OUTSIDE = (r"vmovd\s+%xmm\d+,.*\(", r"str\s+h\d+")  # a byte for each of the lanes of a vector
_GEMM, _FUSED, _EXACT = "products/gemm/gemm_", "products/fused/fused_", "products/exact/exact_"
_TAPERED, _BLOCKS, _LANES = "products/tapered/tapered_", "products/blocks/block_", "elementwise/elementwise_"

LOOPS = (
    Loop("quantize, binades the carrier's (bfloat16)", _LANES, "loop_EVEN_0_032", *_STORE, lacks=r"vaddps|fadd"),
    Loop("quantize, any float (binary16, FP8)", _LANES, "loop_EVEN_0_032", r"vsubps\s.*ymm", r"fsub\s+v\d+\.4s"),
    Loop("encode to codes of 8 bits", _LANES, "loop_EVEN_0_132", r"vmovq\s+%xmm\d+,.*\(", r"str\s+s\d+"),
    Loop("decode codes of 8 bits", _LANES, "decode32", r"vpmovzxbd\s", r"tbl\s"),
    Loop("products of integers of 16 bits, in pairs", _GEMM, "integers", r"vpmaddwd\s.*ymm", r"smlal2\s"),
    Loop("products, exact sums in binary32", _GEMM, "sum_block", *_FMA),
    Loop("products, nearest even, bare", _GEMM, "magic_bare_block", *_FMA),
    Loop("products, nearest even, signed zeros", _GEMM, "magic_signed_block", *_FNMADD),
    Loop("products, nearest even, overflow", _GEMM, "magic_full_block", *_FNMADD),
    Loop("products rounded too, bare", _GEMM, "product_bare_block", r"vmulps\s.*ymm", r"fmul\s+v\d+\.4s"),
    Loop("products, fixed point", _GEMM, "fixed_block", r"vminps\s.*ymm", r"fmin\s+v\d+\.4s"),
    Loop("stochastic: the sum", _GEMM, "stochastic_bare_block", *_FMA),
    Loop("stochastic: four words each (Philox)", _GEMM, "stochastic_bare_block", r"vpmuludq\s.*ymm", r"umull2?\s", 7.5),
    Loop("directed modes, rounded to odd first", _GEMM, "odd_single", r"vfnmsub...ps\s.*ymm", r"fmls\s+v\d+\.4s"),
    Loop("posits, a sum and its rounding", _TAPERED, "tapered_gemm32", r"vpsrlvd\s.*ymm", r"umin\s+v\d+\.4s"),
    Loop("block formats: sums of blocks in binary32", _BLOCKS, "block_sums", *_FMA),
    Loop("exact sums in binary64, one piece", _EXACT, "exact_rows", r"vfmadd...pd\s.*ymm", r"fmla\s+v\d+\.2d"),
    Loop("groups: a product to an odd integer", _FUSED, "grouped_kernel", r"vroundps\s.*ymm", r"fcvtms\s+v\d+\.4s"),
    Loop("addition of 16-bit codes, with flags", _LANES, "short_ADD_2", r"vmovq\s+%xmm\d+,.*\(", r"str\s+s\d+", 2),
    Loop("functions, the mean of all (binary64 lanes)", _LANES, "function", *_OUTSIDE, each=True),
    Loop("fused: aligned products", _FUSED, "fused_kernel", r"vcvttps2dq\s.*ymm", r"fcvtzs\s+v\d+\.4s"),
    Loop("fused: the largest exponent, 16 bits", _FUSED, "fused_kernel", r"vpmaxsw\s.*ymm", r"smax\s+v\d+\.8h"),
)  # fmt: skip


def options() -> list[str]:
    """The compiler's options in setup.py."""
    found: list[str] = []
    for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "FLAGS":
            found += ast.literal_eval(node.value)
    return [option for option in found if option != "-MMD"]


class Instruction(NamedTuple):
    text: str
    next: tuple[int, ...]  #: addresses


def listing_of(compiler: str, objdump: str, source: Path) -> str:
    """objdump's text of what a compiler makes of a source."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "object.o"
        command = [*compiler.split(), *options(), "-g0", "-w", f"-I{ROOT / 'csrc'}", "-c", "-o", target, source]
        subprocess.run(command, check=True)
        command = [*objdump.split(), "-d", "--no-show-raw-insn", target]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions_in(listing: str) -> dict[str, dict[int, Instruction]]:
    """Its functions, as instructions by their addresses."""
    functions: dict[str, dict[int, Instruction]] = {}
    for block in re.split(r"\n(?=[0-9a-f]+ <)", listing):
        if not (head := re.match(r"[0-9a-f]+ <([\w.]+)>:\n", block)):
            continue
        lines = re.findall(r"^\s*([0-9a-f]+):\t(.*)$", block, re.M)
        body: dict[int, Instruction] = {}
        for i, (address, text) in enumerate(lines):
            name = text.split()[0]
            after = (int(lines[i + 1][0], 16),) if i + 1 < len(lines) else ()
            if jump := re.match(r"(j\w+|b|b\.\w+|cbn?z|tbn?z)\s+(?:.*, )?([0-9a-f]+) <", " ".join(text.split())):
                always = jump[1] in ("jmp", "b")
                after = (*(() if always else after), int(jump[2], 16))
            elif re.match(r"(ret|br|jmp)\b", name):
                after = ()
            body[int(address, 16)] = Instruction(" ".join(text.split()), after)
        functions[head[1]] = body
    return functions


def shortest_way_back(body: dict[int, Instruction], start: int) -> dict[int, str] | None:
    """The instructions, by their addresses, of the shortest way from one back to itself."""
    came: dict[int, int] = {}
    line = deque([start])
    while line:
        at = line.popleft()
        for to in body[at].next:
            if to == start:
                way = [at]
                while at != start:
                    at = came[at]
                    way.append(at)
                return {i: body[i].text for i in way}
            if to in body and to not in came:
                came[to] = at
                line.append(to)
    return None


def count(loop: Loop, bodies: list[dict[int, Instruction]], mark: str) -> float:
    """Instructions for each vector: of the loops that have the mark, the one with the fewest, or their mean."""
    found = {}
    for body in bodies:
        for address in (at for at, instruction in body.items() if re.search(mark, instruction.text)):
            way = shortest_way_back(body, address)
            if way and not any(re.search(loop.lacks, text) for text in way.values()):
                marks = sum(bool(re.search(mark, text)) for text in way.values())
                found[min(way)] = len(way) * loop.marks / marks
    if not found:
        raise LookupError(f"no loop of {loop.function} ({loop.source}) has an instruction that matches {mark!r}")
    return sum(found.values()) / len(found) if loop.each else min(found.values())


def table(x86: tuple[str, str], arm: tuple[str, str]) -> list[tuple[str, float, float]]:
    """(loop, AVX2's instructions, NEON's); x86, arm: compiler and objdump."""
    made: dict[tuple[str, str], dict[str, dict[int, Instruction]]] = {}
    rows = []
    for loop in LOOPS:
        counts = []
        for isa, tools, mark in (("avx2", x86, loop.avx2), ("neon", arm, loop.neon)):
            if (loop.source, isa) not in made:
                made[loop.source, isa] = functions_in(listing_of(*tools, ROOT / "csrc" / f"{loop.source}{isa}.c"))
            name = f"{loop.function}_{isa}"
            bodies = [body for f, body in made[loop.source, isa].items() if f.partition(".")[0] == name]
            counts.append(count(loop, bodies, mark))
        rows.append((loop.name, *counts))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of inner loops, NEON beside AVX2.")
    parser.add_argument("--x86", nargs=2, default=("gcc", "objdump"), metavar=("CC", "OBJDUMP"))
    parser.add_argument(
        "--arm", nargs=2, default=("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump"), metavar=("CC", "OBJDUMP")
    )
    options = parser.parse_args()
    print("| inner loop | AVX2, a vector of 8 | NEON, a vector of 4 | ratio |\n|---|---|---|---|")
    for name, avx2, neon in table(options.x86, options.arm):
        print(f"| {name} | {avx2:.1f} | {neon:.1f} | {neon / avx2:.2f}{'' if neon <= GOAL * avx2 else ' (over)'} |")


if __name__ == "__main__":
    sys.exit(main())
