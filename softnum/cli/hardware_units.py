"""``softnum units``: the units of real hardware that softnum knows, or one of them in words, with its evidence."""

import json
from dataclasses import fields
from typing import Annotated

import typer

from softnum.cli.completions import complete_units
from softnum.cli.exits import exit_codes, writable_file
from softnum.cli.options import OutJson

__all__ = ["register"]

_PIPE_WIDTH = 160  # a pipe has no width


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("units", short_help="List the units of real hardware, or show one and its evidence.")(exit_codes(units))


def units(
    name: Annotated[
        str | None, typer.Argument(help="One of the names.  [default: list them]", autocompletion=complete_units)
    ] = None,
    output: Annotated[str | None, typer.Option(help="The other output format, if the unit has one: binary16.")] = None,
    disputed: Annotated[
        str | None, typer.Option(help="Which source to follow where they disagree: mma-sim or matlab.")
    ] = None,
    disclosure: Annotated[
        bool, typer.Option("--disclosure", help="Print all that is needed to compute what the unit does, as a page.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    out: OutJson = None,
) -> None:
    """List the units of real hardware, or show one: what it computes, its parameters, and the evidence for each.

    Where sources disagree, it shows inputs that would decide the question on a chip: encodings of a, b and C, and the
    result by each source. --disclosure prints the page that states the whole unit: formats, definition, roundings, test
    vectors.

    \b
      softnum units nvidia_h100_fp16
      softnum units nvidia_h100_fp16 --output binary16 --json
      softnum units nvidia_a100_bf16 --disputed mma-sim
      softnum units nvidia_h100_fp16 --disclosure > page.md
      softnum units nvidia_h100_fp16 --disclosure --json  (which softnum.unit reads)
    """
    import softnum as sn

    if out is not None:
        writable_file(out)
    if name is None:
        for option, given in (("--output", output), ("--disputed", disputed), ("--disclosure", disclosure or None)):
            if given is not None:
                raise ValueError(f"{option} needs the NAME of a unit")
        shown = [{"name": n, "computes": str(sn.unit(n))} for n in sn.units()]
    elif disclosure:
        unit = sn.unit(name, output, disputed=disputed)
        try:
            page = unit.disclosure()
        except TypeError as error:  # its family has none
            raise ValueError(str(error)) from error
        shown = page.to_dict()
    else:
        shown = _facts(name, sn.unit(name, output, disputed=disputed)) | {"telling": _telling(name, output)}
    if as_json:
        typer.echo(json.dumps(shown, indent=1))
    elif disclosure:
        typer.echo(str(page))
    elif name is None:
        _list(shown)
    else:
        _show(shown)
    if out is not None:
        from softnum.runtime.atomic import write_atomic

        write_atomic(out, json.dumps(shown, indent=1) + "\n")


def _facts(name: str, unit) -> dict:
    return {
        "name": name,
        "computes": str(unit),
        "kind": type(unit).__name__,
        "expression": unit.expression,
        "parameters": {f.name: _plain(getattr(unit, f.name)) for f in fields(unit)},
        "evidence": {key: {"kind": e.kind, "source": e.source} for key, e in unit.evidence.items()},
    }


def _telling(name: str, output: str | None) -> list[dict]:
    """Inputs that tell a preset's choices from others', as codes in hexadecimal."""
    from softnum.inspect.disputes import choices, telling

    units = choices(name, output)
    if not units:
        return []
    first = next(iter(units.values()))
    elements = [getattr(f, "element", f) for f in first.operand]
    widths = [-(-f.bits // 4) for f in (*elements, first.c_format, first.result)]
    code = lambda x, width: f"0x{x:0{width}x}"  # noqa: E731
    return [
        {
            "a": [code(x, widths[0]) for x in row.a],
            "b": [code(x, widths[1]) for x in row.b],
            **{
                what: [code(x, 2) for x in codes]
                for what, codes in (("scale_a", row.scale_a), ("scale_b", row.scale_b))
                if codes
            },
            "c": code(row.c, widths[2]),
            "results": {name: code(x, widths[3]) for name, x in row.results.items()},
        }
        for row in telling(units)
    ]


def _plain(value):
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _console():
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=_PIPE_WIDTH)


def _list(shown: list[dict]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Name", no_wrap=True)
    table.add_column("Computes", overflow="fold")
    for row in shown:
        table.add_row(row["name"], row["computes"])
    console = _console()
    console.print(table, highlight=False)
    console.print("One unit in full: softnum units NAME", highlight=False)


def _show(facts: dict) -> None:
    from rich import box
    from rich.table import Table

    console = _console()
    console.print(f"{facts['name']}, a {facts['kind']}:\n  {facts['computes']}\n", markup=False, highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, value in facts["parameters"].items():
        if value is not None:
            table.add_row(key.replace("_", " "), _text(value))
    console.print(table, markup=False, highlight=False)
    evidence = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("Property", "Evidence", "Source"):
        evidence.add_column(title, no_wrap=title != "Source", overflow="fold")
    for key, row in facts["evidence"].items():
        evidence.add_row(key.replace("_", " "), row["kind"], row["source"])
    console.print(evidence, markup=False, highlight=False)
    if not facts["telling"]:
        return
    console.print("Inputs on which the sources' units differ (codes; what is not shown is zero):", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    lists = [key for key in facts["telling"][0] if key not in ("c", "results")]
    for title in (*(key.replace("_", " ") for key in lists), "C", *facts["telling"][0]["results"]):
        table.add_column(title, overflow="fold")
    for row in facts["telling"]:
        table.add_row(*(_short(row[key]) for key in lists), row["c"], *row["results"].values())
    console.print(table, markup=False, highlight=False)


def _short(codes: list[str]) -> str:
    """Codes but for zeros at the end; of equal ones, how many."""
    if len(codes) > 2 and len(set(codes)) == 1 and int(codes[0], 16):
        return f"{len(codes)} x {codes[0]}"
    while len(codes) > 1 and int(codes[-1], 16) == 0:
        codes = codes[:-1]
    return " ".join(codes)


def _text(value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
