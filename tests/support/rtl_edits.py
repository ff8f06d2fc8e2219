"""Designs of others and of examples/rtl, edited: simulated on vectors, and judged by `softnum vectors check`.

SOFTNUM_RTL names the folder of the designs of others. python -m tests.support.rtl_edits writes into
tests/data/rtl_edits.toml what check says.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from softnum.vectors import UnitSpec, VectorSpec, check, plan, write

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, BENCHES, RECORD = ROOT / "examples/rtl", ROOT / "tests/data/rtl", ROOT / "tests/data/rtl_edits.toml"
_MODES = {"nearest_even": 0, "toward_zero": 1, "down": 2, "up": 3, "nearest_away": 4}


@dataclass(frozen=True)
class Design:
    """A design, its bench, and what its vectors are of."""

    bench: str
    sources: tuple[str, ...]
    spec: object
    count: int = 6000
    parameters: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # any_nan, ignore_flags: of the design as it is
    module: str | None = None
    foreign: bool = False
    verilator: bool = False
    normal: bool = False  # whether operands and results are zeros or normal numbers alone


def _own(name, spec, **options):
    return Design(f"tb_{name}.v", (f"{name}.v",), spec, **options)


def _stb_ack(name, op):
    spec = VectorSpec.make(op, "binary32")
    return Design(
        "tb_stb_ack.v", (f"dawsonjon-fpu/{name}/{name}.v",), spec, 4000, rules=("any_nan", "ignore_flags"), module=name,
        foreign=True,
    )  # fmt: skip


def _bf16(name, op):
    spec = VectorSpec.make(op, "bfloat16", rounding="toward_zero", overflow="saturate")
    files = (f"bf16_{name}", "booth_unsigned_mul", "lzc")
    return Design(
        "tb_bf16.sv", tuple(f"essenceia-bfloat16/src/{f}.v" for f in files), spec, 40_000, rules=("ignore_flags",),
        module=f"bf16_{name}", foreign=True, normal=True,
    )  # fmt: skip


_FMA = (
    "common_cells/src/cf_math_pkg.sv", "common_cells/src/lzc.sv", "cvfpu/src/fpnew_pkg.sv",
    "cvfpu/src/fpnew_classifier.sv", "cvfpu/src/fpnew_rounding.sv", "cvfpu/src/fpnew_fma.sv",
)  # fmt: skip
_DIVIDE = (
    "common_cells/src/cf_math_pkg.sv", "common_cells/src/lzc.sv",
    *(f"fpu_div_sqrt_mvp/hdl/{name}.sv" for name in (
        "defs_div_sqrt_mvp", "control_mvp", "iteration_div_sqrt_mvp", "norm_div_sqrt_mvp", "nrbd_nrsc_mvp",
        "preprocess_mvp", "div_sqrt_top_mvp",
    )),
)  # fmt: skip
_MAC = UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=32)
_DOT = UnitSpec.make("dot", "FusedDotUnit(4, 23, 'binary32', operand='binary16')", length=4, with_c=True)
DESIGNS = {
    "fp8_multiply": _own("fp8_multiply", VectorSpec.make("multiply", "e4m3fn"), count=1 << 16),
    "fp8_multiply_e5m2": _own(
        "fp8_multiply", VectorSpec.make("multiply", "e5m2"), count=1 << 16, parameters=("EXP=5", "MAN=2", "IEEE=1")
    ),
    "fp8_multiply_binary16": _own(
        "fp8_multiply", VectorSpec.make("multiply", "binary16"), count=1 << 16, parameters=("EXP=5", "MAN=10", "IEEE=1")
    ),
    "fp8_mac": _own("fp8_mac", _MAC, count=20_000),
    "fused_dot4": _own("fused_dot4", _DOT),
    "stochastic_round": Design(
        "tb_stochastic_round.v", ("stochastic_round.v", "lfsr.v"),
        VectorSpec.make("convert", "e6m9", out_fmt="e5m2", rounding="stochastic", stochastic_bits=8),
    ),
    "adder": _stb_ack("adder", "add"),
    "multiplier": _stb_ack("multiplier", "multiply"),
    "divider": _stb_ack("divider", "divide"),
    "bf16_add": _bf16("add", "add"),
    "bf16_mul": _bf16("mul", "multiply"),
    "fpnew_fma": Design(
        "tb_fma.sv", _FMA, VectorSpec.make("fma", "binary16"), 20_000, foreign=True, verilator=True
    ),
    "div_sqrt": Design(
        "tb_divide.sv", _DIVIDE, VectorSpec.make("divide", "binary32"), 20_000, foreign=True, verilator=True,
        rules=("ignore_flags",),
    ),
}  # fmt: skip


def rtl_folder() -> Path | None:
    """The designs of others, or None."""
    named = os.environ.get("SOFTNUM_RTL")
    return Path(named) if named else None


def _texts(design: Design, edits, folder: Path) -> list[Path]:
    """The design's files, edited, in the folder; ValueError where an edit finds nothing to replace."""
    home = rtl_folder() if design.foreign else EXAMPLES
    texts = {name: (home / name).read_text() for name in design.sources}
    for old, new in edits:
        places = [name for name, text in texts.items() if old in text]
        if len(places) != 1:
            raise ValueError(f"{old!r} stands in {len(places)} files of the design")
        texts[places[0]] = texts[places[0]].replace(old, new)
    out = []
    for name, text in texts.items():
        path = folder / Path(name).name
        path.write_text(text)
        out.append(path)
    return out


def built(name: str, edits, folder: Path, bench=()) -> list[str]:
    """The words that run the edited design."""
    design = DESIGNS[name]
    sources = _texts(design, edits, folder)
    home = EXAMPLES if (EXAMPLES / design.bench).exists() else BENCHES
    text = (home / design.bench).read_text()
    for old, new in bench:
        if old not in text:
            raise ValueError(f"{old!r} does not stand in the bench")
        text = text.replace(old, new)
    path = folder / design.bench
    path.write_text(text)
    top = design.bench.partition(".")[0]
    if design.verilator:
        include = rtl_folder() / "common_cells/include"
        words = [
            "verilator", "--binary", "-O1", "-fno-dfg", "-Wno-fatal", "-Wno-WIDTH", "-Wno-UNOPTFLAT",
            f"-I{EXAMPLES}", f"-I{include}", "--top-module", top, *sources, path, "--Mdir", folder / "obj",
        ]  # fmt: skip
        _run(words)
        return [str(folder / "obj" / f"V{top}")]
    defined = [f"-DDESIGN={design.module}"] if design.module else []
    stated = [f"-P{top}.{p}" for p in design.parameters]
    language = "-g2012" if path.suffix == ".sv" else "-g2005"
    _run(
        ["iverilog", language, *defined, "-I", EXAMPLES, "-s", top, *stated, "-o", folder / "bench.vvp", path, *sources]
    )
    return ["vvp", "-n", str(folder / "bench.vvp")]


def _run(words) -> None:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {(done.stdout + done.stderr)[-2000:]}")


def vectors_of(design: Design, folder: Path, mode: str | None = None, seed: int = 1) -> Path:
    """A file of vectors."""
    spec = design.spec
    if mode is not None:
        spec = VectorSpec.make(spec.op, spec.formats, rounding=mode, overflow=spec.overflow)
    path = folder / "vectors.txt"
    write(plan(spec, count=design.count, seed=seed), path)
    if design.normal:
        path.write_text("".join(line for line in path.read_text().splitlines(True) if _kept(line, spec)))
    return path


def _kept(line: str, spec) -> bool:
    """Whether a line has zeros and normal numbers alone; the header without the number of vectors."""
    if line.startswith("#"):
        return not line.startswith("# vectors:")
    fmt, codes = spec.out_fmt, [int(word, 16) for word in line.split()[:-1]]
    small, top = 1 << fmt.mantissa_bits, (1 << fmt.exponent_bits) - 1
    sizes = [code & ~(1 << (fmt.bits - 1)) for code in codes]
    return all(not size or (size >= small and size >> fmt.mantissa_bits < top) for size in sizes) and (
        not int(line.split()[-1], 16) & 2
    )


def answered(words, vectors: Path, answers: Path, mode: str = "nearest_even") -> None:
    """Run the design."""
    _run([*words, f"+in={vectors}", f"+out={answers}", f"+mode={_MODES.get(mode, 0)}"])


def report_of(edit: dict, folder: Path):
    """What check says of a design that is edited."""
    design = DESIGNS[edit["design"]]
    words = built(edit["design"], edit.get("edits", ()), folder, edit.get("bench", ()))
    vectors = vectors_of(design, folder, edit.get("mode"))
    answered(words, vectors, folder / "answers.txt", edit.get("mode", "nearest_even"))
    rules = {*design.rules, *(o.removeprefix("--").replace("-", "_") for o in edit.get("options", ()))}
    return check(folder / "answers.txt", **dict.fromkeys(rules, True))


def said(report) -> list[str]:
    """The causes that a report states and is sure of."""
    return [f"{c.cause}: {c.detail}" if c.detail else c.cause for c in report.causes if c.confident]


def causes_of(lines: list[str]) -> set[str]:
    return {line.partition(":")[0] for line in lines}


def edits() -> list[dict]:
    return tomllib.loads(RECORD.read_text())["edit"]


def main(names) -> None:
    """Write what check says of each edit, or of those whose design or name is given, into the record."""
    right = 0
    for number, edit in enumerate(edits()):
        if names and not {edit["design"], edit["name"]} & set(names):
            continue
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
            try:
                report = report_of(edit, Path(folder))
            except (RuntimeError, ValueError) as error:
                print("FAILED", edit["design"], edit["name"], error)
                continue
        lines = said(report)
        good = causes_of(lines) == set(edit["label"])
        right += good
        print("right" if good else "WRONG", edit["design"], "|", edit["name"], edit["label"], lines, flush=True)
        if not good:
            print("\n".join("      " + line for line in str(report).splitlines()[-60:] if not line.startswith("    ")))
        _record(number, lines)
    print(right, "right")


def _record(number: int, lines: list[str]) -> None:
    head, *tables = RECORD.read_text().split("[[edit]]\n")
    table = re.sub(r"said = .*\n", "", tables[number]).rstrip("\n")
    shown = ", ".join('"' + line.replace('"', "'") + '"' for line in lines)
    tables[number] = f"{table}\nsaid = [{shown}]\n\n"
    tables[-1] = tables[-1].rstrip("\n") + "\n"
    RECORD.write_text("[[edit]]\n".join([head, *tables]))


if __name__ == "__main__":
    main(sys.argv[1:])
