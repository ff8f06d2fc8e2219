"""Tables for memories: an operation of small formats, looked up instead of computed, as hardware tools read them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softnum.ops.arithmetic import CODE_OPERATIONS
from softnum.runtime.atomic import atomic_file
from softnum.runtime.config import __version__
from softnum.vectors.plans.spec import VectorSpec

if TYPE_CHECKING:
    from softnum.formats.annotations import FormatLike, PathLike

__all__ = ["ROM_FORMATS", "Rom", "make_rom", "write_rom"]

#: Address bits of the largest table.
MOST_ADDRESS_BITS = 20
#: Each file format and the endings of files that are taken for it.
ROM_FORMATS = {
    "readmemh": (".mem", ".memh", ".hex"),
    "readmemb": (".memb",),
    "mif": (".mif",),
    "coe": (".coe",),
}
_COMMENTS = {"readmemh": "//", "readmemb": "//", "mif": "--", "coe": ";"}


@dataclass(frozen=True, eq=False)
class Rom:
    """A table: ``words[address]``, uint64, ``data_bits`` wide each; ``facts``: what it holds and what made it."""

    address_bits: int
    data_bits: int
    words: np.ndarray
    facts: dict[str, str]


def make_rom(
    op: str,
    fmt: FormatLike | Sequence[FormatLike],
    *,
    out_fmt: FormatLike | None = None,
    rounding: str | None = None,
    overflow: str | None = None,
    tininess: str = "after",
    stochastic_bits: int = 32,
    flags: bool = False,
    invalid: str | float = "raise",
) -> Rom:
    """The table of an operation over all codes of its operands.

    The address is the operands' codes side by side, ``{a, b}``: the first one in the most significant bits; a
    stochastic rounding appends its random bits. The word is the result's code.

    Parameters
    ----------
    op : str
        A name of ``softnum.ops.CODE_OPERATIONS``: an elementary function ("tanh"), "convert" (the values of a format in
        another one), "multiply" ...
    fmt : format or str, or a tuple of them
        The operands' format(s): 20 bits of address in all, at most.
    out_fmt, rounding, overflow, tininess, stochastic_bits
        As in `softnum.multiply`.
    flags : bool
        Whether the word is ``{flags, result}``, with five bits of `softnum.Flags`.
    invalid : "raise" or a number
        What to do with a NaN that the result's format lacks: raise a ValueError, or store this value.

    Returns
    -------
    Rom

    Raises
    ------
    ValueError
        If a name is unknown, the address is too wide, or a result is NaN where the format has none.

    Examples
    --------
    >>> from softnum.vectors import make_rom
    >>> table = make_rom("multiply", "e2m1fn")  # 3 * 1.5 at {5, 3}
    >>> table.address_bits, table.data_bits, int(table.words[5 << 4 | 3])
    (8, 4, 6)
    """
    spec = VectorSpec.make(
        op, fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
        stochastic_bits=stochastic_bits,
    )  # fmt: skip
    op = spec.op
    if op not in CODE_OPERATIONS:
        raise ValueError(f"a table is of an operation from codes to codes ({', '.join(CODE_OPERATIONS)}), not of {op}")
    columns = [c for c in spec.columns if c.name not in ("result", "flags")]
    bits = sum(c.width for c in columns)
    if bits > MOST_ADDRESS_BITS:
        parts = " + ".join(f"{c.width} of {c.name}" for c in columns)
        raise ValueError(f"a table's address has at most {MOST_ADDRESS_BITS} bits, and {op} takes {bits} ({parts})")
    parts, rest = [], np.arange(1 << bits, dtype=np.uint64)
    for column in reversed(columns):
        parts.append((rest & np.uint64((1 << column.width) - 1)).astype(column.dtype))
        rest = rest >> np.uint64(column.width)
    parts.reverse()
    options = dict(rounding=spec.rounding)
    without_flags = not spec.out_fmt.has_exceptions
    if not without_flags:
        options |= dict(overflow=spec.overflow, tininess=tininess, return_flags=True)
    if spec.stochastic_bits is not None:
        options |= dict(random_bits=parts.pop(), stochastic_bits=spec.stochastic_bits)
    names = ("from_fmt", "to_fmt") if op == "convert" else ("fmt", "out_fmt")
    formats = spec.formats[0] if op == "convert" else spec.formats
    options |= dict(zip(names, (formats, spec.out_fmt), strict=True))
    try:
        found = CODE_OPERATIONS[op][0](*parts, invalid=invalid, **options)
    except ValueError as error:
        if invalid == "raise" and "no code" in str(error):
            raise ValueError(f"{error}; state the value that stands there (invalid=, --invalid)") from None
        raise
    result, raised = (found, np.zeros(np.shape(found), np.uint8)) if without_flags else found
    words, width = result.astype(np.uint64), spec.out_fmt.bits
    if flags:
        if width + 5 > 64:
            raise ValueError(f"a word has at most 64 bits; flags and a code of {spec.out_fmt} take {width + 5}")
        words |= raised.astype(np.uint64) << np.uint64(width)
        width += 5
    return Rom(bits, width, words, _facts(spec, columns, flags, invalid))


def _facts(spec: VectorSpec, columns, flags: bool, invalid) -> dict[str, str]:
    layout = ", ".join(f"{c.name}[{c.width - 1}:0]" for c in columns)
    word = f"result[{spec.out_fmt.bits - 1}:0]"
    facts = {k: v for k, v in spec.facts().items() if k not in ("nan", "flush")}
    command = f"softnum rtl rom {spec.options()}"
    if flags:
        command += " --flags"
    if invalid != "raise":
        command += f" --invalid {invalid}"
    return {
        **facts,
        "address": f"{{{layout}}}",
        "word": f"{{flags[4:0], {word}}}" if flags else word,
        "version": __version__,
        "command": command,
    }


def write_rom(table: Rom, path: PathLike, file_format: str | None = None) -> None:
    """Write a table as an initialisation file, atomically.

    Parameters
    ----------
    table : Rom
    path : str or path
        "-" is standard output.
    file_format : {"readmemh", "readmemb", "mif", "coe"}, optional
        Verilog's ``$readmemh`` or ``$readmemb``, Intel's memory initialisation file, or AMD's coefficient file. By
        default as the path's ending says (`ROM_FORMATS`).

    Raises
    ------
    ValueError
        If the format is unknown, or the ending says nothing of it.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from softnum.vectors import make_rom, write_rom
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "root.coe"
    >>> write_rom(make_rom("sqrt", "uq2.0"), path)
    >>> print(*path.read_text().splitlines()[-6:])
    memory_initialization_radix=16; memory_initialization_vector= 0, 1, 1, 2;
    """
    chosen = file_format or next(
        (name for name, endings in ROM_FORMATS.items() if os.fspath(path).lower().endswith(endings)), None
    )
    if chosen not in ROM_FORMATS:
        endings = ", ".join(f"{name} ({' '.join(e)})" for name, e in ROM_FORMATS.items())
        what = f"unknown file format {file_format!r}" if file_format else f"no file format is known by the name {path}"
        raise ValueError(f"{what}; state one of {endings}")
    with atomic_file(path) as file:
        file.write(_text(table, chosen).encode())


def _text(table: Rom, chosen: str) -> str:
    comment = _COMMENTS[chosen]
    depth, digits = len(table.words), -(-table.data_bits // 4)
    lines = [f"{comment} softnum look-up table: {depth} words of {table.data_bits} bits"]
    lines += [f"{comment} {key}: {value}" for key, value in table.facts.items()]
    words = table.words.tolist()
    if chosen == "readmemb":
        lines += [f"{word:0{table.data_bits}b}" for word in words]
    elif chosen == "readmemh":
        lines += [f"{word:0{digits}X}" for word in words]
    elif chosen == "mif":
        lines += [f"WIDTH={table.data_bits};", f"DEPTH={depth};", "ADDRESS_RADIX=HEX;", "DATA_RADIX=HEX;"]
        wide = -(-table.address_bits // 4)
        lines += ["CONTENT BEGIN", *(f"{at:0{wide}X} : {word:0{digits}X};" for at, word in enumerate(words)), "END;"]
    else:
        lines += ["memory_initialization_radix=16;", "memory_initialization_vector="]
        lines += [f"{word:0{digits}X}{',' if at + 1 < depth else ';'}" for at, word in enumerate(words)]
    return "\n".join(lines) + "\n"
