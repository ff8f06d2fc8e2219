"""``softnum formats``: the formats that softnum knows, or one of them to the last value."""

import json
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.completions import complete_formats
from softnum.cli.exits import exit_codes, writable_file

__all__ = ["register"]

_FLOAT_FACTS = (
    "bits", "exponent_bits", "mantissa_bits", "bias", "signed", "emin", "emax", "max", "min", "smallest_normal",
    "smallest_subnormal", "epsilon", "has_zero", "negative_zero", "infinities", "nan_codes", "lowest_binade",
)  # fmt: skip
_TAPERED_FACTS = ("bits", "precision", "max", "min", "smallest", "nan_code")
_LOGARITHMIC_FACTS = ("bits", "max", "min", "smallest", "nan_code", "values_are_exact")
_FIXED_FACTS = ("bits", "integer_bits", "fraction_bits", "signed", "max", "min", "epsilon")
_LISTED = ("bits", "exponent_bits", "mantissa_bits", "bias", "max", "smallest_normal", "smallest_subnormal")
_BLOCK_FACTS = ("element", "scale", "block_size", "tensor_scale", "bits_per_value", "max", "min", "smallest")
_TABLE_BITS = 8
_PIPE_WIDTH = 200  # a pipe has no width; nothing that is printed here is wider


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("formats", short_help="List the formats, or show one to the last value.")(exit_codes(formats))


def formats(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A name, eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}, positN, mxfp8_e4m3 ...  [default: list all]",
            autocompletion=complete_formats,
        ),
    ] = None,
    c: Annotated[bool, typer.Option("--c", help="Print the format as a C constant, for softnum/softnum.h.")] = False,
    names: Annotated[
        bool,
        typer.Option(
            "--names",
            help=(
                "List the names that other libraries use for formats, rounding modes and operations; all are accepted."
            ),
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --names: print JSON instead.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write what is printed to this file, as JSON (with --c, the C text).")
    ] = None,
) -> None:
    """List the named formats, or show one: its facts and, up to 8 bits, the value of every code.

    \b
      softnum formats e4m3fn
      softnum formats q4.4
      softnum formats posit8
      softnum formats mxfp8_e4m3
      softnum formats e4m3fn --c > format_e4m3fn.h
      softnum formats --names
    """
    import softnum as sn

    if out is not None:
        writable_file(out)
    for option, given in (("--names", names), ("--json", as_json and not names)):
        if given and (name is not None or c or option == "--json"):
            what = "lists all names; leave NAME and --c out" if option == "--names" else "goes with --names"
            raise ValueError(f"{option} {what}")
    if c:
        _show_c(name, out)
        return
    if names:
        shown = _others_names(as_json)
        _write(shown, out)
        return
    fmt = None if name is None else sn.format(name)
    shown = _listing(sn) if fmt is None else _blocks(fmt) if fmt.kind == "block" else _one(sn, fmt)
    _write(shown, out)


def _write(shown, out: Path | None) -> None:
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(shown, indent=1) + "\n")


def _others_names(as_json: bool) -> list[dict]:
    """The table of aliases, printed."""
    from softnum.formats.aliases import ALIASES

    rows = [alias._asdict() for alias in ALIASES]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return rows
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = _console(Console)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("", "softnum", "Others' names"):
        table.add_column(title, no_wrap=title != "Others' names")
    for kind in ("format", "rounding", "operation"):
        by_name: dict[str, list[str]] = {}
        for row in rows:
            if row["kind"] == kind:
                by_name.setdefault(row["name"], []).append(f"{row['alias']} ({row['whose']})")
        for i, (name, others) in enumerate(by_name.items()):
            table.add_row(kind if not i else "", name, ", ".join(others))
    console.print(table)
    console.print(
        "In either case of letters. Functions of TestFloat's (f32_mulAdd, f64_to_i32, f16_roundToInt_r_minMag) name\n"
        "an operation with its formats. Integers, for to_integer and convert: i8 to i64, ui8 to ui64; int8 ... uint64.",
        highlight=False, markup=False,
    )  # fmt: skip
    return rows


def _show_c(name: str | None, out: Path | None) -> None:
    from softnum.formats.c_text import format_constant

    if name is None:
        raise ValueError("--c shows one format: softnum formats NAME --c")
    text = format_constant(name)
    typer.echo(text, nl=False)
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, text)


def _number(value, digits: int = 6) -> str:
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, (int, str)):
        return str(value)
    # beyond binary64: only its size can be shown
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return f"{'-' if value < 0 else ''}~2**{exponent}"


def _facts(fmt) -> dict:
    from softnum.formats.modes import P3109_VERSION, P3109_VERSIONS

    if not fmt.values_are_exact:
        names = _LOGARITHMIC_FACTS
    else:
        names = _FIXED_FACTS if fmt.kind == "fixed" else _TAPERED_FACTS if fmt.nan_is_least else _FLOAT_FACTS
    facts = {"name": fmt.name, "kind": fmt.kind}
    if fmt.explicit_bit:
        facts["explicit_bit"] = True
    for key in names:
        value = getattr(fmt, key)
        facts[key] = value if isinstance(value, (bool, int, float, str)) else _number(value)
    if fmt.p3109:
        facts["p3109_version"] = P3109_VERSION
        for rule, version in P3109_VERSIONS.items():
            if rule in fmt.overflow_rules:
                facts[f"version_{version}"] = f"overflow {rule}"
    return facts


def _listing(sn) -> list[dict]:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows = [_facts(sn.format(name)) for name in sn.format_names()]
    console = _console(Console)

    def table(titles, digits, padding) -> Table:
        names, numbers = titles[0], titles[1:-1]
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=padding)
        grid.add_column(names, no_wrap=True)
        for title in numbers:
            grid.add_column(title, justify="right", no_wrap=True)
        grid.add_column(titles[-1], no_wrap=True)
        for row in rows:
            specials = [
                "inf" if row["infinities"] else "",
                "NaN" if row["nan_codes"] != "none" else "",
                "-0" if row["negative_zero"] else "",
            ]
            cells = (_number(row[key], digits) for key in _LISTED)
            grid.add_row(row["name"], *cells, " ".join(filter(None, specials)) or "none")
        return grid

    full = ("Name", "Bits", "Exponent", "Mantissa", "Bias", "Largest", "Smallest\nnormal", "Smallest", "Inf, NaN, -0")
    short = ("Name", "Bits", "Exp", "Man", "Bias", "Largest", "Smallest\nnormal", "Smallest", "Specials")
    console.print(_first_that_fits(console, (table(full, 6, (0, 1)), table(short, 3, (0, 1)), table(short, 3, 0))))
    console.print(
        "Also: eXmY (IEEE-like), qI.F and uqI.F (fixed point), binaryKpP{s,u}{e,f} (IEEE P3109), positN and positN_esE "
        "(posits), takum_linearN, takumN and lnsI.F (logarithmic).",
        markup=False,
    )
    console.print(f"Block formats: {', '.join(sn.formats.block_format_names())}.", markup=False, highlight=False)
    console.print("One format in full: softnum formats NAME")
    return rows


def _blocks(fmt) -> dict:
    from rich.console import Console
    from rich.table import Table

    from softnum.formats.blocks import SCALE_RULES, scale_rule_of

    facts = {"name": fmt.name, "kind": fmt.kind}
    for key in _BLOCK_FACTS:
        value = getattr(fmt, key)
        facts[key] = value if value is None or isinstance(value, (int, float)) else str(value)
    rule = scale_rule_of(fmt, None)
    facts["scale_rule"] = f"{rule}, by default: {SCALE_RULES[rule]}"
    console = _console(Console)
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in facts.items():
        if value is not None:
            table.add_row(key.replace("_", " "), _number(value))
    console.print(table, markup=False, highlight=False)
    console.print(
        f"\nOne format of its parts in full: softnum formats {fmt.element}, softnum formats {fmt.scale}",
        highlight=False,
    )
    return facts


def _one(sn, fmt) -> dict:
    import numpy as np
    from rich import box
    from rich.console import Console
    from rich.table import Table

    facts = _facts(fmt)
    console = _console(Console)
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in facts.items():
        table.add_row(key.replace("_", " "), _number(value))
    console.print(table)
    if fmt.bits > _TABLE_BITS:
        return facts
    values = sn.decode(np.arange(2**fmt.bits, dtype=fmt.storage_dtype), fmt).tolist()
    facts["values"] = [v if np.isfinite(v) else str(v) for v in values]
    grids = []
    for columns in (8, 4, 2, 1):
        columns = min(columns, len(values))
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        grid.add_column("Code", no_wrap=True)
        for low in range(columns):
            grid.add_column(f"+{low}", justify="right", no_wrap=True)
        for start in range(0, len(values), columns):
            grid.add_row(f"0x{start:02x}", *(_number(v) for v in values[start : start + columns]))
        grids.append(grid)
    written = "writes them exactly" if fmt.values_are_exact else "writes them rounded to binary64: they are irrational"
    console.print(f"\nValue of each code, to six digits (--out FILE {written})", markup=False, highlight=False)
    console.print(_first_that_fits(console, grids))
    return facts


def _console(console_class):
    console = console_class()
    return console if console.is_terminal else console_class(width=_PIPE_WIDTH)


def _first_that_fits(console, tables):
    """The first table that the console shows without cutting a cell; the last one if none is."""
    from rich.measure import Measurement

    wide = console.options.update(width=10 * _PIPE_WIDTH)
    for table in tables:
        if Measurement.get(console, wide, table).maximum <= console.width:
            return table
    return tables[-1]
