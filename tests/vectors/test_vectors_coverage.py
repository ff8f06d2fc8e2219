"""Coverage as files: written, read by those whose formats they are, added up, and refused where it is not so."""

import json
import re

import numpy as np
import pytest

from softnum.cli import build_app
from softnum.vectors import (
    Coverage,
    Lanes,
    UnitSpec,
    VectorSpec,
    coverage_of,
    mixed_plan,
    packed_plan,
    plan,
    write,
)
from softnum.vectors.covered.files import coverage_of_vectors, read_counting, read_coverage, write_coverage
from softnum.vectors.covered.record import CoverageFileError, CoverageRecord, identifier, merged

SPECS = [
    VectorSpec.make("multiply", "e4m3fn"),
    VectorSpec.make("add", "posit8"),
    UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=8),
]
ENDINGS = ("json", "xml", "cocotb.xml", "yml")


def counted(spec, seed=0) -> CoverageRecord:
    coverage = Coverage(spec)
    for block in plan(spec, count=500, seed=seed).blocks():
        coverage.add(block)
    return CoverageRecord.of(coverage)


def bins(record) -> dict:
    """Counts of the bins that can be hit, by names as all formats of files can hold them."""
    return {identifier(name).lower(): {identifier(label): int(n) for label, n in zip(g.labels, g.counts, strict=True)
            if label not in g.impossible} for name, g in record.groups.items()}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """Coverage of 500 products in each format of files."""
    record = counted(SPECS[0])
    for ending in ENDINGS:
        write_coverage(record, tmp_path / f"c.{ending}")
    return record, tmp_path


def cli(*words) -> int:
    try:
        build_app()([str(word) for word in words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


# -- there and back ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.op)
def test_what_is_written_is_read(spec, tmp_path):
    record = counted(spec)
    for ending in ("json", "xml"):
        write_coverage(record, tmp_path / f"c.{ending}")
        assert read_coverage(tmp_path / f"c.{ending}").to_dict() == record.to_dict()
    write_coverage(record, tmp_path / "c.cocotb.xml")
    assert bins(read_coverage(tmp_path / "c.cocotb.xml")) == bins(record)


def test_yaml_is_read(files):
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    record, folder = files
    assert bins(read_coverage(folder / "c.yml")) == bins(record)


def test_pyucis_reads_equal_bins_and_counts(files):
    reason = "pyucis is not installed"
    xml = pytest.importorskip("ucis.xml", reason=reason)
    reader = pytest.importorskip("ucis.xml.xml_reader", reason=reason)
    from ucis.cover_type_t import CoverTypeT
    from ucis.scope_type_t import ScopeTypeT

    record, folder = files
    with open(folder / "c.xml") as file:
        database = reader.XmlReader().read(file)
    assert xml.validate_ucis_xml(str(folder / "c.xml"))
    (instance,) = database.scopes(ScopeTypeT.INSTANCE)
    (group,) = instance.scopes(ScopeTypeT.COVERGROUP)
    found = {point.getScopeName(): point for point in group.scopes(ScopeTypeT.COVERPOINT)}
    assert list(found) == list(record.groups)
    for name, mine in record.groups.items():
        for kind, impossible in ((CoverTypeT.CVGBIN, False), (CoverTypeT.IGNOREBIN, True)):
            theirs = [(item.getName(), item.getCoverData().data) for item in found[name].coverItems(kind)]
            wanted = zip(mine.labels, mine.counts.tolist(), strict=True)
            assert theirs == [pair for pair in wanted if (pair[0] in mine.impossible) == impossible], name


def test_a_database_that_pyucis_writes_is_read(files):
    reader = pytest.importorskip("ucis.xml.xml_reader", reason="pyucis is not installed")
    from ucis.xml.xml_writer import XmlWriter

    record, folder = files
    with open(folder / "c.xml") as file, open(folder / "theirs.xml", "w") as out:
        XmlWriter().write(out, reader.XmlReader().read(file))
    assert bins(read_coverage(folder / "theirs.xml")) == bins(record)


@pytest.mark.parametrize("ending", ["cocotb.xml", "yml"])
def test_cocotb_coverage_adds_up_what_is_written(files, ending):
    theirs = pytest.importorskip("cocotb_coverage.coverage", reason="cocotb-coverage is not installed")
    record, folder = files
    write_coverage(counted(SPECS[0], seed=1), folder / f"d.{ending}")
    out = str(folder / f"sum.{ending}")
    theirs.merge_coverage(lambda *_: None, out, str(folder / f"c.{ending}"), str(folder / f"d.{ending}"))
    both = merged({"c": record, "d": counted(SPECS[0], seed=1)})
    assert bins(read_coverage(out)) == bins(both)


# -- sums --------------------------------------------------------------------------------------------------------------
def test_a_sum_of_files_of_all_kinds(files, capsys):
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    record, folder = files
    write(plan(SPECS[0], count=500), folder / "v.txt")
    names = [folder / "v.txt", *(folder / f"c.{ending}" for ending in ENDINGS)]
    assert cli("vectors", "coverage", *names, "-o", folder / "all.xml", "--fail-on-holes") == 0
    total = read_coverage(folder / "all.xml")
    for name, group in record.groups.items():
        assert total.groups[name].counts.tolist() == (5 * group.counts).tolist()
        assert total.groups[name].missed == group.missed
    said = capsys.readouterr().out
    assert "classes of a, b          49 of 49" in said and "not hit:" not in said
    assert "not hit, and perhaps impossible:\n  class of the result: signalingNaN, negativeInfinity" in said
    assert total.vectors is None and total.about["op"] == "multiply"


def test_holes_are_listed(tmp_path, capsys):
    write(plan(SPECS[0], count=100), tmp_path / "v.txt")
    assert cli("vectors", "coverage", tmp_path / "v.txt", "--fail-on-holes", "--holes", "2") == 1
    said = capsys.readouterr().out
    missed = read_coverage(tmp_path / "v.txt").groups["classes of a, b"].missed
    assert f"not hit:\n  classes of a, b: {missed[0]}, {missed[1]} and {len(missed) - 2} more\n" in said


def test_vectors_are_counted_as_they_are_generated(tmp_path):
    words = ("vectors", "generate", "--op", "multiply", "--format", "e4m3fn", "-n", "500", "-o", tmp_path / "v.txt")
    for ending in ENDINGS[:3]:
        assert cli(*words, "--coverage-out", tmp_path / f"c.{ending}") == 0
    want = counted(SPECS[0]).to_dict()
    assert read_coverage(tmp_path / "v.txt").to_dict() == read_coverage(tmp_path / "c.xml").to_dict() == want
    assert read_coverage(tmp_path / "c.json").to_dict() == want


@pytest.mark.parametrize("kind", ["mixed", "lanes"])
def test_mixed_vectors_and_words_are_counted(tmp_path, kind):
    """In a file as while they are made, through each format of files; added to their own, twice as many."""
    how = dict(count=300, seed=2)
    specs = [VectorSpec.make("add", "e5m2"), VectorSpec.make("sqrt", "binary16")]
    planned = mixed_plan(specs, **how) if kind == "mixed" else packed_plan(specs[0], Lanes(4), **how)
    coverage = coverage_of(planned.spec)
    write(planned, tmp_path / "v.txt", coverage=coverage)
    want, (found, left_out) = CoverageRecord.of(coverage), read_counting(tmp_path / "v.txt")
    assert found.to_dict() == want.to_dict() and left_out == 0
    assert found.vectors == (300 if kind == "mixed" else 1200) and len(bins(found)) == len(found.groups) > 5
    for ending in ENDINGS:
        write_coverage(found, tmp_path / f"c.{ending}")
        again = read_coverage(tmp_path / f"c.{ending}")
        assert bins(again) == bins(want)
        both = merged({"v.txt": found, f"c.{ending}": again})
        assert all((both.groups[name].counts == 2 * group.counts).all() for name, group in want.groups.items())


def test_vectors_with_unknown_bits_are_left_out(tmp_path):
    write(plan(SPECS[0], count=40), tmp_path / "v.txt")
    lines = (tmp_path / "v.txt").read_text().splitlines()
    lines[-1], lines[-3] = lines[-1][:6] + "xx" + lines[-1][8:], lines[-3][:-1] + "x"
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")
    coverage, left_out = coverage_of_vectors(tmp_path / "v.txt")
    assert (coverage.vectors, left_out) == (38, 2)
    assert sum(coverage.groups["class of the result"].counts) == 38


# -- refused -----------------------------------------------------------------------------------------------------------
def test_coverage_of_other_things_is_not_added():
    one, other = counted(SPECS[0]), counted(VectorSpec.make("multiply", "e4m3fn", rounding="toward_zero"))
    with pytest.raises(CoverageFileError, match=r"^b is of rounding toward_zero, a of rounding nearest_even"):
        merged({"a": one, "b": other})
    nameless = CoverageRecord({}, None, counted(VectorSpec.make("multiply", "e5m2")).groups)
    with pytest.raises(CoverageFileError, match="its vectors are of something else"):
        merged({"a": one, "b": nameless})
    with pytest.raises(CoverageFileError, match="no coverage to add"):
        merged({})


def _changed(folder, ending, before, after):
    text = (folder / f"c.{ending}").read_text()
    assert before in text
    (folder / f"bad.{ending}").write_text(text.replace(before, after, 1))
    return folder / f"bad.{ending}"


@pytest.mark.parametrize(
    ("ending", "before", "after", "says"),
    [
        ("json", '"hit": 49', '"hit": 48', "hit of 'classes of a, b' is 48, and its counts say 49"),
        ("json", '"missed": []', '"missed": ["7"]', "has no bin '7'"),
        ("json", '"vectors": 500', '"vectors": -1', "vectors must be a whole number"),
        ("json", '"groups": [', '"groups": [ 3,', "a group has name, labels"),
        ("json", '"groups": [', '"groups": [[', "is no JSON"),
        ("xml", 'coverageCount="0"', 'coverageCount="-3"', "must be a whole number from 0"),
        ("xml", 'coverageCount="0"', 'coverageCount="99999999999999999999"', "must be a whole number from 0"),
        ("xml", 'coverageCount="0"', "", "must be a whole number from 0"),
        ("xml", "</ucis:UCIS>", "", "is no XML"),
        ("xml", "cgInstance", "cgInstances", "is no XML"),
        ("xml", 'name="signalingNaN quietNaN"', 'name="signalingNaN signalingNaN"', "or that of another"),
        ("cocotb.xml", 'hits="', 'hits="-', "must be a whole number from 0"),
        ("cocotb.xml", 'coverage="49"', 'coverage="48"', "coverage of 'top.classes_of_a_b' is 48, and its bins say 49"),
        ("cocotb.xml", 'size="49"', 'size="50"', "size of 'top.classes_of_a_b' is 50, and its bins say 49"),
    ],
)  # fmt: skip
def test_files_that_are_not_what_they_say(files, ending, before, after, says, capsys):
    path = _changed(files[1], ending, before, after)
    assert cli("vectors", "coverage", path) == 2
    assert re.search(says, capsys.readouterr().err)


@pytest.mark.parametrize("text", ["", "\n\n", "<a/>", "<UCIS/>", "{}", '{"groups": 3}', "00 00 00 00\n", "top: [1\n"])
def test_files_that_are_something_else(tmp_path, text, capsys):
    path = tmp_path / ("c.yml" if text.startswith("top") else "c.xml")
    path.write_text(text)
    assert cli("vectors", "coverage", path, "-o", tmp_path / "out.xml") == 2
    assert str(path) in capsys.readouterr().err and not (tmp_path / "out.xml").exists()


def test_files_that_are_not_there_or_twice(files, capsys):
    folder = files[1]
    assert cli("vectors", "coverage", folder / "none.xml") == 2 and "no file" in capsys.readouterr().err
    assert cli("vectors", "coverage", folder) == 2 and "is a directory" in capsys.readouterr().err
    assert cli("vectors", "coverage", folder / "c.xml", folder / "c.xml") == 2
    assert "counted twice" in capsys.readouterr().err


def test_impossible_bins_that_were_hit_stay_impossible(tmp_path):
    record = counted(SPECS[0])
    group = record.groups["classes of a, b"]
    group.counts[np.flatnonzero(~group.reachable)[0]] = 3
    for ending in ("json", "xml"):
        write_coverage(record, tmp_path / f"c.{ending}")
        found, left_out = read_counting(tmp_path / f"c.{ending}")
        assert left_out == 0 and found.to_dict() == record.to_dict()
    assert json.loads((tmp_path / "c.json").read_text())["groups"][0]["bins"] == 49
