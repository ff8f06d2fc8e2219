"""Vector files that are compressed: gzip and xz, out by a file's name, in by its first bytes, in constant memory."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["COMPRESSIONS", "Peeked", "Unreadable", "compressed", "opened"]

#: suffix -> (name, first bytes)
COMPRESSIONS = {".gz": ("gzip", b"\x1f\x8b"), ".xz": ("xz", b"\xfd7zXZ\x00")}

_READ = 1 << 16
#: xz states in its header how much memory its dictionary takes; `xz -9` takes 65 MB
_XZ_MEMORY = 1 << 28
#: digits hardly shrink further, and take many times as long
_GZIP_LEVEL, _XZ_PRESET = 1, 0


class Unreadable(Exception):
    """A compressed stream that is cut off or damaged; what came out before is good."""


class Peeked:
    """A binary stream of which the first bytes can be looked at before they are read.

    >>> import io
    >>> from softnum.vectors.files.compressed import Peeked
    >>> stream = Peeked(io.BytesIO(b"3C 3D"))
    >>> stream.peek(2), stream.read(100)
    (b'3C', b'3C')
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self._held = b""

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, or all there are."""
        while len(self._held) < size:
            try:
                data = self.stream.read(size - len(self._held))
            except Unreadable:  # `read` says so, behind what is held
                break
            if not data:
                break
            if isinstance(data, str):
                raise TypeError("a file opened in binary mode is needed")
            self._held += data
        return self._held[:size]

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end."""
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
            return data
        return self.stream.read(size)


class _Decompressed:
    """What a compressed stream of one or more members holds, as a stream."""

    def __init__(self, stream, name: str) -> None:
        self.stream, self.name = stream, name
        self._input, self._decoder, self._members, self._given = b"", None, 0, 0
        self._problem = None

    def _unreadable(self, how: str) -> Unreadable:
        self._problem = f"the {self.name} stream {how} after {self._given} bytes of text; make or copy the file again"
        return Unreadable(self._problem)

    def _step(self, size: int) -> bytes:
        if self.name == "gzip":
            data = self._decoder.decompress(self._input, size)
            self._input = self._decoder.unconsumed_tail
        else:
            data = self._decoder.decompress(self._input, size)
            self._input = b""
        if self._decoder.eof:
            self._input, self._decoder = self._decoder.unused_data, None
        return data

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end. Raises Unreadable."""
        if self._problem is not None:
            raise Unreadable(self._problem)
        while True:
            ended = False
            if not self._input and (self._decoder is None or self.name == "gzip" or self._decoder.needs_input):
                self._input = self.stream.read(_READ)
                ended = not self._input
            if self._decoder is None:
                if self._members:
                    self._input = self._input.lstrip(b"\0")  # padding between members
                if not self._input:
                    if ended:
                        return b""
                    continue
                self._members += 1
                gzip_decoder = self.name == "gzip"
                self._decoder = zlib.decompressobj(31) if gzip_decoder else lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
            try:
                data = self._step(size)
            except (zlib.error, lzma.LZMAError, EOFError) as error:
                raise self._unreadable(f"is damaged ({error})") from None
            if data:
                self._given += len(data)
                return data
            if ended and self._decoder is not None:
                raise self._unreadable("is truncated: it ends")


def opened(stream: BinaryIO) -> Peeked:
    """The stream, decompressed if its first bytes are those of gzip or xz.

    >>> import gzip, io
    >>> from softnum.vectors.files.compressed import opened
    >>> opened(io.BytesIO(gzip.compress(b"3C 3D 3D 00"))).read(100)
    b'3C 3D 3D 00'
    """
    peeked = Peeked(stream)
    for name, magic in COMPRESSIONS.values():
        if peeked.peek(len(magic)) == magic:
            return Peeked(_Decompressed(peeked, name))
    return peeked


@contextlib.contextmanager
def compressed(file: BinaryIO, path: PathLike) -> Iterator[Any]:
    """A file to write to that compresses if the path ends in .gz or .xz; the same vectors give the same bytes.

    >>> import io
    >>> from softnum.vectors.files.compressed import compressed
    >>> out = io.BytesIO()
    >>> with compressed(out, "v.txt.gz") as file:
    ...     _ = file.write(b"3C 3D 3D 00")
    >>> out.getvalue()[:2]
    b'\\x1f\\x8b'
    """
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix == ".gz":  # without a name and a time
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as wrapped:
            yield wrapped
    elif suffix == ".xz":
        with lzma.LZMAFile(file, "wb", preset=_XZ_PRESET) as wrapped:
            yield wrapped
    else:
        yield file
