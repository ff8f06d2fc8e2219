"""The text of a package in SystemVerilog whose covergroups have softnum's bins.

What is rounded off takes the exact result and is left to ``softnum vectors coverage``, which counts it in the answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softnum.formats.modes import Flags
from softnum.runtime.config import __version__
from softnum.vectors.benches.wiring import Wiring
from softnum.vectors.covered.record import identifier
from softnum.vectors.covered.ucis import COVERGROUP
from softnum.vectors.plans.coverage import Bins, Coverage
from softnum.vectors.plans.generator import plan
from softnum.vectors.plans.spec import Spec
from softnum.vectors.plans.unit_spec import UnitSpec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["class_ranges", "coverage_package_of"]

_ENUMERATED = 16  # bits of formats all of whose codes are looked at
_NOT_HERE = "rounded off"

_TEXT = """\
// Functional coverage of {top}, {op}: the bins that softnum counts.
// Made by softnum {version}: softnum rtl bench.
//
// tb_{top}.sv samples it with +define+SOFTNUM_COVERGROUPS, in a simulator that has covergroups. What is rounded off is
// counted by softnum vectors coverage, in the answers: it takes the exact result. Names of bins are those of softnum's
// files of coverage, so that a simulator's UCIS XML is added to them by the same command.
`timescale 1ns / 1ps
package coverage_{top}_pkg;
{functions}
`ifdef SOFTNUM_COVERGROUPS
{groups}
    class softnum_coverage;
{members}
        function new();
{made}
        endfunction

        // A vector with the design's answer; one with unknown bits is not counted.
        function void sample({arguments});
            if (^{{{names}}} === 1'bx) return;
{body}
        endfunction
    endclass
`endif
endpackage
"""


def _places(fmt) -> list[int]:
    """Codes at which another class may begin."""
    if fmt.bits <= _ENUMERATED:
        return list(range(1 << fmt.bits))
    names = ("nan_code", "inf_code", "max_code", "zero_code")
    ends = [getattr(fmt, name, None) for name in names] + list(fmt.limit_codes().values())
    ends += [1 << i for i in range(fmt.bits + 1)] + [0]
    if quiet := fmt.mantissa_bits if fmt.has_fields else 0:
        ends += [int(e) | 1 << (quiet - 1) for e in ends if e is not None]
    signs = (0, 1 << (fmt.bits - 1))
    near = {(int(e) ^ sign) + d for e in ends if e is not None for sign in signs for d in (-1, 0, 1)}
    return sorted(code for code in near if 0 <= code < 1 << fmt.bits)


def class_ranges(fmt: AnyFormat) -> list[tuple[int, int, int]]:
    """The codes of each class of a format, in order: (first, last, number into ``class_names``).

    >>> import softnum as sn
    >>> class_ranges(sn.format("e2m1fn"))[:3]
    [(0, 0, 6), (1, 1, 7), (2, 7, 8)]
    """
    places = _places(fmt)
    numbers = fmt.class_numbers(fmt.stored(places)).tolist()
    found: list[tuple[int, int, int]] = []
    for code, number in zip(places, numbers, strict=True):
        if found and found[-1][2] == number:
            continue
        if found:
            found[-1] = (found[-1][0], code - 1, found[-1][2])
        found.append((code, (1 << fmt.bits) - 1, number))
    return found


def _function(name: str, fmt) -> str:
    """A function of a code that gives its class."""
    ranges, bits = class_ranges(fmt), fmt.bits
    lines = [f"    function automatic int {name}(input logic [{bits - 1}:0] code);"]
    for _, last, number in ranges[:-1]:
        lines.append(f"        if (code <= {bits}'h{last:x}) return {number};  // {fmt.class_names[number]}")
    number = ranges[-1][2]
    lines.append(f"        return {number};  // {fmt.class_names[number]}")
    return "\n".join([*lines, "    endfunction"])


def _zeros(fmt) -> list[int]:
    return [i for i, name in enumerate(fmt.class_names) if name.lower().endswith("zero")]


class _Package:
    """Functions, covergroups, and how a vector is sampled."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.coverage = Coverage(spec)
        block = next(plan(spec, count=1).blocks())
        self.coverage.add(spec.block_of([column[:0] for column in block.columns]))  # the bins, all 0
        self.functions: dict[object, tuple[str, str]] = {}

    def class_of(self, fmt, code: str) -> str:
        """The class of a code, as an expression."""
        if fmt not in self.functions:
            name = f"class_{len(self.functions)}"
            self.functions[fmt] = (name, _function(name, fmt))
        return f"{self.functions[fmt][0]}({code})"

    def binade(self, fmt, code: str, bins: Bins) -> str:
        low = fmt.mantissa_bits + fmt.explicit_bit
        coarse = fmt.exponent_bits - (len(bins.labels).bit_length() - 1)
        return f"int'({code}[{low + fmt.exponent_bits - 1}:{low + coarse}])"

    def _field(self, fmt, code: str) -> str:
        low = fmt.mantissa_bits + fmt.explicit_bit
        return f"int'({code}[{low + fmt.exponent_bits - 1}:{low}]) - {fmt.bias}"

    def value(self, bins: Bins) -> str:
        """What a group of an operation counts, as an expression of a vector's columns."""
        columns, out = self.spec.operand_columns, self.spec.out_fmt
        for column in columns:
            if bins.name == f"binades of {column.name}":
                return self.binade(column.format, column.name, bins)
        if bins.name == "class of the result":
            return self.class_of(out, "result")
        if bins.name.startswith("exponent of"):
            fields = [self._field(c.format, c.name) for c in columns]
            less = fields[-1]
            first = f"({fields[0]}) + ({fields[1]})" if len(fields) == 3 else f"({fields[0]})"
            reach = (len(bins.labels) - 3) // 2
            return f"clipped({first} - ({less}), {reach})"
        if bins.name == "flags raised":
            return "flags"
        if bins.name == "results at the limits":
            marks = list(out.limit_codes().values())
            size = f"(result & {out.bits}'h{(1 << (out.bits - out.signed)) - 1:x})"
            parts = [f"{size} == {out.bits}'h{code:x}" for code in marks]
            zero = " || ".join(f"{self.class_of(out, 'result')} == {number}" for number in _zeros(out)) or "1'b0"
            parts += [f"({zero}) && flags[0]", f"flags[{int(Flags.OVERFLOW).bit_length() - 1}]"]
            return "{" + ", ".join(reversed(parts)) + "}"
        value = ""  # the classes of all operands together
        for column in columns:
            own = self.class_of(column.format, column.name)
            value = f"({value}) * {len(column.format.class_names)} + {own}" if value else own
        return value

    def text(self, top: str) -> str:
        """The package."""
        spec, groups = self.spec, self.coverage.groups.values()
        columns = [c for c in spec.columns if c.name != "random"]
        arguments = ", ".join(f"input logic [{c.width - 1}:0] {c.name}" for c in columns)
        names = ", ".join(c.name for c in columns)
        if isinstance(spec, UnitSpec):
            covergroups, members, made, body, looks = self._of_elements()
        else:
            points = [bins for bins in groups if bins.name != _NOT_HERE]
            looks = [_look(bins, arguments, self.value(bins)) for bins in points]
            covergroups = [_covergroup(COVERGROUP, points)]
            members, made = [f"{COVERGROUP} counted;"], ["counted = new;"]
            values = ",\n                ".join(f"at_{identifier(bins.name)}({names})" for bins in points)
            body = [f"            counted.sample(\n                {values}\n            );"]
        functions = [text for _, text in self.functions.values()]
        if any(bins.name.startswith("exponent of") for bins in groups):
            functions.append(_CLIPPED)
        return _TEXT.format(
            top=top, op=spec.op, version=__version__, functions="\n".join([*functions, *looks]),
            groups="\n".join(covergroups), members="\n".join(f"        {line}" for line in members),
            made="\n".join(f"            {line}" for line in made), body="\n".join(body), arguments=arguments,
            names=names,
        )  # fmt: skip

    def _of_elements(self) -> tuple[list[str], ...]:
        """Of a unit, whose columns have several elements each: a covergroup for each column, sampled by element."""
        covergroups, members, made, body, looks = [], [], [], [], []
        for column in self.spec.columns:
            if column.format is None or column.name == "random":
                continue
            name = f"{COVERGROUP}_of_{column.name}"
            own = (f"classes of {column.name}", f"binades of {column.name}")
            points = [self.coverage.groups[group] for group in own if group in self.coverage.groups]
            code = f"input logic [{column.bits - 1}:0] code"
            looks.append(_look(points[0], code, self.class_of(column.format, "code")))
            looks += [_look(bins, code, self.binade(column.format, "code", bins)) for bins in points[1:]]
            part = f"{column.name}[{column.bits} * i +: {column.bits}]"
            values = ", ".join(f"at_{identifier(bins.name)}({part})" for bins in points)
            covergroups.append(_covergroup(name, points))
            members.append(f"{name} counted_{column.name};")
            made.append(f"counted_{column.name} = new;")
            body += [f"            for (int i = 0; i < {column.count}; i = i + 1)",
                     f"                counted_{column.name}.sample({values});"]  # fmt: skip
        return covergroups, members, made, body, looks


_CLIPPED = """\
    function automatic int clipped(input int difference, input int reach);
        if (difference < -reach) return 0;
        if (difference > reach) return 2 * reach + 2;
        return difference + reach + 1;
    endfunction"""


def _kind(bins: Bins) -> str:
    """The type of what a coverpoint looks at: the number of a bin, or a bit for each bin."""
    masks = bins.name in ("flags raised", "results at the limits")
    return f"logic [{len(bins.labels) - 1}:0]" if masks else "int"


def _look(bins: Bins, arguments: str, value: str) -> str:
    """The function that says which bins a vector hits."""
    name = f"at_{identifier(bins.name)}"
    return f"    function automatic {_kind(bins)} {name}({arguments});\n        return {value};\n    endfunction"


def _covergroup(name: str, points: list[Bins]) -> str:
    lines = []
    for bins in points:
        point = identifier(bins.name)
        lines.append(f"        {point}: coverpoint {point}_hit {{")
        impossible, n = set(bins.impossible), len(bins.labels)
        masks = _kind(bins) != "int"
        places = [int(f).bit_length() - 1 for f in Flags] if bins.name == "flags raised" else range(n)
        for label, i in zip(bins.labels, places, strict=True):
            value = f"{n}'b{'?' * (n - 1 - i)}1{'?' * i}" if masks else str(i)
            kind = "ignore_bins" if label in impossible else "bins"
            lines.append(f"            {'wildcard ' if masks else ''}{kind} {identifier(label)} = {{{value}}};")
        lines.append("        }")
    arguments = ", ".join(f"{_kind(bins)} {identifier(bins.name)}_hit" for bins in points)
    head = f"    covergroup {name} with function sample({arguments});"
    return "\n".join([head, "        option.per_instance = 1;", *lines, "    endgroup"])


def coverage_package_of(wiring: Wiring) -> str:
    """The package ``coverage_TOP_pkg``.

    Returns
    -------
    str
        Functions that give classes of codes, and with SOFTNUM_COVERGROUPS defined a covergroup ``softnum_bins`` (of a
        unit one for each column) and a class ``softnum_coverage`` whose ``sample`` takes a vector with its answer.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> from softnum.vectors.benches.roles import wiring_of
    >>> design = stated_design("mul", "a:in:4,b:in:4,result:out:4")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e2m1fn"), handshake_named("combinational"))
    >>> [line.strip() for line in coverage_package_of(wiring).splitlines() if "coverpoint" in line][:2]
    ['classes_of_a_b: coverpoint classes_of_a_b_hit {', 'binades_of_a: coverpoint binades_of_a_hit {']
    """
    return _Package(wiring.spec).text(wiring.design.top)
