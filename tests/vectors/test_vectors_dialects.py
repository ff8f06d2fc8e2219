"""Every dialect is written, read back and refused where it is broken; compressed files are files."""

import csv
import gzip
import io
import json
import lzma
import shutil
import subprocess
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softnum as sn
from softnum.vectors import (
    DIALECTS,
    TextLayout,
    UnitSpec,
    VectorFileError,
    VectorReader,
    VectorSpec,
    check,
    header_of,
    open_reader,
    plan,
    write,
)
from softnum.vectors.files.compressed import compressed, opened
from softnum.vectors.files.dialects import dialect_of_path, recognised
from softnum.vectors.plans.spec import Block
from tests.support.cases import cases

SPECS = {
    "operation": VectorSpec.make("multiply", "e4m3fn"),
    "wide": VectorSpec.make("fma", "binary64", tininess="before"),
    "odd": VectorSpec.make("add", "tf32"),
    "stochastic": VectorSpec.make("fma", "e6m9", rounding="sr", stochastic_bits=10),
    "dot": UnitSpec.make("dot", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=5, with_c=True),
    "mac": UnitSpec.make("mac", "MadUnit('e6m9', operand='e2m1fn', rounding='stochastic', stochastic_bits=7)"),
    "gemm": UnitSpec.make("gemm", "MadUnit('binary32', operand='e3m2fn')", shape=(2, 3, 4)),
}
SUFFIXES = {
    "softnum": "txt", "testfloat": "tv", "readmemh": "mem", "readmemb": "bin.mem", "fptest": "fptest", "csv": "csv",
    "jsonl": "jsonl", "npz": "npz",
}  # fmt: skip
TEXTS = [name for name in DIALECTS if name != "npz"]
FLEXIBLE = [name for name in DIALECTS if name != "fptest"]
MUL = SPECS["operation"]


def block_of(spec, n, seed=0):
    """Vectors of any spec with random operands."""
    rng = np.random.default_rng(seed)

    def draw(column):
        shape = (n,) if column.count == 1 else (n, column.count)
        return rng.integers(0, 1 << column.bits, shape, dtype=np.uint64, endpoint=False).astype(column.dtype)

    operands = [draw(c) for c in spec.operand_columns]
    if spec.columns[0].name == "first":
        operands[0][0] = 1
    drawn = next((draw(c) for c in spec.columns if c.name == "random"), None)
    return spec.evaluate(operands, drawn)


def file_of(spec, blocks, dialect, header=None):
    out = io.BytesIO()
    writer = DIALECTS[dialect].writer(out, spec, header)
    for block in blocks:
        writer.write(block)
    writer.close()
    return out.getvalue()


def read(data, spec, dialect=None, source="v", **options):
    """The reader and all its vectors as one list of Rows."""
    reader = open_reader(io.BytesIO(data), source, dialect)
    return reader, list(reader.rows(spec, **options))


def assert_equal(found, block: Block):
    for i, want in enumerate(block.columns):
        got = np.concatenate([rows.block.columns[i] for rows in found])
        assert got.dtype == want.dtype and np.array_equal(got, want)
    assert np.array_equal(np.concatenate([rows.block.operands[0] for rows in found]), block.operands[0])


# -- there and back ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("compression", ["", ".gz", ".xz"])
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("dialect", FLEXIBLE)
def test_round_trip(tmp_path, dialect, kind, compression):
    spec = SPECS[kind]
    block = block_of(spec, 700)
    header = {"op": spec.op, "vectors": "700", "command": "softnum vectors: all of it"}
    path = tmp_path / f"v.{SUFFIXES[dialect]}{compression}"
    with open(path, "wb") as plain, compressed(plain, path) as file:
        file.write(file_of(spec, [Block(*part) for part in halves(block)], dialect, header))
    for given_dialect in (None, dialect):
        with open(path, "rb") as file:
            reader = open_reader(file, str(path), given_dialect)
            assert reader.header == header
            assert_equal(list(reader.rows(spec)), block)
            assert reader.skipped == {}
    with open(path, "rb") as file:  # by its first bytes
        assert_equal(list(open_reader(file, "<stdin>").rows(spec)), block)


def halves(block):
    for part in (slice(0, 300), slice(300, None)):
        drawn = None if block.random_bits is None else block.random_bits[part]
        flags = None if block.flags is None else block.flags[part]
        yield tuple(c[part] for c in block.operands), drawn, block.result[part], flags


def test_words_hold_the_columns_in_their_order():
    """The words, from the codes alone: {a, b, c, random, result, flags}, element 0 of an entry least significant."""
    for spec in SPECS.values():
        block = block_of(spec, 50)
        total = sum(c.width for c in spec.columns)
        lines = {"readmemh": [], "readmemb": []}
        for i in range(50):
            word = 0
            for column, codes in zip(spec.columns, block.columns, strict=True):
                entry = sum(int(code) << (k * column.bits) for k, code in enumerate(np.atleast_1d(codes[i])))
                word = word << column.width | entry
            lines["readmemh"].append(f"{word:0{-(-total // 4)}X}")
            lines["readmemb"].append(f"{word:0{total}b}")
        for dialect, want in lines.items():
            assert file_of(spec, [block], dialect).decode().split() == want


def test_python_reads_csv_and_json_lines():
    spec = SPECS["dot"]
    block = block_of(spec, 20)
    rows = list(csv.DictReader(io.StringIO(file_of(spec, [block], "csv").decode())))
    objects = [json.loads(line) for line in file_of(spec, [block], "jsonl").splitlines()]
    assert rows == objects
    for i, row in enumerate(rows):
        assert list(row) == [c.name for c in spec.columns]
        assert int(row["a"], 16) == sum(int(code) << 8 * k for k, code in enumerate(block.operands[0][i]))
        assert int(row["result"], 16) == block.result[i]


def test_numpy_reads_npz(tmp_path):
    path = tmp_path / "v.npz"
    write(plan(MUL), path)
    with np.load(path) as arrays:
        assert list(arrays) == ["header", "a", "b", "result", "flags"]
        assert np.array_equal(arrays["result"], sn.multiply(arrays["a"], arrays["b"], "e4m3fn"))
        assert json.loads(arrays["header"].tobytes())["op"] == "multiply"
    wide = tmp_path / "wide.npz"  # codes in other integers, and no header
    with np.load(path) as arrays:
        np.savez_compressed(wide, **{name: arrays[name].astype(np.int64) for name in ["a", "b", "result", "flags"]})
    assert check(wide, "multiply", "e4m3fn").vectors == 65536


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("compression", ["", ".gz", ".xz"])
def test_a_file_says_what_it_holds_and_how_it_was_made(tmp_path, dialect, compression):
    from typer.testing import CliRunner

    from softnum.cli import build_app

    if dialect == "npz" and compression:
        pytest.skip("npz is not compressed again")
    spec = VectorSpec.make("multiply", "binary16", rounding="toward_zero")
    path = tmp_path / f"v.{SUFFIXES[dialect]}{compression}"
    planned = plan(spec, count=3000, seed=5)
    assert write(planned, path, dialect=dialect, header=True) == 3000
    with open(path, "rb") as file:
        header = open_reader(file, str(path)).header
    assert header == header_of(planned, dialect)
    assert header["command"].endswith({"softnum": "--seed 5", "testfloat": "--dialect testfloat --header"}.get(
        dialect, f"--dialect {dialect}"))  # fmt: skip
    report = check(path)
    assert report.ok and report.vectors == 3000 and report.spec == spec
    again = tmp_path / f"again.any{compression}"
    words = header["command"].removeprefix("softnum ").split()
    assert CliRunner().invoke(build_app(), [*words, "-o", str(again)]).exit_code == 0
    assert again.read_bytes() == path.read_bytes()  # the same bytes, compressed ones, too
    bare = tmp_path / f"bare.{SUFFIXES[dialect]}{compression}"
    write(planned, bare, dialect=dialect, header=False)
    with open(bare, "rb") as file:
        assert open_reader(file, str(bare)).header == {}
    assert check(bare, "multiply", "binary16", rounding="rtz").ok


def test_names_of_files():
    named = {
        "v.txt": "softnum", "v.hex": "readmemh", "v.mem.gz": "readmemh", "v.bin.mem": "readmemb", "v.npz": "npz",
        "a/V.MEMB.XZ": "readmemb", "v.fptest": "fptest", "v.CSV": "csv", "v.ndjson": "jsonl",
    }  # fmt: skip
    assert {name: dialect_of_path(name).name for name in named} == named
    assert dialect_of_path("v.dat") is None and dialect_of_path("mem") is None
    with pytest.raises(ValueError, match=r"unknown dialect 'readmem'; did you mean 'readmemh'\? \(known: softnum, "):
        open_reader(io.BytesIO(b"00"), "v", "readmem")
    with pytest.raises(ValueError, match=r"v\.npz\.gz: npz files are already compressed"):
        write(plan(MUL), "v.npz.gz")


@cases("kind", SPECS)
@cases("dialect", FLEXIBLE)
def test_a_bare_file_is_recognised(dialect, kind):
    found = recognised(file_of(SPECS[kind], [block_of(SPECS[kind], 200)], dialect)[:4096]).name
    assert found == {"testfloat": "softnum"}.get(dialect, dialect)


# -- other spellings ---------------------------------------------------------------------------------------------------
TEN = [0x10 * i for i in range(10)]
BLOCK = MUL.evaluate([np.array(TEN, np.uint8), np.array(TEN[::-1], np.uint8)])


def ten(dialect, change=None):
    data = file_of(MUL, [BLOCK], dialect)
    return data if change is None else change(data)


@cases(
    "dialect, change",
    [
        ("csv", lambda t: t.lower()),
        ("csv", lambda t: t.replace(b",", b", ")),
        ("csv", lambda t: t.replace(b"\n", b"\r\n")),
        ("csv", lambda t: b'"' + t.replace(b",", b'","').replace(b"\n", b'"\n"').removesuffix(b'"')),
        ("csv", lambda t: b"# by hand\n\n" + t.replace(b"\n", b"\n\n").removesuffix(b"\n\n")),
        ("csv", lambda t: b"\n".join(b",".join(line.split(b",")[::-1]) for line in t.split(b"\n"))),
        ("jsonl", lambda t: t.replace(b":", b": ").replace(b",", b", ")),
        ("jsonl", lambda t: t.replace(b":", b" : ").replace(b"\n", b"\r\n\n")),
        ("jsonl", lambda t: b"".join(json.dumps(dict(reversed(json.loads(x).items()))).encode() + b"\n"
                                     for x in t.splitlines())),
        ("readmemh", lambda t: t.lower().replace(b"\n", b" ")),
        ("readmemh", lambda t: b"/* a */" + t.replace(b"\n", b" // 1234 */\n/* 12345678\n\n\n*/ ")),
        ("readmemh", lambda t: t.replace(b"0", b"0_")),
        ("readmemh", lambda t: b"".join(b"@%x %s\n" % (i, x) for i, x in enumerate(t.split()))),
        ("readmemh", lambda t: b"".join(b"// 0x%08x\n%s\n" % (i, x) for i, x in enumerate(t.split()))),
        ("readmemb", lambda t: t.replace(b"\n", b"\n@0 ", 0).replace(b"\n", b"\t")),
        ("readmemb", lambda t: b"// bits\n@0000\n" + t),
    ],
)  # fmt: skip
def test_other_spellings(dialect, change):
    _, found = read(change(ten(dialect)), MUL, dialect)
    assert_equal(found, BLOCK)


def test_lines_of_vectors_are_counted_past_comments():
    data = b"// words\n\n/* two\n lines */ " + ten("readmemh").replace(b"\n", b"\n\n")
    _, (rows,) = read(data, MUL, "readmemh")
    assert rows.lines.tolist() == list(range(4, 24, 2))
    _, (rows,) = read(ten("readmemh").replace(b"\n", b" ", 3), MUL, "readmemh")
    assert rows.lines.tolist() == [1, 1, 1, 1, 2, 3, 4, 5, 6, 7]


def test_addresses_go_on_behind_whole_blocks():
    spec = VectorSpec.make("multiply", "e4m3fn")
    block = next(plan(spec).blocks())
    data = file_of(spec, [block] * 3, "readmemh")
    assert sum(len(rows.block) for rows in read(data + b"@30000 " + data[:9], spec, "readmemh")[1]) == 3 * 65536 + 1
    with pytest.raises(VectorFileError, match=r"v, line 196609: the address '@2FFFF' leaves a gap or goes back"):
        read(data + b"@2FFFF " + data[:9], spec, "readmemh")


def test_a_comment_may_cross_blocks():
    spec = VectorSpec.make("multiply", "e4m3fn")
    data = file_of(spec, [next(plan(spec).blocks())] * 2, "readmemh")
    words = data.split(b"\n")
    words[60_000] = b"/*" + words[60_000]
    words[70_000] += b"*/"
    assert sum(len(rows.block) for rows in read(b"\n".join(words), spec, "readmemh")[1]) == 2 * 65536 - 10_001


# -- broken files ------------------------------------------------------------------------------------------------------
def line_of(dialect, number, text):
    """Ten vectors of which one line (from 1) is replaced."""

    def change(data):
        lines = data.split(b"\n")
        lines[number - 1] = text
        return b"\n".join(lines)

    return ten(dialect, change)


BROKEN = [
    ("csv", 1, b"a,b,flags", "line 1: the line of column names must be a,b,result,flags .*lacks 'result'"),
    ("csv", 1, b"a,b,result,result,flags", "line 1: .*has more than once 'result'"),
    ("csv", 1, b"a,b,c,result,flags", "line 1: .*has beside them 'c'"),
    ("csv", 1, b"00,01,00,00", "line 1: .*lacks 'a,b,result,flags'"),
    ("csv", 1, b'a,"b', "line 1: no line of comma-separated values"),
    ("csv", 5, b"00,01,00", r"line 5: 3 columns where 4 are expected \(a,b,result,flags\)"),
    ("csv", 5, b"00,1,00,00", r"line 5: column 2 \(b\): '1' has 1 digit\(s\) where 8 bits of e4m3fn take 2"),
    ("csv", 5, b"00,0x1,00,00", "line 5: .*write the digits without 0x"),
    ("csv", 5, b"00,01,zz,00", r"line 5: column 3 \(result\): 'zz' is not hexadecimal; an unknown or"),
    ("csv", 5, b"00,01,00,20", r"line 5: column 4 \(flags\): '20' exceeds 5 bits"),
    ("csv", 5, b'00,01,00,"00', "line 5: no line of comma-separated values"),
    ("csv", 5, b"00,01,0\x000,00", "line 5: not text: byte 0x00 at position 8"),
    ("csv", None, ten("csv")[:-4], r"line 11: truncated \(the file ends in this line\): 3 columns"),
    ("csv", None, b"a,b,result,flags\n", "no vectors"),
    ("jsonl", 2, b"[1, 2]", r"line 2: a JSON object with the names a, b, result, flags is expected"),
    ("jsonl", 2, b"12", "line 2: a JSON object with the names"),
    ("jsonl", 2, b'{"a":"00"', r"line 2: not JSON \(Expecting ',' delimiter at position 10\)"),
    ("jsonl", 2, b'{"a":"00","b":"01","flags":"00"}', "line 2: the object lacks 'result'"),
    ("jsonl", 2, b'{"a":"00","b":"01","result":"00","flags":0}', "line 2: 'flags': a string of 2 hex"),
    ("jsonl", 2, b'{"a":"00","b":"01","result":"0","flags":"00"}', "line 2: 'result': '0' has 1 digit"),
    ("jsonl", 2, b'{"a":"0g","b":"01","result":"00","flags":"00"}', "line 2: 'a': '0g' is not hexadec"),
    ("jsonl", 2, b'{"a":"00","b":"01","result":"00","flags":"00","n":1}', "line 2: .*unknown name 'n'"),
    ("jsonl", 2, b'{"a":"00","b":"01","a":"00","result":"00","flags":"00"}', "line 2: .*a name twice"),
    ("jsonl", 2, b'{"a":"\xff', "line 2: not text in UTF-8: byte 0xFF at position 7"),
    ("jsonl", 2, b"[" * 60_000, "line 2: "),
    ("jsonl", None, ten("jsonl")[:-9], r"line 10: truncated \(the file ends in this line\): not JSON"),
    ("readmemh", 3, b"1234567", r"line 3: '1234567' has 7 digit\(s\) where 29 bits \(a:8 b:8 result:8"),
    ("readmemh", 3, b"123456789", "line 3: '123456789' has 9 digit"),
    ("readmemh", 3, b"20000000", "line 3: '20000000' exceeds 29 bits"),
    ("readmemh", 3, b"0123456G", "line 3: '0123456G' is not hexadecimal"),
    ("readmemh", 3, b"0x12345678", "line 3: '0x12345678' is not hexadecimal; write the digits without 0x"),
    ("readmemh", 3, b"_0123456", "line 3: '_0123456' is not hexadecimal"),
    ("readmemh", 3, b"xxxxxxxx", "line 3: 'xxxxxxxx' is not hexadecimal in a; an unknown"),
    ("readmemh", 3, b"@3 00000000", "line 3: the address '@3' leaves a gap or goes back: .* is number @2"),
    ("readmemh", 3, b"@ 00000000", "line 3: the address '@' is not hexadecimal"),
    ("readmemh", 1, b"@1 00000000", "line 1: the address '@1' leaves a gap"),
    ("readmemh", 3, b"/* no end", "line 11: the file ends in a comment that began with /\\*"),
    ("readmemh", 3, b":10010000214601360121470136007EFE09D2190140", "line 3: .* is not hexadecimal"),
    ("readmemh", None, ten("readmemh")[:-3], r"line 10: truncated \(the file ends in this line\): '\w+' has 6 digit"),
    ("readmemh", None, b"// nothing\n/* here */\n", "no vectors"),
    ("readmemb", 4, b"0" * 28, "line 4: '0{28}' has 28 digit"),
    ("readmemb", 4, b"0" * 28 + b"2", "line 4: '0{28}2' is not binary"),
    ("readmemb", 4, b"0" * 28 + b"z", "line 4: '0{28}z' is not binary in flags; an unknown"),
    ("readmemb", None, ten("readmemb")[:-3], "line 10: truncated"),
    ("softnum", None, ten("softnum")[:-3], "line 10: truncated"),
    ("testfloat", 4, b"00 01 00", "line 4: 3 columns where 4"),
]  # fmt: skip


@cases("dialect, number, text, message", BROKEN, ids=range(len(BROKEN)))
def test_broken_text(dialect, number, text, message):
    """A line of ten is replaced, or the file is another one."""
    data = text if number is None else line_of(dialect, number, text)
    with pytest.raises(VectorFileError, match=rf"\Av(, |: ){message}"):
        read(data, MUL, dialect)


@cases("name", ["gzip", "xz"])
@cases("dialect", TEXTS)
def test_truncated_and_damaged_streams(dialect, name):
    spec = VectorSpec.make("multiply", "binary16")
    data = file_of(spec, plan(spec, count=4000).blocks(), dialect)
    packed = gzip.compress(data, 1, mtime=0) if name == "gzip" else lzma.compress(data, preset=0)
    assert len(read(packed, spec, dialect)[1]) == 1
    two = packed + packed if dialect != "csv" else packed
    assert sum(len(rows.block) for rows in read(two, spec, dialect)[1]) == 4000 * (two != packed) + 4000
    for cut in (1, len(packed) // 2, len(packed) - 30):
        found, reader = 0, None
        with pytest.raises(
            VectorFileError, match=rf"\Av.*the {name} stream is truncated: it ends after \d+ bytes"
        ) as caught:
            reader = open_reader(io.BytesIO(packed[: len(packed) - cut]), "v", dialect)
            for rows in reader.rows(spec):
                found += len(rows.block)
        if reader is not None and found:  # the vectors before the cut were given out, and it is said where it is
            assert caught.value.line == found + 1 + (dialect == "csv")
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 0xFF
    with pytest.raises(VectorFileError, match=rf"the {name} stream is (damaged|truncated)|is not|columns|line"):
        read(bytes(damaged), spec, dialect)
    with pytest.raises(VectorFileError, match=rf"the {name} stream is damaged"):
        read(packed + b"garbage", spec, dialect)


def test_padding_between_members():
    packed = lzma.compress(b"00 00 00 00\n") + bytes(8) + lzma.compress(b"00 01 00 00\n") + bytes(4)
    assert len(read(packed, MUL)[1][0].block) == 2
    assert opened(io.BytesIO(gzip.compress(b""))).read(10) == b""
    with pytest.raises(VectorFileError, match="file is empty"):
        read(gzip.compress(b""), MUL)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_count_in_the_header(dialect):
    spec = VectorSpec.make("multiply", "binary16")
    block = block_of(spec, 10)
    with pytest.raises(VectorFileError, match="10 vectors; its header says 11"):
        read(file_of(spec, [block], dialect, {"op": "multiply", "vectors": "11"}), spec, dialect)


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"b": None}, "no array 'b': the file has a, result, flags, and a, b, result, flags are expected"),
        ({"b": np.zeros(9, np.uint8)}, "arrays of different lengths: a 10, b 9, result 10, flags 10"),
        ({"b": np.zeros((10, 2), np.uint8)}, r"array 'b' is of shape \(10, 2\) where \(n,\) is expected"),
        ({"b": np.zeros(10)}, "array 'b': codes are integers, not float64"),
        ({"b": np.arange(-1, 9)}, "array 'b', vector 1: -0x1 does not fit 8 bits of e4m3fn"),
        ({"b": np.arange(250, 260, dtype=np.uint16)}, "array 'b', vector 7: 0x100 does not fit 8 bits of e4m3fn"),
        ({"flags": np.arange(23, 33, dtype=np.uint8)}, "array 'flags', vector 10: 0x20 does not fit 5 bits"),
        ({"b": np.array([None] * 10)}, "array 'b'"),
    ],
)
def test_broken_npz(arrays, message):
    given = {"a": BLOCK.operands[0], "b": BLOCK.operands[1], "result": BLOCK.result, "flags": BLOCK.flags} | arrays
    out = io.BytesIO()
    np.savez(out, **{name: value for name, value in given.items() if value is not None})
    with pytest.raises(VectorFileError, match=r"\Av: " + message):
        read(out.getvalue(), MUL, "npz")
    empty = io.BytesIO()
    np.savez(empty, **{name: np.zeros(0, np.uint8) for name in ("a", "b", "result", "flags")})
    with pytest.raises(VectorFileError, match="no vectors: the arrays are empty"):
        read(empty.getvalue(), MUL, "npz")
    for data, words in ((b"", "empty"), (b"PK\x03\x04", "no whole npz file"), (ten("npz")[:-30], "no whole npz file")):
        with pytest.raises(VectorFileError, match=r"\Av: .*" + words):
            read(data, MUL, "npz")


def test_npz_is_limited():
    with pytest.raises(ValueError, match="at most 10000000 vectors .*not 10000001 vectors of 8 bytes; write several"):
        write(plan(VectorSpec.make("multiply", "e4m3fn", rounding="sr"), count=10_000_001), "no.npz")
    big = UnitSpec.make("dot", "MadUnit('binary32', operand='binary16')", length=4096)
    with pytest.raises(ValueError, match="100000 vectors of 16388 bytes"):
        DIALECTS["npz"].check(big, 100_000)


# -- unknown and undriven digits ---------------------------------------------------------------------------------------
UNKNOWN = {
    "softnum": [b"10 80 xx 00", b"20 70 00 0X", b"30 60 zz zz", b"40 50 4X 00"],
    "csv": [b"10,80,xx,00", b"20,70,00,0X", b"30,60,zz,zz", b"40,50,4X,00"],
    "jsonl": [b'{"a":"%s","b":"%s","result":"%s","flags":"%s"}' % tuple(x.split())
              for x in (b"10 80 xx 00", b"20 70 00 0X", b"30 60 zz zz", b"40 50 4X 00")],
    "readmemb": [b"00010000" b"10000000" b"xxxxxxxx" b"00000", b"00100000" b"01110000" b"00000000" b"0000X",
                 b"00110000" b"01100000" b"zzzzzzzz" b"zzzzz", b"01000000" b"01010000" b"0100xxxx" b"00000"],
}  # fmt: skip


@pytest.mark.parametrize("dialect", UNKNOWN)
def test_unknown_digits_are_an_error_or_marked(dialect):
    lines = ten(dialect).split(b"\n")[:-1]
    first = 1 + (dialect == "csv")
    lines[first : first + 4] = UNKNOWN[dialect]
    data = b"\n".join(lines) + b"\n"
    with pytest.raises(VectorFileError, match=rf"line {first + 1}: .*an unknown or undriven value"):
        read(data, MUL, dialect)
    _, (rows,) = read(data, MUL, dialect, unknown="mark")
    assert rows.unknown.tolist() == [False, True, False, True, True] + [False] * 5
    assert rows.unknown_flags.tolist() == [False, False, True, True] + [False] * 6
    assert rows.block.result[[1, 3]].tolist() == [0, 0] and rows.block.result[4] in (0x40, 0x00)
    assert np.array_equal(rows.block.operands[0], BLOCK.operands[0])
    _, (rows,) = read(ten(dialect), MUL, dialect, unknown="mark")
    assert rows.unknown is None and rows.unknown_flags is None
    with pytest.raises(ValueError, match="unknown must be 'error' or 'mark', got 'ignore'"):
        read(data, MUL, dialect, unknown="ignore")


@pytest.mark.parametrize(
    "dialect, line, message",
    [
        ("softnum", b"1x 80 00 00", r"column 1 \(a\): '1x' is not hexadecimal; an unknown"),
        ("csv", b"10,zz,00,00", r"column 2 \(b\): 'zz' is not hexadecimal"),
        ("readmemh", b"0200Xxx0", "is not hexadecimal in b and result; .*in binary .* a digit is of one column"),
        ("readmemb", b"x" + b"0" * 28, "is not binary in a;"),
        ("softnum", b"10 80 xxx 00", "has 3 digit"),
    ],
)
def test_unknown_operands_are_always_an_error(dialect, line, message):
    with pytest.raises(VectorFileError, match=r"line 2: .*" + message):
        read(line_of(dialect, 2, line), MUL, dialect, unknown="mark")


def test_unknown_hexadecimal_words():
    """29 bits: digit 0 is of the flags, digit 1 of flags and result, digit 2 of the result, digit 3 of result and b."""
    _, (rows,) = read(line_of("readmemh", 2, b"0210000x"), MUL, "readmemh", unknown="mark")
    assert rows.unknown is None and rows.unknown_flags.tolist() == [False, True] + [False] * 8
    _, (rows,) = read(line_of("readmemh", 2, b"02100Zz0"), MUL, "readmemh", unknown="mark")
    assert rows.unknown[1] and rows.unknown_flags[1] and rows.block.result[1] == 0


# -- IBM's test suite --------------------------------------------------------------------------------------------------
ADD = VectorSpec.make("add", "binary32")
SUITE = b"""Floating point tests: a mixture

Copyright of nobody.

b32?- =0 i  -Inf -> 0x1
b32+ =0 i  -1.6E9177P49 -1.7FFFFFP127 -> -1.7FFFFFP127 x
b32V =0  -1.7FFFFFP127 -> Q i
b32*+ =0  +0.7FFFFFP-126 -1.7FFFFFP127 -Inf -> -Inf
b32V =0 i -Inf -> # i
b32+ =0 x -1.7FFFFDP-6 +1.000000P-5 -> +1.400000P-28
b32+ > -1.7FFFFDP-6 +1.000000P-5 -> +1.400000P-28
b32+ =0 i +Inf -inf -> # i
b32+ =0 S q -> Q i
b32+ =0 o +1.7FFFFFP127 +1.7FFFFFP127 -> +1.7FFFFFP-64 xo
b32+ =0 o +0.000001P-126 -0.000001P-126 -> +Zero
d64+ =0 +1E0 +1E0 -> +2E0
b32b64cff =0 +1.7FFFFFP127 -> +1.FFFFFE0000000P127
"""


def test_lines_of_ibms_syntax():
    reader, (rows,) = read(SUITE, ADD, None)
    assert reader.header == {}
    assert rows.lines.tolist() == [6, 10, 13, 15]
    a, b = rows.block.operands
    assert a.tolist() == [0xD86E9177, 0xBCFFFFFD, 0x7F800001, 0x00000001]
    assert b.tolist() == [0xFF7FFFFF, 0x3D000000, 0x7FC00000, 0x80000001]
    assert rows.block.result.tolist() == [0xFF7FFFFF, 0x31C00000, 0x7FC00000, 0]
    assert rows.block.flags.tolist() == [1, 0, 16, 0]
    assert reader.skipped == {
        "b32?- =0": 1, "b32V =0": 2, "b32*+ =0": 1, "b32+ >": 1, "the result went to a trap handler": 2, "d64+ =0": 1,
        "b32b64cff =0": 1,
    }  # fmt: skip
    report = check(io.BytesIO(SUITE), "add", "binary32")
    assert report.ok and report.to_dict()["skipped"] == reader.skipped
    assert str(report).endswith("passed over: b32*+ =0: 1, b32+ >: 1, b32?- =0: 1, b32V =0: 2, b32b64cff =0: 1, "
                                "d64+ =0: 1, the result went to a trap handler: 2")  # fmt: skip
    convert = VectorSpec.make("convert", "binary32", out_fmt="binary64")
    assert read(SUITE, convert)[1][0].block.result.tolist() == [0x47EFFFFFE0000000]
    sqrt = read(SUITE, VectorSpec.make("sqrt", "binary32"))[1][0].block
    assert sqrt.operands[0].tolist() == [0xFF7FFFFF] and sqrt.flags.tolist() == [16]
    with pytest.raises(VectorFileError, match="no vectors of b32/ <; the file has .*b32V =0: 2"):
        read(SUITE, VectorSpec.make("divide", "binary32", rounding="down"))


@cases("tininess", ["after", "before"])
@cases(
    "op, fmt, options",
    [
        ("add", "binary16", {}),
        ("multiply", "binary32", {"rounding": "up"}),
        ("fma", "binary64", {"rounding": "nearest_away"}),
        ("divide", "binary16", {"rounding": "toward_zero"}),
        ("sqrt", "binary64", {"rounding": "down"}),
        ("convert", "binary64", {"out_fmt": "binary16"}),
        ("remainder", "binary32", {}),
    ],
)
def test_fptest_round_trip(op, fmt, options, tininess):
    spec = VectorSpec.make(op, fmt, tininess=tininess, **options)
    for block in plan(spec, count=5000).blocks():
        data = file_of(spec, [block], "fptest")
        columns = []
        for codes, column in zip(block.columns[:-1], spec.columns, strict=False):
            f = column.format
            top = codes.dtype.type(f.inf_code)
            rest = codes & codes.dtype.type((1 << f.bits - 1) - 1)
            quiet = codes & codes.dtype.type(1 << f.mantissa_bits - 1) != 0
            columns.append(np.where(rest <= top, codes, np.where(quiet, top | top >> 1, top | 1)))
        plain = Block(tuple(columns[:-1]), None, columns[-1], block.flags)
        assert_equal(
            read(data, spec, "fptest")[1], Block(*plain[:2], plain.result.astype(block.result.dtype), plain.flags)
        )
        spaced = data.replace(b" -> ", b"   ->  ").replace(b"=0 ", b"=0  ").lower().replace(b"v =0", b"V =0")
        spaced = spaced.replace(b"b64v", b"b64V")
        assert_equal(read(spaced, spec, "fptest")[1], plain)
        values = [line.split() for line in data.decode().splitlines()]
        for row, code in list(zip(values, block.operands[0].tolist(), strict=True))[::50]:
            value = sn.decode([code], fmt)[0]
            if row[2] not in "QS":
                assert repr(python_value(row[2], spec.formats[0])) == repr(float(value))


def python_value(text, fmt):
    """The value of a number in IBM's syntax, by Python's own reader."""
    if text[1:] in ("Inf", "Zero"):
        return float(text.replace("Zero", "0"))
    sign, lead, digits, power = text[0], text[1], text[3 : text.index("P")], text[text.index("P") + 1 :]
    return float.fromhex(
        f"{sign}0x{(int(lead) << fmt.mantissa_bits) + int(digits, 16):x}p{int(power) - fmt.mantissa_bits}"
    )


def test_three_letters_of_underflow():
    line = b"b32* =0 +1.000000P-126 +0.400001P-126 -> +Zero x%s\n"
    for letters, after, before in ((b"u", 2, 2), (b"v", 2, 0), (b"w", 0, 2), (b"uw", 0, 2), (b"vw", 2, 2), (b"", 0, 0)):
        for tininess, want in (("after", after), ("before", before)):
            spec = VectorSpec.make("multiply", "binary32", tininess=tininess)
            assert read(line % letters, spec)[1][0].block.flags.tolist() == [1 + want]


@cases(
    "line, message",
    [
        (b"b32+ =0 +1.000000P0 +1.000000P0", "one '->' between operands and result is expected"),
        (b"b32+ =0 +1.000000P0 +1.000000P0 ->", "one '->'"),
        (b"b32+ =1 +1.000000P0 +1.000000P0 -> +1.000000P1", "no rounding mode"),
        (b"b32+ =0 +1.000000P0 -> +1.000000P1", r"1 operand\(s\) where b32\+ takes 2"),
        (b"b32+ =0 +1.000000P0 +1.00000P0 -> +1.000000P1", "operand 2: .*has 5 digit.*23 bits take 6"),
        (b"b32+ =0 +1.000000P0 +1.00G000P0 -> +1.000000P1", "operand 2: .*is no number"),
        (b"b32+ =0 +1.000000P0 +1.800000P0 -> +1.000000P1", "operand 2: .*exceeds 23 bits"),
        (b"b32+ =0 +1.000000P0 +1.000000P128 -> +1.000000P1", "operand 2: the exponent of .* must be -126..127"),
        (b"b32+ =0 +1.000000P0 +0.000001P0 -> +1.000000P1", "operand 2: the exponent of .* must be -126"),
        (b"b32+ =0 +1.000000P0 +0.000000P-126 -> +1.000000P1", r"operand 2: .*the fraction is not 0 \(\+Zero is\)"),
        (b"b32+ =0 +1.000000P0 +1.000000P0 -> 1", "result: '1' is no number"),
        (b"b32+ =0 +1.000000P0 +1.000000P0 -> +1.000000P1 y", "exceptions are letters of xuvwozi, found 'y'"),
        (b"b32+ =0 +1.000000P0 +1.000000P0 -> +1.000000P1 x x", "more than a result and exceptions"),
        (b"c32+ =0 +1.000000P0 +1.000000P0 -> +1.000000P1", "no operation of a format"),
        (b"3F800000 3F800000 40000000 00", "no operation of a format"),
        (b"b32+ =0 +1.0000\x0000P0 +1.000000P0 -> +1.000000P1", "not text: byte 0x00"),
    ],
)
def test_broken_fptest(line, message):
    good = b"b32+ =0 +1.000000P0 +1.000000P0 -> +1.000000P1\n"
    with pytest.raises(VectorFileError, match=rf"\Av, line 3: .*{message}"):
        read(good * 2 + line + b"\n" + good, ADD, "fptest")


def test_a_last_line_of_fptest_has_an_end():
    good = b"b32+ =0 +1.7FFFFFP126 +1.7FFFFFP126 -> +1.7FFFFFP127\n"
    assert len(read(good * 2 + b" ", ADD)[1][0].block) == 2
    for cut in range(1, 8):  # +1.7FFFFFP12 is a number, too
        with pytest.raises(VectorFileError, match=r"\Av, line 2: truncated .*no end of line behind 'b32"):
            read((good * 2)[:-cut], ADD, "fptest")


@pytest.mark.parametrize(
    "spec, message",
    [
        (VectorSpec.make("add", "bfloat16"), "binary16, binary32 and binary64 .*not bfloat16; use another dialect"),
        (VectorSpec.make("exp", "binary32"), "no operation exp"),
        (VectorSpec.make("add", "binary32", out_fmt="binary16"), "operands and a result of one format"),
        (VectorSpec.make("add", "binary32", rounding="to_odd"), "no rounding mode to_odd"),
        (VectorSpec.make("add", "binary32", overflow="saturate"), "overflow goes to infinity"),
        (SPECS["dot"], "no vectors of units"),
    ],
)
def test_what_fptest_cannot_say(tmp_path, spec, message):
    with pytest.raises(ValueError, match=message):
        DIALECTS["fptest"].check(spec, 1)
    with pytest.raises(ValueError, match=message):
        read(SUITE, spec, "fptest")


# -- a simulator reads what we write -----------------------------------------------------------------------------------
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog (iverilog)")
@pytest.mark.parametrize("kind", ["operation", "stochastic", "dot", "gemm"])
@pytest.mark.parametrize("task", ["readmemh", "readmemb"])
def test_icarus_reads_memory_files(tmp_path, task, kind):
    spec = SPECS[kind]
    block = block_of(spec, 64)
    data = file_of(spec, [block], task, {"op": spec.op, "vectors": "64"})
    (tmp_path / "v.mem").write_bytes(data)
    wires = " ".join(f"reg [{c.width - 1}:0] v_{c.name};" for c in spec.columns)
    names = ", ".join(f"v_{c.name}" for c in spec.columns)
    shown = " ".join("%h" for _ in spec.columns)
    letter = task[-1]
    (tmp_path / "bench.v").write_text(
        f"module bench; reg [{sum(c.width for c in spec.columns) - 1}:0] words [0:63]; {wires} integer i;\n"
        f'initial begin ${task}("v.mem", words);\n'
        f"for (i = 0; i < 64; i = i + 1) begin {{{names}}} = words[i];\n"
        f'$display("{shown}", {names}); end $writemem{letter}("out.mem", words); end endmodule\n'
    )
    subprocess.run(["iverilog", "-g2005", "-o", "bench", "bench.v"], cwd=tmp_path, check=True, timeout=60)
    done = subprocess.run(["vvp", "bench"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert done.stdout.upper() == TextLayout(spec).format(block)
    assert_equal(read(done.stdout, spec)[1], block)
    assert_equal(read((tmp_path / "out.mem").read_bytes(), spec, task)[1], block)


# -- constant memory ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["v.mem", "v.jsonl", "v.fptest", "v.csv.gz"])
def test_two_million_vectors_in_constant_memory(tmp_path, name):
    spec = VectorSpec.make("multiply", "binary16")
    path = tmp_path / name
    tracemalloc.start()
    try:
        write(plan(spec, count=2_000_000), path)
        with open(path, "rb") as file:
            total = sum(len(rows.block) for rows in open_reader(file, str(path)).rows(spec))
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 2_000_000
    assert used < 50e6


def test_wide_vectors_are_read_in_small_blocks():
    spec = UnitSpec.make("dot", "MadUnit('binary32', operand='binary16')", length=4096)
    layout = TextLayout(spec)
    block = block_of(spec, 64)
    data = file_of(spec, [block], "softnum") * 16
    assert layout.width > 32_000
    found = list(VectorReader(io.BytesIO(data), "v").rows(spec))
    assert len(found) > 1 and sum(len(rows.block) for rows in found) == 1024
    a, b, result = (np.concatenate([codes] * 16) for codes in block.columns)
    assert_equal(found, Block((a, b), None, result, None))


# -- anything at all ---------------------------------------------------------------------------------------------------
BINARY16 = VectorSpec.make("multiply", "binary16")
GOOD_FILES = {name: file_of(BINARY16, plan(BINARY16, count=20).blocks(), name, {"op": "multiply"}) for name in DIALECTS}


def never_anything_else(data, dialect):
    try:
        for rows in open_reader(io.BytesIO(data), "v", dialect).rows(BINARY16, unknown="mark"):
            assert all(len(column) == len(rows.lines) for column in rows.block.columns)
    except VectorFileError as error:
        assert str(error).startswith("v")


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([None, *DIALECTS]))
def test_random_bytes(data, dialect):
    never_anything_else(data, dialect)


@settings(deadline=None)
@given(st.sampled_from(list(DIALECTS)), st.sampled_from(["", "gzip", "xz"]), st.data())
def test_damaged_files(dialect, compression, data):
    text = GOOD_FILES[dialect]
    packed = {"": text, "gzip": gzip.compress(text, 1, mtime=0), "xz": lzma.compress(text, preset=0)}[compression]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(packed)))
        end = min(len(packed), start + data.draw(st.integers(0, 5)))
        packed = packed[:start] + data.draw(st.binary(max_size=5)) + packed[end:]
    never_anything_else(packed, data.draw(st.sampled_from([None, dialect])))


@settings(deadline=None)
@given(st.sampled_from(TEXTS), st.text('0123456789abcdefxzXZ@/*,_ \t\r\n{}":->PQS+.#', max_size=60))
def test_text_of_the_right_letters(dialect, text):
    lines = GOOD_FILES[dialect].split(b"\n")
    never_anything_else(b"\n".join([*lines[:8], text.encode(), *lines[8:]]), dialect)
