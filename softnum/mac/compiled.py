"""The function of a CustomMadUnit in C: read, compiled, tried in a child process, and called."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from softnum.arrays.conversion import decode

__all__ = ["CMad"]

_FLOATS = {"float": "float32", "double": "float64"}
_INTEGERS = {f"uint{bits}_t": bits for bits in (8, 16, 32, 64)} | {"uchar": 8, "ushort": 16, "uint": 32, "ulong": 64}
_TABLE_BITS = 16
_NUMBERS = {"float32": "float", "float64": "double", "codes": "int64_t"}


def _loops(vector: str, element: str, lanes: int, number: str, call: str, unpack: str, pack: str, tried: str) -> str:
    """C that calls the user's function: for rows of a product, and for the trial.

    softnum_products: columns j of the `count` products of a group, from acc[l * ldo + j], a[l] and b[l * ldb + j].
    softnum_try: the same function on operands in a row.
    """
    return f"""
# 1 "softnum"
_Static_assert(sizeof({vector}) == {lanes} * sizeof({element}), "a vector is its elements");
typedef {number} softnum_number;
static inline void softnum_group(const softnum_number *acc, uint64_t lda, const softnum_number *a, uint64_t step,
                                 const softnum_number *b, uint64_t ldb, softnum_number *out, uint64_t count) {{
    {element} softnum_e[3][{lanes}];
    {vector} softnum_v[3];
    for (uint64_t l = 0; l < {lanes}; l++) {{
        softnum_e[0][l] = {unpack}(l < count ? acc[l * lda] : 0);
        softnum_e[1][l] = {unpack}(l < count ? a[l * step] : 0);
        softnum_e[2][l] = {unpack}(l < count ? b[l * ldb] : 0);
    }}
    __builtin_memcpy(softnum_v, softnum_e, sizeof softnum_v);
    softnum_v[0] = {call};
    __builtin_memcpy(softnum_e, softnum_v, sizeof softnum_v[0]);
    for (uint64_t l = 0; l < {lanes}; l++)
        if (l < count) out[l * lda] = {pack}(softnum_e[0][l]);
}}
#pragma GCC visibility push(default)
void softnum_products(const softnum_number *acc, const softnum_number *a, const softnum_number *b, uint64_t ldb,
                      softnum_number *out, uint64_t ldo, uint64_t count, uint64_t n) {{
    if (count == {lanes})
        for (uint64_t j = 0; j < n; j++) softnum_group(acc + j, ldo, a, 1, b + j, ldb, out + j, {lanes});
    else
        for (uint64_t j = 0; j < n; j++) softnum_group(acc + j, ldo, a, 1, b + j, ldb, out + j, count);
}}
void softnum_try(int64_t n, const {tried} *acc, const {tried} *a, const {tried} *b, {tried} *out) {{
    for (int64_t i = 0; i < n; i += {lanes}) {{
        softnum_number x[{lanes}], y[{lanes}], z[{lanes}], r[{lanes}];
        const uint64_t count = (uint64_t)(n - i < {lanes} ? n - i : {lanes});
        for (uint64_t l = 0; l < count; l++) {{
            x[l] = (softnum_number)acc[(uint64_t)i + l];
            y[l] = (softnum_number)a[(uint64_t)i + l];
            z[l] = (softnum_number)b[(uint64_t)i + l];
        }}
        softnum_group(x, 1, y, 1, z, 1, r, count);
        for (uint64_t l = 0; l < count; l++) out[(uint64_t)i + l] = ({tried})r[l];
    }}
}}
"""


@dataclass(frozen=True)
class CMad:
    """A function in C of two or three numbers, or of two or three vectors of numbers, each element on its own.

    source: C text, or the path of a file. formats: of (acc, a, b). The numbers are float, double, unsigned integers
    that are codes, or the type of a code that the source declares (a struct of bit-fields), or vectors of that type:
    ``new_fp4``. digest: of the text that is compiled, headers and all: a file may change, a unit may not.
    """

    source: str
    name: str
    formats: tuple
    cflags: tuple = ()
    digest: str = ""

    @property
    def __name__(self) -> str:
        return self.name

    def __reduce__(self):
        return CMad, (
            self.source,
            self.name,
            self.formats,
            self.cflags,
            self.digest,
        )  # another process compiles it itself

    @cached_property
    def _what(self) -> str:
        return f"CustomMadUnit.from_c: {self.name}"

    @cached_property
    def _source(self):
        from softnum.formats.custom.source import CSource

        source = CSource(self.source, what=self._what, cflags=self.cflags)
        if self.digest and self.digest != source.digest:
            raise ValueError(f"{self._what}: {self.source} has changed since the unit was made; make the unit again")
        return source

    def fixed(self) -> CMad:
        """The function as its text is now."""
        return replace(self, digest=self._source.digest)

    @cached_property
    def _function(self):
        """The function as the source declares it; ValueError unless it is one that a unit can call."""
        source = self._source
        function = source.functions.get(self.name)
        if function is None:
            known = ", ".join(sorted(source.functions)) or "none"
            raise source.refuse(f"there is no function {self.name!r} in {source.name} (functions: {known})")
        if not function.has_body:
            raise source.refuse(f"{function.where}: {function} has no body")
        kinds = {function.returns, *function.parameters}
        if len(kinds) != 1 or len(function.parameters) not in (2, 3):
            raise source.refuse(
                f"{function.where}: a unit is T {self.name}(T a, T b), the product, or T {self.name}(T acc, T a, T b), "
                f"the new accumulator, all of one type; this is {function}"
            )
        return function

    @cached_property
    def _kind(self) -> tuple:
        """(carrier, element type, lanes, its CType or None)"""
        kind = self._function.returns
        if kind in _FLOATS:
            return _FLOATS[kind], kind, 1, None
        if kind in _INTEGERS:
            return "codes", kind, 1, None
        vector = kind[:-1] if kind[-1:] in "248" and kind[:-1].isidentifier() else ""
        if vector in (*_FLOATS, *_INTEGERS):
            raise self._source.refuse(
                f"{self._function.where}: {kind}: vectors are of a type that the source declares; take {vector}"
            )
        try:
            return "codes", kind, 1, self._source.type(kind)
        except ValueError:
            if not vector:
                raise
        return "codes", vector, int(kind[-1]), self._source.type(vector)

    def check(self) -> None:
        """ValueError unless the formats are those that the function's type can hold."""
        carrier, element, _, kind = self._kind
        for fmt in self.formats:
            if carrier == "codes" and kind is None and fmt.bits > _INTEGERS[element]:
                raise ValueError(f"{self._what}: {element} does not hold the {fmt.bits} bits of a code of {fmt}")
            if kind is not None and fmt.bits != self.formats[0].bits:
                raise ValueError(f"{self._what}: {element} holds codes of one width, and {fmt} has {fmt.bits} bits")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what the function takes."""
        return ("acc", "a", "b")[3 - len(self._function.parameters) :]

    @property
    def where(self) -> str:
        """Where the function stands: file:line."""
        return self._function.where

    @property
    def carrier(self) -> str:
        """What its numbers are: "float32", "float64" or "codes"."""
        return self._kind[0]

    @property
    def lanes(self) -> int:
        """Elements of its vectors, 1 if it takes numbers."""
        return self._kind[2]

    @cached_property
    def path(self) -> Path:
        """The compiled library."""
        from softnum.formats.custom.compiler import RENAMED, compile_c

        carrier, element, lanes, kind = self._kind
        given = ", ".join(("softnum_v[0]", "softnum_v[1]", "softnum_v[2]")[-len(self.parameters) :])
        call, tried = f"{RENAMED}{self.name}({given})", {"float32": "float", "float64": "double"}.get(carrier, element)
        if kind is None:
            text, unpack, pack = self._source.renamed(), f"({element})", ""
        else:
            text, unpack, pack, tried = self._source.with_codes(kind), "softnum_unpack", "softnum_pack", "softnum_code"
            bits, fmt = self.formats[0].bits, self.formats[0]
            text += f'_Static_assert(SOFTNUM_BITS == {bits}, "{element} must have {bits} bits, as {fmt} has");\n'
        loops = _loops(self._function.returns, element, lanes, _NUMBERS[carrier], call, unpack, pack, tried)
        return compile_c(text + loops, cflags=self.cflags, what=self._what)

    @property
    def symbol(self) -> str:
        """A name that no other library's function has."""
        return f"softnum_products_{self.path.stem}"

    def _try_out(self) -> None:
        """ValueError unless the function does twice the same in a child process, on numbers of its formats."""
        from softnum.formats.custom.trial import Call, sample_codes, try_out

        formats = self.formats[3 - len(self.parameters) :]
        number = np.dtype(self.carrier) if self.carrier != "codes" else None

        def operands():
            codes = sample_codes(*(f.bits for f in formats))
            if number is None:
                given = [np.ascontiguousarray(c, self._tried) for c in codes]
            else:
                given = [decode(c.astype(f.storage_dtype), f, number) for c, f in zip(codes, formats, strict=True)]
            return [np.zeros_like(given[0])] * (3 - len(given)) + given

        call = Call("softnum_try", operands, self._tried, self.name, self.where, shown=len(formats))
        try_out(self.path, [call], what=self._what)

    @property
    def _tried(self) -> np.dtype:
        """The type of the trial's operands."""
        carrier, element, _, kind = self._kind
        if carrier != "codes":
            return np.dtype(carrier)
        bits = self.formats[0].bits if kind is not None else _INTEGERS[element]
        return np.dtype(np.min_scalar_type(2**bits - 1))

    @cached_property
    def _products(self):
        """(the function of rows of products, the C type of its numbers)"""
        import ctypes

        self._try_out()
        number = {"float32": ctypes.c_float, "float64": ctypes.c_double}.get(self.carrier, ctypes.c_int64)
        function = ctypes.CDLL(os.fspath(self.path)).softnum_products
        pointer, size = ctypes.POINTER(number), ctypes.c_uint64
        function.argtypes, function.restype = [pointer, pointer, pointer, size, pointer, size, size, size], None
        return function, number

    @cached_property
    def table(self) -> np.ndarray | None:
        """The products of all codes, where there are 2**16 or fewer; None for others, and for a function of three.

        Raises ValueError if an element of a vector depends on where it stands.
        """
        from softnum.formats.custom.trial import sample_codes

        _, *formats = self.formats
        if self.carrier != "codes" or len(self.parameters) > 2 or sum(f.bits for f in formats) > _TABLE_BITS:
            return None
        a, b = (np.ascontiguousarray(c, self._tried) for c in sample_codes(*(f.bits for f in formats)))
        found = [np.roll(self._on_rows(np.roll(a, i), np.roll(b, i)), -i) for i in range(self.lanes)]
        for other in found:
            if not np.array_equal(found[0], other):
                at = np.flatnonzero(found[0] != other)[0]
                raise ValueError(
                    f"{self._what}: {self.name} ({self.where}) of 0x{a[at]:x} and 0x{b[at]:x} is 0x{found[0][at]:x} or "
                    f"0x{other[at]:x}, by its place in the vector; each element must be computed on its own, in one way"
                )
        return found[0].reshape(1 << formats[0].bits, 1 << formats[1].bits)

    def _on_rows(self, a, b) -> np.ndarray:
        """The products of codes in rows, as many at a time as a vector has."""
        import ctypes

        self.address  # noqa: B018  tried out first
        out, kind = np.empty_like(a), ctypes.POINTER(np.ctypeslib.as_ctypes_type(self._tried))
        arrays = [x.ctypes.data_as(kind) for x in (np.zeros_like(a), a, b, out)]
        ctypes.CDLL(os.fspath(self.path)).softnum_try(ctypes.c_int64(a.size), *arrays)
        return out

    @property
    def address(self) -> int:
        """Where this process has the function of rows of products."""
        import ctypes

        return ctypes.cast(self._products[0], ctypes.c_void_p).value

    def __call__(self, *numbers):
        """The function of single numbers; of vectors, with the other elements zero."""
        function, number = self._products
        acc, a, b = (number(x) for x in (0, *numbers)[-3:])
        out = number(0)
        function(acc, a, b, 1, out, 1, 1, 1)
        return int(out.value) if self.carrier == "codes" else np.dtype(self.carrier).type(out.value)
