"""Files of coverage by their endings and contents, and coverage of files of vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from softnum.runtime.atomic import write_atomic
from softnum.vectors.covered.cocotb_files import cocotb_xml_of, cocotb_yaml_of, read_cocotb_xml, read_cocotb_yaml
from softnum.vectors.covered.record import CoverageFileError, CoverageRecord
from softnum.vectors.covered.ucis import read_ucis, ucis_of
from softnum.vectors.files.dialects import open_reader
from softnum.vectors.files.headers import spec_of_file
from softnum.vectors.plans.coverage import Coverage
from softnum.vectors.plans.coverages import MixedCoverage, coverage_of

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["ENDINGS", "coverage_of_vectors", "read_counting", "read_coverage", "write_coverage"]

#: what is written, by the end of a file's name; the first that fits
ENDINGS: dict[str, str] = {
    ".cocotb.xml": "cocotb-coverage's XML", ".xml": "UCIS XML", ".yml": "cocotb-coverage's YAML",
    ".yaml": "cocotb-coverage's YAML", "": "JSON, all other names",
}  # fmt: skip
_BEGINNING = 4096


def _json_of(record: CoverageRecord) -> bytes:
    return (json.dumps(record.to_dict(), indent=1) + "\n").encode()


def write_coverage(record: CoverageRecord, path: PathLike) -> None:
    """Write a record: `.xml` is UCIS XML, `.cocotb.xml` and `.yml` cocotb-coverage's, all else JSON.

    Parameters
    ----------
    record : CoverageRecord
    path : str or path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from softnum.vectors.plans.coverage import Bins
    >>> bins = Bins("flags raised", ["inexact"], np.array([2]))
    >>> path = Path(tempfile.mkdtemp(), "coverage.xml")
    >>> write_coverage(CoverageRecord({"op": "add"}, 3, {bins.name: bins}), path)
    >>> print(read_coverage(path))
    bins hit, of 3 vectors:
      flags raised   inexact 2
    """
    makers: dict[str, Callable[[CoverageRecord], bytes]] = {
        ".cocotb.xml": cocotb_xml_of, ".xml": ucis_of, ".yml": cocotb_yaml_of, ".yaml": cocotb_yaml_of, "": _json_of,
    }  # fmt: skip
    ending = next(end for end in ENDINGS if str(path).lower().endswith(end))
    write_atomic(Path(path), makers[ending](record).decode())


def read_coverage(path: PathLike) -> CoverageRecord:
    """The coverage that a file holds: softnum's JSON, UCIS XML, cocotb-coverage's XML or YAML, or a file of vectors.

    What it is is told by its contents. Vectors are counted (`coverage_of_vectors`).

    Raises
    ------
    CoverageFileError, VectorFileError
        If it cannot be read as that.
    """
    return read_counting(path)[0]


def read_counting(path: PathLike, progress: Callable[[int], object] | None = None) -> tuple[CoverageRecord, int]:
    """(`read_coverage`, how many of its vectors have unknown bits and are not counted)"""
    name = str(path)
    with open(path, "rb") as file:
        start = file.read(_BEGINNING).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise CoverageFileError(f"{name}: is empty")
    if start.startswith(b"<"):
        data = Path(path).read_bytes()
        return (read_ucis if b"UCIS" in start else read_cocotb_xml)(data, name), 0
    if start.startswith(b"{") and b'"groups"' in (data := Path(path).read_bytes()):
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CoverageFileError(f"{name}: is no JSON: {error}") from None
        return CoverageRecord.from_dict(found, name), 0
    if name.lower().endswith((".yml", ".yaml")):
        return read_cocotb_yaml(Path(path).read_bytes(), name), 0
    counted, left_out = coverage_of_vectors(path, progress)
    return CoverageRecord.of(counted), left_out


def coverage_of_vectors(
    path: PathLike, progress: Callable[[int], object] | None = None
) -> tuple[Coverage | MixedCoverage, int]:
    """What a file of vectors covers, by the operands, results and flags that it holds: answers of a design, too.

    Of mixed vectors each operation, mode and format is counted by itself. Of words of lanes all lanes are counted
    together, with the right results: a design's flags may be those of several lanes.

    Parameters
    ----------
    path : str or path
        Its header says what the vectors are of.
    progress : callable, optional
        Called with the number of vectors counted.

    Returns
    -------
    Coverage, int
        How many vectors were left out, since bits of their results are unknown (x or z of a simulation).

    Raises
    ------
    VectorFileError
        If it cannot be read, or has no header.

    Examples
    --------
    >>> import tempfile
    >>> from softnum.vectors import VectorSpec, plan, write
    >>> path = Path(tempfile.mkdtemp(), "v.txt")
    >>> write(plan(VectorSpec.make("multiply", "e2m1fn")), path)
    256
    >>> coverage, left_out = coverage_of_vectors(path)
    >>> coverage.vectors, left_out, coverage.groups["binades of a"].hit
    (256, 0, 4)
    """
    left_out = 0
    with open(path, "rb") as stream:
        reader = open_reader(stream, str(path))
        if "op" not in reader.header:
            raise CoverageFileError(f"{path}: is neither coverage (softnum's JSON, UCIS XML, cocotb-coverage's XML or "
                                    "YAML) nor vectors whose header says what they are of")  # fmt: skip
        spec = spec_of_file(reader.header, str(path))
        counted = coverage_of(spec)
        for rows in reader.rows(spec, unknown="mark"):
            block = rows.block
            marks = [mark for mark in (rows.unknown, rows.unknown_flags) if mark is not None]
            if marks:
                bad = marks[0] if len(marks) == 1 else marks[0] | marks[1]
                left_out += int(bad.sum())
                block = spec.block_of([column[~bad] for column in block.columns])
            counted.add(block)
            if progress is not None:
                progress(counted.vectors)
    return counted, left_out
