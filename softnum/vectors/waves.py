"""Values in words for viewers of waveforms: what GTKWave's translate filters and Surfer's mnemonic files say of codes.

Sources: GTKWave's manual, "Alias Files and Attaching External Disassemblers" (a file of ``code text`` lines; a process
that answers each line with one, ``?color?`` before it); Surfer's, "Mnemonic Translators" (``Name:``, ``Bits:``, then
``value "text" color`` lines). Neither says anything of a file above what it says of a value, so that wide formats are
for a process, which Surfer has not.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from softnum.formats.blocks import format
from softnum.runtime.atomic import write_atomic
from softnum.vectors.plans.codes import value_text

if TYPE_CHECKING:
    from softnum.formats.annotations import FormatLike, PathLike

__all__ = ["RADIXES", "VIEWERS", "answers", "wave_bits", "wave_text", "write_waves"]

VIEWERS = ("gtkwave", "surfer")
#: radix of a signal -> (base, digits of a code of so many bits)
RADIXES: dict[str, tuple[int, Callable[[int], int]]] = {
    "hex": (16, lambda bits: -(-bits // 4)),
    "binary": (2, lambda bits: bits),
}
#: codes of more bits are not listed in a file: 2**16 lines
MOST_BITS = 16
#: GTKWave's marks of a base, where it shows them
_MARKS = {"$": 16, "%": 2, "0x": 16, "0b": 2}


def wave_bits(fmt: FormatLike) -> int:
    """Width of a signal: of a code, or of a block's scale and elements in one word.

    >>> from softnum.vectors.waves import wave_bits
    >>> wave_bits("e4m3fn"), wave_bits("mxfp8_e4m3")
    (8, 264)
    """
    fmt = format(fmt)
    return fmt.bits if fmt.element is fmt else fmt.scale.bits + fmt.block_size * fmt.element.bits


def wave_text(word: int, fmt: FormatLike) -> str:
    """The value of a code in decimal; of a block its scale, and its elements before they are scaled.

    Parameters
    ----------
    word : int
        A code; of a block format the word {scale, element N-1, ..., element 0}: the scale in the highest bits.
    fmt : format or str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the word has more bits than the format.

    Examples
    --------
    >>> from softnum.vectors.waves import wave_text
    >>> wave_text(0x3C, "e4m3fn"), wave_text(0x80, "posit8"), wave_text(0x7F80_0000, "binary32")
    ('1.5', 'nan', 'inf')
    >>> wave_text(0x80 << 256 | 0xB8_3C, "mxfp8_e4m3")[:20]
    '2.0 * [1.5 -1.0 0.0 '
    """
    fmt = format(fmt)
    if not 0 <= word < 1 << wave_bits(fmt):
        raise ValueError(f"{word:#x} is no code of {fmt}, which has {wave_bits(fmt)} bits")
    if fmt.element is fmt:
        return value_text(word, fmt)
    width = fmt.element.bits
    codes = [word >> (i * width) & ((1 << width) - 1) for i in range(fmt.block_size)]
    scale = value_text(word >> (fmt.block_size * width), fmt.scale)
    return f"{scale} * [{' '.join(value_text(code, fmt.element) for code in codes)}]"


def answers(lines: Iterable[str], fmt: FormatLike, radix: str = "hex") -> Iterator[str]:
    """What a process filter of GTKWave answers: a line for each line, a value with unknown bits as it stands.

    >>> from softnum.vectors.waves import answers
    >>> list(answers(["3C\\n", "xx\\n", "7f\\n", "$40\\n", "1FF\\n", "\\n"], "e4m3fn"))
    ['1.5', 'xx', '?red?nan', '2.0', '?red?1FF: not 8 bits', '']
    """
    fmt, base = format(fmt), _base(radix)
    bits = wave_bits(fmt)
    for line in lines:
        text = line.strip()
        mark = next((m for m in _MARKS if text.lower().startswith(m)), "")
        try:
            word = int(text[len(mark) :] if re.fullmatch("[0-9a-fA-F]+", text[len(mark) :]) else "",
                       _MARKS.get(mark, base))  # fmt: skip
        except ValueError:
            yield text
            continue
        if word >> bits:
            yield f"?red?{text}: not {bits} bits"
            continue
        value = wave_text(word, fmt)
        yield f"?red?{value}" if "nan" in value else value


def write_waves(
    fmt: FormatLike,
    out: PathLike,
    viewer: str = "gtkwave",
    *,
    written: str | None = None,
    radix: str = "hex",
    process: bool = False,
) -> str:
    """Write a translate filter for GTKWave or a mnemonic file for Surfer.

    Parameters
    ----------
    fmt : format or str
    out : str or path
    viewer : {"gtkwave", "surfer"}
    written : str, optional
        How a format of the user's own is named on a command line: FILE.py:NAME.
    radix : {"hex", "binary"}
        In which GTKWave shows the signal.
    process : bool
        Write GTKWave's process filter, of narrow formats too.

    Returns
    -------
    str
        What was written: "file" or "process".

    Raises
    ------
    ValueError
        If a name is unknown, or Surfer is to have a file of a format of more than 16 bits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from softnum.vectors.waves import write_waves
    >>> path = Path(tempfile.mkdtemp(), "fp4.txt")
    >>> write_waves("e2m1fn", path)
    'file'
    >>> path.read_text().splitlines()[:4]
    ['# e2m1fn: 4 bits, shown in hex', '0 0.0', '1 0.5', '2 1.0']
    """
    fmt, path = format(fmt), Path(out)
    bits, (base, digits) = wave_bits(fmt), (_base(radix), RADIXES[radix][1])
    if viewer not in VIEWERS:
        raise ValueError(f"viewer must be one of {', '.join(VIEWERS)}, got {viewer!r}")
    if viewer == "surfer" and (process or radix != "hex"):
        raise ValueError("Surfer reads a file and ignores the radix; leave process (--process) and radix (--radix) out")
    if viewer == "surfer" and bits > MOST_BITS:
        raise ValueError(
            f"{fmt} has {bits} bits, and a file for Surfer lists every code, of up to {MOST_BITS} bits; GTKWave "
            "takes a process"
        )
    if process or bits > MOST_BITS:
        name = written or str(fmt)
        command = shlex.join([sys.executable, "-m", "softnum", "rtl", "waves", name, "--filter", "--radix", radix])
        write_atomic(path, f"#!/bin/sh\n# {fmt}: {bits} bits, shown in {radix}\nexec {command}\n")
        path.chmod(path.stat().st_mode | (0o111 & ~_umask()))
        return "process"
    texts = [wave_text(code, fmt) for code in np.arange(1 << bits).tolist()]
    if viewer == "surfer":
        lines = [f"// {fmt}", f"Name: {fmt}", f"Bits: {bits}"]
        lines += [f'0x{code:x} "{text}"{" red" if "nan" in text else ""}' for code, text in enumerate(texts)]
    else:
        show = f"0{digits(bits)}{'X' if base == 16 else 'b'}"
        lines = [f"# {fmt}: {bits} bits, shown in {radix}"]
        lines += [f"{code:{show}} {text}" for code, text in enumerate(texts)]
    write_atomic(path, "\n".join(lines) + "\n")
    return "file"


def _base(radix: str) -> int:
    if radix not in RADIXES:
        raise ValueError(f"radix must be one of {', '.join(RADIXES)}, got {radix!r}")
    return RADIXES[radix][0]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
