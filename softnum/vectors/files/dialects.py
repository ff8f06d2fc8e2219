"""The dialects of vector files: how each is written, read and recognised. One table for the library and the program."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from softnum.vectors.files.compressed import COMPRESSIONS, opened
from softnum.vectors.files.fptest import FptestLayout
from softnum.vectors.files.layouts import BinaryMemoryLayout, CsvLayout, HexMemoryLayout, JsonLayout
from softnum.vectors.files.npz import NpzReader, NpzWriter, check_size
from softnum.vectors.files.text import TextLayout, VectorReader
from softnum.vectors.plans.spec import Block, Spec

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["DIALECTS", "Dialect", "TextWriter", "dialect_named", "dialect_of_path", "open_reader", "recognised"]

_LOOK = 1 << 13


class TextWriter:
    """Writes blocks of vectors to a file in a dialect of text.

    Parameters
    ----------
    file : binary file
    spec : VectorSpec or UnitSpec
    header : dict or None
        What the lines at the top say, if there are any.
    layout : type
        The dialect's layout.
    """

    def __init__(self, file: BinaryIO, spec: Spec, header: dict[str, str] | None, *, layout: type[TextLayout]) -> None:
        self.file, self.layout = file, layout(spec)
        if header is not None:
            file.write(layout.header_lines(header))
        file.write(self.layout.names())

    def write(self, block: Block) -> None:
        """The lines of some vectors."""
        self.file.write(self.layout.format(block))

    def close(self) -> None:
        """All vectors are written."""


@dataclass(frozen=True)
class Dialect:
    """A file format for vectors.

    ``writer(file, spec, header)`` has ``write(block)`` and ``close()``; ``reader(stream, source)`` has ``header``,
    ``skipped`` and ``rows(spec, unknown=)`` as `VectorReader` has them; ``check(spec, count)`` raises ValueError if the
    dialect cannot hold such vectors, or so many. ``header`` says whether a file says by default
    what it holds, ``suffixes`` which names of files stand for the dialect.
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    writer: Callable[..., Any]
    reader: Callable[..., Any]
    check: Callable[..., Any]
    header: bool = True


def _text(name: str, layout: type[TextLayout], summary: str, *suffixes: str, header: bool = True) -> Dialect:
    writer, reader = (partial(kind, layout=layout) for kind in (TextWriter, VectorReader))
    return Dialect(name, summary, suffixes, writer, reader, lambda spec, count: layout(spec), header)


#: name -> Dialect
DIALECTS: dict[str, Dialect] = {
    d.name: d
    for d in (
        _text("softnum", TextLayout, "TestFloat's text below lines of comment that say what it holds", ".txt", ".tv"),
        _text("testfloat", TextLayout, "TestFloat's text alone: its programs know no comments", header=False),
        _text("readmemh", HexMemoryLayout, "a memory file of Verilog, in hexadecimal", ".mem", ".hex", ".memh"),
        _text("readmemb", BinaryMemoryLayout, "a memory file of Verilog, in binary", ".bin.mem", ".memb"),
        _text("fptest", FptestLayout, "IBM FPgen's test suite (binary16, binary32, binary64)", ".fptest"),
        _text("csv", CsvLayout, "comma-separated values with a line of names", ".csv"),
        _text("jsonl", JsonLayout, "a JSON object a line", ".jsonl", ".ndjson"),
        Dialect("npz", "NumPy arrays of codes, one a column", (".npz",), NpzWriter, NpzReader, check_size),
    )
}  # fmt: skip


def dialect_named(name: str) -> Dialect:
    """The dialect of a name, or ValueError.

    >>> from softnum.vectors.files.dialects import dialect_named
    >>> dialect_named("readmemh").suffixes
    ('.mem', '.hex', '.memh')
    """
    if name not in DIALECTS:
        near = difflib.get_close_matches(str(name), DIALECTS, n=1, cutoff=0.6)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown dialect {name!r}{hint} (known: {', '.join(DIALECTS)})")
    return DIALECTS[name]


def dialect_of_path(path: PathLike) -> Dialect | None:
    """The dialect that a file's name stands for, or None; .gz or .xz may follow.

    >>> from softnum.vectors.files.dialects import dialect_of_path
    >>> dialect_of_path("out/mul.bin.mem.gz").name
    'readmemb'
    """
    name = os.path.basename(os.fspath(path)).lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    found = [(len(suffix), d.name) for d in DIALECTS.values() for suffix in d.suffixes if name.endswith(suffix)]
    return DIALECTS[max(found)[1]] if found else None


def recognised(head: bytes) -> Dialect:
    """The dialect that a file's first bytes look like; what looks like none is taken for TestFloat's text.

    >>> from softnum.vectors.files.dialects import recognised
    >>> [recognised(text).name for text in (b"3C 3D 3D 00", b"a,b,result,flags", b"// words", b'{"a":"3C"}')]
    ['softnum', 'csv', 'readmemh', 'jsonl']
    """
    if head.startswith(b"PK\x03\x04"):
        return DIALECTS["npz"]
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    lines = [line for line in lines if line and not line.startswith(b"#")]
    if not lines:
        return DIALECTS["softnum"]
    if lines[0].startswith(b"{"):
        return DIALECTS["jsonl"]
    if any(re.match(rb"[bd]\d+\S* .*->", line) for line in lines):
        return DIALECTS["fptest"]
    words = re.sub(rb"//[^\n]*|/\*.*?(\*/|\Z)|@\S*", b"", b"\n".join(lines), flags=re.DOTALL).split(b"\n")
    words = [word.strip() for word in words if word.strip()]
    if lines[0].startswith((b"//", b"/*", b"@")) or (words and len(words[0].split()) == 1 and b"," not in words[0]):
        binary = words and all(re.fullmatch(rb"[01xXzZ_ \t]+", word) for word in words)
        return DIALECTS["readmemb" if binary or b"--dialect readmemb" in head else "readmemh"]
    return DIALECTS["csv" if b"," in lines[0] else "softnum"]


def open_reader(stream: BinaryIO, source: str, dialect: str | None = None) -> VectorReader | NpzReader:
    """A reader of a stream of vectors.

    Parameters
    ----------
    stream : binary file
        Plain, or compressed by gzip or xz.
    source : str
        The file's name: error messages name it, and its ending says of which dialect it is.
    dialect : str, optional
        A name of `DIALECTS`; by default what the file's name ends in, else what its first bytes look like.

    Returns
    -------
    VectorReader, or what has its ``header``, ``skipped`` and ``rows(spec, unknown=)``

    Raises
    ------
    VectorFileError
        If the file is empty, or no file of that dialect.
    ValueError
        For an unknown dialect.

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import VectorSpec, open_reader
    >>> reader = open_reader(io.BytesIO(b"a,b,result,flags\\n3C,3D,3D,00\\n"), "v.csv")
    >>> next(reader.rows(VectorSpec.make("multiply", "e5m2"))).block.result
    array([61], dtype=uint8)
    """
    if dialect is not None:
        return dialect_named(dialect).reader(stream, source)
    found = dialect_of_path(source)
    if found is None or found.name == "softnum":
        stream = opened(stream)
        found = recognised(stream.peek(_LOOK))
    return found.reader(stream, source)
