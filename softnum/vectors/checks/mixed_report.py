"""What is found in files of several operations: a report of each, and what holds of whole words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softnum.runtime.columns import text_table
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.plans.mixed import MixedSpec

__all__ = ["MixedReport"]


def _compared(part) -> int:
    """How many vectors, or words of lanes."""
    return getattr(part, "words", part.vectors)


@dataclass
class MixedReport:
    """What `check` found in a mixed file.

    Attributes
    ----------
    source : str
    spec : MixedSpec
    parts : list of CheckReport and PackedReport
        One for each operation, mode and format, in the order of the header.
    unfilled : list of int
        Lines of the first results that do not have above their code what the header says, ones or zeros.
    unfilled_count : int
        How many there are.

    Examples
    --------
    >>> import os, tempfile
    >>> from softnum.vectors import VectorSpec, check, mixed_plan, write
    >>> path = os.path.join(tempfile.mkdtemp(), "v.txt")
    >>> write(mixed_plan([VectorSpec.make(op, "e2m1fn") for op in ("add", "multiply")], count=40), path)
    40
    >>> print(str(check(path)).replace(path, "v.txt"))
    operation  mode          format  checked  differ
    add        nearest_even  e2m1fn       20       0
    multiply   nearest_even  e2m1fn       20       0
    v.txt: mixed, 2 kinds: 40 vectors, all results and flags equal
    """

    source: str
    spec: MixedSpec
    parts: list[Any]
    unfilled: list[int] = field(default_factory=list)
    unfilled_count: int = 0
    error: str | None = None

    @property
    def vectors(self) -> int:
        """How many vectors were compared."""
        return sum(_compared(part) for part in self.parts)

    @property
    def failures(self) -> int:
        """How many differ, in their code, its flags or what is above it."""
        return sum(part.failures for part in self.parts) + self.unfilled_count

    @property
    def ok(self) -> bool:
        """Whether all are equal."""
        return not self.failures and self.error is None

    @property
    def exit_status(self) -> int:
        """0 all equal, 1 differences."""
        return int(self.failures > 0)

    @property
    def without_flags(self) -> bool:
        """Whether flags were not compared."""
        first = self.parts[0]
        return first.without_flags if isinstance(first, MixedReport) else first.ignore_flags

    @property
    def single(self) -> list[CheckReport]:
        """The reports of operations, of each lane one."""
        return [x for part in self.parts for x in (part.single if isinstance(part, MixedReport) else [part])]

    @property
    def nested(self) -> list[MixedReport]:
        """This report, and those of words of lanes among its parts."""
        return [self, *(x for part in self.parts if isinstance(part, MixedReport) for x in part.nested)]

    @property
    def of_words(self) -> list[tuple[str, str, str, list[int]]]:
        """What differs of whole words: (what, the problem, its kind, lines)."""
        if not self.unfilled_count:
            return []
        problem = f"{self.unfilled_count} results differ above their codes"
        return [("bits above codes", problem, "unfilled", self.unfilled)]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the reports of the parts."""
        return {
            "source": self.source, "vectors": self.vectors, "failures": self.failures, "unfilled": self.unfilled_count,
            "parts": [part.to_dict() for part in self.parts],
        }  # fmt: skip

    def __str__(self) -> str:
        lines = []
        for part in self.parts:
            if part.failures:
                lines.append(str(part))
        if self.unfilled_count:
            above = "ones (NaN boxes) above floats, zeros above integers" if self.spec.nan_box else "zeros above codes"
            first = ", ".join(map(str, self.unfilled))
            lines.append(f"{self.unfilled_count} results lack {above}; lines {first}")
        rows = [("operation", "mode", "format", "checked", "differ")]
        rows += [(*self.spec.key_of(p.spec), str(_compared(p)), str(p.failures)) for p in self.parts]
        lines.append(text_table(rows, numbers=2))
        what = "results" if self.without_flags else "results and flags"
        found = f"all {what} equal" if not self.failures else f"{self.failures} differ"
        lines.append(f"{self.source}: mixed, {len(self.parts)} kinds: {self.vectors} vectors, {found}")
        return "\n".join(lines)
