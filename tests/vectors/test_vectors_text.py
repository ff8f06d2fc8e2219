"""The text: what is written, what is read, and what every unusable file is told."""

import io
import tracemalloc

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import TextLayout, VectorFileError, VectorReader, VectorSpec, check, plan, write
from tests.support.cases import cases

MUL = VectorSpec.make("multiply", "binary16")


def text_of(spec, count=3000, **options):
    return b"".join(TextLayout(spec).format(b) for b in plan(spec, count=count, **options).blocks())


def check_bytes(data, op="multiply", fmt="binary16", **options):
    return check(io.BytesIO(data), op, fmt, **options)


SPECS = [
    VectorSpec.make("multiply", "e2m1fn"),
    VectorSpec.make("multiply", "e5m3"),  # 9 bits: three digits
    VectorSpec.make("fma", "e6m9"),
    VectorSpec.make("fma", "tf32"),  # 19 bits: five digits
    VectorSpec.make("add", "q1.30", rounding="sr", stochastic_bits=13),
    VectorSpec.make("fma", "binary64", rounding="sr", stochastic_bits=32),
    VectorSpec.make("multiply", ("e5m2", "binary32"), out_fmt="e11m40", rounding="sr", stochastic_bits=1),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.op} {s.out_fmt}")
def test_format_is_printf_and_parse_is_its_inverse(spec):
    layout = TextLayout(spec)
    for block in plan(spec, count=2000).blocks():
        text = layout.format(block)
        rows = zip(*(c.tolist() for c in block.columns), strict=True)
        lines = [" ".join(f"{v:0{-(-c.bits // 4)}X}" for v, c in zip(row, spec.columns, strict=True)) for row in rows]
        assert text.decode() == "".join(line + "\n" for line in lines)
        for data in (text, text.lower()):
            back = layout.parse(data)
            for got, want in zip(back.columns, block.columns, strict=True):
                assert got.dtype == want.dtype and np.array_equal(got, want)


def test_flags_have_testfloats_numbers():
    """Its documentation: bit 0 inexact, 1 underflow, 2 overflow, 3 infinite, 4 invalid."""
    names = ("INEXACT", "UNDERFLOW", "OVERFLOW", "DIVIDE_BY_ZERO", "INVALID")
    assert [int(sn.Flags[name]) for name in names] == [1 << bit for bit in range(5)]


def test_lines_made_by_testfloat():
    """The example of testfloat_ver's documentation (f64_add)."""
    lines = (
        b"3F90EB5825D6851E C3E0080080000000 C3E0080080000000 01\n"
        b"41E3C00000000000 C182024F8AE474A8 41E377F6C1D46E2D 01\n"
        b"7FD80FFFFFFFFFFF 7FEFFFFFFFFFFF80 7FF0000000000000 05\n"
        b"3FFFED6A25C534BE 3CA1000000020000 3FFFED6A25C534BF 01\n"
    )
    assert check_bytes(lines, "add", "binary64").vectors == 4
    assert check_bytes(lines, "add", "binary64").ok
    assert not check_bytes(lines, "subtract", "binary64").ok


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.lower(),
        lambda t: t.replace(b"\n", b"\r\n"),
        lambda t: t.removesuffix(b"\n"),
        lambda t: t.replace(b"\n", b"\r\n").removesuffix(b"\n"),
        lambda t: b"# a comment\n\n" + t + b"\n# the end\n",
        lambda t: t[:-36] + b"# in between\n\n" + t[-36:],
        lambda t: t.replace(b" ", b"  ").replace(b"\n", b" \n"),
        lambda t: t.replace(b" ", b"\t"),
        lambda t: b"\xef\xbb\xbf" + t,
    ],
    ids=["lower", "crlf", "no-newline", "cr-at-end", "comments", "comment-inside", "spaces", "tabs", "bom"],
)
def test_other_spellings_are_read(change):
    text = text_of(MUL, 500)
    report = check_bytes(change(text))
    assert report.ok and report.vectors == 500


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_short_reads_of_a_pipe(chunk):
    class Pipe(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, chunk))

    text = b"# softnum vectors 1\n# op: multiply\n# format: binary16\n\n" + text_of(MUL, 300)
    report = check(Pipe(text))
    assert report.ok and report.vectors == 300


def damaged(number, line, tail=True):
    """1000 vectors of which line `number` (from 1) is replaced; without tail, the file ends there."""
    lines = text_of(MUL, 1000).split(b"\n")[:-1]
    lines[number - 1] = line
    if not tail:
        return b"\n".join(lines[:number])
    return b"\n".join(lines) + b"\n"


GOOD = b"3C00 3C00 3C00 00"
PROBLEMS = [
    (GOOD[:9], "2 columns where 4"),
    (GOOD + b" 00", r"5 columns where 4 are expected \(a b result flags\)"),
    (b"3C0 3C00 3C00 00", r"column 1 \(a\): '3C0' has 3 digit\(s\) where 16 bits of binary16 take 4"),
    (b"3C00 03C00 3C00 00", r"column 2 \(b\): '03C00' has 5 digit"),
    (b"3C00 3C00 3C0G 00", r"column 3 \(result\): '3C0G' is not hexadecimal"),
    (b"3C00 xxxx 3C00 00", "unknown or undriven value of a simulation"),
    (b"3C00 3C00 0x3C00 00", "without 0x"),
    (b"3C00 3C00 3C00 20", r"column 4 \(flags\): '20' exceeds 5 bits"),
    (b"3C00 3C00 3C00 0", r"column 4 \(flags\): '0' has 1 digit"),
    (b"3C00 3C00 3C00 -1", r"'-1' is not hexadecimal"),
    (b"3C00,3C00,3C00,00", "1 columns where 4|the line of column names must be"),
    (b"3C00 3C\x0000 3C00 00", "not text: byte 0x00 at position 8"),
    ("3C00 3C00 3C00 \uff10\uff10".encode(), "not text: byte 0xEF at position 16"),
]


@cases("number", [1, 500, 1000])
@cases("line, message", PROBLEMS, ids=range(len(PROBLEMS)))
def test_a_bad_line_is_named(line, message, number):
    with pytest.raises(VectorFileError, match=message) as caught:
        check_bytes(damaged(number, line))
    assert caught.value.line == number
    assert f"line {number}: " in str(caught.value)
    assert caught.value.report.vectors == number - 1
    assert caught.value.report.exit_status == 2


def test_a_bad_line_beyond_the_first_block():
    text = text_of(VectorSpec.make("multiply", "e5m2"), None)
    text = b"# one\n" + text * 3
    at = text.index(b"\n", len(text) - 5000) + 1
    number = text[:at].count(b"\n") + 1
    with pytest.raises(VectorFileError) as caught:
        check_bytes(text[:at] + b"Q" + text[at + 1 :], fmt="e5m2")
    assert caught.value.line == number
    assert caught.value.report.vectors == number - 2


@cases("cut", range(1, len(GOOD)))
def test_a_truncated_last_line(cut):
    with pytest.raises(VectorFileError, match="truncated") as caught:
        check_bytes(damaged(700, GOOD[:cut], tail=False))
    assert caught.value.line == 700


def test_codes_that_exceed_a_format_of_nine_bits():
    assert check_bytes(text_of(VectorSpec.make("multiply", "e5m3"), 100), fmt="e5m3").ok
    with pytest.raises(VectorFileError, match=r"line 2: column 2 \(b\): '200' exceeds 9 bits of e5m3"):
        check_bytes(b"078 078 078 00\n078 200 078 00\n", fmt="e5m3")


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "file is empty"),
        (b"\n\n", "only comments and blank lines"),
        (b"# nothing\n", "only comments and blank lines"),
        (b"# nothing", "only comments and blank lines"),
        (b"\x1f\x8b\x08\x00rest", "the gzip stream is truncated: it ends after 0 bytes"),
        (b"\xfd7zXZ\x00rest", "the xz stream is truncated: it ends after 0 bytes"),
        (b"\x7fELF\x02\x01\x01\x00\n\x00", "line 1: not text: byte 0x7F at position 1"),
        ("3C00 3C00 3C00 00\n".encode("utf-16"), "line 1: not text: byte 0xFF"),
        (b"\xa5" * 3_000_000, "line 1: no end of line"),
        (b"3" * 3_000_000, "line 1: no end of line"),
    ],
)
def test_files_that_hold_something_else(data, message):
    with pytest.raises(VectorFileError, match=message):
        check_bytes(data)


def test_random_binary_garbage_never_passes():
    rng = np.random.default_rng(1)
    for size in (1, 10, 100, 10_000, 1_000_000):
        with pytest.raises(VectorFileError):
            check_bytes(rng.integers(0, 256, size, dtype=np.uint8).tobytes())


def test_a_text_stream_is_refused():
    with pytest.raises(TypeError, match="binary mode"):
        check(io.StringIO("3C00 3C00 3C00 00\n"), "multiply", "binary16")
    with pytest.raises(TypeError, match="a path, '-' or a binary file"):
        check(7, "multiply", "binary16")


# -- headers -----------------------------------------------------------------------------------------------------------
def written(tmp_path, spec, **options):
    path = tmp_path / "v.txt"
    write(plan(spec, count=200), path, **options)
    return path


@pytest.mark.parametrize("spec", [*SPECS, VectorSpec.make("convert", "binary32", out_fmt="q4.4", rounding="to_odd",
                                                          overflow="wrap", tininess="before")], ids=str)  # fmt: skip
def test_a_header_says_all_that_check_needs(tmp_path, spec):
    path = written(tmp_path, spec)
    with open(path, "rb") as file:
        header = VectorReader(file, "v").header
    assert header["vectors"] == "200" and header["seed"] == "0" and header["version"] == sn.__version__
    assert header["command"].startswith("softnum vectors generate --op ")
    report = check(path)
    assert report.ok and report.vectors == 200
    assert report.spec == spec


def test_dialects(tmp_path):
    assert written(tmp_path, MUL).read_bytes().startswith(b"# softnum vectors 1\n# op: multiply\n")
    bare = written(tmp_path, MUL, dialect="testfloat").read_bytes()
    assert b"#" not in bare and bare == text_of(MUL, 200)
    assert written(tmp_path, MUL, dialect="testfloat", header=True).read_bytes().endswith(bare)
    assert written(tmp_path, MUL, header=False).read_bytes() == bare
    with pytest.raises(ValueError, match="unknown dialect 'json'"):
        written(tmp_path, MUL, dialect="json")


def test_a_file_cut_at_a_line_is_noticed_by_its_header(tmp_path):
    path = written(tmp_path, MUL)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:-11]) + b"\n")
    with pytest.raises(VectorFileError, match="ends after 190 vectors; its header says 200"):
        check(path)
    assert check(path, "multiply", "binary16", ignore_header=True).vectors == 190


@pytest.mark.parametrize(
    "options, message",
    [
        ({"op": "fma"}, "says op multiply, but fma was asked for"),
        ({"fmt": "bfloat16"}, "says format binary16, but bfloat16"),
        ({"rounding": "rtz"}, "says rounding nearest_even, but toward_zero"),
        ({"overflow": "saturate"}, "says overflow infinity, but saturate"),
        ({"tininess": "before"}, "says tininess after, but before"),
        ({"rounding": "sr"}, "says rounding nearest_even, but stochastic"),
    ],
)
def test_a_header_that_says_otherwise(tmp_path, options, message):
    path = written(tmp_path, MUL)
    with pytest.raises(VectorFileError, match=message):
        check(path, **options)


def test_unusable_headers():
    body = b"3C00 3C00 3C00 00\n"
    for line, message in (
        (b"# format: nosuch\n", "the header's format: unknown format 'nosuch'"),
        (b"# format: binary16\n# rounding: sideways\n", "header is unusable: unknown rounding mode 'sideways'"),
        (b"# format: binary16\n# stochastic_bits: many\n", "stochastic_bits is no number"),
        (b"", "state --format"),
    ):
        with pytest.raises(VectorFileError, match=message):
            check(io.BytesIO(b"# softnum vectors 1\n# op: multiply\n" + line + body))
    with pytest.raises(VectorFileError, match="state --op"):
        check(io.BytesIO(body))
    # comments of others say nothing
    assert check(io.BytesIO(b"# op: fma\n" + body), "multiply", "binary16").ok


def test_unnamed_formats_are_stated_by_the_caller(tmp_path):
    fmt = sn.FloatFormat(5, 2, bias=20)
    path = written(tmp_path, VectorSpec.make("multiply", fmt))
    with pytest.raises(VectorFileError, match="the header's format: unknown format"):
        check(path)
    assert check(path, fmt=fmt).ok


# -- files -------------------------------------------------------------------------------------------------------------
def test_a_failed_write_leaves_nothing_and_spoils_nothing(tmp_path):
    path = written(tmp_path, MUL)
    before = path.read_bytes()

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(plan(MUL), path, progress=stop)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["v.txt"]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write(plan(MUL, count=1), tmp_path / "no" / "v.txt")


def test_links_and_devices_are_kept(tmp_path):
    path = written(tmp_path, MUL)
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    write(plan(MUL, count=3), link, dialect="testfloat")
    assert link.is_symlink() and path.read_bytes().count(b"\n") == 3
    assert write(plan(MUL, count=3), "/dev/null") == 3


def test_checking_takes_constant_memory(tmp_path):
    def peak(count):
        path = tmp_path / "v.txt"
        write(plan(MUL, count=count), path)
        tracemalloc.start()
        assert check(path).ok
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    small, big = peak(300_000), peak(1_000_000)
    assert big < 1.1 * small + 1e6
    assert big < 40e6
