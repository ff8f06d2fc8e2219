"""The C library for simulators, called from Python."""

import ctypes

from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES

ERROR = 1 << 63
ONES = 2**64 - 1
u64 = ctypes.c_uint64


class Dpi:
    """The library with Python's types: handles by text, flags as a second result, errors as ValueError."""

    def __init__(self, lib):
        self.lib = lib

    def format(self, text):
        function = self.lib.softnum_dpi_format
        function.restype = u64
        handle = function(text.encode())
        if handle == ONES:
            raise ValueError(self.message())
        return handle

    def message(self):
        return self.lib.softnum_dpi_message().decode()

    def call(self, name, *arguments, restype=u64, flags=0):
        function = getattr(self.lib, f"softnum_dpi_{name}")
        function.restype = restype
        raised = u64(flags)
        given = [a if isinstance(a, (ctypes.Array, ctypes.c_double)) else u64(int(a) & ONES) for a in arguments]
        result = function(*given, ctypes.byref(raised))
        if raised.value & ERROR:
            assert restype is not u64 or result == ONES
            raise ValueError(self.message())
        return result, raised.value

    def operate(self, name, codes, formats, mode=0, word=0, **options):
        return self.call(name, *codes, self.format(formats), mode, word, **options)


def mode_of(rounding="nearest_even", overflow=None, bits=0, before=False, inputs=False, results=None, nan=0):
    """A mode as softnum_dpi.h packs it."""
    rule = 0 if overflow is None else 1 + OVERFLOW_RULES[overflow]
    flush = {None: 0, "before": 1, "after": 2}[results]
    packed = ROUNDING_MODES[rounding] | rule << 8 | before << 12 | inputs << 13 | flush << 14 | nan << 16
    return packed | bits << 24
