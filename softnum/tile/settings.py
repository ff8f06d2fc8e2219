"""What a caller states for the tensors of an operator: formats, units and roundings, for all or by name."""

from __future__ import annotations

from softnum.arrays.container import Array
from softnum.formats.checks import check_single
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.mac.mad import Unit
from softnum.tile.program import Contraction
from softnum.tile.syntax import Access

__all__ = ["Settings"]

#: keys of a dict beside tensors' names: every gradient, and every tensor
GRADIENTS, ALL = "d*", "*"


class Settings:
    """The options of one call, looked up by tensor.

    A value is for all tensors; a dict has tensors' names, ``"d*"`` for gradients and ``"*"`` for all others. What is
    stated for a tensor by name goes first, then what the source declares, then ``"d*"``, then ``"*"``.
    """

    def __init__(self, program, inputs, fmt, unit, rounding, overflow, stochastic_bits) -> None:
        self.program = program
        self._formats = {name: _plain_format(f) for name, f in _table(fmt).items()}
        self._units = _table(unit)
        self._rounding = {name: rounding_name(r) for name, r in _table(rounding).items()}
        self._overflow, self._bits = _table(overflow), _table(stochastic_bits)
        self._declared = {name: format(text) for name, text in program.formats.items()}
        self._check_names()
        for name, given in self._units.items():
            if not isinstance(given, Unit):
                raise TypeError(f"{program.source.name}: the unit of {name!r} must be one of softnum's, got {given!r}")
        if ALL not in self._formats:
            known = {x.format for x in inputs if isinstance(x, Array)}
            if len(known) == 1:
                self._formats[ALL] = known.pop()
        tables = self._formats, self._rounding, self._overflow, self._bits
        #: formats and roundings, to tell two calls' apart
        self.key = tuple(tuple(sorted(table.items())) for table in tables)

    def _check_names(self) -> None:
        known = {step.base for step in self.program.steps} | {name for name, _ in self.program.inputs}
        known |= {f"d{name}" for name in known}
        tables = {
            "fmt": self._formats, "unit": self._units, "rounding": self._rounding, "overflow": self._overflow,
            "stochastic_bits": self._bits,
        }  # fmt: skip
        for option, table in tables.items():
            for name in table:
                if name not in known and name not in (GRADIENTS, ALL):
                    raise ValueError(
                        f"{self.program.source.name}: {option} names {name!r}, which is no tensor of the operator "
                        f'({", ".join(sorted(known - {"condition", "dcondition"}))}; "d*" is every gradient, "*" '
                        "every other tensor)"
                    )

    def is_stochastic(self, bases) -> bool:
        """Whether a rounding to one of these tensors is stochastic."""
        return any("stochastic_bits" in self.rounding(base) for base in bases) if self._rounding else False

    def _find(self, table: dict, base: str, default=None):
        keys = (base, GRADIENTS, ALL) if base in self.program.gradients else (base, ALL)
        return next((table[key] for key in keys if key in table), default)

    def stated_format(self, base: str):
        """The format stated for this very tensor, by the caller or the source; None if there is none."""
        return self._formats.get(base) or self._declared.get(base)

    def format(self, base: str):
        """The format of a tensor."""
        found = self.stated_format(base) or self._find(self._formats, base)
        if found is None and base in self.program.gradients:
            found = self.stated_format(base[1:])
        if found is None:
            raise ValueError(
                f"{self.program.source.name}: no format is stated for {base}; give fmt=, one format or a dict with "
                f'{base!r} or "*" for all'
            )
        return found

    def format_given(self, name: str):
        """The format of an input, of a gradient's program among them the outputs: that which their step gave them."""
        step = next((step for step in self.program.steps if step.name == name), None)
        if self.stated_format(name) is None and step is not None:
            if getattr(step, "aggregation", "") == "+" or getattr(step, "function", "") == "scatter":
                return self.unit(name).result
            if isinstance(step, Contraction) and step.aggregation != "*" and isinstance(step.body, Access):
                return self.format_given(step.body.name)
        return self.format(name)

    def unit(self, base: str) -> Unit:
        """The unit of a tensor's sums."""
        found = self._find(self._units, base)
        if found is None:
            raise ValueError(
                f"{self.program.source.name}: {base} is a sum: give unit=, one unit or a dict with {base!r} or "
                '"*" for all; its order and its accumulator are yours to state'
            )
        return found

    @property
    def stochastic(self) -> bool:
        """Whether something may round stochastically; if not, a key is for nothing."""
        return any(name.startswith("stochastic") for name in self._rounding.values()) or any(
            unit.stochastic for unit in self._units.values()
        )

    def rounding(self, base: str) -> dict:
        """The options of a rounding to a tensor, as `softnum.add` takes them."""
        options = {}
        rounding = self._find(self._rounding, base, "nearest_even")
        if rounding != "nearest_even":
            options["rounding"] = rounding
        overflow = self._find(self._overflow, base)
        if overflow is not None:
            options["overflow"] = overflow
        if rounding.startswith("stochastic"):
            options["stochastic_bits"] = self._find(self._bits, base, 32)
        return options


def _table(value) -> dict:
    if isinstance(value, dict):
        return dict(value)
    return {} if value is None else {ALL: value}


def _plain_format(fmt):
    check_single(fmt, "an operator's tensors have formats of single elements; {} is a block format")
    return format(fmt)
