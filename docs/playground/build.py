"""Build the playground's pages: make playground. Pages, the C core as text, and what the core lacks as data.

The core and the data are scripts, not files that a page would fetch, so that the pages open from a folder, too.
"""

from __future__ import annotations

import base64
import json
import sys
from decimal import Decimal, localcontext
from pathlib import Path
from string import Template

import numpy as np

import softnum as sn
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from softnum.formats.names import format_names

HERE = Path(__file__).resolve().parent
LABS = {"index": "Format explorer", "units": "Unit lab", "gemm": "GEMM error lab", "vectors": "Test vectors"}
MOST = 1_000_000  # bytes of all pages together

#: formats that csrc/softnum.h does not compute in, and what they are
TABLES = {
    "posit8": "posit of 8 bits, es = 2 (Posit Standard 2022)",
    "takum_linear8": "linear takum of 8 bits",
    "takum8": "takum of 8 bits: a logarithm, so that most values are irrational and shown rounded to binary64",
    "lns4.3": "logarithmic number, 4 + 3 bits: most values are irrational and shown rounded to binary64",
}
BLOCKS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1", "mxint8", "nvfp4")
EXAMPLE = (1.0, 0.3, 11.0, -6.4, 0.02, 0.0, 3.75, -0.6)

#: operations of codes of one format, of csrc/softnum.h and of vector files
OPERATIONS = [
    "convert", "add", "subtract", "multiply", "divide", "fma", "sqrt", "remainder", "round_to_integral", "minimum",
    "maximum", "minimum_number", "maximum_number", "next_up", "next_down", "negate", "absolute", "copysign", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "sigmoid", "softplus", "erf", "gelu", "silu", "rsqrt", "reciprocal", "cbrt", "pow", "hypot", "atan2",
]  # fmt: skip

#: sums that tell units apart: what for, a, b, c
SUMS = (
    ("a small product beside a large one", (1.0, 1.0, 1.0, 1.0), (64.0, 2.0**-8, 2.0**-8, 2.0**-8), 0.0),
    ("large ones that cancel, and small ones left", (16.0, -16.0, 0.125, 0.25), (16.0, 16.0, 0.0625, 0.0625), 0.0),
    ("a large C, and products that only add up together", (0.25,) * 8, (0.5,) * 8, 2.0**24),
    ("halves of a unit in the last place of C", (0.5,) * 4, (2.0**-6,) * 4, 131072.0),
)


def number_text(value: float) -> str:
    """All decimal digits of a value, or the least that give it back where those would be more than 24."""
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else f"{value}"
    with localcontext() as context:
        context.prec = 800
        exact = f"{Decimal(value).normalize():f}"
    return exact if len(exact) <= 24 else repr(float(value))


def table_of(name: str, about: str) -> dict:
    """Every code of a format of 8 bits: its bits, its value, and the codes of the values beside it."""
    fmt = sn.format(name)
    codes = np.arange(2**fmt.bits, dtype=np.uint8)
    values = np.asarray(sn.decode(codes, fmt))
    numbers = sorted((v, int(c)) for c, v in zip(codes, values, strict=True) if np.isfinite(v))
    place = {code: i for i, (_, code) in enumerate(numbers)}
    digits = -(-fmt.bits // 4)

    def beside(code: int, step: int) -> str | None:
        at = place.get(code, -1) + step
        return f"{numbers[at][1]:0{digits}x}" if code in place and 0 <= at < len(numbers) else None

    rows = [
        {
            "code": f"{c:0{digits}x}", "bits": f"{c:0{fmt.bits}b}", "value": number_text(float(v)),
            "kind": "zero" if v == 0 else "normal" if np.isfinite(v) else "NaN",
            "down": beside(int(c), -1), "up": beside(int(c), 1),
        }
        for c, v in zip(codes, values, strict=True)
    ]  # fmt: skip
    one = f"{int(sn.encode(1.0, fmt)):0{digits}x}"
    return {"bits": fmt.bits, "digits": digits, "about": about, "one": one, "codes": rows}


def block_of(name: str) -> dict:
    """One block of a block format, encoded."""
    given = np.array([EXAMPLE])
    made = sn.array(given, name, axis=1)
    fmt = made.format
    digits = -(-fmt.element.bits // 4)
    return {
        "name": name, "scale": f"{fmt.scale}{', and of the tensor' * bool(fmt.tensor_scale)}",
        "element": f"{fmt.block_size} {fmt.element}",
        "given": " ".join(f"{x:g}" for x in EXAMPLE),
        "scale_code": " ".join(f"{int(s):02x}" for s in np.ravel(made.scales)),
        "codes": " ".join(f"{int(c):0{digits}x}" for c in np.ravel(made.codes)),
        "values": " ".join(number_text(float(v)) for v in np.ravel(np.asarray(made.decode()))),
    }  # fmt: skip


def spec_of(unit) -> str | None:
    """A unit as csrc/softnum.h takes it, name=value;...; None where the header has no such unit."""
    if isinstance(unit, sn.MadUnit):
        if unit.flush_inputs not in (False, True) or unit.random != "philox4x32-10":
            return None
        facts = {
            "kind": 0, "product": unit.product, "result": unit.outer_accumulator, "rounding": unit.rounding,
            "product_rounding": unit.product_rounding, "lanes": unit.lanes, "chunk": unit.chunk,
            "reduction": ("sequential", "tree", "pairwise").index(unit.reduction),
            "flush_inputs": int(unit.flush_inputs),
            "flush_results": (None, "before", "after", "subnormal").index(unit.flush_results) or None,
            "compensated": int(unit.compensated is not None), "stochastic_bits": unit.stochastic_bits,
        }  # fmt: skip
    elif isinstance(unit, sn.FusedDotUnit):
        if unit.k_order is not None or unit.c != "fused":
            return None
        facts = {
            "kind": 2, "result": unit.output, "rounding": unit.output_rounding, "terms": unit.terms,
            "fraction_bits": unit.fraction_bits, "min_exponent": unit.min_exponent,
            "zero_exponent": unit.zero_exponent, "truncate_fraction": unit.truncate_fraction,
        }  # fmt: skip
    elif isinstance(unit, sn.ExactDotUnit):
        facts = {"kind": 1, "rounding": unit.rounding, "stochastic_bits": unit.stochastic_bits}
    else:
        return None
    for name in ("rounding", "product_rounding"):
        if facts.get(name) is not None:
            facts[name] = ROUNDING_MODES[facts[name]]
    rules = {None: None, "always_infinity": 5} | {name: rule + 1 for name, rule in OVERFLOW_RULES.items()}
    facts |= {"a": unit.operand[0], "b": unit.operand[1], "accumulator": unit.accumulator}
    facts["overflow"] = rules[unit.overflow]
    return ";".join(f"{name}={value}" for name, value in facts.items() if value is not None)


def named_units() -> dict:
    """The units of `softnum.units`, with each output that one has."""
    made = {}
    for name in sn.units():
        made[name] = usual = sn.unit(name)
        for output in ("binary16", "binary32"):
            try:
                other = sn.unit(name, output=output)
            except ValueError:
                continue
            if other != usual:
                made[f"{name} to {output}"] = other
    return made


def result_of(unit, a, b, c) -> str:
    """What the package makes of a row and a column, for a unit that the core does not have: text, or why not."""
    blocks = isinstance(unit, (sn.BlockDotUnit, sn.BlockFusedDotUnit))
    x, y = np.array([a]), np.array(b)[:, None]
    try:
        if blocks:
            x, y = sn.array(x, unit.operand[0], axis=1), sn.array(y, unit.operand[1], axis=0)
        else:
            x, y = sn.array(x, unit.operand[0]), sn.array(y, unit.operand[1])
        got = np.asarray(sn.matmul(x, y, unit, sn.quantize(np.array([[c]]), unit.accumulator)))[0, 0]
    except ValueError:
        return "it does not take these numbers"
    return number_text(float(got))


def unit_data() -> dict:
    """The units: those that the core has, as it takes them, and of the others what they make of the examples."""
    have, lack = {}, {}
    for name, unit in named_units().items():
        spec = spec_of(unit)
        (lack if spec is None else have)[name] = unit if spec is None else spec
    examples = [
        {
            "title": title, "a": " ".join(map(number_text, a)), "b": " ".join(map(number_text, b)),
            "c": number_text(c),
            "others": {name: result_of(unit, a, b, c) for name, unit in lack.items()},
        }
        for title, a, b, c in SUMS
    ]  # fmt: skip
    others = {name: type(unit).__name__ for name, unit in lack.items()}
    return {"units": have, "others": others, "examples": examples}


def data() -> dict:
    """What the pages read beside the core."""
    named = [name for name in format_names() if sn.format(name).bits <= 64]
    return {
        "formats": [*named, "e6m9", "e15m40", "binary8p3se", "binary8p4sf", "binary8p4ue", "q4.4", "uq8.8", "q16.16"],
        "tables": {name: table_of(name, about) for name, about in TABLES.items()},
        "modes": list(ROUNDING_MODES),
        "operations": OPERATIONS,
        "blocks": [block_of(name) for name in BLOCKS],
        **unit_data(),
    }


def page_of(name: str) -> str:
    """A lab's page: its body in the frame that all share."""
    nav = "".join(
        f'<a href="{other}.html"{" aria-current=page" if other == name else ""}>{title}</a>\n'
        for other, title in LABS.items()
    )
    body = (HERE / "pages" / f"{name}.html").read_text(encoding="utf-8")
    files = "What the C core lacks comes from files that the Python package wrote at the build; each place says so."
    frame = Template((HERE / "pages" / "frame.html").read_text(encoding="utf-8"))
    return frame.substitute(
        title=LABS[name], script=f"{name}.js", nav=nav, body=body, version=sn.__version__, files=files
    )


def build(core: Path, out: Path) -> int:
    """Write the pages into a folder; returns their bytes together."""
    out.mkdir(parents=True, exist_ok=True)
    text = base64.b64encode(core.read_bytes()).decode()
    lists = json.dumps(data(), separators=(",", ":"), allow_nan=False)
    files = {
        "core.js": f'"use strict";\nconst SOFTNUM_WASM = "{text}";\n',
        "data.js": f'"use strict";\nconst SOFTNUM_DATA = {lists};\n',
    }
    for name in LABS:
        files[f"{name}.html"] = page_of(name)
    for name in ("playground.css", "shared.js", *(f"{lab}.js" for lab in LABS)):
        files[name] = (HERE / "pages" / name).read_text(encoding="utf-8")
    for name, content in files.items():
        (out / name).write_text(content, encoding="utf-8")
    total = sum(len(content.encode()) for content in files.values())
    if total > MOST:
        raise SystemExit(f"the playground has {total} bytes, more than {MOST}: make the core or the data smaller")
    return total


if __name__ == "__main__":
    print(f"{build(Path(sys.argv[1]), Path(sys.argv[2]))} bytes")
