"""What `check` found, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softnum.vectors.checks.causes import CAUSES
from softnum.vectors.checks.classes import FailureClass
from softnum.vectors.checks.failures import Failure
from softnum.vectors.plans.spec import Spec, VectorSpec

__all__ = ["CauseFound", "CheckReport"]

#: Classes of failures that the text lists.
_CLASSES_SHOWN = 8


@dataclass(frozen=True)
class CauseFound:
    """A cause that `check` names.

    Attributes
    ----------
    cause : str
        The identifier, a key of ``softnum.vectors.checks.causes.CAUSES``.
    detail : str
        The variant of the cause.
    explains : int
        The number of kept failing vectors that this cause explains; for `unexplained`, the number that remain.
    of : int
        How many failing vectors were kept.
    also : tuple of str
        Other causes that predict the same results on the vectors kept.
    example : Failure or None
        The simplest of these vectors.
    trace : list of str, list of dict
        Of a unit: the steps of the example, as a table and as data.
    confident : bool
        Whether vectors that it was not fitted to confirm it. Unconfirmed causes count as unexplained and are only
        described.
    held : (int, int) or None
        For a model of a wrong design: on how many of those vectors it is right, out of how many for which it predicts a
        difference.
    hides : int
        For a cause that, beside others, explains no failure by itself: how many vectors are right only because of it.
    changes : dict
        Those of the model that it is.

    Examples
    --------
    >>> from softnum.vectors.checks.report import CauseFound
    >>> CauseFound("truncation", "toward zero", 20, 20).sentence
    'what does not fit is cut off instead of rounded'
    """

    cause: str
    detail: str
    explains: int
    of: int
    also: tuple[str, ...] = ()
    example: Failure | None = None
    trace: tuple[list[str], list[dict[str, Any]]] | None = None
    confident: bool = False
    held: tuple[int, int] | None = None
    hides: int = 0
    changes: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def sentence(self) -> str:
        """A sentence that describes such a design."""
        return CAUSES[self.cause]

    def to_dict(self, spec: Spec) -> dict[str, Any]:
        """For JSON."""
        out = {name: getattr(self, name) for name in ("cause", "detail", "sentence", "explains", "of")}
        out |= {"confident": self.confident, "held": None if self.held is None else list(self.held)}
        out["hides"] = self.hides
        out["also"] = list(self.also)
        out["example"] = None if self.example is None else self.example.to_dict(spec)
        if self.trace is not None:
            out["trace"] = self.trace[1]
        return out

    def lines(self, spec: Spec) -> list[str]:
        """For the terminal."""
        name = f"{self.cause} ({self.detail})" if self.detail else self.cause
        noun = "failures" if self.example is None or self.example.before is None else "wrong steps"
        count = f"all {self.of} {noun}" if self.explains == self.of else f"{self.explains} of {self.of} {noun}"
        if self.hides:
            lead = "cause:" if self.confident else "unexplained, the nearest is"
            lines = [f"{lead} {name}: {self.hides} vectors are right for it that the others would make wrong"]
            lines.append(f"  {self.sentence}")
        elif self.confident:
            lines = [f"cause: {name}: explains {count}", f"  {self.sentence}"]
        elif self.cause == "unexplained":
            lines = [f"cause: {name}: {count}", f"  {self.sentence}"]
        elif self.held is not None:
            right, of = self.held
            lines = [f"unexplained, the nearest is {name}: {count}", f"  {self.sentence}"]
            lines.append(f"  but of {of} other vectors on which it makes a difference it is wrong on {of - right}")
        else:
            lines = [f"unexplained, all of one kind: {name}: {count}", f"  {self.sentence}"]
        if self.also:
            more = f" and {len(self.also) - 2} more" if len(self.also) > 3 else ""
            lines.append(f"  the same results on these vectors: {'; '.join(self.also[: 2 if more else 3])}{more}")
        if self.example is not None:
            lines.append(f"  smallest example, in line {self.example.line}:")
            lines += [f"    {line}" for line in self.example.explained(spec)]
        if self.trace is not None:
            lines += [f"    {line}" for line in self.trace[0]]
        return lines


@dataclass
class CheckReport:
    """What `check` found.

    Attributes
    ----------
    source : str
    spec : VectorSpec or UnitSpec
        The specification that the vectors were checked against.
    any_nan, ignore_flags, ulp : bool, bool, int
        The rules.
    vectors, failures : int
        How many vectors were read, and how many differ.
    result_failures, flag_failures, nan_failures : int
        How many differ in the result, in the flags, and in the result though it is NaN on both sides.
    unknown : int
        How many have unknown bits (x, z) in the result; they count as differing results.
    wrong_steps : int or None
        For a mac whose accumulator is visible: how many steps are wrong given the accumulator before them. The other
        differing steps propagate an earlier error.
    first : list of Failure
        Some of the differing vectors, the simplest first.
    causes : list of CauseFound
        The likeliest causes, those that explain most first; ``unexplained`` is the last, if something is left.
    contradicted : int
        How many of the kept vectors are right, though these causes would make them wrong.
    closest : str or None
        If no cause fits: the closest one, and how close it comes.
    classes : list of FailureClass
        The differing vectors in groups, the largest first.
    kept : tuple of int
        How many differing and how many equal vectors the causes were tested on; all of them if ``complete``.
    skipped : dict
        How many lines of the file were passed over, by the reason (only of IBM's files: `softnum.vectors.open_reader`).
    error : str or None
        Why reading ended early, if it did; the counts then cover the vectors before that point.
    """

    source: str
    spec: Spec
    any_nan: bool = False
    ignore_flags: bool = False
    ulp: int = 0
    vectors: int = 0
    failures: int = 0
    result_failures: int = 0
    flag_failures: int = 0
    nan_failures: int = 0
    unknown: int = 0
    wrong_steps: int | None = None
    first: list[Failure] = field(default_factory=list)
    causes: list[CauseFound] = field(default_factory=list)
    contradicted: int = 0
    closest: str | None = None
    classes: list[FailureClass] = field(default_factory=list)
    kept: tuple[int, int] = (0, 0)
    complete: bool = True
    skipped: dict[str, int] = field(default_factory=dict)
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything was read and nothing differs."""
        return not self.failures and self.error is None

    @property
    def exit_status(self) -> int:
        """0 all equal, 1 differences, 2 unusable input."""
        return 2 if self.error is not None else int(self.failures > 0)

    @property
    def what(self) -> str:
        """What the vectors are of, in a few words."""
        spec, facts = self.spec, self.spec.facts()
        if not isinstance(spec, VectorSpec):
            size = facts.get("length") or facts["shape"].replace(" ", " x ")
            return f"{spec.op} of {facts['unit']}, {'length' if 'length' in facts else 'shape'} {size}"
        what = f"{spec.op} {facts['format']}"
        if facts["result_format"] != facts["format"]:
            what += f" -> {facts['result_format']}"
        return what + f", {spec.rounding}" + (f" (r = {spec.stochastic_bits})" if spec.stochastic_bits else "")

    @property
    def verdict(self) -> str:
        """How many vectors differ, in one line."""
        flags = self.spec.has_flags and not self.ignore_flags
        if self.error is None and not self.failures:
            what = "results and flags" if flags else "results"
            within = f" within {self.ulp} ulp" if self.ulp else " equal"
            return f"{self.source}: {self.what}: {self.vectors} vectors, all {what}{within}"
        kinds = f"{self.result_failures} in the result"
        if flags:
            kinds += f", {self.flag_failures} in the flags"
        until = "" if self.error is None else " up to the unusable line"
        if self.wrong_steps is not None:
            kinds += f", by {self.wrong_steps} wrong steps; the others pass an error on"
        return f"{self.source}: {self.what}: {self.failures} of {self.vectors} vectors differ ({kinds}){until}"

    @property
    def judged_on(self) -> str:
        """Which vectors the causes were judged on, in one line; empty where it was all of them."""
        if self.complete or not self.causes:
            return ""
        return f"causes were judged on {self.kept[0]} vectors that differ and {self.kept[1]} that are equal"

    @property
    def passed_over(self) -> str:
        """Which lines of the file were passed over, in one line; empty where it was none."""
        if not self.skipped:
            return ""
        return "passed over: " + ", ".join(f"{what}: {count}" for what, count in sorted(self.skipped.items()))

    @property
    def _never_inexact(self) -> bool:
        integral = self.spec.op in ("round_to_integral", "to_integer") and self.spec.exact
        return integral and any("inexact is never raised" in c.detail for c in self.causes)

    @property
    def hints(self) -> list[str]:
        """Options with which fewer vectors, or none, would differ."""
        out = []
        if self.nan_failures and self.nan_failures == self.failures:
            out.append("every difference is a NaN in another code than the canonical one: --any-nan accepts them")
        profiles = [p for p in ("x86", "arm") if any(c.detail == f"as {p} delivers them" for c in self.causes)]
        out += [f"NaNs and invalid integers as {p} delivers them are right with --nan {p}" for p in profiles]
        if self._never_inexact:
            out.append("TestFloat's default, -notexact, raises no inexact here: --notexact")
        if self.failures and not self.result_failures and not self.ignore_flags:
            out.append("only flags differ: --ignore-flags compares results alone")
        return out

    def to_dict(self) -> dict[str, Any]:
        """For JSON (docs/reference/causes.md says what each key holds)."""
        return {
            "source": self.source,
            **self.spec.facts(),
            "any_nan": self.any_nan,
            "ignore_flags": self.ignore_flags,
            "ulp": self.ulp,
            "vectors": self.vectors,
            "failures": self.failures,
            "result_failures": self.result_failures,
            "flag_failures": self.flag_failures,
            "nan_failures": self.nan_failures,
            "unknown": self.unknown,
            "skipped": dict(self.skipped),
            "wrong_steps": self.wrong_steps,
            "error": self.error,
            "causes": [c.to_dict(self.spec) for c in self.causes],
            "contradicted": self.contradicted,
            "closest": self.closest,
            "classes": [c.to_dict() for c in self.classes],
            "judged_on": {"differing": self.kept[0], "equal": self.kept[1], "all": self.complete},
            "first": [f.to_dict(self.spec) for f in self.first],
        }

    def __str__(self) -> str:
        lines = [f.text(self.spec) for f in self.first]
        more = (self.failures if self.wrong_steps is None else self.wrong_steps) - len(self.first)
        if more > 0:
            lines.append(f"... and {more} more")
        lines.append(self.verdict)
        for cause in self.causes:
            lines += cause.lines(self.spec)
        if len(self.causes) > 1 and self.causes[-1].cause != "unexplained":
            lines.append(f"together these causes explain all {self.kept[0]} failures")
        if self.contradicted:
            lines.append(f"but {self.contradicted} of the vectors that are right would be wrong by these causes")
        if self.closest is not None:
            lines.append(f"closest: {self.closest}")
        if len(self.causes) > 1 or any(c.cause == "unexplained" for c in self.causes):
            lines.append("what differs:")
            for c in self.classes[:_CLASSES_SHOWN]:
                lines.append(f"  {c.count:>7}  {c.kind}, result {c.result}, mostly of {c.operands}: {c.cause}")
            if len(self.classes) > _CLASSES_SHOWN:
                lines.append(f"  ... and {len(self.classes) - _CLASSES_SHOWN} more classes")
        if self.judged_on:
            lines.append(self.judged_on)
        if self.passed_over:
            lines.append(self.passed_over)
        return "\n".join([*lines, *self.hints])
