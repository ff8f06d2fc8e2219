"""Tables in Markdown, made by softnum itself."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections import Counter
from dataclasses import fields
from pathlib import Path

import numpy as np

import softnum as sn
from softnum.formats.aliases import ALIASES
from softnum.formats.modes import NAN_PROFILES, OVERFLOW_RULES, ROUNDING_MODES
from softnum.formats.operation_names import ELEMENTARY
from softnum.mac.presets import KINDS
from softnum.vectors import DIALECTS

ROOT = Path(__file__).resolve().parents[2]


def table(header, rows, align: str = "") -> str:
    """A pipe table; align: a letter of l, r, c for each column."""
    marks = {"l": ":--", "r": "--:", "c": ":-:"}
    align = align or "l" * len(header)
    lines = [list(map(str, header)), [marks[a] for a in align], *(list(map(str, row)) for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines) + "\n"


def number(x) -> str:
    """A value, exactly: an integer or decimal of few digits, else with its power of two."""
    if x != x or x in (float("inf"), float("-inf")) or x == 0:
        return f"{float(x):g}"
    numerator, denominator = x.as_integer_ratio()
    if abs(numerator.bit_length() - denominator.bit_length()) < 1000:  # within binary64
        shown = repr(float(x)).removesuffix(".0")
        if len(shown) <= 9 and "e" not in shown:
            return shown
    sign, numerator = "-" if numerator < 0 else "", abs(numerator)
    zeros = (numerator & -numerator).bit_length() - 1
    exponent = zeros - (denominator.bit_length() - 1)
    odd = numerator >> zeros
    if odd > 4096 and odd & (odd + 1) == 0:
        length = odd.bit_length() - 1
        return f"{sign}(2 - 2^-{length}) * 2^{exponent + length}"
    return f"{sign}{odd} * 2^{exponent}" if odd > 1 else f"{sign}2^{exponent}"


def _float_names() -> list[str]:
    return [name for name in sn.format_names() if isinstance(sn.format(name), sn.FloatFormat)]


def formats() -> str:
    """The registered formats and their facts."""
    rows = []
    for name in _float_names():
        f = sn.format(name)
        widths = f"{'1, ' if f.signed else ''}{f.exponent_bits}, {f.mantissa_bits}"
        nans = {"ieee": "many", "none": "none"}.get(f.nan_codes, f"`0x{f.nan_code:X}`" if f.has_nan else "none")
        if f.nan_codes == "all_ones" and f.signed:
            nans += f", `0x{f.nan_code | 1 << (f.bits - 1):X}`"
        rows.append(
            (
                f"`{name}`", f.bits, widths, f.bias, number(f.max), number(f.smallest_normal),
                number(f.smallest_subnormal), "yes" if f.infinities else "no", nans,
                "yes" if f.negative_zero else "no",
            )
        )  # fmt: skip
    header = (
        "name", "bits", "sign, exponent, fraction", "bias", "largest", "smallest normal", "smallest", "infinities",
        "NaN", "-0",
    )  # fmt: skip
    return table(header, rows, "lrlrrrrccc")


def small_formats() -> list[str]:
    """The named formats of up to eight bits, and one of each family that has no names."""
    return [name for name in _float_names() if sn.format(name).bits <= 8] + ["binary8p3se", "q4.4"]


def values() -> str:
    """Every value of the small formats."""
    return "".join(f"## {name}\n\n{values_of(name)}" for name in small_formats())


def values_of(name: str) -> str:
    """Every value of a format: a row for each exponent field, a column for each fraction."""
    f = sn.format(name)
    signed = f.signed
    m = f.mantissa_bits if f.kind == "float" and f.mantissa_bits else 3
    codes = 1 << (f.bits - signed)
    all_values = sn.decode(np.arange(1 << f.bits, dtype=f.storage_dtype), f, object)
    columns = min(1 << m, codes)
    rows = []
    for first in range(0, codes, columns):
        rows.append((f"`0x{first:02X}`", *(number(v) for v in all_values[first : first + columns])))
    text = table(("code", *(f"+{i:X}" for i in range(columns))), rows, "l" + "r" * columns)
    if signed:
        half = all_values[codes:]
        odd = [
            f"`0x{codes + i:02X}` is {number(v)}"
            for i, v in enumerate(half)
            if not (v == -all_values[i] or (v != v and all_values[i] != all_values[i]))
        ]
        rest = f", but {', '.join(odd)}" if odd else ""
        zero = " -0 included" if f.negative_zero else ""
        text += f"Codes from `0x{codes:02X}` on: the same with a minus sign{',' * bool(zero)}{zero}{rest}.\n\n"
    return text


def overflow() -> str:
    """What is too large becomes, by format, rule and mode."""
    rows = []
    for name in ("e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "binary8p3sf", "q4.4"):
        f = sn.format(name)
        for rule in OVERFLOW_RULES:
            cells = []
            for x, mode in ((1e9, "nearest_even"), (1e9, "toward_zero"), (float("inf"), "nearest_even")):
                try:
                    cells.append(number(float(sn.quantize(x, f, rounding=mode, overflow=rule))))
                except ValueError as error:
                    cells.append("error" if "no code" in str(error) else "-")
            if cells[0] != "-":
                default = " (default)" if rule == ("saturate" if f.kind == "fixed" else "infinity") else ""
                rows.append((f"`{name}`", number(f.max), f"`{rule}`{default}", *cells))
    header = ("format", "largest", "rule", "10^9, `nearest_even`", "10^9, `toward_zero`", "infinity")
    return table(header, rows, "lrlrrr")


def nan_profiles() -> str:
    """What the profiles deliver, in binary16."""
    quiet, signaling, one, inf, other = 0xFE01, 0x7D03, 0x3C00, 0x7C00, 0x7E55
    cases = [
        ("inf - inf", lambda n: sn.subtract(inf, inf, "binary16", nan=n, return_flags=True)),
        ("`FE01` + 1", lambda n: sn.add(quiet, one, "binary16", nan=n, return_flags=True)),
        ("`FE01` + `7D03`", lambda n: sn.add(quiet, signaling, "binary16", nan=n, return_flags=True)),
        ("fma(`FE01`, 1, `7E55`)", lambda n: sn.fma(quiet, one, other, "binary16", nan=n, return_flags=True)),
        ("fma(inf, 0, `7E55`)", lambda n: sn.fma(inf, 0, other, "binary16", nan=n, return_flags=True)),
    ]
    rows = []
    for text, run in cases:
        cells = []
        for profile in NAN_PROFILES:
            code, flags = run(profile)
            cells.append(f"`{int(code):04X}`{', INVALID' if int(flags) & sn.Flags.INVALID else ''}")
        rows.append((text, *cells))
    return table(("operation", *(f"`{name}`" for name in NAN_PROFILES)), rows)


def modes() -> str:
    """Rounding modes: names, and what becomes of a few numbers in integers."""
    short = {"nearest_even": "rne", "nearest_away": "rna", "toward_zero": "rtz", "up": "rup", "down": "rdn"}
    short |= {"to_odd": "rto", "stochastic": "sr"}
    inputs = (2.5, 3.5, 2.25, -2.5, -2.75)
    rows = []
    for mode in ROUNDING_MODES:
        if mode.startswith("stochastic"):
            continue
        got = sn.quantize(np.array(inputs), "q5.0", rounding=mode)
        rows.append((f"`{mode}`", f"`{short[mode]}`" if mode in short else "", *(f"{v:g}" for v in got)))
    return table(("mode", "short", *map(str, inputs)), rows, "ll" + "r" * len(inputs))


def aliases() -> str:
    """Others' names of formats, rounding modes and operations."""
    rows: dict[tuple[str, str], list[str]] = {}
    for alias in ALIASES:
        rows.setdefault((alias.kind, alias.name), []).append(f"`{alias.alias}` ({alias.whose})")
    return table(("of", "softnum", "others"), [(kind, f"`{name}`", ", ".join(o)) for (kind, name), o in rows.items()])


def stochastic() -> str:
    """How many of the 2**r random words round up, in the stochastic modes."""
    r = 2
    words = np.arange(1 << r, dtype=np.uint32)
    sixteenths = (0, 1, 2, 3, 4, 6, 8, 12, 15)
    rows = []
    for mode in (m for m in ROUNDING_MODES if m.startswith("stochastic")):
        for sign in (1, -1):
            cells = []
            for t in sixteenths:
                x = np.full(words.shape, sign * (1 + t / 16))
                got = sn.quantize(x, "q4.0", rounding=mode, stochastic_bits=r, random_bits=words)
                cells.append(int((got == sign * 2).sum()))
            rows.append((f"`{mode}`", "+" if sign > 0 else "-", *cells))
    return table(("mode", "sign", *(f"{t}/16" for t in sixteenths)), rows, "lc" + "r" * len(sixteenths))


def presets() -> str:
    """The units of hardware, with how many of their properties rest on what."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name in sn.units():
        unit = sn.unit(name)
        kinds = [e.kind for e in unit.evidence.values()]
        counts = ", ".join(f"{kinds.count(k)} {k}" for k in KINDS if k in kinds)
        rows.setdefault((str(unit), counts), []).append(f"`{name}`")
    return table(("names", "computes", "properties"), [(", ".join(n), f"`{s}`", c) for (s, c), n in rows.items()])


#: what the parts of a preset's name before its operand stand for
_MACHINES = {
    "nvidia": "NVIDIA tensor cores", "riscv_rvbna": "RISC-V, RVBNA", "arm": "Arm",
    "nvidia_turing": "NVIDIA Turing", "nvidia_ada": "NVIDIA Ada", "nvidia_rtx_blackwell": "NVIDIA RTX Blackwell",
    "nvidia_tcgen05": "NVIDIA B200, tcgen05", "x86_avx512": "x86, VDPBF16PS", "x86_vnni": "x86, VPDPBUSD",
    "x86_amx": "Intel AMX", "ibm_fp8": "IBM, Wang et al. 2018", "int8": "bytes into 32 bits",
    **{f"nvidia_{gpu}": f"NVIDIA {gpu.upper()}" for gpu in ("v100", "a100", "a2", "l40s", "h100", "h200", "b200")},
    **{f"amd_cdna{n}": f"AMD CDNA{n}" for n in (1, 2, 3)},
}  # fmt: skip


def _machine(name: str) -> str:
    known = [part for part in _MACHINES if name.startswith(part + "_")]
    return _MACHINES[max(known, key=len)] if known else "no machine: a standard's formats"


def _in_short(unit) -> str:
    """A unit by its family and the parameters that are not as usual."""
    shown = []
    for f in fields(unit):
        value = getattr(unit, f.name)
        if f.name in ("operand", "accumulator", "output", "overflow") or value == f.default or value is None:
            continue
        value = f"{len(value)} in an order of their own" if isinstance(value, tuple) else str(value)
        shown.append(f"{f.name.replace('_', ' ')} {value}")
    a, b = unit.operand
    formats = f"{a} x {b} -> {unit.result}" if a != b else f"{a} -> {unit.result}"
    return ", ".join([f"`{type(unit).__name__}`", formats, *shown])


def _kinds(unit) -> str:
    """Which properties rest on what."""
    by_kind = {kind: [name for name, e in unit.evidence.items() if e.kind == kind] for kind in KINDS}
    return "; ".join(f"*{kind}* {', '.join(names).replace('_', ' ')}" for kind, names in by_kind.items() if names)


_GEMM = re.compile(r"GEMM \d+\^3, (?P<preset>\w+)")


def _speeds() -> dict[str, float]:
    """By preset, times of sgemm's that a product takes, as `benchmarks` recorded them; {} where there is no record.

    Rows of a preset alone: not those into another output or by another choice, whose names go on after the preset's.
    """
    path = ROOT / "benchmarks/records/speed.json"
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    found = ((_GEMM.fullmatch(row["name"]), row["ratio"]) for row in rows)
    return {match["preset"]: ratio for match, ratio in found if match}


def machines() -> str:
    """All presets: machine, unit, evidence, how many recorded and computed rows are compared, and speed if recorded."""
    counts = json.loads((ROOT / "tests/data/compared_rows.json").read_text(encoding="utf-8"))["presets"]
    speeds = _speeds()
    rows: dict[tuple, list[str]] = {}
    for name in sn.units():
        unit, compared = sn.unit(name), counts.get(name, {})
        of = tuple(f"{compared[x]:,}" if x in compared else "-" for x in ("hardware", "mma_sim"))
        speed = (f"{speeds[name]:.3g}" if name in speeds else "-",) if speeds else ()
        rows.setdefault((_machine(name), _in_short(unit), _kinds(unit), *of, *speed), []).append(f"`{name}`")
    header = ["preset", "machine", "unit", "evidence", "rows of hardware", "rows of MMA-Sim"]
    header += ["time, in sgemms"] if speeds else []
    return table(header, [(", ".join(names), *row) for row, names in rows.items()], "llll" + "r" * (len(header) - 4))


def evidence(name: str) -> str:
    """What each property of a preset rests on."""
    rows = [(f"`{key}`", e.kind, e.source) for key, e in sn.unit(name).evidence.items()]
    return table(("property", "is", "source"), rows)


def array_functions() -> str:
    """The NumPy functions on Arrays."""
    import softnum.mac.products.reductions  # noqa: F401  has those of sums
    from softnum.ops.numpy_functions import FUNCTIONS

    names = sorted({f"`{f.__module__.removeprefix('numpy.')}.{f.__name__}`".replace("`numpy.", "`") for f in FUNCTIONS})
    return ", ".join(names) + ".\n\n"


def elementary_functions() -> str:
    """The names of the elementary functions."""
    return ", ".join(f"`{name}`" for name in ELEMENTARY) + ".\n\n"


def tile_functions() -> str:
    """The functions of Tile and the rules of their gradients; constants of many digits by their first."""
    from softnum.tile.functions import FUNCTIONS, OPERATORS

    def shown(rule):
        return "none" if rule is None else "`" + re.sub(r"(\d\.\d{6})\d+", r"\1...", rule) + "`"

    entries = {{"negate": "-a"}.get(name, f"a {name} b"): f for name, f in OPERATORS.items()}
    entries |= {f"{name}({', '.join('abc'[: f.operands])})": f for name, f in FUNCTIONS.items()}
    rows = [(f"`{call}`", ", ".join(map(shown, f.rules))) for call, f in entries.items()]
    return table(("y", "gradients of the operands"), rows)


# -- guarantees --------------------------------------------------------------------------------------------------------
def rules() -> dict[str, list[str]]:
    """The rules of tests/core/test_semantics.py and their tests, read without running it."""
    tree = ast.parse((ROOT / "tests/core/test_semantics.py").read_text(encoding="utf-8"))
    names: dict = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("HERE", "PLACES"):
            exec(compile(ast.Module([node], []), "test_semantics", "exec"), names)
    return names["PLACES"]


def docstring_of(place: str) -> str | None:
    """The docstring of a test, "" if it has none, None if there is no such test; place: file::name."""
    file, name = place.split("::")
    path = ROOT / "tests" / file
    if not path.is_file():
        return None
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
    return None


def guarantees() -> str:
    """The rules, group by group, with what their tests say and where they are."""
    groups: dict[str, list] = {}
    for rule, places in rules().items():
        group, _, text = rule.partition(": ")
        said = next((words for p in places if (words := docstring_of(p))), "").split("\n\n")[0]
        said = re.sub(r"\s+", " ", said.strip()).replace("`", "").replace("*", r"\*").replace("<", "&lt;")
        where = ", ".join(f"`{p.removeprefix('core/')}`" for p in places)
        groups.setdefault(group, []).append((text.replace("*", r"\*"), said, where))
    return "".join(
        f"## {group.capitalize()}\n\n"
        + table(("rule", "in words", "tests, in `tests/core` or the folder that is named"), rows)
        for group, rows in groups.items()
    )


# -- interfaces --------------------------------------------------------------------------------------------------------
_INCLUDE = re.compile(r'#include "([\w/]+\.h)"')
_FUNCTION = re.compile(r"^SN_FN (sn_\w+ sn_\w+\([^{]*\)) \{", re.MULTILINE)
#: further ones that stand on their own
_ALONE = (
    "sn_unpack", "sn_philox", "sn_philox_key", "sn_total_order", "sn_classify", "sn_next", "sn_set_sign",
)  # fmt: skip


def c_functions() -> str:
    """The declarations of the operations on codes, header by header."""
    folder, seen, text = Path(sn.get_include()), [], ""

    def visit(name: str) -> None:
        if name not in seen:
            source = (folder / name).read_text(encoding="utf-8")
            for part in _INCLUDE.findall(source):
                visit(part)
            seen.append(name)

    visit("softnum/softnum.h")
    for name in seen:
        found = []
        for function in _FUNCTION.findall((folder / name).read_text(encoding="utf-8")):
            function = " ".join(function.split())
            of_codes = function.startswith("sn_u64") and "sn_u64 a" in function and "sn_env *env" in function
            if (of_codes and "_unit" not in function) or function.split("(")[0].split()[1] in _ALONE:
                found += textwrap.wrap(function + ";", 88, subsequent_indent=" " * (function.index("(") + 1))
        if found:
            text += f"From `{name}`:\n\n```c\n" + "\n".join(found) + "\n```\n\n"
    return text


def dialects() -> str:
    """The dialects of vector files."""
    rows = [
        (
            f"`{d.name}`", d.summary.replace("$", "\\$"), ", ".join(f"`{s}`" for s in d.suffixes) or "none",
            "yes" if d.header else "no",
        )
        for d in DIALECTS.values()
    ]  # fmt: skip
    return table(("dialect", "what it is", "endings", "header"), rows)


def commands() -> str:
    """What each command says with --help."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from softnum.cli import build_app

    app = build_app()
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})

    def said(command, *words: str) -> str:
        result = runner.invoke(app, [*words, "--help"], prog_name="softnum")
        assert result.exit_code == 0, result.output
        lines = "\n".join(line.rstrip() for line in result.output.strip().splitlines())
        parts = (said(part, *words, name) for name, part in getattr(command, "commands", {}).items())
        return f"## {' '.join(('softnum', *words))}\n\n```text\n{lines}\n```\n\n" + "".join(parts)

    return said(get_command(app))


# -- peers -------------------------------------------------------------------------------------------------------------
def devices() -> str:
    """The devices that times are estimated for, each with the sources of its figures."""
    from softnum.tta import devices as known

    rows, sources = [], []
    for each in known().values():
        numbers, asked = [], each.rent or each.price
        for part in each.source.split("; ") + ([asked.source] if asked else []):
            if part not in sources:
                sources.append(part)
            if sources.index(part) + 1 not in numbers:
                numbers.append(sources.index(part) + 1)
        memory = "" if each.memory is None else f"{each.memory / 1e9:g}"
        money = f"{each.rent.dollars:.4g}/h" if each.rent else f"{each.price.dollars:,.0f}" if each.price else ""
        money += f" ({asked.date})" if asked else ""
        peaks = ", ".join(f"{name} {flops / 1e12:g}" for name, flops in each.peaks.items())
        watts = "" if each.watts is None else f"{each.watts:g}"
        marks = ", ".join(map(str, numbers))
        rows.append((f"`{each.name}`", each.title, peaks, memory, f"{each.bandwidth / 1e9:g}", watts, money, marks))
    header = ("name", "device", "peak, TFLOP/s dense", "GB", "GB/s", "W", "$", "source")
    listed = "".join(f"{i}. {text}\n" for i, text in enumerate(sources, 1))
    return table(header, rows, "lllrrrrl") + listed + "\n"


def peer_versions() -> str:
    """The versions of what is compared."""
    from benchmarks import peers

    said = ", ".join(f"{name} {version}" for name, version in peers.versions().items())
    return f"Compared when this page was built: {said}.\n\n"


def peer_agreements() -> str:
    """How many results differ, counted now."""
    from benchmarks import peers

    rows = [(r.what, r.peer, f"{r.compared:,}", f"**{r.differ:,}**" if r.differ else 0) for r in peers.agreements()]
    return table(("results", "peer", "compared", "differ"), rows, "llrr")


def peer_differences() -> str:
    """The questions that are answered differently, asked now."""
    from benchmarks import peers

    rows = [(r.what, r.peer, r.peer_result, r.softnum_result, r.why) for r in peers.differences()]
    return table(("question", "peer", "gives", "softnum gives", "why"), rows)


def peer_speeds() -> str:
    """The same work, timed now."""
    from benchmarks import peers

    rows = [(r.name.removeprefix("peer: "), f"{r.speed:.2g} {r.speed_unit}", f"{r.ratio:.2g}") for r in peers.rows()]
    return table(("work of the peer", "its speed", "its time / softnum's"), rows, "lrr")


def _gpu() -> dict:
    """What was measured on a GPU: a kept file of bench_gpu.py."""
    from benchmarks.bench_gpu import RECORDS

    return json.loads((RECORDS / "nvidia_h200.json").read_text())


def gpu_machine() -> str:
    """What the kept figures of a GPU were measured on."""
    about = _gpu()["about"]
    versions = ", ".join(
        f"{name} {about[name]}" for name in ("driver", "CUDA", "python", "numba", "numba-cuda", "numpy")
    )
    chip = f"{about['multiprocessors']} multiprocessors at {about['clock_MHz'] / 1000:g} GHz"
    machine = f"{about['device']} (compute capability {about['capability']}, {chip})"
    host = f"of a host with {about['host_cores']} cores"
    return f"Measured on {about['date']}, on one {machine} {host}: {versions}.\n\n"


def gpu_products() -> str:
    """Products on an H200, beside what the instructions allow and the goals."""
    from benchmarks.bench_gpu import H200, PER_OUTPUT, PLAIN, cases, limit

    measured = {figure["name"].partition(", ")[2]: figure for figure in _gpu()["figures"]}
    rows = []
    for case in cases():
        names = {"issue": "in all", "ALU": "of the ALU", "shared": "cycles of shared memory"}
        counts = ", ".join(f"{count:g} {names[pipe]}" for pipe, count in (case.instructions or {}).items())
        reachable = limit(case.instructions, *H200) if counts else None
        speed, against = measured[case.name]["value"], measured[case.name]["against"]
        rows.append((
            case.name, counts, f"{reachable:.2g}" if counts else "", "" if case.goal is None else f"{case.goal:g}",
            f"{speed:.3g}", f"{speed / reachable:.0%}" if counts else "",
            *(f"{against[name]:.2g}" if name in against else "" for name in (PLAIN, PER_OUTPUT)),
        ))  # fmt: skip
    header = (
        "product", "instructions of a multiply-add", "limit", "goal", "measured", "of the limit", "x float32",
        "x a thread an output",
    )  # fmt: skip
    return table(header, rows, "llrrrrrr")


def gpu_quantize() -> str:
    """quantize on an H200, against a copy of the same array."""
    rows = []
    for figure in _gpu()["figures"]:
        if figure["unit"] == "GB/s":
            rows.append((f"{figure['name']}: {figure['value']:.0f} GB/s read and written", "", ""))
        elif figure["unit"] == "of copy":
            goal = "" if figure["goal"] is None else f"{figure['goal']:.0%}"
            rows.append((figure["name"], f"{figure['value']:.0%}", goal))
    return table(("work", "of the copy's speed", "goal"), rows, "lrr")


def gpu_training() -> str:
    """Steps of training on an H200, against the CPU of the same machine."""
    figures = [figure for figure in _gpu()["figures"] if figure["unit"] == "steps/s"]
    rows = [
        (
            figure["name"].removeprefix("training step, "), f"{figure['value']:.3g}",
            f"{figure['value'] / figure['against']['the CPU']:.3g}", f"{figure['against']['the CPU']:.2g}",
        )
        for figure in figures
    ]  # fmt: skip
    cores = _gpu()["about"]["host_cores"]
    return table(("training", "steps/s", f"on {cores} cores of the CPU", "times as fast"), rows, "lrrr")


def gpu_torch() -> str:
    """Steps of PyTorch's models on an H100, against the CPU of the same machine and PyTorch's own."""
    from benchmarks.bench_gpu import FLOAT32, RECORDS

    kept = json.loads((RECORDS / "nvidia_h100.json").read_text())
    rows = [
        (
            figure["name"].removeprefix("PyTorch step, "), f"{1e3 / figure['value']:.3g}",
            f"{figure['against']['the CPU']:.2g}", f"{1 / figure['against'][FLOAT32]:.2g}",
        )
        for figure in kept["figures"]
    ]  # fmt: skip
    about = kept["about"]
    busy = " and ".join(f"{x['gpu_ms']:g} of {x['step_ms']:.0f} ms ({x['name']})" for x in kept["profiled"])
    said = (
        f"Measured on {about['date']}, on one {about['device']} of a host with {about['host_cores']} cores, PyTorch "
        f"{about['torch']}. Of a step the GPU is busy {busy}.\n\n"
    )
    header = "model, arithmetic", "ms a step", f"x {about['host_cores']} cores", "times PyTorch's float32 there"
    return said + table(header, rows, "lrrr")


def gpu_run() -> str:
    """How long `make gpu` took on an H200."""
    run = _gpu()["run"]
    minutes, seconds = divmod(run["tests_s"], 60)
    return (
        f"On one H200, {run['tests']:,} tests took {minutes} min {seconds} s in {run['processes']} processes; memcheck "
        f"and racecheck of {run['sanitizer_tests']} of them {run['sanitizers_s']} s; the products' figures "
        f"{run['products_s']} s. All bits were the CPU's, memcheck found no error and racecheck no hazard.\n\n"
    )


def gpu_recording() -> str:
    """What was recorded on an H200."""
    manifest = json.loads((ROOT / "tests/data/nvidia_h200/manifest.json").read_text())
    kinds = Counter(entry["instructions"][0]["kind"] for entry in manifest["arithmetics"])
    with np.load(ROOT / "tests/data/nvidia_h200" / manifest["functions"]["file"]) as data:
        functions = len(data.files) - 1
    chip = f"{manifest['source']} (compute capability {manifest['capability']}, driver {manifest['driver']})"
    other = json.loads((ROOT / "tests/data/nvidia_h100/manifest.json").read_text())
    same, again = other["compared"], manifest["again"]
    return (
        f"Recorded on {manifest['date']}, on one {chip}: {kinds['mma']} shapes and types of `mma.sync` and "
        f"{kinds['wgmma']} of `wgmma`, {manifest['rows']:,} rows of them and {manifest['chains']:,} chains of four, "
        f"and {functions} functions. On {again['date']} the rows were computed again, and {again['results']:,} results "
        f"of fresh operands with them: {again['differ'] or 'none'} differs from its instruction's unit. One "
        f"{other['source']} computed all of the rows too, on {other['date']}, and "
        f"{same['differ'] or 'none'} of its results differ; {other['rows']:,} rows and {other['chains']} chains of "
        f"{len(other['arithmetics'])} instructions of bytes are its own.\n\n"
    )


def demonstration(study: str, name: str) -> str:
    """What the kept records of an experiment say."""
    from benchmarks.demonstrations import plans, results

    return table(*results.table(*_records(plans, results, study, name)), "lrrrr")


def differences(study: str, name: str, against: str = "") -> str:
    """What designs of an experiment differ by from one of them, its first if none is named, of runs of the same
    seeds."""
    from benchmarks.demonstrations import plans, results

    return table(*results.differences(*_records(plans, results, study, name), against), "lrrr")


def _records(plans, results, study: str, name: str) -> tuple:
    experiment = next(part for part in plans.experiments(study) if part.name == name)
    found = results.curves(study, experiment)
    if not found:
        raise ValueError(f"no records of {study}, {name} are kept in {results.RECORDS}")
    return experiment, found


def long_sums() -> str:
    """The errors of long sums in (1,6,9)."""
    from benchmarks.demonstrations import sums

    lengths = sums.LENGTHS[::2]
    return table(("sum", *lengths), sums.table_rows(sums.lines(lengths)), "l" + "r" * len(lengths))


def promotion() -> str:
    """The errors of FP8 products with K = 4096 in a tensor core, in percent."""
    from benchmarks.demonstrations import promotion as study

    header = ("K = 4096", "normal: mean", "largest, %", "uniform: mean", "largest, %")
    return table(header, study.table_rows(study.lines([4096]), 0), "lrrrr")


def two_networks(network: str, variant: str) -> str:
    """What results.json of the kept study says of one network, with one set of times."""
    return _study(Path(__file__).parents[1] / "two-networks" / network / "results.json", variant)


def shipped_study(name: str, variant: str) -> str:
    """What the records of a study that ships say, with one set of times."""
    import io
    import tempfile

    from rich.console import Console

    from softnum.train.studies.shipped import open_study

    with tempfile.TemporaryDirectory() as folder:
        open_study(name, folder, console=Console(file=io.StringIO()))
        (results,) = Path(folder).glob("*/results.json")
        return _study(results, variant)


def _study(file: Path, variant: str) -> str:
    """The table of a study's results with one set of times."""
    from softnum.tta import read_results
    from softnum.tta.quantities import format_seconds

    results = read_results(file)
    found = next(v for v in results["variants"] if v["label"] == variant.replace("-", " "))

    def ratio(value):
        return "-" if value is None else f"{value:.2f}"

    def several(value, low, high):
        ends = f"{low:g}, {'never' if high is None else format(high, 'g')}"
        return f"{'never' if value is None else format(value, 'g')} [{ends}]"

    rows = []
    for row in found["designs"]:
        counts, ends = row["iterations"], row["intervals"]["tta"]
        iterations = "never" if counts["low"] is None else several(*(counts[key] for key in ("median", "low", "high")))
        time = tta = "-"
        if row["time"] is not None:
            time, tta = format_seconds(row["time"]["seconds"]), "never"
            if row["tta"]["median"] is not None:
                to = "never" if ends[1] is None else format_seconds(ends[1])
                tta = f"{format_seconds(row['tta']['median'])} ({format_seconds(ends[0])} to {to})"
        rows.append(
            (
                row["design"], f"{row['reached']} of {row['runs_in_all']}", iterations, time, tta,
                ratio(row["speedup"]), ratio(row["throughput"]), ratio(row["efficiency"]),
            )
        )  # fmt: skip
    header = ("design", "reached", "iterations", "time each", "TTA (95 %)", "speed-up", "= throughput", "x efficiency")
    return table(header, rows, "lrrrrrrr")


def combined(network: str, variant: str) -> str:
    """What two changes gain together, and what they would if each kept its own gain."""
    from softnum.tta import read_results

    results = read_results(Path(__file__).parents[1] / "two-networks" / network / "results.json")
    found = next(v for v in results["variants"] if v["label"] == variant.replace("-", " "))
    rows = []
    for row in found["interactions"]:
        low, high = row["interval"]
        rows.append(
            (
                " and ".join(row["parts"]), f"{row['predicted']['speedup']:.2f}", f"{row['measured']['speedup']:.2f}",
                f"{row['ratio']['speedup']:.2f} ({low:.2f} to {'any' if high is None else format(high, '.2f')})",
                f"{row['ratio']['throughput']:.2f}",
            )
        )  # fmt: skip
    return table(
        ("changes", "product of their speed-ups", "speed-up of both", "ratio (95 %)", "of throughputs"), rows, "lrrrr"
    )


def timing_formats() -> str:
    """The files that times of iterations are read from."""
    from softnum.tta.timings import FORMATS

    rows = [
        (f"`{e.name}`", e.description, ", ".join(f"`--{o}`" for o in sorted(e.options)) or "-", e.tested_on, e.source)
        for e in FORMATS.values()
    ]
    return table(("format", "what it is", "options", "tested on", "its layout is documented in"), rows)


def architectures() -> str:
    """The networks that are timed and not trained: parameters and MACs, ours and the published ones."""
    from softnum.tta.architectures import architecture, architecture_names

    rows = []
    for name in architecture_names():
        net = architecture(name)
        published = net.published
        known = f"{published['parameters']:,.0f}" if "parameters" in published else "-"
        macs = f"{published['macs'] / 1e9:.3g}" if "macs" in published else "-"
        rows.append(
            (f"`{name}`", net.title, f"{net.parameters:,}", known, f"{net.macs / 1e9:.3g}", macs, net.source)
        )  # fmt: skip
    header = ("name", "network", "parameters", "published", "GMAC a sample", "published", "source")
    return table(header, rows, "llrrrrl")


MAKERS = {
    "aliases": aliases,
    "architectures": architectures,
    "array-functions": array_functions, "c-functions": c_functions, "combined": combined, "commands": commands,
    "demonstration": demonstration, "devices": devices, "dialects": dialects, "differences": differences,
    "elementary-functions": elementary_functions, "evidence": evidence, "formats": formats,
    "gpu-machine": gpu_machine, "gpu-products": gpu_products, "gpu-quantize": gpu_quantize,
    "gpu-recording": gpu_recording, "gpu-run": gpu_run,
    "gpu-torch": gpu_torch, "gpu-training": gpu_training, "guarantees": guarantees,
    "long-sums": long_sums, "machines": machines, "modes": modes,
    "nan-profiles": nan_profiles, "overflow": overflow, "peer-agreements": peer_agreements,
    "peer-differences": peer_differences, "peer-speeds": peer_speeds, "peer-versions": peer_versions,
    "presets": presets, "promotion": promotion, "shipped-study": shipped_study, "stochastic": stochastic,
    "tile-functions": tile_functions, "timing-formats": timing_formats, "two-networks": two_networks, "values": values,
}  # fmt: skip
