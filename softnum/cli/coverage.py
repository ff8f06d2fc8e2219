"""``softnum vectors coverage``: what files of vectors cover, coverage of several runs added up, and what is left."""

from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import writable_file
from softnum.cli.vector_arguments import bar

__all__ = ["coverage"]


def coverage(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            help="Vectors with a header, as softnum or a bench writes them; coverage: softnum's JSON, UCIS XML, "
            "cocotb-coverage's XML or YAML.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o",
            help="Also write the sum to this file: .xml is UCIS XML, .cocotb.xml and .yml cocotb-coverage's, all else "
            "JSON.",
        ),
    ] = None,
    holes: Annotated[int, typer.Option(min=0, help="How many bins that were not hit to list per group.")] = 20,
    fail_on_holes: Annotated[
        bool, typer.Option("--fail-on-holes", help="Exit with code 1 if a bin that can be hit was not.")
    ] = False,
) -> None:  # fmt: skip
    """Count what files of vectors cover, add coverage files to it, and list the bins that were not hit.

    Answers of a design are counted as they are: the results and flags that it gave. Vectors with unknown bits (x, z)
    are left out. Counts are added of one operation, format and mode; files that say they are of others, or have other
    bins, are errors. Of some groups it is not known which bins can be hit at all; theirs are listed apart.

    \b
      softnum vectors coverage answers.txt -o coverage.xml
      softnum vectors coverage night1.xml night2.yml answers.txt -o all.json --fail-on-holes

    Exit codes: 0, 1 holes with --fail-on-holes, 2 unusable input.
    """
    from softnum.vectors.covered.files import read_counting, write_coverage
    from softnum.vectors.covered.record import merged

    if out is not None:
        writable_file(out)
    records = {}
    for path in files:
        if not path.exists():
            raise ValueError(f"no file {str(path)!r}")
        if path.is_dir():
            raise ValueError(f"{str(path)!r} is a directory; name a file of vectors or of coverage")
        if str(path) in records:
            raise ValueError(f"{str(path)!r} is named twice and would be counted twice; name it once")
        with bar(str(path), None, path.stat().st_size // 16) as progress:
            records[str(path)], left_out = read_counting(path, progress)
        if left_out:
            typer.echo(f"{path}: {left_out} vectors with unknown bits are not counted", err=True)
    total = merged(records)
    typer.echo(str(total))
    sure = {name: missed for name, missed in total.holes.items() if total.groups[name].reachable is not None}
    for title, groups in (("not hit", sure), ("not hit, and perhaps impossible", total.holes)):
        rows = [(name, missed) for name, missed in groups.items() if groups is sure or name not in sure]
        if rows and holes:
            typer.echo(f"{title}:")
        for name, missed in rows if holes else ():
            more = f" and {len(missed) - holes} more" if len(missed) > holes else ""
            typer.echo(f"  {name}: {', '.join(missed[:holes])}{more}")
    if out is not None:
        write_coverage(total, out)
        typer.echo(f"written: {out}", err=True)
    raise typer.Exit(int(fail_on_holes and bool(sure)))
