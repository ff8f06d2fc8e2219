"""``softnum schema``: JSON Schemas of the TOML files that softnum reads."""

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import exit_codes, writable_folder
from softnum.cli.options import OUT_FOLDER

__all__ = ["SCHEMAS", "complete_kinds", "make_schema", "register", "write_schemas"]

#: kind of file -> the module and function of its schema, what reads such files
SCHEMAS = {
    "design": ("softnum.train.designs.keys", "design_schema", "softnum train, tta, study"),
    "unit": ("softnum.train.designs.keys", "unit_file_schema", "an entry of a design's [units]"),
    "study": ("softnum.train.studies.study_keys", "study_schema", "softnum study"),
    "devices": ("softnum.tta.estimates.device_files", "device_schema", "--device-file"),
    "systems": ("softnum.tta.parallelism.system", "system_schema", "--system"),
    "energy": ("softnum.tta.workloads.energy_files", "energy_schema", "--energy-table"),
    "rates": ("softnum.tta.estimates.merit", "rate_schema", "softnum estimate --fom"),
}


def complete_kinds(incomplete: str) -> list[str]:
    """Kinds of files.

    >>> complete_kinds("de")
    ['design', 'devices']
    """
    return [kind for kind in SCHEMAS if kind.startswith(incomplete)]


def register(app: typer.Typer) -> None:
    """Add the verb to the program."""
    app.command("schema", short_help="JSON Schemas of TOML files, for editors.")(exit_codes(schema))


def make_schema(kind: str) -> dict:
    """The JSON Schema of a kind of file; ValueError if there is no such kind.

    >>> make_schema("study")["title"]
    'softnum study'
    """
    if kind not in SCHEMAS:
        raise ValueError(f"no kind of file is called {kind!r} (kinds: {', '.join(SCHEMAS)})")
    module, name, _ = SCHEMAS[kind]
    return getattr(importlib.import_module(module), name)()


def schema(
    kind: Annotated[
        str | None, typer.Argument(help=f"{', '.join(SCHEMAS)}.  [default: list them]", autocompletion=complete_kinds)
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=OUT_FOLDER)] = None,
) -> None:
    """Print the JSON Schema of a kind of TOML file, or write KIND.schema.json into a folder, for editors that complete
    and check TOML by it (Even Better TOML and others that use Taplo).

    \b
      softnum schema design
      softnum schema --out schemas       and in the first line of a design: #:schema ./schemas/design.schema.json
    """
    if out is not None:
        writable_folder(out)
        for file in write_schemas(out, [kind] if kind else SCHEMAS):
            typer.echo(f"Written: {file}")
    elif kind is None:
        for each, (*_, used) in SCHEMAS.items():
            typer.echo(f"{each:8} {used}")
    else:
        typer.echo(_text(make_schema(kind)), nl=False)


def write_schemas(folder: str | Path, kinds: Iterable[str] = SCHEMAS) -> list[Path]:
    """Write KIND.schema.json of each kind into a folder, which is made; nothing if a kind is unknown."""
    from softnum.runtime.atomic import write_atomic

    texts = {Path(folder, f"{kind}.schema.json"): _text(make_schema(kind)) for kind in kinds}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        write_atomic(file, text)
    return list(texts)


def _text(schema: dict) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
