"""What a preset is: how its unit is made, and what each of the unit's properties rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from softnum.mac.mad import Unit

__all__ = ["DISPUTED", "KINDS", "MATLAB", "MMA_SIM", "ZERO_OF_MMA_SIM", "Evidence", "Made", "Preset"]

#: What a property of a unit can rest on, the strongest first.
KINDS = ("recorded", "measured", "published", "published, disputed", "modelled")

#: Whose choices there are besides the presets' own, where sources disagree.
DISPUTED = ("mma-sim", "matlab")

MMA_SIM = "MMA-Sim (arXiv 2511.10909)"
MATLAB = "the models of MATLAB-tensor-core (since August 2026)"
ZERO_OF_MMA_SIM = -126  # the exponent that it gives to any zero


@dataclass(frozen=True)
class Evidence:
    """What one property of a unit rests on.

    ``kind``: "recorded" (results that the hardware computed are reproduced bit for bit, and a unit without the property
    would fail them), "measured" (compared with the instruction itself by a test), "published" (stated by the source
    only), "published, disputed" (sources state different things, as ``source`` tells, and no hardware has been asked)
    or "modelled" (chosen here, as nothing states it). ``source``: where from, in words.
    """

    kind: str
    source: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"evidence is one of {', '.join(KINDS)}, got {self.kind!r}")


#: A unit, and what its properties rest on, by name.
Made = tuple[Unit, dict[str, Evidence]]


@dataclass(frozen=True)
class Preset:
    """How the unit of a name is made.

    ``make(output)``: the unit with an output of `outputs`; with None, or where there are none, its own.
    ``disputed``: by a name of `DISPUTED`, what makes of (name, unit) the unit by other choices; missing where those
    are the preset's.
    """

    make: Callable[[str | None], Made]
    outputs: tuple[str, ...] = ()
    disputed: Mapping[str, Callable[[str, Unit], Made]] = field(default_factory=dict)

    def made(self, name: str, output: str | None, disputed: str | None) -> Made:
        """The unit; ValueError if there is none of this output, or these choices are the preset's."""
        if disputed is not None and disputed not in self.disputed:
            raise ValueError(f"unit {name!r}: the preset already follows {disputed!r}; leave out disputed={disputed!r}")
        if output is not None and not self.outputs:
            raise ValueError(f"unit {name!r} has one output; leave out output={output!r}")
        if output is not None and output not in self.outputs:
            raise ValueError(f"unit {name!r} has the output {' or '.join(self.outputs)}, not {output}")
        made, evidence = self.make(output)
        return (made, evidence) if disputed is None else self.disputed[disputed](name, made)
