"""A format's functions in C: found in the source, compiled, tried, and called over arrays of codes."""

from __future__ import annotations

import ctypes
import re
from threading import Lock

import numpy as np

from softnum.formats.aliases import operation_alias
from softnum.formats.custom.compiler import RENAMED, compile_c
from softnum.formats.custom.primitives import storage_of
from softnum.formats.custom.source import CFunction, CSource
from softnum.formats.custom.trial import Call, sample_codes, sample_floats, try_out
from softnum.formats.operation_names import USER_OPERANDS
from softnum.runtime import _core

__all__ = ["CFunctions"]

_SHORT = ("sub", "mul", "div", "neg", "abs", "min", "max")  # names of a function of C that stand for an operation, too
_FLOATS = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
_BITS = re.compile(rb"softnum-bits=(\d\d);")


class CFunctions:
    """What `CustomFormat.from_c` takes from a source.

    ``bits``, ``operations`` (the names of the operations that are given), ``where`` (name -> file:line), and the
    functions themselves, over arrays: `as_float`, `convert` and `call`. ``convert_takes`` is float32 or float64.
    ``values_are`` is "float" or "double". ``source`` is the `CSource`, ``type`` the `CType` of a code.

    Raises
    ------
    ValueError
        If a function is missing, has no body or another signature; if the compiler refuses the source; if a function
        crashes, hangs or answers differently the second time.
    """

    language = "C"

    def __init__(self, given, type_name: str, cflags, what: str, file: str | None = None) -> None:
        self.source = CSource(given, what, cflags, file)
        self.what = what
        self.type = self.source.type(type_name)
        found = {"as_float": self._needed("as_float"), "convert": self._needed("convert"), **self._operations()}
        without = [f for f in found.values() if not f.has_body]
        if without:
            names = "; ".join(f"{f} ({f.where})" for f in without)
            raise self.source.refuse(
                f"declared without a body: {names}; write the body, or remove the declaration: the operation is then "
                "derived from as_float and convert"
            )
        self.where = {name: f.where for name, f in found.items()}
        self.operations = tuple(name for name in found if name not in ("as_float", "convert"))
        self.values_are = found["as_float"].returns
        self.convert_takes = _FLOATS[found["convert"].parameters[0]]
        library = compile_c(self.source.with_codes(self.type) + self._loops(found), cflags=cflags, what=what)
        self.bits = int(_BITS.search(library.read_bytes())[1])
        self.storage = storage_of(self.bits)
        self._arity = {name: len(f.parameters) for name, f in found.items()}
        try_out(library, [self._call(name, f) for name, f in found.items()], what=what)
        self._library = ctypes.CDLL(str(library))
        self._alone = Lock()  # a user's function may keep notes between its calls

    # -- what the source has -------------------------------------------------------------------------------------------
    def _needed(self, name: str) -> CFunction:
        function = self.source.functions.get(name)
        kind, floats = self.type.name, " or ".join(_FLOATS)
        wanted = f"float as_float({kind})" if name == "as_float" else f"{kind} convert(float)"
        if function is None:
            raise self.source.refuse(f"a format in C needs the function '{wanted}', which the source does not define")
        value, code = (function.returns, function.parameters) if name == "as_float" else (None, (function.returns,))
        if name == "convert":
            value = function.parameters[0] if len(function.parameters) == 1 else None
        if value not in _FLOATS or code != (kind,):
            raise self.source.refuse(
                f"{function.where}: '{function}' must be '{wanted}' (where float is {floats}), without pointers"
            )
        return function

    def _operations(self) -> dict[str, CFunction]:
        found = {}
        kind = self.type.name
        for given, function in self.source.functions.items():
            name = operation_alias(given) if given in _SHORT else given
            operands = USER_OPERANDS.get(name)
            types = (function.returns, *function.parameters)
            if operands is None or not any(re.search(rf"\b{kind}\b", t) for t in types):
                continue  # a function of the user's own
            if types != (kind,) * (operands + 1):
                wanted = f"{kind} {given}({', '.join([kind] * operands)})"
                raise self.source.refuse(f"{function.where}: '{function}' must be '{wanted}', without pointers")
            if name in found:
                raise self.source.refuse(
                    f"{function.where}: {name} is defined twice, as {given} and {found[name].name}"
                )
            found[name] = function
        return {name: found[name] for name in USER_OPERANDS if name in found}

    # -- the library ---------------------------------------------------------------------------------------------------
    def _loops(self, found) -> str:
        loops = [
            '\n#pragma GCC visibility push(default)\n# 1 "softnum"\nconst char softnum_about[] = {'
            + ", ".join(f"'{c}'" for c in "softnum-bits=")
            + ", '0' + SOFTNUM_BITS / 10, '0' + SOFTNUM_BITS % 10, ';'};\n"
        ]
        for name, f in found.items():
            operand = f.parameters[0] if name == "convert" else "softnum_code"
            letters = "abc"[: len(f.parameters)]
            taken = ", ".join(f"{x}[i]" if name == "convert" else f"softnum_unpack({x}[i])" for x in letters)
            called = f"{RENAMED}{f.name}({taken})"
            result, value = "softnum_code", f"softnum_pack({called})"
            if name == "as_float":
                result, value = "double", called
            arrays = "".join(f"const {operand} *{x}, " for x in letters)
            loops.append(
                f"void softnum_loop_{name}(int64_t n, {arrays}{result} *out) {{ "
                f"for (int64_t i = 0; i < n; i++) out[i] = {value}; }}\n"
            )
        return "".join(loops)

    def _call(self, name: str, f: CFunction) -> Call:
        def operands():
            if name == "convert":
                return [sample_floats(self.convert_takes)]
            return sample_codes(*[self.bits] * self._arity[name])

        result = np.float64 if name == "as_float" else self.storage
        return Call(f"softnum_loop_{name}", operands, result, str(f), f.where)

    def _run(self, name: str, arrays, result) -> np.ndarray:
        out = np.empty(np.broadcast_shapes(*(x.shape for x in arrays)), result)
        arrays = [np.ascontiguousarray(np.broadcast_to(x, out.shape)) for x in arrays]
        with self._alone, _core.PlainEnvironment():
            getattr(self._library, f"softnum_loop_{name}")(
                ctypes.c_int64(out.size), *(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out))
            )
        return out

    def as_float(self, codes) -> np.ndarray:
        """The values of codes, float64."""
        return self._run("as_float", [np.asarray(codes, self.storage)], np.float64)

    def convert(self, values) -> np.ndarray:
        """The codes that the user's convert gives for values of the type that it takes."""
        return self._run("convert", [np.asarray(values, self.convert_takes)], self.storage)

    def call(self, name: str, *codes) -> np.ndarray:
        """An operation that the user has given, on codes that broadcast."""
        return self._run(name, [np.asarray(x, self.storage) for x in codes], self.storage)

    def partly(self, name: str, *operands) -> tuple[np.ndarray, None]:
        """(codes that convert or an operation gives, None): what C answers is a code."""
        return self.convert(*operands) if name == "convert" else self.call(name, *operands), None

    # -- identity ------------------------------------------------------------------------------------------------------
    @property
    def key(self) -> tuple:
        """What tells formats in C apart: their text with its headers, type and flags."""
        return self.source.digest, self.type.name, tuple(self.source.cflags)

    def rebuilding(self, name: str) -> tuple:
        """What `rebuilt` takes."""
        source = self.source
        return source.text, self.type.name, name, tuple(source.cflags), source.file, source.digest

    @classmethod
    def rebuilt(cls, text: str, type_name: str, name: str, cflags: tuple, file: str | None, digest: str) -> CFunctions:
        """The functions of a format that was pickled: from the text as it was read, if its headers are what they were.

        ValueError if they are not.
        """
        what = f"CustomFormat {name}"
        if CSource(text, what, cflags, file).digest != digest:
            raise ValueError(
                f"{what}: a file that its source includes has changed since the format was pickled; make the format "
                "again"
            )
        return cls(text, type_name, cflags, what, file)
