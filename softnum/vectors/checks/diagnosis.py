"""Which wrong models explain what a design did.

Every candidate is asked for the results of the vectors kept; one that gives all of them, those that agree with
softnum's included, is the cause. If none does, candidates are combined; what remains is described.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from softnum.formats.modes import Flags
from softnum.vectors.checks.causes import Candidate
from softnum.vectors.checks.evidence import Evidence
from softnum.vectors.checks.models import NotApplicable
from softnum.vectors.plans.codes import distance, is_nan

__all__ = ["Diagnosis", "Finding", "Rules", "diagnose"]

#: Vectors on which combinations are searched, of each kind; what is found is judged on all that are kept.
_SEARCH_FAILING, _SEARCH_AGREEING = 3000, 6000
_BEAM, _DEPTH = 5, 3
#: A part of a combination must be right on this share of the vectors on which it makes a difference.
_PRECISION = 0.9
#: What explains fewer vectors is not named while most are unexplained.
_BY_CHANCE = 4


@dataclass(frozen=True)
class Rules:
    """When two results are equal.

    >>> import numpy as np, softnum as sn
    >>> from softnum.vectors.checks.diagnosis import Rules
    >>> Rules(ulp=1).equal(np.array([0x3C, 0x3C], np.uint8), np.array([0x3D, 0x3E], np.uint8), sn.format("e5m2"))
    array([ True, False])
    """

    any_nan: bool = False
    ignore_flags: bool = False
    ulp: int = 0

    def equal(self, x: np.ndarray, y: np.ndarray, fmt) -> np.ndarray:
        """Which vectors of two arrays of results are equal: (n,), of entries of several elements where all are."""
        same = x == y
        if (self.any_nan or self.ulp) and not same.all():
            nans = is_nan(x, fmt), is_nan(y, fmt)
            if self.any_nan:
                same |= nans[0] & nans[1]
            if self.ulp:
                same |= (distance(x, y, fmt) <= self.ulp) & ~nans[0] & ~nans[1]
        return same if same.ndim == 1 else same.all(1)


@dataclass(frozen=True, eq=False)
class Finding:
    """A cause that was found.

    Attributes
    ----------
    cause, detail : str
        The identifier (a key of ``softnum.vectors.checks.causes.CAUSES``) and which of its kinds.
    explains : ndarray of bool
        Which of the kept vectors it makes the difference for.
    of : str
        "results" or "flags".
    also : tuple of str
        Other candidates that predict the same.
    """

    cause: str
    detail: str
    explains: np.ndarray = field(repr=False)
    of: str = "results"
    also: tuple[str, ...] = ()
    changes: dict = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"{self.cause} ({self.detail})" if self.detail else self.cause


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What was found.

    Attributes
    ----------
    findings : tuple of Finding
    explained : ndarray of bool
        Which of the kept vectors are as the findings together predict, those that agree with softnum included.
    closest : Finding or None
        Where nothing fits, the candidate that comes closest, and ``closest_wrong``: on how many vectors it is wrong.
    contradicted : int
        How many of the kept vectors agree with softnum, though the findings say otherwise.
    """

    findings: tuple[Finding, ...]
    explained: np.ndarray = field(repr=False)
    closest: Finding | None = None
    closest_wrong: int = 0
    contradicted: int = 0

    @property
    def causes(self) -> tuple[str, ...]:
        """The identifiers found, each once."""
        return tuple(dict.fromkeys(f.cause for f in self.findings))


Predict = Callable[[dict, Evidence], tuple[np.ndarray, np.ndarray | None]]


class _Trials:
    """Predictions of models on some evidence."""

    def __init__(self, predict: Predict, evidence: Evidence, rules: Rules, fmt) -> None:
        self.predict, self.evidence, self.rules, self.fmt = predict, evidence, rules, fmt

    def results(self, changes: dict) -> np.ndarray | None:
        if not changes:
            return self.evidence.want.result
        try:
            return self.predict(changes, self.evidence)[0]
        except NotApplicable:
            return None

    def right(self, results: np.ndarray) -> np.ndarray:
        return self.rules.equal(results, self.evidence.got.result, self.fmt)


def _merged(parts: Sequence[Candidate]) -> dict:
    out: dict = {}
    for part in parts:
        out |= part.changes
    return out


def _disjoint(parts: Sequence[Candidate], other: Candidate) -> bool:
    taken = set(_merged(parts))
    return not taken & set(other.changes)


def _digest(results: np.ndarray) -> bytes:
    return hashlib.blake2b(results.tobytes(), digest_size=16).digest()


def _search(trials: _Trials, candidates: Sequence[Candidate]) -> tuple[tuple[Candidate, ...], dict]:
    """(the combination that fits best, candidate -> others that predict the same)"""
    n = len(trials.evidence)
    plain = int(np.count_nonzero(trials.right(trials.evidence.want.result)))
    beam = [(plain, ())]
    best = beam[0]
    twins: dict[Candidate, list[Candidate]] = {}
    useful = candidates
    for depth in range(_DEPTH):
        # what changes nothing, and what predicts the same as another, is left out
        found, seen, helped = [], {_digest(trials.evidence.want.result): ()}, []
        for _, parts in beam:
            for candidate in useful:
                if not _disjoint(parts, candidate):
                    continue
                results = trials.results(_merged((*parts, candidate)))
                if results is None:
                    continue
                right = trials.right(results)
                key = _digest(results)
                if key in seen:
                    if depth == 0 and seen[key]:
                        twins.setdefault(seen[key][-1], []).append(candidate)
                    continue
                seen[key] = (*parts, candidate)
                if depth == 0:
                    helped.append(candidate)
                found.append((int(np.count_nonzero(right)), seen[key]))
        if depth == 0:
            useful = helped
        found.sort(key=lambda entry: -entry[0])  # stable: the likelier of two stays first
        beam = found[:_BEAM]
        if not beam or beam[0][0] <= best[0]:
            break
        best = beam[0]
        if best[0] == n:
            break
    return best[1], twins


def _parts(trials: _Trials, parts: tuple[Candidate, ...]) -> list[tuple[Candidate, np.ndarray, np.ndarray]]:
    """(candidate, where it makes a difference, where that is right), of each part given the others."""
    whole = trials.results(_merged(parts))
    right = trials.right(whole)
    out = []
    for part in parts:
        without = trials.results(_merged([p for p in parts if p is not part]))
        if without is None:
            without = trials.evidence.want.result
        differs = whole != without
        differs = differs if differs.ndim == 1 else differs.any(1)
        out.append((part, differs, differs & right))
    return out


def _sampled(evidence: Evidence, wrong: np.ndarray) -> Evidence:
    rows = []
    for mask, most in ((wrong, _SEARCH_FAILING), (~wrong, _SEARCH_AGREEING)):
        places = np.flatnonzero(mask)
        step = max(1, -(-len(places) // most))
        rows.append(places[::step])
    return evidence.take(np.concatenate(rows))


def diagnose(
    evidence: Evidence, predict: Predict, candidates: Sequence[Candidate], rules: Rules, fmt, other_tininess=None
) -> Diagnosis:
    """Name the causes of what fails.

    Parameters
    ----------
    evidence : Evidence
        Vectors without unknown bits.
    predict : callable
        ``predict(changes, evidence)`` gives a model's results and flags (None: it says nothing of flags); it raises
        `NotApplicable` where a model has no meaning.
    candidates : sequence of Candidate
    rules : Rules
    fmt : format
        The results'.
    other_tininess : str, optional
        The tininess that the spec does not have.

    Returns
    -------
    Diagnosis
    """
    findings: list[Finding] = []
    accepted: tuple[Candidate, ...] = ()
    trials = _Trials(predict, evidence, rules, fmt)
    explained = ~evidence.wrong
    closest, closest_wrong = None, 0
    if evidence.wrong.any():
        small = _Trials(predict, _sampled(evidence, evidence.wrong), rules, fmt)
        parts, twins = _search(small, [*_observed(evidence, fmt), *candidates])
        accepted, shown = _accepted(trials, parts)
        if evidence.wrong_flags.any() and not rules.ignore_flags and len(accepted) == 1:
            same = _of_best_flags(trials, accepted[0], twins.get(accepted[0], []))
            if same is not accepted[0]:
                twins[same] = [t for t in (accepted[0], *twins[accepted[0]]) if t is not same]
                accepted, shown = (same,), [(same, shown[0][1])]
        for part, hits in shown:
            also = tuple(map(str, twins.get(part, ()))) if len(shown) == 1 else ()
            findings.append(Finding(part.cause, part.detail, hits, "results", also, part.changes))
        results = trials.results(_merged(accepted))
        explained = trials.right(results)
        rest = ~explained
        if not accepted and parts:
            (part, differs, hits), *_ = _parts(trials, parts[:1])
            closest = Finding(part.cause, part.detail, hits, changes=part.changes)
            closest_wrong = int(np.count_nonzero(differs & ~hits))
        described = _described(evidence, results, rest, fmt)
        for finding in described:
            explained = explained | finding.explains
        findings += described
    garbage = 2 * np.count_nonzero(evidence.wrong & ~explained) > np.count_nonzero(evidence.wrong)
    if evidence.wrong_flags.any() and not rules.ignore_flags and not garbage:
        found, followed = _flags(evidence, predict, _merged(accepted), other_tininess)
        if followed.any() and accepted:
            findings[0] = replace(findings[0], explains=findings[0].explains | followed)
        findings += found
    left = ~explained & evidence.failing
    if 2 * np.count_nonzero(left) > np.count_nonzero(evidence.failing):
        # among results of no rule, some are what a model says by chance
        chance = [f for f in findings if np.count_nonzero(f.explains) < _BY_CHANCE]
        findings = [f for f in findings if np.count_nonzero(f.explains) >= _BY_CHANCE]
        for finding in chance:
            left = left | finding.explains & evidence.failing
    if left.any():
        findings.append(Finding("unexplained", "", left))
    contradicted = int(np.count_nonzero(~explained & ~evidence.failing))
    return Diagnosis(tuple(findings), explained, closest, closest_wrong, contradicted)


def _accepted(trials: _Trials, parts: tuple[Candidate, ...]):
    """The parts of a combination that hold on all the evidence, and where each makes the difference."""
    while parts:
        judged = _parts(trials, parts)
        bad = [
            (np.count_nonzero(hits) / max(1, np.count_nonzero(differs)), part)
            for part, differs, hits in judged
            if not hits.any() or np.count_nonzero(hits) < _PRECISION * np.count_nonzero(differs)
        ]
        if not bad:
            return parts, [(part, hits & trials.evidence.wrong) for part, _, hits in judged]
        worst = min(bad, key=lambda entry: entry[0])[1]
        parts = tuple(p for p in parts if p is not worst)
    return (), []


def _of_best_flags(trials: _Trials, chosen: Candidate, twins: Sequence[Candidate]) -> Candidate:
    """Of candidates with the same results, the one whose flags are most like the design's; the first of equals."""
    results, got = trials.results(chosen.changes), trials.evidence.got.flags
    best, most = chosen, -1
    for candidate in (chosen, *twins):
        try:
            codes, flags = trials.predict(candidate.changes, trials.evidence)
        except NotApplicable:
            continue
        if flags is not None and np.array_equal(codes, results):
            hits = int(np.count_nonzero(flags == got))
            if hits > most:
                best, most = candidate, hits
    return best


def _observed(evidence: Evidence, fmt) -> list[Candidate]:
    """Candidates that the design's own results suggest: a NaN that always has one other code."""
    if not fmt.has_nan or evidence.got.result.ndim > 1 or fmt.leads:
        return []
    codes = np.unique(evidence.got.result[evidence.wrong & is_nan(evidence.want.result, fmt)])
    if len(codes) != 1:
        return []
    code = int(codes[0])
    digits = -(-fmt.bits // 4)
    text = f"always {code:0{digits}X}" + ("" if is_nan(codes, fmt)[0] else ", which is no NaN")
    return [Candidate("nan-payload", text, {"nan_code": code})]


def _described(evidence: Evidence, predicted, rest, fmt) -> list[Finding]:
    """What is left over, where nearly all of it is of one kind."""
    found = []
    if not rest.any() or evidence.got.result.ndim > 1:
        return found
    got = evidence.got.result
    both_nan = rest & is_nan(got, fmt) & is_nan(predicted, fmt)
    if both_nan.any() and np.count_nonzero(both_nan) >= 0.95 * np.count_nonzero(rest & is_nan(predicted, fmt)):
        found.append(Finding("nan-payload", "codes by no known rule", both_nan))
        rest = rest & ~both_nan
    zeros = rest & fmt.is_zero(got) & fmt.is_zero(predicted)
    if zeros.any() and np.count_nonzero(zeros) >= 0.95 * np.count_nonzero(rest & fmt.is_zero(predicted)):
        found.append(Finding("sign-of-zero", "in some cases", zeros))
        rest = rest & ~zeros
    near = rest & ~is_nan(got, fmt) & ~is_nan(predicted, fmt) & (distance(got, predicted, fmt) == 1)
    if near.any() and np.count_nonzero(near) >= 0.95 * np.count_nonzero(rest):
        found.append(Finding("off-by-one-ulp", "", near))
    return found


def _flags(evidence: Evidence, predict: Predict, changes: dict, other_tininess) -> tuple[list[Finding], np.ndarray]:
    """What is wrong with the flags of a design whose results are those of the changed model; and where the model's own
    flags, which other bits make, are what differs."""
    got, want = evidence.got.flags, evidence.want.flags
    none = np.zeros(len(got), bool)

    def flags_of(change: dict):
        try:
            return predict(change, evidence)[1] if change else want
        except NotApplicable:
            return None

    tried = []
    for base in ({}, changes) if changes else ({},):
        plain = flags_of(base)
        if plain is None:
            continue
        tried.append(("", plain, plain))
        if other_tininess is not None and (other := flags_of(base | {"tininess": other_tininess})) is not None:
            tried.append(("tininess", other, plain))
    cause, best, plain = max(tried, key=lambda entry: np.count_nonzero(entry[1] == got))
    same = got == best
    found = []
    if cause:
        needed = evidence.wrong_flags & same & (plain != got)
        found.append(Finding(cause, f"{other_tininess} rounding", needed, "flags"))
    followed = none if plain is want else evidence.wrong_flags & same & (plain == got)
    if same.all():
        return found, followed
    parts = []
    for flag in reversed(Flags):
        bit = int(flag)
        missing = np.count_nonzero(best & ~got & bit)
        extra = np.count_nonzero(got & ~best & bit)
        raised = np.count_nonzero(best & bit)
        name = flag.name.lower()
        if missing:
            parts.append(f"{name} is never raised" if not (got & bit).any() else f"{name} is missing in {missing}")
        if extra:
            always = extra + raised - missing == len(got)
            parts.append(f"{name} is always raised" if always else f"{name} is raised without cause in {extra}")
    found.append(Finding("flags-only", "; ".join(parts), ~same, "flags"))
    return found, followed
