"""What each port is for, by its name, width and direction; what is not clear is an error that names the option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from softnum.vectors.benches.handshakes import Handshake
from softnum.vectors.benches.opcodes import COLUMNS, opcodes_of
from softnum.vectors.benches.ports import Design, Port
from softnum.vectors.benches.wiring import FLAG_NAMES, Wiring
from softnum.vectors.plans.spec import Spec
from softnum.vectors.wires import Wire, wire_named

__all__ = ["wiring_of"]

_DIRECTIONS = {"i", "o", "in", "out", "input", "output", "ni", "no", "s", "m"}
_RESET = re.compile(r"(?:i_)?(n_?)?(?:[as]|sys|sync|async|glbl)?_?(?:rst|reset)_?(n|b|l|ni|n_i)?(?:_i|_in)?")
_CLOCKS = {"clk", "clock", "aclk", "ck", "sysclk", "clkin", "clki"}
_ENABLES = {"en", "ena", "enable", "ce", "clken", "clockenable", "clkenable", "clkena"}
_VALIDS = {"valid", "vld", "stb", "strobe", "start", "req", "go", "done", "finish", "finished", "valids"}
_READIES = {"ready", "rdy", "ack", "acknowledge"}
_OPERAND = re.compile(r"(?:frs|rs|src|op|opd|opr|operand|data|din|in|input|arg|val|num|fp)?([abcxy]|[0-3])(?:in)?")
_SCALES = "scales?|scalefactors?|sf|sc|sharedexp|exp|e8m0"
_OF_ARRAYS = "tensor|tensorscale|globalscale|global"
_FIRST = {"first", "start", "init", "new", "begin", "clear"}
_RANDOM = {"random", "rand", "rnd", "randombits", "lfsr", "prng", "noise"}
_MASKS = {"mask", "simdmask", "lanemask", "vm", "v0", "predicate"}
_OLD = {"old", "olddata", "rd", "vd", "dest", "destination", "merge", "passthru"}
_RESULTS = {
    "result",
    "res",
    "z",
    "y",
    "q",
    "r",
    "p",
    "s",
    "sum",
    "product",
    "quotient",
    "data",
    "dout",
    "answer",
    "acc",
}
_FLAGS = {"flags", "flag", "fflags", "status", "exceptions", "exception", "exc", "fpflags"}
_FLAG = {
    "invalid": {"invalid", "nv", "iv", "inv", "ine_nv"}, "divide_by_zero": {"dividebyzero", "divbyzero", "dz", "dbz"},
    "overflow": {"overflow", "of", "ovf", "ovfl"}, "underflow": {"underflow", "uf", "unf", "udf"},
    "inexact": {"inexact", "nx", "ine", "ix"},
}  # fmt: skip


def _core(name: str) -> str:
    """A name without what says its direction: input_a_stb is astb, result_o is result."""
    parts = [part for part in re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower().split("_") if part]
    kept = [part for part in parts if part not in _DIRECTIONS]
    return "".join(kept or parts)


def _words(name: str) -> set[str]:
    lower = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
    words = set(lower.split("_"))
    return words | {re.sub(r"^[iosm](?=[a-z]{3})|(?:in|out|i|o)$", "", word) for word in words if word != "invalid"}


def _whole(port: Port) -> Wire:
    return Wire(port.name, port.width - 1, 0)


class _Search:
    """Ports that have no role yet, and the roles that were found."""

    def __init__(self, design: Design, spec: Spec, handshake: Handshake, reset_active: str | None) -> None:
        self.wiring, self.design, self.reset_active = Wiring(design, spec, handshake), design, reset_active
        self.none: set[str] = set()
        self.taken: set[str] = set()

    def give(self, role: str, wire: Wire) -> None:
        self.wiring.wires[role] = wire
        self.taken.add(wire.port)

    def wanted(self, role: str) -> bool:
        return role not in self.wiring.wires and role not in self.none

    def free(self, direction: str, width: int | None = None) -> list[Port]:
        return [p for p in self.design.ports if p.direction == direction and p.name not in self.taken
                and width in (None, p.width)]  # fmt: skip

    def only(self, role: str, ports: list[Port]) -> None:
        """Give the role to the one port that there is; several are an error."""
        if not ports or not self.wanted(role):
            return
        if len(ports) > 1:
            names = ", ".join(str(port) for port in ports)
            raise ValueError(
                f"{self.design.top}: {role} may be any of {names}; say which: --port {role}={ports[0].name}"
            )
        self.give(role, _whole(ports[0]))

    # -- what is not data ----------------------------------------------------------------------------------------------
    def controls(self) -> None:
        self.only("clock", [p for p in self.free("in", 1) if _core(p.name) in _CLOCKS])
        self.only("reset", [p for p in self.free("in", 1) if _RESET.fullmatch(p.name.lower())])
        if reset := self.wiring.wires.get("reset"):
            found = _RESET.fullmatch(reset.port.lower())
            by_name = found is not None and bool(found[1] or found[2])
            self.wiring.reset_low = by_name if self.reset_active is None else self.reset_active == "low"
        elif self.reset_active is not None:
            raise ValueError(f"{self.design.top} has no reset that its name shows: state it with --port reset=NAME")
        if self.wiring.handshake.kind == "latency":
            self.only("enable", [p for p in self.free("in", 1) if _core(p.name) in _ENABLES])

    def handshakes(self) -> None:
        if self.wiring.handshake.kind == "combinational":
            return
        for role, direction, words in (
            ("valid", "in", _VALIDS), ("ready", "out", _READIES), ("valid", "out", _VALIDS), ("ready", "in", _READIES),
        ):  # fmt: skip
            if role == "ready" and not self.wiring.handshake.flows:
                continue
            side = "in" if (role == "valid") == (direction == "in") else "out"
            ports = [p for p in self.free(direction, 1) if _words(p.name) & words]
            if side == "in" and len(ports) > 1:
                ports = self._of_operands(role, words, ports)
            self.only(f"{role}_{side}", ports)

    def _of_operands(self, role: str, words: set[str], ports: list[Port]) -> list[Port]:
        """Give each operand its own valid or ready, if there is one for each; else the ports as they are."""
        names, found = self.wiring.operands, {}
        for port in ports:
            rest = "".join(part for part in re.split(r"_", port.name.lower()) if part not in words | _DIRECTIONS)
            match = _OPERAND.fullmatch(rest)
            if match and (number := _ordinal(match[1], False)) < len(names):
                found[names[number]] = port
        if len(found) < len(names):
            return ports
        for name, port in found.items():
            if self.wanted(f"{role}_{name}"):
                self.give(f"{role}_{name}", _whole(port))
        return [port for port in ports if port.name not in self.taken]

    def unwired(self) -> set[str]:
        """Columns of mixed vectors that need no port: opcodes encode them, or they have one value."""
        if self.wiring.spec.op != "mixed":
            return set()
        encoded = {opcode.column for opcode in self.wiring.opcodes}
        return {name for name, names in zip(COLUMNS, self.wiring.spec.names, strict=True)
                if name in encoded or len(names) == 1}  # fmt: skip

    # -- data ----------------------------------------------------------------------------------------------------------
    def operands(self) -> None:
        spec, columns = self.wiring.spec, [c for c in self.wiring.spec.columns if c.name not in ("result", "flags")]
        for name, words in (("first", _FIRST), ("random", _RANDOM), ("mask", _MASKS), ("old", _OLD)):
            for column in columns:
                if column.name == name and self.wanted(name):
                    self.only(name, [p for p in self.free("in", column.width) if _core(p.name) in words])
        columns = [c for c in columns if c.name not in self.unwired()]
        self.scales([c for c in columns if c.name.startswith(("scale_", "tensor_"))])
        missing = [c for c in columns if c.name not in self.wiring.wires]
        if not missing:
            return
        lettered = [c.name for c in columns if c.name in "abc"]
        named = {p: _OPERAND.fullmatch(_core(p.name)) for p in self.free("in")}
        zero = any(m and m[1] == "0" for m in named.values())
        for column in [c for c in missing if c.name in lettered]:
            place = lettered.index(column.name)
            ports = [p for p, m in named.items() if m and _ordinal(m[1], zero) == place and p.width == column.width]
            if len(ports) == 1:
                self.give(column.name, _whole(ports[0]))
        missing = [c for c in columns if c.name not in self.wiring.wires]
        left = [p for p in self.free("in") if p.width in {c.width for c in missing} and p.name not in self.wiring.tied]
        if [p.width for p in left] == [c.width for c in missing] and len(missing) == len(columns):
            for column, port in zip(missing, left, strict=True):
                self.give(column.name, _whole(port))
            self.wiring.by_order = bool(missing) and len(columns) > 1
            return
        if missing:
            free = ", ".join(str(p) for p in self.free("in") if p.name not in self.wiring.tied) or "no input is left"
            wanted = ", ".join(f"{c.name} ({c.width} bit{'s' if c.width > 1 else ''})" for c in missing)
            raise ValueError(
                f"{self.design.top}: no input is clearly {wanted} of {spec.op}; left are: {free}; say which: --port "
                f"{missing[0].name}=NAME, or NAME[HIGH:LOW] for a part of a port"
                + (f"; --encode {missing[0].name}.NAME:PORT=VALUE gives opcodes" if spec.op == "mixed" else "")
            )

    def scales(self, columns) -> None:
        """Of blocks, inputs that are called scale_a, b_scale, sf_0 ... and, of arrays, tensor_a ..."""
        for column in columns:
            words = _SCALES if column.name.startswith("scale_") else _OF_ARRAYS
            form = re.compile(rf"(?:{words})([abxy0-2])|([abxy0-2])(?:{words})")
            found = {p: form.fullmatch(_core(p.name)) for p in self.design.ports}
            letters = {p: m[1] or m[2] for p, m in found.items() if m}
            place, zero = "ab".index(column.name[-1]), "0" in letters.values()
            free = self.free("in", column.width)
            self.only(column.name, [p for p in free if p in letters and _ordinal(letters[p], zero) == place])

    def answers(self) -> None:
        columns = {c.name: c for c in self.wiring.spec.columns}
        if "flags" in columns and not any(name in self.wiring.wires for name in FLAG_NAMES):
            self.only("flags", [p for p in self.free("out", 5) if _words(p.name) & _FLAGS])
        if "flags" in columns and "flags" not in self.wiring.wires:
            for name in FLAG_NAMES:
                self.only(name, [p for p in self.free("out", 1) if _core(p.name) in _FLAG[name]])
        if not self.wanted("result"):
            return
        ports = self.free("out", columns["result"].width)
        by_name = [p for p in ports if _core(p.name) in _RESULTS]
        self.only("result", by_name if len(by_name) == 1 else ports)
        if "result" not in self.wiring.wires:
            free = ", ".join(str(p) for p in self.free("out")) or "none"
            raise ValueError(
                f"{self.design.top}: no output has the {columns['result'].width} bits of the result; outputs left: "
                f"{free}; say which: --port result=NAME[HIGH:LOW], or state the design's --parameter or --format"
            )


def _ordinal(letter: str, from_zero: bool) -> int:
    if letter.isdigit():
        return int(letter) - (not from_zero) if letter != "0" else 0
    return {"a": 0, "x": 0, "b": 1, "y": 1, "c": 2}[letter]


def wiring_of(
    design: Design, spec: Spec, handshake: Handshake, *, ports: Mapping[str, str] | None = None,
    tied: Mapping[str, int] | None = None, encode: Sequence[str] = (), reset_active: str | None = None,
) -> Wiring:  # fmt: skip
    """Find out what each port is for.

    Parameters
    ----------
    design : Design
    spec : Spec
        What the design computes: its columns want a port each.
    handshake : Handshake
    ports : mapping of str to str, optional
        Role to NAME, NAME[BIT] or NAME[HIGH:LOW]; "none" keeps a role from being guessed. Names say the rest.
    tied : mapping of str to int, optional
        Inputs that keep a value.
    encode : sequence of str
        Of mixed vectors, what inputs are for an operation, mode or format (`opcodes_of`); 0, or what they are tied to,
        for the others.
    reset_active : {"low", "high"}, optional
        By default what the reset's name says.

    Returns
    -------
    Wiring

    Raises
    ------
    ValueError
        If a port may be several things, an input is left over, a width does not fit, or the handshake misses a signal;
        the message names the ports and the option.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> design = stated_design("mul", "clk_i:in,rst_ni:in,opa:in:8,opb:in:8,res_o:out:8")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e4m3"), handshake_named("latency:2"))
    >>> {role: str(wire) for role, wire in wiring.wires.items()}
    {'clock': 'clk_i', 'reset': 'rst_ni', 'a': 'opa', 'b': 'opb', 'result': 'res_o'}
    >>> wiring.reset_low
    True
    """
    search = _Search(design, spec, handshake, reset_active)
    columns = {c.name: c.width for c in spec.columns}
    by_name = {port.name: port for port in design.ports}
    for name, value in (tied or {}).items():
        if name not in by_name or by_name[name].direction != "in":
            inputs = ", ".join(p.name for p in design.ports if p.direction == "in")
            raise ValueError(f"--tie {name}: {design.top} has no such input; it has {inputs}")
        if value < 0 or value >> by_name[name].width:
            raise ValueError(f"--tie {name}={value}: the value does not fit the {by_name[name].width} bits of {name}")
        search.wiring.tied[name] = value
        search.taken.add(name)
    search.wiring.opcodes = opcodes_of(encode, spec, design)
    search.taken.update(search.wiring.encoded)
    for port in search.wiring.encoded:
        search.wiring.tied.setdefault(port, 0)
    for role, text in (ports or {}).items():
        role = re.sub(r"^stb_", "valid_", re.sub(r"^ack_", "ready_", role))
        _check_role(role, search.wiring, columns)
        if text == "none":
            search.none.add(role)
            continue
        wire = wire_named(text, {port.name: port.width for port in design.ports}, role, design.top)
        inputs = role in search.wiring.operands or role in ("clock", "reset", "enable", "ready_out") or (
            role.startswith("valid_") and role != "valid_out")  # fmt: skip
        if (by_name[wire.port].direction == "in") != inputs:
            raise ValueError(f"--port {role}={text}: {role} is an {'input' if inputs else 'output'} of the design, and "
                             f"{by_name[wire.port]} is none")  # fmt: skip
        width = columns.get(role, 1)
        if wire.width != width:
            raise ValueError(f"--port {role}={text}: {role} has {width} bit{'s' if width > 1 else ''}, {wire} has "
                             f"{wire.width}; state --parameter or --format, or a part, NAME[HIGH:LOW]")  # fmt: skip
        search.give(role, wire)
    search.controls()
    search.handshakes()
    search.operands()
    search.answers()
    _check(search.wiring, search)
    search.wiring.open = [p.name for p in search.free("out")]
    order = ("clock", "reset", "enable", *search.wiring.operands)
    wires = search.wiring.wires
    search.wiring.wires = {
        r: wires[r] for r in (*(r for r in order if r in wires), *(r for r in wires if r not in order))
    }
    return search.wiring


def _check_role(role: str, wiring: Wiring, columns) -> None:
    each = [f"{kind}_{name}" for name in wiring.operands for kind in ("valid", "ready")]
    roles = ["clock", "reset", "enable", *columns, *(FLAG_NAMES if "flags" in columns else ())]
    roles += ["valid_in", "ready_in", "valid_out", "ready_out"]
    if role not in (*roles, *each):
        raise ValueError(
            f"--port: no role {role!r} (there are {', '.join(roles)}, and valid_a, ready_a ... of operands)"
        )


def _check(wiring: Wiring, search: _Search) -> None:
    top, wires, kind = wiring.design.top, wiring.wires, wiring.handshake.kind
    used: dict[str, list[tuple[int, int, str]]] = {}
    for role, wire in wires.items():
        for high, low, other in used.get(wire.port, []):
            if low <= wire.high and wire.low <= high:
                raise ValueError(f"{top}: bits of {wire.port} are given to {other} and to {role}; each has one role")
        if wire.port in wiring.encoded:
            raise ValueError(f"--encode gives {wire.port} a value, and --port {role}={wire} gives it a role; state one")
        used.setdefault(wire.port, []).append((wire.high, wire.low, role))
    if kind == "combinational" and "clock" in wires:
        raise ValueError(f"{top} has a clock, {wires['clock']}: state --handshake latency:N (0 where the result "
                         "follows the operands), valid-ready or stb-ack")  # fmt: skip
    if kind != "combinational" and "clock" not in wires:
        raise ValueError(f"{top}: no input is clearly the clock that {kind} needs; say which: --port clock=NAME")
    own = [n for n in wiring.operands if f"valid_{n}" in wires]
    if own and ("valid_in" in wires or len(own) < len(wiring.operands)):
        raise ValueError(f"{top}: either each of {', '.join(wiring.operands)} has a valid input, or all have one")
    if wiring.handshake.flows:
        if not own and "valid_in" not in wires:
            raise ValueError(f"{top}: no input says that operands are valid; say which: --port valid_in=NAME")
        if "valid_out" not in wires:
            raise ValueError(f"{top}: no output says that the result is valid; say which: --port valid_out=NAME")
        if own and "ready_in" in wires:
            raise ValueError(f"{top}: operands have valid inputs each, and {wires['ready_in']} is one ready for all; "
                             "put a module with one valid input around the design")  # fmt: skip
    widths = {port.name: port.width for port in wiring.design.ports if port.direction == "in"}
    for port in search.free("in"):
        raise ValueError(f"{top}: the input {port} has no role that its name shows; keep it at a value, --tie "
                         f"{port.name}=0, or say what it is, --port ROLE={port.name}")  # fmt: skip
    for port, parts in used.items():
        if port in widths and port not in wiring.tied and sum(h - l + 1 for h, l, _ in parts) < widths[port]:
            raise ValueError(f"{top}: some of the {widths[port]} bits of {port} have no role; give them a value with "
                             f"--tie {port}=0, or a role")  # fmt: skip
