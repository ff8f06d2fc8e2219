"""What a file of vectors is of: its header, and what the caller states."""

from __future__ import annotations

from typing import Any

from softnum.formats.aliases import integer_named
from softnum.formats.names import format
from softnum.vectors.files.text import VectorFileError
from softnum.vectors.plans.mixed import MixedSpec
from softnum.vectors.plans.operations import expanded, operation_name
from softnum.vectors.plans.own import is_own, own_name
from softnum.vectors.plans.packed import Lanes, PackedSpec
from softnum.vectors.plans.profiles import with_profile
from softnum.vectors.plans.space import Space
from softnum.vectors.plans.spec import Spec, VectorSpec
from softnum.vectors.plans.unit_spec import UNIT_OPERATIONS, UnitSpec

__all__ = ["mixed_spec_of", "packed_spec_of", "spec_of", "spec_of_file"]

_HEADER_KEYS = (
    "op", "format", "result_format", "rounding", "overflow", "tininess", "stochastic_bits", "nan", "exact", "minmax",
)  # fmt: skip
_OF_UNITS = ("unit", "length", "shape", "with_c")


def _told(header: dict[str, Any], stated: dict[str, Any], source: str) -> dict[str, Any]:
    """What a header says, as arguments of `VectorSpec.make`. Formats that have no name may be left to the caller."""
    told = {k: v for k, v in header.items() if k in _HEADER_KEYS}
    names = [n for k in ("format", "result_format") for n in told.get(k, "").split()]
    own = [n for n in names if n.startswith(("table:", "custom:"))]
    if own:
        if "fmt" not in stated:
            problem = f"the header's format {own[0]} is of the user's own: state it, as --format FILE.py:NAME"
            raise VectorFileError(source, 0, f"{problem} (and --result-format)")
        given = stated["fmt"] if isinstance(stated["fmt"], (tuple, list)) else (stated["fmt"],)
        ours = [own_name(f) if is_own(f) else str(f) for f in given]
        theirs = told.get("format", "").split()
        if any(a != b for a, b in zip(ours, theirs, strict=False) if b in own):
            raise _disagree(source, "format", " ".join(theirs), " ".join(ours))
        told.pop("format", None)
        told.pop("result_format", None)
        names = []
    try:
        for name in names:
            if integer_named(name) is None:
                format(name)
    except ValueError as error:
        if "fmt" not in stated:
            raise VectorFileError(source, 0, f"the header's format: {error}") from None
        told.pop("format", None)
        told.pop("result_format", None)
    if "format" in told:
        names = told.pop("format").split()
        told["fmt"] = names[0] if len(names) == 1 else tuple(names)
    if "result_format" in told:
        told["out_fmt"] = told.pop("result_format")
    if "stochastic_bits" in told:
        if not told["stochastic_bits"].isdecimal():
            raise VectorFileError(source, 0, f"the header's stochastic_bits is no number: {told['stochastic_bits']!r}")
        told["stochastic_bits"] = int(told["stochastic_bits"])
    if "exact" in told:
        if told["exact"] not in ("yes", "no"):
            raise VectorFileError(source, 0, f"the header's exact must be yes or no, not {told['exact']!r}")
        told["exact"] = told["exact"] == "yes"
    try:
        told |= _flushes(header.get("flush", "none")) | {"space": Space.of_header(header)}
    except ValueError as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    return told


def _flushes(text: str) -> dict[str, Any]:
    """What a header's line says of subnormals: none, inputs, results_before ..."""
    parts = [] if text == "none" else text.split()
    out = {}
    for part in parts:
        what, _, when = part.partition("_")
        if what == "inputs" and not when:
            out["flush_inputs"] = True
        elif what == "results" and when:
            out["flush_results"] = when
        else:
            raise ValueError(f"flush must be none, inputs, results_before (after, subnormal, arm), not {text!r}")
    return out


def spec_of(header: dict[str, Any], given: dict[str, Any], source: str) -> Spec:
    """The spec that the caller states, completed by the file's header; where both speak they must agree.

    >>> from softnum.vectors.files.headers import spec_of
    >>> spec_of({"op": "dot", "unit": "ibm_fp8_2018", "length": "64"}, {"with_c": True}, "v.txt").options()
    '--op dot --unit ibm_fp8_2018 --length 64 --with-c'
    """
    return _with_columns(header, _completed(header, given, source), source)


def _with_columns(header: dict[str, Any], spec: Spec, source: str) -> Spec:
    """The spec; VectorFileError where a header lists other columns than it has, but for flags that are left out."""
    told, here = header.get("columns"), {f"{c.name}:{c.width}": c.name for c in spec.columns}
    if told is not None:
        odd = [part for part in told.split() if part not in here]
        odd += [part for part, name in here.items() if name != "flags" and part not in told.split()]
        if odd:
            problem = f"the header says columns {told}, but such vectors have {' '.join(here)}"
            raise VectorFileError(source, 0, f"{problem}; {odd[0]} is in one of them alone")
    return spec


def _completed(header: dict[str, Any], given: dict[str, Any], source: str) -> Spec:
    """As `spec_of`, without a look at its columns."""
    stated = {k: v for k, v in given.items() if v is not None}
    told_op = header.get("op")
    if "op" in stated and stated["op"] not in UNIT_OPERATIONS:
        name, options = expanded(stated["op"], {k: v for k, v in stated.items() if k != "op"})
        stated = {"op": name, **options}
    op = stated.get("op", told_op)
    if told_op not in (None, op) and (told_op in UNIT_OPERATIONS or op in UNIT_OPERATIONS):
        raise _disagree(source, "op", told_op, op)
    foreign = [k for k in stated if k != "op" and (k in _OF_UNITS) != (op in UNIT_OPERATIONS)]
    if foreign and op is not None:
        kind = "a unit, which states its formats and modes" if op in UNIT_OPERATIONS else "no unit"
        raise ValueError(f"{op} is of {kind}: leave out {', '.join(foreign)}")
    if op in UNIT_OPERATIONS:
        return _unit_spec_of(header, stated, source)
    if "profile" in stated:
        stated = with_profile(operation_name(op) if op is not None else "", stated)
    told = _told(header, stated, source)
    for key, option in (("op", "--op"), ("fmt", "--format")):
        if key not in stated and key not in told:
            raise VectorFileError(source, 0, f"no header says what the vectors are of: state {option}")
    if not {"op", "fmt"} <= told.keys():
        spec = VectorSpec.make(**{**told, **stated})
        ours = spec.facts()
        for key in ("format", "result_format"):
            if header.get(key, "").startswith(("table:", "custom:")) and header[key] != ours[key]:
                raise _disagree(source, key, header[key], ours[key])
        return spec
    try:
        header_spec = VectorSpec.make(**told)
    except (TypeError, ValueError) as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    # an operation or format of another kind changes what the rest of the header means, so it is compared alone first
    if "op" in stated and stated["op"] != header_spec.op:
        raise _disagree(source, "op", header_spec.op, stated["op"])
    meaning = header_spec.facts().get("computes")
    if header.get("computes", meaning) != meaning:
        problem = f"the header says that {header_spec.op} computes {header['computes']}; here it is {meaning}"
        raise VectorFileError(source, 0, problem)
    spec = VectorSpec.make(**{**told, **stated})
    ours, theirs = spec.facts(), header_spec.facts()
    if spec != header_spec:
        key = next(k for k in {**theirs, **ours} if ours.get(k) != theirs.get(k))
        raise _disagree(source, key, theirs.get(key), ours.get(key))
    return spec


def _unit_spec_of(header: dict[str, Any], stated: dict[str, Any], source: str) -> UnitSpec:
    told = {k: v for k, v in header.items() if k in ("op", *_OF_UNITS)}
    for key in ("length", "shape"):
        if key in told:
            numbers = told[key].split()
            if not all(n.isdecimal() for n in numbers) or len(numbers) != (1 if key == "length" else 3):
                raise VectorFileError(source, 0, f"the header's {key} is unusable: {told[key]!r}")
            told[key] = int(numbers[0]) if key == "length" else tuple(map(int, numbers))
    if "with_c" in told:
        if told["with_c"] not in ("yes", "no"):
            raise VectorFileError(source, 0, f"the header's with_c must be yes or no, not {told['with_c']!r}")
        told["with_c"] = told["with_c"] == "yes"
    try:
        if space := Space.of_header(header):
            told["space"] = space
    except ValueError as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    if "unit" not in told and "unit" not in stated:
        raise VectorFileError(source, 0, "no header says what unit the vectors are of: state --unit")
    make = lambda facts: UnitSpec.make(facts.pop("op"), facts.pop("unit"), **facts)  # noqa: E731
    spec = make({**told, **stated})
    if "unit" in told:
        try:
            header_spec = make(dict(told))
        except (TypeError, ValueError) as error:
            raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
        ours, theirs = spec.facts() | {"unit": spec.unit.expression}, header_spec.facts()
        theirs |= {"unit": header_spec.unit.expression}
        for key in (key for key in told if key != "space"):
            if ours.get(key) != theirs.get(key):
                raise _disagree(source, key, theirs.get(key), ours[key])
    return spec


def _disagree(source: str, key: str, told, stated) -> VectorFileError:
    return VectorFileError(
        source, 0, f"the header says {key} {told}, but {stated} was asked for; to overrule it: --ignore-header"
    )


def packed_spec_of(header: dict[str, Any], given: dict[str, Any], lanes: Lanes | None, source: str) -> PackedSpec:
    """The spec that a header of lanes states, or the caller.

    >>> from softnum.vectors import VectorSpec
    >>> spec = PackedSpec.make(VectorSpec.make("add", "e5m2"), Lanes(4))
    >>> packed_spec_of(spec.facts(), {}, None, "v.txt") == spec
    True
    """
    try:
        told = Lanes.of_header(header)
    except ValueError as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    if told is not None and lanes is not None and told != lanes:
        raise VectorFileError(source, 0, f"the header says{told.options()}, but{lanes.options()} was asked for; "
                                         "to overrule it: --ignore-header")  # fmt: skip
    spec = PackedSpec.make(_completed(header, given, source), lanes if told is None else told)
    return _with_columns(header, spec, source)


def mixed_spec_of(header: dict[str, Any], source: str) -> MixedSpec:
    """The spec that a mixed file's header states; VectorFileError where it is none, or its parts disagree.

    >>> from softnum.vectors import MixedSpec, VectorSpec
    >>> spec = MixedSpec.make([VectorSpec.make("add", "e5m2"), VectorSpec.make("sqrt", "binary16")])
    >>> mixed_spec_of(spec.facts(), "v.txt") == spec
    True
    """
    parts = []
    while (text := header.get(f"case {len(parts)}")) is not None:
        facts = dict(part.partition("=")[::2] for part in text.split("; "))
        lanes = "lanes" in facts
        parts.append(packed_spec_of(facts, {}, None, source) if lanes else spec_of(facts, {}, source))
    if header.get("nan_box", "no") not in ("yes", "no"):
        raise VectorFileError(source, 0, f"the header's nan_box must be yes or no, not {header['nan_box']!r}")
    try:
        spec = MixedSpec.make(parts, nan_box=header.get("nan_box") == "yes")
    except ValueError as error:
        raise VectorFileError(source, 0, f"the header is unusable: {error}") from None
    for key, value in spec.facts().items():
        if header.get(key) != value:
            raise VectorFileError(source, 0, f"the header says {key} {header.get(key)}, but its cases make it {value}")
    return _with_columns(header, spec, source)


def spec_of_file(header: dict[str, Any], source: str) -> Spec:
    """What a file is of by its header alone: vectors of one operation, words of lanes, or mixed vectors.

    >>> from softnum.vectors import VectorSpec
    >>> specs = [VectorSpec.make("add", "e5m2"), VectorSpec.make("sqrt", "binary16")]
    >>> whole = (specs[0], PackedSpec.make(specs[0], Lanes(4)), MixedSpec.make(specs))
    >>> [spec_of_file(spec.facts(), "v.txt") == spec for spec in whole]
    [True, True, True]
    """
    if header.get("op") == "mixed":
        return mixed_spec_of(header, source)
    return packed_spec_of(header, {}, None, source) if "lanes" in header else spec_of(header, {}, source)
