"""Which wrong models explain what a design did.

Every candidate is asked for the results of half of the vectors kept; one that gives all of them, those that agree with
softnum's included, is the cause. If none does, candidates are combined. What is found is judged on the other half; what
remains is described.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softnum.vectors.checks.causes import Candidate
from softnum.vectors.checks.evidence import Evidence, halves
from softnum.vectors.checks.flag_rules import counts, rules_of, told
from softnum.vectors.checks.models import NotApplicable
from softnum.vectors.checks.observed import observed
from softnum.vectors.plans.codes import distance, is_nan
from softnum.vectors.plans.spec import Spec

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["Diagnosis", "Finding", "Predict", "Rules", "diagnose"]

#: Vectors on which combinations are searched, of each kind; what is found is judged on the others.
_SEARCH_FAILING, _SEARCH_AGREEING = 3000, 6000
_BEAM, _DEPTH = 5, 3
#: A cause must be right on this share of the vectors that it was not fitted on and makes a difference for,
_CONFIDENT = 0.995
#: and, where it leaves failures unexplained, on so many of them;
_FEWEST = 8
#: else, down to this share, it is said to be none, but the nearest.
_PRECISION = 0.9
#: Combinations that are judged, the best of the search first.
_JUDGED = 12
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

    def equal(self, x: np.ndarray, y: np.ndarray, fmt: AnyFormat) -> np.ndarray:
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
    confident : bool
        Whether it was borne out by vectors that it was not fitted on; else it describes.
    held : (int, int) or None
        Of a model: on how many of these it is right, of how many for which it makes a difference.
    hides : int
        Of a part of a combination that explains no failure: on how many vectors the others' fault does not show for it.
    """

    cause: str
    detail: str
    explains: np.ndarray = field(repr=False)
    of: str = "results"
    also: tuple[str, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict, repr=False)
    confident: bool = False
    held: tuple[int, int] | None = None
    hides: int = 0

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

    def results(self, changes: dict[str, Any]) -> np.ndarray | None:
        if not changes:
            return self.evidence.want.result
        try:
            return self.predict(changes, self.evidence)[0]
        except NotApplicable:
            return None

    def right(self, results: np.ndarray) -> np.ndarray:
        return self.rules.equal(results, self.evidence.got.result, self.fmt)


def _merged(parts: Sequence[Candidate]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part in parts:
        out |= part.changes
    return out


def _disjoint(parts: Sequence[Candidate], other: Candidate) -> bool:
    taken = set(_merged(parts))
    return not taken & set(other.changes)


def _digest(results: np.ndarray) -> bytes:
    return hashlib.blake2b(results.tobytes(), digest_size=16).digest()


def _search(trials: _Trials, candidates: Sequence[Candidate]) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """(combinations, those that fit best first; candidate -> others that predict the same)"""
    n = len(trials.evidence)
    plain = int(np.count_nonzero(trials.right(trials.evidence.want.result)))
    beam, ranked = [(plain, ())], []
    best = plain
    twins: dict[Candidate, list[Candidate]] = {}
    useful = candidates
    for depth in range(_DEPTH):
        # what changes nothing, and what predicts the same as another, is left out, but beside another mode
        found, seen, helped = [], {_digest(trials.evidence.want.result): ()}, []
        for _, parts in beam:
            for candidate in candidates if "rounding" in _merged(parts) else useful:
                if not _disjoint(parts, candidate):
                    continue
                results = trials.results(_merged((*parts, candidate)))
                if results is None:
                    continue
                key = _digest(results)
                if key in seen:
                    if depth == 0 and seen[key]:
                        twins.setdefault(seen[key][-1], []).append(candidate)
                    continue
                seen[key] = (*parts, candidate)
                if depth == 0:
                    helped.append(candidate)
                found.append((int(np.count_nonzero(trials.right(results))), seen[key]))
        if depth == 0:
            useful = helped
        found.sort(key=lambda entry: -entry[0])  # stable: the likelier of two stays first
        beam = found[:_BEAM]
        ranked += [entry for entry in beam if entry[0] > plain or depth == 0]
        if not beam or beam[0][0] <= best:
            break
        best = beam[0][0]
        if best == n:
            break
    ranked.sort(key=lambda entry: (-entry[0], len(entry[1])))
    return [parts for _, parts in ranked], twins


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


def _sampled(evidence: Evidence) -> Evidence:
    rows = []
    for mask, most in ((evidence.wrong, _SEARCH_FAILING), (~evidence.wrong, _SEARCH_AGREEING)):
        places = np.flatnonzero(mask)
        step = max(1, -(-len(places) // most))
        rows.append(places[::step])
    return evidence.take(np.concatenate(rows))


def diagnose(
    evidence: Evidence,
    predict: Predict,
    candidates: Sequence[Candidate],
    rules: Rules,
    spec: Spec,
    other_tininess: str | None = None,
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
        None of them: nothing is tried but what the results themselves suggest.
    rules : Rules
    spec : Spec
        What is right.
    other_tininess : str, optional
        The tininess that the spec does not have.

    Returns
    -------
    Diagnosis
    """
    findings: list[Finding] = []
    accepted: tuple[Candidate, ...] = ()
    fmt = spec.out_fmt
    fitted = halves(evidence)
    trials = _Trials(predict, evidence, rules, fmt)
    explained = ~evidence.wrong
    closest, closest_wrong = None, 0
    if evidence.wrong.any():
        fit = evidence.take(fitted)
        small = _Trials(predict, _sampled(fit), rules, fmt)
        ranked, twins = _search(small, [*observed(spec, fit), *candidates] if candidates else [])
        # those that the half they are fitted on cannot tell apart, the other half may
        alike = [(twin,) for parts in ranked[:_BEAM] if len(parts) == 1 for twin in twins.get(parts[0], ())]
        judged = _judged(_Trials(predict, evidence.take(~fitted), rules, fmt), [*ranked[:_JUDGED], *alike])
        if judged is not None:
            accepted, held, whole = judged
            if evidence.wrong_flags.any() and not rules.ignore_flags and len(accepted) == 1:
                same = _of_best_flags(trials, accepted[0], twins.get(accepted[0], []))
                if same is not accepted[0]:
                    twins[same] = [t for t in (accepted[0], *twins[accepted[0]]) if t is not same]
                    accepted, held = (same,), {same: held[accepted[0]]}
            for part, _, hits in _parts(trials, accepted):
                also = _also(trials, part, twins) if len(accepted) == 1 else ()
                right, of = held[part]
                explains = hits & evidence.wrong
                findings.append(Finding(
                    part.cause, part.detail, explains, "results", also, part.changes, _sure(right, of, whole),
                    (right, of), 0 if explains.any() else int(np.count_nonzero(hits)),
                ))  # fmt: skip
            explained = trials.right(trials.results(_merged(accepted)))
        elif ranked:
            (part, differs, hits), *_ = _parts(trials, ranked[0][:1])
            closest = Finding(part.cause, part.detail, hits, changes=part.changes)
            closest_wrong = int(np.count_nonzero(differs & ~hits))
        described = _described(evidence, trials.results(_merged(accepted)), ~explained, fmt)
        for finding in described:
            explained = explained | finding.explains
        findings += described
    garbage = 2 * np.count_nonzero(evidence.wrong & ~explained) > np.count_nonzero(evidence.wrong)
    if evidence.wrong_flags.any() and not rules.ignore_flags and not garbage:
        found, followed = _flags(evidence, predict, _merged(accepted), other_tininess, spec, fitted)
        if followed.any() and accepted:
            findings[0] = replace(findings[0], explains=findings[0].explains | followed)
        findings += found
    left = ~explained & evidence.failing
    findings = [f for f in findings if f.hides or (f.explains & evidence.failing).any()]
    if 2 * np.count_nonzero(left) > np.count_nonzero(evidence.failing):
        # among results of no rule, some are what a model says by chance
        chance = [f for f in findings if max(f.hides, np.count_nonzero(f.explains)) < _BY_CHANCE]
        findings = [f for f in findings if f not in chance]
        for finding in chance:
            left = left | finding.explains & evidence.failing
    if left.any():
        findings.append(Finding("unexplained", "", left))
    contradicted = int(np.count_nonzero(~explained & ~evidence.failing))
    return Diagnosis(tuple(findings), explained, closest, closest_wrong, contradicted)


def _also(trials: _Trials, part: Candidate, twins: dict[str, Any]) -> tuple[str, ...]:
    """The other candidates that predict the same on all vectors kept."""
    own = next((c for c in twins if c == part or part in twins[c]), None)
    results = trials.results(part.changes)
    out = []
    for other in [] if own is None else [own, *twins[own]]:
        found = None if other is part else trials.results(other.changes)
        if found is not None and np.array_equal(found, results):
            out.append(str(other))
    return tuple(out)


def _sure(right: int, of: int, whole: bool) -> bool:
    """Whether a part is a cause that is right on so many of the vectors held out, of those that it makes a difference
    for; whole: whether all that is held out is explained."""
    return right >= _CONFIDENT * of and (right >= _FEWEST or whole)


def _judged(
    held: _Trials, ranked: Sequence[tuple[Any, ...]]
) -> tuple[tuple[Candidate, ...], dict[str, Any], bool] | None:
    """(parts, part -> (where it is right, where it makes a difference), whether all is explained) of the combination
    that explains most of the vectors that are held out; None if there is none all parts of which hold on them."""
    best, most = None, int(np.count_nonzero(held.right(held.evidence.want.result)))
    plain = most
    tried = set()
    for parts in ranked:
        # a part that does not hold is left out, the worst one first
        while parts and parts not in tried:
            tried.add(parts)
            counts = {p: (int(np.count_nonzero(hits)), int(np.count_nonzero(d))) for p, d, hits in _parts(held, parts)}
            weak = [
                (right / max(1, of), p) for p, (right, of) in counts.items() if not right or right < _PRECISION * of
            ]
            if not weak:
                right = int(np.count_nonzero(held.right(held.results(_merged(parts)))))
                whole = right == len(held.evidence)
                sure = all(_sure(*count, whole) for count in counts.values())
                rank = (right - plain) * (1 if sure else _PRECISION) + plain
                if rank > most:
                    best, most = (parts, counts, whole), rank
                break
            worst = min(weak, key=lambda entry: entry[0])[1]
            parts = tuple(p for p in parts if p is not worst)
    return best


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


def _flags(
    evidence: Evidence, predict: Predict, changes: dict[str, Any], other_tininess, spec: Spec, fitted
) -> tuple[list[Finding], np.ndarray]:
    """What is wrong with the flags of a design whose results are those of the changed model; and where the model's own
    flags, which other bits make, are what differs."""
    got, want = evidence.got.flags, evidence.want.flags
    none = np.zeros(len(got), bool)

    def flags_of(change: dict[str, Any]):
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
    cause, best, plain = max(tried, key=lambda entry: np.count_nonzero((entry[1] == got)[fitted]))
    found = []
    if cause:
        differs = best != plain
        held = differs & ~fitted
        right, of = int(np.count_nonzero(held & (best == got))), int(np.count_nonzero(held))
        needed = evidence.wrong_flags & (got == best) & differs
        if right and right >= _CONFIDENT * of:
            detail = f"{other_tininess} rounding"
            changes = {"tininess": other_tininess}
            found.append(Finding(cause, detail, needed, "flags", (), changes, True, (right, of)))
        else:
            best = plain
    same = got == best
    followed = none if plain is want else evidence.wrong_flags & same & (plain == got)
    if same.all():
        return found, followed
    text, flags, sure = told(best, got, rules_of(spec, evidence), fitted)
    by_rule = ~same & (flags == got) if sure else ~same
    if sure:
        held = (flags != best) & ~fitted
        judged = int(np.count_nonzero(held & (flags == got))), int(np.count_nonzero(held))
        found.append(Finding("flags-only", text, by_rule, "flags", (), {"flags": text}, True, judged))
        if (rest := flags != got).any():
            found.append(Finding("flags-only", counts(flags, got), rest, "flags"))
    else:
        found.append(Finding("flags-only", text, by_rule, "flags"))
    return found, followed
