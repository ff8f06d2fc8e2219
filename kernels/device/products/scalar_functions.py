"""Users' functions as functions of the device: what `softnum.kernels.scalar` makes becomes C text over the core.

A function is copied, with what it reads from outside: in place of a Scalar there is a module whose functions are the
Scalar's methods, and functions of the user's that it calls are copied too.
"""

from __future__ import annotations

import builtins
import dis
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType

import numpy as np

from softnum.formats.c_text import environment_text, format_text
from softnum.formats.custom.primitives import place_of
from softnum.formats.dispatch import of_format
from softnum.formats.facts import facts
from softnum.kernels.device.elementwise.patterns import pattern_facts, pattern_text
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.source import Entry, Library
from softnum.kernels.host.scalars import OPERANDS, Scalar, carrier_format
from softnum.ops.custom_tables import table_in_part

__all__ = ["device_function", "may_contract", "methods_of", "scalar_library", "table_text"]

_DIVISIONS = ("//", "%", "/")
_SAME = {  # of math and numpy
    "abs", "absolute", "ceil", "copysign", "fabs", "floor", "isfinite", "isinf", "isnan", "ldexp", "sign", "signbit",
    "sqrt", "trunc",
}  # fmt: skip
_NAN = {"float32": "sn_float32(0x7fc00000u)", "float64": "sn_float64(0x7ff8000000000000u)"}
_TABLE_BITS = 8
_KNOWN = ("numpy", "numba", "math", "softnum")  # modules whose functions Numba compiles itself


# ---- Scalars ---------------------------------------------------------------------------------------------------------


def table_text(name: str, table: np.ndarray) -> str:
    """A C array of 16-bit integers."""
    return f"SN_TABLE short {name}[] = {{{','.join(map(str, table.ravel().tolist()))}}};\n"


def _odd(scalar: Scalar, name: str) -> str | None:
    """An expression in C for the exact result or what it is rounded to odd; None outside the domain (scalar.h)."""
    if scalar.carrier == "codes" or name not in ("round", "add", "subtract", "multiply", "fma"):
        return None
    found = pattern_facts(scalar.format, scalar.environment, "float64")
    if found is None:
        return None
    if name == "round":
        return "sn_widen(a)" if scalar.carrier == "float32" else "a"
    random = scalar.environment[3] if scalar.stochastic else 0
    precision, last = facts(scalar.format).precision, facts(scalar.format).last
    if precision + 2 + random > 53 or last - 2 - random < -1074:
        return None
    if scalar.rounding == "down" and name != "multiply":
        return None
    if scalar.carrier == "float32":
        a, b, c = "sn_widen(a)", "sn_widen(b)", "sn_widen(c)"
        product = f"sn_multiply64({a}, {b})"
        return {
            "add": f"sn_add_odd64({a}, {b})", "subtract": f"sn_add_odd64({a}, -{b})", "multiply": product,
            "fma": f"sn_add_odd64({product}, {c})",
        }[name]  # fmt: skip
    if found["is_fixed"] or found["value_overflow"] != found["value_infinity"]:
        return None
    return {"add": "sn_add_odd64(a, b)", "subtract": "sn_add_odd64(a, -b)"}.get(name)


def _by_definition(scalar: Scalar, name: str) -> str:
    """The body of an operation by the definition."""
    letters = "abc"[: OPERANDS[name][1]]
    codes = scalar.carrier == "codes"
    taken = "(sn_u64){}" if codes else {"float32": "sn_bits32({})", "float64": "sn_bits64({})"}[scalar.carrier]
    given = ", ".join(f"&g, {taken.format(x)}" for x in letters)
    body = "const sn_format f = _format(), g = _carrier();\nconst sn_env env = _env();\nsn_u32 flags = 0;\n"
    if codes:
        most = f"(sn_u64)1 << {scalar.format.bits}"
        body += f"if ({' || '.join(f'(sn_u64){x} >= {most}' for x in letters)}) return -1;\n"
    body += f"const sn_u64 code = sn_{OPERANDS[name][0]}({given}, &f, &env, word, &flags);\n"
    if codes:
        return body + "return flags & SN_NO_CODE ? -1 : (sn_i64)code;"
    back = {"float32": "sn_float32((sn_u32)bits)", "float64": "sn_float64(bits)"}[scalar.carrier]
    return body + (
        f"sn_u32 status = 0;\nconst sn_u64 bits = sn_carrier_of(&f, code, &g, &status);\n"
        f"return flags & SN_NO_CODE ? {_NAN[scalar.carrier]} : {back};"
    )


def _by_core(scalar: Scalar, name: str) -> tuple[str, str]:
    """(constants, body) of an operation that the core's functions round."""
    before = "" if scalar.stochastic else "const sn_u32 word = 0;\n"
    exact = _odd(scalar, name)
    if exact is None:
        return "", before + _by_definition(scalar, name)
    width = 32 if scalar.carrier == "float32" else 64
    return "", f"{before}const sn_pattern p = _pattern();\nreturn sn_settled{width}(&p, {exact}, word);"


def _by_table(scalar: Scalar, name: str) -> tuple[str, str]:
    """(constants, body) of an operation of a custom format on two codes."""
    fmt = scalar.format
    if OPERANDS[name][1] != 2 or fmt.bits > _TABLE_BITS:
        raise TypeError(
            f"{scalar}.{name} is not there on the device, where formats of the user's own have operations of two "
            f"operands and up to {_TABLE_BITS} bits; {fmt} has {fmt.bits}"
        )
    cells = table_in_part(fmt, OPERANDS[name][0], scalar.rounding, scalar.overflow)
    text = table_text(f"_cells_{name}", cells)
    most = f"(sn_u64)1 << {fmt.bits}"
    return text, (
        f"if ((sn_u64)a >= {most} || (sn_u64)b >= {most}) return -1;\nreturn _cells_{name}[a << {fmt.bits} | b];"
    )


@of_format
def _text_of(fmt, scalar: Scalar, names):
    """(constants, what makes (constants, body) of a Scalar and an operation's name)"""
    constants = format_text("_carrier", carrier_format(scalar)) + format_text("_format", fmt)
    constants += environment_text("_env", scalar.environment)
    if any(_odd(scalar, name) for name in names):
        constants += pattern_text("_pattern", fmt, scalar.environment, "float64")
    return constants, _by_core


@_text_of.custom
def _table_text_of(fmt, scalar: Scalar, names):
    return "", _by_table


@lru_cache(maxsize=256)
def scalar_library(scalar: Scalar, names: tuple[str, ...]) -> Library:
    """Entries of the methods of a Scalar: of numbers of its carrier (codes: int64), in stochastic modes with a word.

    Raises TypeError for an operation that the device does not have.
    """
    number = "int64" if scalar.carrier == "codes" else scalar.carrier
    constants, body_of = _text_of(scalar.format, scalar, names)
    entries = []
    for name in names:
        if name == "round" and scalar.carrier == "codes":
            raise TypeError(f"{scalar}.round: codes of {scalar.format} are rounded already")
        arguments = tuple((number, x) for x in "abc"[: OPERANDS[name][1]])
        arguments += (("uint32", "word"),) if scalar.stochastic else ()
        constant, body = body_of(scalar, name)
        constants += constant
        entries.append(Entry(name, number, arguments, body))
    return Library(constants, tuple(entries), "softnum/device/scalar.h")


@lru_cache(maxsize=256)
def methods_of(scalar: Scalar, names: tuple[str, ...]):
    """The methods of these names as device functions, by their names."""
    return _cuda.bind(scalar_library(scalar, names))


def _module(scalar: Scalar, names: tuple[str, ...]) -> ModuleType:
    """The same as a module, whose functions compiled code finds by their names."""
    module = ModuleType(f"softnum.kernels.{scalar}")
    module.__dict__.update(vars(methods_of(scalar, names)))
    return module


# ---- functions -------------------------------------------------------------------------------------------------------


def _codes_of(code: CodeType) -> list[CodeType]:
    return [code, *(part for c in code.co_consts if isinstance(c, CodeType) for part in _codes_of(c))]


def may_contract(function) -> bool:
    """Whether a function, or one that it calls, multiplies by Python's operator, and adds by one or by what Numba makes
    of additions: of floats, the device's compiler may make one operation of the two, which rounds once."""
    parts = _plain_functions(function)
    signs = {sign for part in parts for sign in _operators(part)}
    names = {name for part in parts for code in _codes_of(part.__code__) for name in code.co_names}
    return "*" in signs and bool(signs & {"+", "-", "//", "%"} or names & {"complex", "divmod", "sum"})


def _operators(function: FunctionType) -> list[str]:
    return [
        instruction.argrepr.rstrip("=")
        for code in _codes_of(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname == "BINARY_OP"
    ]


def _plain_functions(function, seen: tuple = ()) -> tuple:
    """A function of the user's and those that it calls."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType) or plain in seen or plain.__module__.partition(".")[0] in _KNOWN:
        return seen
    names = {name for code in _codes_of(plain.__code__) for name in code.co_names}
    outside = [plain.__globals__[name] for name in names if name in plain.__globals__]
    outside += [cell.cell_contents for cell in plain.__closure__ or ()]
    for part in outside:
        seen = _plain_functions(part, (*seen, plain))
    return seen if plain in seen else (*seen, plain)


def _check_same(x, what: str) -> None:
    """TypeError for a function of Python's or NumPy's whose last bits differ between the host's and the device's."""
    module = (getattr(x, "__module__", None) or "").partition(".")[0]
    if module == "_operator" or x is pow:
        raise TypeError(
            f"{what} calls {x.__name__}: write operators themselves (a * b), and powers as products; or copy the CUDA "
            "arrays to the host first"
        )
    known = (
        callable(x) and not isinstance(x, type) and (isinstance(x, np.ufunc) or module in ("math", "cmath", "numpy"))
    )
    if known and x.__name__ not in _SAME:
        raise TypeError(
            f"{what} calls {x.__name__}, which the device computes to other bits; copy the CUDA arrays to the host "
            "first"
        )


def _check_attribute(module: ModuleType, instruction, what: str) -> ModuleType | None:
    """TypeError for what a function does with a module but to take a value that may be taken; a module in it, if it
    takes that."""
    if instruction.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
        raise TypeError(
            f"{what} hands the module {module.__name__} on; kernels take functions of modules by their names"
        )
    found = getattr(module, instruction.argval, None)
    _check_same(found, what)
    if isinstance(getattr(found, "py_func", found), FunctionType) and module.__name__.partition(".")[0] not in _KNOWN:
        raise TypeError(
            f"{what} calls {module.__name__}.{instruction.argval}: import the function by its own name, so that "
            "kernels can have it too"
        )
    return found if isinstance(found, ModuleType) else None


def check_function(function: FunctionType, what: str, on_codes: bool) -> None:
    """TypeError for what the device computes otherwise than the host, and does not tell: exceptions, powers and
    functions of a mathematical library, and on codes divisions by what may be zero."""
    where = f"{what} ({place_of(function)})"
    read = dict(function.__globals__)
    read |= zip(function.__code__.co_freevars, (c.cell_contents for c in function.__closure__ or ()), strict=True)
    for code in _codes_of(function.__code__):
        previous = module = None
        for instruction in dis.get_instructions(code):
            if module is not None:
                module = _check_attribute(module, instruction, where)
            elif instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
                found = read.get(instruction.argval, getattr(builtins, instruction.argval, None))
                _check_same(found, where)
                module = found if isinstance(found, ModuleType) else None
            if instruction.opname == "BINARY_OP" and instruction.argrepr.rstrip("=") == "**":
                raise TypeError(
                    f"{where} takes powers, which the device computes to other bits; multiply or shift instead, or "
                    "copy the CUDA arrays to the host first"
                )
            if instruction.opname == "RAISE_VARARGS":
                raise TypeError(
                    f"{what} ({place_of(function)}) raises exceptions, which kernels cannot tell of; return what is no "
                    "code or a NaN instead, or copy the CUDA arrays to the host first"
                )
            divides = instruction.opname == "BINARY_OP" and instruction.argrepr.rstrip("=") in _DIVISIONS
            constant = previous is not None and previous.opname == "LOAD_CONST" and previous.argval
            if on_codes and divides and not constant:
                raise TypeError(
                    f"{what} ({place_of(function)}) divides codes, and kernels cannot tell of a division by zero; "
                    "divide by constants, or copy the CUDA arrays to the host first"
                )
            previous = instruction


@lru_cache(maxsize=1)
def _choices() -> dict:
    """min and max of two numbers, as Python has them."""
    jit = _cuda.cuda.jit(device=True)
    return {"min": jit(lambda a, b: b if b < a else a), "max": jit(lambda a, b: b if b > a else a)}


def device_function(function, what: str, on_codes: bool):
    """A user's function for kernels.

    Raises TypeError if it does what kernels cannot.
    """
    made = _converted(getattr(function, "py_func", function), what, on_codes, {})
    if not _cuda.SIMULATOR:
        return made

    def quiet(*numbers):
        with np.errstate(all="ignore"):
            return made(*numbers)

    return quiet


def _converted(function: FunctionType, what: str, on_codes: bool, seen: dict):
    if function in seen:
        if seen[function] is None:
            raise TypeError(f"{what} ({place_of(function)}) calls itself, which kernels do not; write a loop")
        return seen[function]
    seen[function] = None
    check_function(function, what, on_codes)
    names = {name for code in _codes_of(function.__code__) for name in code.co_names}
    used = tuple(name for name in OPERANDS if name in names)

    def outside(x):
        _check_same(x, f"{what} ({place_of(function)})")
        if isinstance(x, Scalar):
            return _module(x, tuple(n for n in used if n != "round" or x.carrier != "codes"))
        plain = getattr(x, "py_func", x)
        if isinstance(plain, FunctionType) and plain.__module__.partition(".")[0] not in _KNOWN:
            return _converted(plain, what, on_codes, seen)
        return x

    read = {name: outside(function.__globals__[name]) for name in names if name in function.__globals__}
    if not on_codes:  # of floats: the device's own take NaNs and zeros of two signs otherwise
        read |= {name: choice for name, choice in _choices().items() if name in names - set(read)}
    cells = function.__closure__ and tuple(CellType(outside(cell.cell_contents)) for cell in function.__closure__)
    read["__builtins__"] = function.__globals__.get("__builtins__", __builtins__)
    copy = FunctionType(function.__code__, read, function.__name__, function.__defaults__, cells)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    seen[function] = _cuda.cuda.jit(device=True)(copy)
    return seen[function]
