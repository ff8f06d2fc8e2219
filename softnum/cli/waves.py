"""``softnum rtl waves``: values in words for viewers of waveforms."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from softnum.cli.exits import writable_file
from softnum.cli.vector_arguments import format_of

__all__ = ["waves"]


def waves(
    fmt: Annotated[str, typer.Argument(metavar="FORMAT", help="A format's name, a block format's, or FILE.py:NAME.")],
    viewer: Annotated[str, typer.Option(help="gtkwave or surfer.")] = "gtkwave",
    radix: Annotated[str, typer.Option(help="The radix in which GTKWave shows the signal: hex or binary.")] = "hex",
    process: Annotated[
        bool, typer.Option("--process", help="Write GTKWave's process filter, also for narrow formats.")
    ] = False,
    filter_: Annotated[
        bool,
        typer.Option(
            "--filter", help=("Run as that process: read an encoding per line from standard input and print its value.")
        ),
    ] = False,
    out: Annotated[str | None, typer.Option("--out", "-o", help="The file to write.")] = None,
) -> None:
    """Write the file with which a waveform viewer shows encodings as decimal values.

    Of up to 16 bits, a file: GTKWave's translate filter file (Data Format, Translate Filter File), or Surfer's mnemonic
    file, which belongs into ~/.config/surfer/mnemonic. Of more, for GTKWave a program (Translate Filter Process).
    A block of MX is one signal, the scale in its highest bits, element 0 in its lowest: {scale, element 31, ..., 0}.

    \b
      softnum rtl waves e4m3fn -o e4m3fn.txt
      softnum rtl waves mxfp8_e4m3 -o mxfp8.sh
      softnum rtl waves posit16 --viewer surfer -o ~/.config/surfer/mnemonic/posit16.txt
    """
    from softnum.formats.blocks import format
    from softnum.vectors.waves import RADIXES, answers, write_waves

    given = format(format_of(fmt))
    if filter_:
        if radix not in RADIXES:
            raise ValueError(f"--radix must be one of {', '.join(RADIXES)}, got {radix!r}")
        for line in answers(sys.stdin, given, radix):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        return
    if out is None:
        raise ValueError(f"give the file to write with --out; for example: softnum rtl waves {fmt} -o waves.txt")
    writable_file(Path(out))
    name = fmt
    if ":" in fmt:
        path, _, own = fmt.rpartition(":")
        name = f"{Path(path).resolve()}:{own}" if path.endswith(".py") else fmt
    made = write_waves(given, out, viewer, written=name, radix=radix, process=process)
    hint = {
        ("gtkwave", "file"): "Data Format, Translate Filter File, Enable and Select",
        ("gtkwave", "process"): "Data Format, Translate Filter Process, Enable and Select",
        ("surfer", "file"): "a format of Surfer's, once it is in its folder mnemonic",
    }[viewer, made]
    typer.echo(f"{out}: {hint}", err=True)
