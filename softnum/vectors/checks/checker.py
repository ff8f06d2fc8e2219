"""Vectors in: results of a design under test against softnum."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from softnum.vectors.checks.comparison import comparison_of
from softnum.vectors.checks.failures import Failure
from softnum.vectors.checks.mixed import check_mixed
from softnum.vectors.checks.mixed_report import MixedReport
from softnum.vectors.checks.packed import check_packed
from softnum.vectors.checks.report import CheckReport
from softnum.vectors.checks.spaces import SpaceKeeper
from softnum.vectors.files.dialects import open_reader
from softnum.vectors.files.headers import spec_of
from softnum.vectors.files.text import VectorFileError
from softnum.vectors.plans.codes import value_text
from softnum.vectors.plans.spec import VectorSpec

if TYPE_CHECKING:
    from softnum.formats.annotations import FormatLike, PathLike
    from softnum.mac.mad import Unit
    from softnum.vectors.plans.packed import Lanes
    from softnum.vectors.plans.space import Space

__all__ = ["CheckReport", "Failure", "check", "open_vectors", "value_text"]


def open_vectors(source: PathLike | BinaryIO) -> tuple[object, str, bool]:
    """(binary stream, its name, whether to close it) of a path, "-" for standard input, or a binary file object."""
    if isinstance(source, (str, os.PathLike)):
        if os.fspath(source) == "-":
            if sys.stdin is None:
                raise ValueError("standard input is closed; name a file")
            return sys.stdin.buffer, "<stdin>", False
        return open(source, "rb"), os.fspath(source), True
    if not hasattr(source, "read"):
        raise TypeError(f"a path, '-' or a binary file is needed, got {source!r}")
    return source, str(getattr(source, "name", "<stream>")), False


def check(
    source: PathLike | BinaryIO,
    op: str | None = None,
    fmt: FormatLike | Sequence[FormatLike] | None = None,
    *,
    out_fmt: FormatLike | None = None,
    rounding: str | None = None,
    overflow: str | None = None,
    tininess: str | None = None,
    stochastic_bits: int | None = None,
    nan: str | None = None,
    exact: bool | None = None,
    flush_inputs: bool | None = None,
    flush_results: str | None = None,
    minmax: str | None = None,
    profile: str | None = None,
    space: Space | None = None,
    unit: Unit | str | None = None,
    length: int | None = None,
    shape: tuple[int, int, int] | None = None,
    with_c: bool | None = None,
    any_nan: bool = False,
    ignore_flags: bool = False,
    ulp: int = 0,
    ignore_header: bool = False,
    max_failures: int = 20,
    explain: bool = True,
    progress: Callable[[int], object] | None = None,
    dialect: str | None = None,
    lanes: Lanes | None = None,
) -> CheckReport | MixedReport:
    """Compare the results and flags of a vector file with softnum's, and name the likeliest causes of differences.

    Parameters
    ----------
    source : str, path or binary file
        The vectors, in any dialect of `DIALECTS`, plain or compressed by gzip or xz; "-" is standard input.
    op, fmt, out_fmt, rounding, overflow, tininess, stochastic_bits, nan, exact
        As in `generate`. Arguments that are left out are taken from the file's header, else from the defaults of
        `generate`; arguments that are given must agree with the header.
    flush_inputs, flush_results, minmax, profile
        As well.
    space : Space, optional
        Vectors outside this space are skipped and counted. A vector outside the space that the file's header states is
        an error.
    unit, length, shape, with_c
        Of vectors of a unit (op dot, mac or gemm), as in `UnitSpec.make`.
    any_nan : bool
        Whether any two NaNs are equal. If not, a NaN result must be the canonical one (sign 0, quiet bit only), if the
        format has several.
    ignore_flags : bool
        Whether to compare results only. The column of flags may then be missing; if present it is still read.
    ulp : int
        How many representable values a result may be away from the correct one (+0 and -0 count as one). 0: the bits
        must be equal. Flags are compared in any case.
    ignore_header : bool
        Whether to treat the header as a comment.
    max_failures : int
        How many failures the report keeps, the simplest; all are counted.
    explain : bool
        Whether to look for causes (``softnum.vectors.checks.causes.CAUSES``). It takes seconds at most, whatever the
        file's size: models of wrong designs are tried on up to 20 000 vectors that differ and 100 000 that do not,
        spread over the file.
    progress : callable, optional
        Called with the number of vectors read so far.
    dialect : str, optional
        A name of `DIALECTS`; by default what the file's name ends in, else what its first bytes look like.

    lanes : Lanes, optional
        For words of several lanes: their layout, if no header states it.

    Returns
    -------
    CheckReport
        Of a file whose header says ``op: mixed``, a `MixedReport`; of words of lanes a `PackedReport`.

    Raises
    ------
    VectorFileError
        A ValueError that names file and line, if the input is unusable; its ``report`` holds what was found before
        that line (or is None).
    ValueError
        If the spec is unusable.

    Examples
    --------
    >>> import io
    >>> from softnum.vectors import check
    >>> report = check(io.BytesIO(b"3C 3D 3D 00\\n3D 3D 3E 00\\n"), "multiply", "e5m2")
    >>> print(report)
    line 2: a=3D (1.25) b=3D (1.25)  got 3E (1.5) flags 00 (none)  want 3E (1.5) flags 01 (inexact)
    <stream>: multiply e5m2, nearest_even: 1 of 2 vectors differ (0 in the result, 1 in the flags)
    unexplained, all of one kind: flags-only (inexact is never raised): all 1 failures
      flags are wrong by themselves
      smallest example, in line 2:
        a      3D  0|01111|01  1.25
        b      3D  0|01111|01  1.25
        got    3E  0|01111|10  1.5   flags 00 (none)
        want   3E  0|01111|10  1.5   flags 01 (inexact)
        exact  1.5625 = 1.5 + 0.25 ulp of 0.25; guard 0, round 1, sticky 0: toward zero
    only flags differ: --ignore-flags compares results alone
    >>> [c.cause for c in report.causes]
    ['flags-only']
    """
    for what, number in (("max_failures", max_failures), ("ulp", ulp)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"{what} must be an integer of at least 0, got {number!r}")
    given = dict(
        op=op, fmt=fmt, out_fmt=out_fmt, rounding=rounding, overflow=overflow, tininess=tininess,
        stochastic_bits=stochastic_bits, nan=nan, exact=exact, flush_inputs=flush_inputs, flush_results=flush_results,
        minmax=minmax, profile=profile, unit=unit, length=length, shape=shape, with_c=with_c,
    )  # fmt: skip
    stream, name, ours = open_vectors(source)
    report = comparison = None
    try:
        reader = open_reader(stream, name, dialect)
        if ignore_header:
            reader.header = {}
        if reader.header.get("op") == "mixed":
            for key in (key for key, value in given.items() if value is not None):
                raise ValueError(f"{name} is mixed: each line says what it is of; leave {key} out")
            return check_mixed(
                reader, name, any_nan=any_nan, ignore_flags=ignore_flags, ulp=ulp, max_failures=max_failures,
                explain=explain, space=space, progress=progress,
            )  # fmt: skip
        if lanes is not None or "lanes" in reader.header:
            return check_packed(
                reader, name, given, lanes, any_nan=any_nan, ignore_flags=ignore_flags, ulp=ulp,
                max_failures=max_failures, explain=explain, space=space, progress=progress,
            )  # fmt: skip
        spec = spec_of(reader.header, given, name)
        if ignore_flags and isinstance(spec, VectorSpec) and reader.lacks_flags(spec):
            spec = replace(spec, flags=False)
        report = CheckReport(name, spec, bool(any_nan), bool(ignore_flags), ulp)
        report.skipped = reader.skipped  # filled as it reads
        comparison = comparison_of(report)
        keeper = SpaceKeeper(name, report.spec, space)
        for rows in map(keeper.inside, reader.rows(report.spec, unknown="mark")):
            unknown = rows.unknown
            if rows.unknown_flags is not None and not ignore_flags:
                unknown = rows.unknown_flags if unknown is None else unknown | rows.unknown_flags
            comparison.add(rows.lines, rows.block, unknown)
            if progress is not None:
                progress(report.vectors)
        keeper.end(report.vectors)
        report.skipped.update(keeper.skipped)
        comparison.end()
    except VectorFileError as error:
        if report is not None:
            report.error = str(error)
            comparison.end()
            comparison.finish(max_failures, explain)
        error.report = report
        raise
    finally:
        if ours:
            stream.close()
    comparison.finish(max_failures, explain)
    return report
