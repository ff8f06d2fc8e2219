"""The page of a disclosure, in Markdown, made of its data alone: whoever has the data has the page."""

from __future__ import annotations

__all__ = ["page_of"]

_FACTS = (
    ("bits", "bits"), ("signed", "signed"), ("exponent_bits", "exponent bits"), ("mantissa_bits", "fraction bits"),
    ("integer_bits", "integer bits"), ("fraction_bits", "fraction bits"), ("es", "exponent bits"), ("bias", "bias"),
    ("emin", "lowest exponent of normal numbers"), ("emax", "largest exponent"),
    ("largest", "largest value"), ("smallest_normal", "smallest normal value"), ("smallest", "smallest value"),
    ("infinity_code", "infinity"), ("nan_code", "NaN, as it is delivered"), ("negative_zero", "-0"),
    ("element", "elements"), ("scale", "scales"), ("block_size", "elements of a block"),
    ("tensor_scale", "scale of the array"), ("values", "values"),
)  # fmt: skip
_CODES = {"largest": "largest_code", "smallest_normal": "smallest_normal_code", "smallest": "smallest_code"}
_MOST_CODES = 8


def page_of(data: dict) -> str:
    """The page that a disclosure's data say."""
    lines = [f"# Disclosure of {_title(data)}", "", f"Schema {data['schema']}. In short: {data['computes']}.", ""]
    lines += _unit(data, "##")
    lines += ["## Formats", ""]
    for name, facts in data["formats"].items():
        lines += _format(name, facts)
    if data["evidence"]:
        lines += ["## Evidence", "", *_table(("property", "is", "source"), _evidence(data["evidence"])), ""]
    lines += _vectors(data)
    return "\n".join(lines)


def _title(data: dict) -> str:
    preset = data["preset"]
    if preset is None:
        return f"a {data['family']}"
    more = [f"{key} {preset[key]}" for key in ("output", "disputed") if preset[key] is not None]
    return preset["name"] + (f" ({', '.join(more)})" if more else "")


def _unit(data: dict, mark: str) -> list[str]:
    inputs = data["inputs"]
    lines = [
        f"{mark} Inputs and result",
        "",
        f"a[0] ... a[K-1] are codes of {inputs['a']}, b[0] ... b[K-1] of {inputs['b']}, C, which may be missing, is "
        "one of "
        f"{inputs['c']}; the result is a code of {data['result']}. The formats are defined below.",
        "",
        f"{mark} Parameters",
        "",
        f"Family: {data['family']}.",
        "",
        *_table(("parameter", "value"), [(f"`{k}`", _value(v)) for k, v in data["parameters"].items()]),
        "",
        f"{mark} Definition",
        "",
    ]
    for i, step in enumerate(data["definition"], 1):
        lines.append(f"{i}. **{step['title']}.** {step['text']}")
        if step["formula"]:
            lines += ["", "   ```text", *(f"   {line}" for line in step["formula"].split("\n")), "   ```", ""]
    lines += ["", f"{mark} Roundings", ""]
    for name, rounding in data["roundings"].items():
        flush = f", results flushed: `{rounding['flush_results']}`" if rounding["flush_results"] else ""
        lines += [f"**{name}**, into {rounding['format']}, mode `{rounding['mode']}`{flush}.", ""]
        lines += [f"- {words}" for words in rounding["words"]] + [""]
    if data["inner"] is not None:
        lines += [f"{mark} inner", "", "The unit inside, whose sums the definition above takes.", ""]
        lines += _unit(data["inner"], mark + "#")
    return lines


def _value(value) -> str:
    if isinstance(value, dict):
        own = ", ".join(f"{k}={_value(v)}" for k, v in value["parameters"].items() if v is not None)
        return f"{value['family']}({own}), see inner"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return {None: "none", True: "yes", False: "no"}.get(value, str(value)) if not _is_number(value) else str(value)


def _is_number(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _format(name: str, facts: dict) -> list[str]:
    rows = []
    for key, what in _FACTS:
        if key in facts:
            value = _value(facts[key])
            rows.append((what, f"{value} (code {facts[_CODES[key]]})" if key in _CODES else value))
    return [f"### {name}", "", *(f"- {words}" for words in facts["words"]), "", *_table(("fact", "value"), rows), ""]


def _evidence(evidence: dict) -> list[tuple[str, str, str]]:
    return [(f"`{name}`", e["kind"], e["source"]) for name, e in evidence.items()]


def _vectors(data: dict) -> list[str]:
    vectors = data["vectors"]
    blocks = any("a_scales" in v for v in vectors)
    tensors = any("tensor_scales" in v for v in vectors)
    words = any("random_bits" in v for v in vectors)
    head = ["#", "shows", "a", "b", *(["scales of a", "scales of b"] if blocks else [])]
    head += [*(["Ta, Tb"] if tensors else []), "C", *(["random words"] if words else []), "result"]
    rows = []
    for i, v in enumerate(vectors):
        row = [str(i), v["shows"], _codes(v["a"]), _codes(v["b"])]
        row += [_codes(v["a_scales"]), _codes(v["b_scales"])] if blocks else []
        row += [", ".join("1" if x is None else x for x in v["tensor_scales"])] if tensors else []
        row += ["missing" if v["c"] is None else v["c"]]
        row += [_codes([f"({p:#x}, {s:#x})" for p, s in v["random_bits"]])] if words else []
        rows.append((*row, v["result"]))
    text = (
        "Codes in hexadecimal, a[0] first; 3 x 0x3c stands for three codes in a row. NaN is the format's as it is "
        "delivered: hardware may have another."
    )
    if words:
        text += " Random words are those of steps 0, 1, ..., of the product and the sum."
    return ["## Test vectors", "", text, "", *_table(head, rows), ""]


def _codes(codes: list[str]) -> str:
    """Codes one after the other, runs of equal ones counted."""
    runs: list[list] = []
    for code in codes:
        if runs and runs[-1][1] == code:
            runs[-1][0] += 1
        else:
            runs.append([1, code])
    return " ".join(code if n == 1 else f"{n} x {code}" for n, code in runs) or "none"


def _table(head, rows) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
