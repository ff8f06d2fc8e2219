"""Fuzz what softnum reads as text and as files, with atheris: python fuzz/formats.py [libFuzzer's options] [corpus].

The first byte of an input chooses what reads the rest. A find is any exception but those that the docstrings promise
(ValueError, and OSError for files), an answer that contradicts itself, or more than ten seconds or two gigabytes.
`run` judges one input without a fuzzer: the regression tests go through it.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import pickle
import sys
import tempfile
import tomllib
from fractions import Fraction
from pathlib import Path

try:
    import atheris
except ImportError:  # the tests run the checks without a fuzzer
    atheris = None

if atheris is not None and __name__ == "__main__":
    with atheris.instrument_imports(include=["softnum", "json", "tomllib", "fractions"]):
        import softnum as sn
        from softnum import reference, train, tta, vectors
        from softnum.formats.modes import overflow_name, rounding_name
else:
    import softnum as sn
    from softnum import reference, train, tta, vectors
    from softnum.formats.modes import overflow_name, rounding_name

PROMISED = (ValueError, OSError)
_FOLDER = tempfile.TemporaryDirectory()
atexit.register(_FOLDER.cleanup)
_LONGEST_FRACTION = 1 << 12


def _file(name: str, data: bytes) -> Path:
    path = Path(_FOLDER.name, name)
    path.write_bytes(data)
    return path


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _parts(data: bytes, n: int) -> list[str]:
    """n texts, taken apart at line ends; what is missing is empty."""
    return ([*_text(data).split("\n", n - 1), *[""] * n])[:n]


def check_format(fmt) -> None:
    """A format's facts agree with each other."""
    assert eval(repr(fmt), vars(sn)) == fmt and pickle.loads(pickle.dumps(fmt)) == fmt, repr(fmt)
    assert 1 <= fmt.bits <= 64 and fmt.min <= fmt.max
    values = [fmt.max, fmt.min, fmt.smallest_subnormal]
    if fmt.kind == "fixed" or fmt.emax >= fmt.emin:  # else it has no normal number (e1m4)
        assert fmt.smallest_subnormal <= fmt.smallest_normal <= fmt.max
        values.append(fmt.smallest_normal)
    dtype = fmt.storage_dtype.type
    for value in values:
        code = int(sn.encode(Fraction(value), fmt))
        assert code < 1 << fmt.bits and Fraction(sn.decode(dtype(code), fmt, object)[()]) == value, (fmt, value, code)
    for code in {0, 1, (1 << fmt.bits) - 1, 1 << (fmt.bits - 1), (1 << fmt.bits) // 3}:
        ours, theirs = sn.decode(dtype(code), fmt, object)[()], reference.decode(code, fmt)
        want = {"inf": float("inf"), "nan": None}.get(theirs.kind, Fraction(theirs.numerator, theirs.denominator or 1))
        if want is None:
            assert ours != ours, (fmt, code)
        else:
            assert ours == (-want if theirs.sign else want), (fmt, code, ours, theirs)


def format_name(data: bytes) -> None:
    """softnum.format of a name."""
    fmt = sn.format(_text(data))
    assert sn.format(fmt.name) == fmt
    check_format(fmt)


def format_facts(data: bytes) -> None:
    """FloatFormat of keywords, which every byte sets."""
    b = [*data[:12], *[0] * 12]
    nan_codes = (None, "ieee", "all_ones", "negative_zero", "none")[b[4] % 5]
    fmt = sn.FloatFormat(
        b[0] % 17, b[1] % 64, bias=None if b[2] < 128 else b[2] * 256 + b[3] - 49152, signed=bool(b[5] & 1),
        specials=("ieee", "fn", "fnuz", "p3109", "none", "x")[b[6] % 6], nan_codes=nan_codes,
        infinities=(None, True, False)[b[7] % 3], negative_zero=(None, True, False)[b[8] % 3], has_zero=bool(b[5] & 2),
        lowest_binade=(None, "subnormal", "normal", "zero")[b[9] % 4], subnormals=bool(b[5] & 4),
        saturating=bool(b[10] & 1),
    )  # fmt: skip
    check_format(fmt)


def number(data: bytes) -> None:
    """encode of a text, judged by the Fraction that it says where that is short."""
    name, mode, rule, text = _parts(data, 4)
    fmt = sn.format(name)
    options = {"rounding": mode or "nearest_even", "overflow": rule or None, "key": 1}
    code = int(sn.encode(text, fmt, **options))
    assert 0 <= code < 1 << fmt.bits
    try:
        exact = Fraction(text.strip()) if len(text) < 40 and "e" not in text.lower() else None
    except (ValueError, ZeroDivisionError):
        return
    if exact:
        assert code == int(sn.encode(exact, fmt, **options)), (fmt, text)


def quantity(data: bytes) -> None:
    """The TTA's frequencies and bandwidths, and a table of hardware."""
    for read in (tta.quantities.frequency, tta.quantities.bandwidth):
        try:
            value = read(_text(data))
        except PROMISED:
            continue
        assert value > 0 and value.numerator.bit_length() < _LONGEST_FRACTION
    table = {"array": [2, 2], "sram_bytes": {"ifmap": 1, "filter": 1, "ofmap": 1}}
    bandwidth, _, clock = _text(data).partition("\n")
    hardware = tta.Hardware.from_table({**table, "bandwidth": bandwidth, "clock": clock})
    assert hardware.bytes_per_cycle > 0 and hardware.to_table()


def vector_file(data: bytes) -> None:
    """A vector file, its header included; what is read is written as it was, and judged."""
    report = vectors.check(io.BytesIO(data))
    str(report)
    reader = vectors.open_reader(io.BytesIO(data), "input")
    layout = vectors.TextLayout(report.spec)
    for rows in reader.rows(report.spec, unknown="mark"):
        again = layout.parse(layout.format(rows.block))
        assert all((x == y).all() for x, y in zip(rows.block.columns, again.columns, strict=True))


def vector_spec(data: bytes) -> None:
    """The names that make up a set of vectors, and vectors without a header."""
    op, fmt, out, mode, rule, tininess, body = _parts(data, 7)
    formats = tuple(fmt.split(","))
    spec = vectors.VectorSpec.make(
        op, formats[0] if len(formats) == 1 else formats, out_fmt=out or None, rounding=mode or "nearest_even",
        overflow=rule or None, tininess=tininess or "after", stochastic_bits=7,
    )  # fmt: skip
    assert spec.options() and spec.facts()
    body = body.encode("utf-8", "surrogateescape")
    vectors.check(io.BytesIO(body), op, spec.formats, out_fmt=spec.out_fmt, rounding=mode or None)


def modes(data: bytes) -> None:
    """Names of modes and rules."""
    text, name = _parts(data, 2)
    assert rounding_name(rounding_name(text)) == rounding_name(text)
    overflow_name(name, sn.format("e5m2"))


def design(data: bytes) -> None:
    """A design. Objects in Python files and modules are not loaded: that runs what the file says, by design."""
    train.load_design(_file("design.toml", data)).layer("fc1", first=True)


def hardware(data: bytes) -> None:
    """A table of hardware as a design's file has it."""
    try:
        table = tomllib.loads(_text(data))
    except RecursionError:
        return
    hardware = tta.Hardware.from_table(table)
    assert hardware.to_table()


def record(data: bytes) -> None:
    """A training record."""
    found = tta.accuracy.records.read_record(_file("seed-0.jsonl", data))
    if found is not None:
        tta.ReachedRule("consecutive", k=2, smoothing=0.5).iteration(found.evaluations, 0.5)


def curves(data: bytes) -> None:
    """Learning curves of any framework, and the rules that go over them."""
    for found in tta.read_accuracy(_file("curves.txt", data), design="d", batch=2, iterations_per_epoch=3).records:
        at = tta.ReachedRule("average", window=2).iteration(found.evaluations, 0.5)
        assert at is None or 0 <= at <= found.iterations


def timings(data: bytes) -> None:
    """Iteration times, in each format that they are read from; the second byte says which."""
    formats = list(tta.timings.FORMATS)
    format, rest = formats[data[0] % len(formats)] if data else "csv", data[1:]
    options = {"clock": "1 GHz"} if "clock" in tta.timings.FORMATS[format].options else {}
    for time in tta.read_timings(_file("times", rest), format=format, design="d", **options).values():
        assert time.seconds > 0


def saved(data: bytes) -> None:
    """A file of softnum.save; what can be read is written as it was."""
    found = sn.load(_file("a.npz", data))
    path = Path(_FOLDER.name, "again.npz")
    sn.save(path, found)
    assert repr(sn.load(path)) == repr(found)


def unit_name(data: bytes) -> None:
    """A MAD unit of names."""
    operand, accumulator, product, mode, product_mode, rule, outer, chunk = _parts(data, 8)
    unit = sn.MadUnit(
        accumulator, operand=operand, product=product or None, rounding=mode or "rne", overflow=rule or None,
        product_rounding=product_mode or None, outer_accumulator=outer or None, chunk=int(chunk) if chunk else None,
    )  # fmt: skip
    assert str(unit) and hash(unit) == hash(pickle.loads(pickle.dumps(unit)))


CHECKS = (
    format_name, format_facts, number, quantity, vector_file, vector_spec, modes, design, hardware, record, timings,
    saved, unit_name, curves,
)  # fmt: skip


def run(data: bytes) -> None:
    """Judge one input: raise what is a find."""
    if not data:
        return
    with contextlib.suppress(*PROMISED):
        CHECKS[data[0] % len(CHECKS)](data[1:])


def _saved_bytes() -> bytes:
    path = Path(_FOLDER.name, "seed.npz")
    sn.save(path, {"w": sn.array([0.5, 3.0], "e4m3fn"), "b": sn.array(0.25, "q4.4")})
    return path.read_bytes()


def seeds() -> dict[object, list[bytes]]:
    """Inputs to start from."""
    designs = Path(train.designs.__file__).parent / "shipped"
    report = io.BytesIO()
    plan = vectors.plan(vectors.VectorSpec.make("fma", "e4m3", rounding="sr", stochastic_bits=5), count=4)
    report.write(vectors.TextLayout.header_lines(vectors.header_of(plan)))
    for block in plan.blocks():
        report.write(vectors.TextLayout(plan.spec).format(block))
    first = b'{"config": {"design": {"name": "d"}, "batch": 4}, "seed": 0, "versions": {}}\n'
    narrow = [name for name in sn.format_names() if not sn.format(name).leads]
    names = [*narrow, "e5m2", "q4.4", "uq0.8", "binary8p3se", "binary6p2uf", "e15m48"]
    return {
        format_name: [n.encode() for n in names],
        format_facts: [
            bytes([5, 2, 0, 0, 0, 7]),
            bytes([4, 3, 200, 7, 0, 7, 1]),
            bytes([8, 0, 0, 0, 0, 4, 1, 0, 0, 2]),
        ],
        number: [
            f"{fmt}\n{mode}\n\n{text}".encode()
            for fmt, mode in (("e5m2", "rne"), ("q8.8", "sr"), ("binary64", "up"))
            for text in ("1/3", "0x1.8p3", "-0.1e-3", "inf", "nan", "-0", "1_000", "0x.8p-10")
        ],
        quantity: [b"16 GB/s\n1e9 Hz", b"1.5 GHz", b"16 GB/s"],
        vector_file: [report.getvalue(), b"# softnum vectors 1\n# op: multiply\n# format: e5m2\n3C 3D 3D 00\n"],
        vector_spec: [b"add\ne5m2\n\nrne\ninfinity\nafter\n3C 3C 40 00\n", b"convert\nbinary32\ne5m2\n\n\n\n"],
        modes: [b"stochastic\nsaturate", b"rne\nwrap"],
        design: [file.read_bytes() for file in sorted(designs.glob("*.toml"))],
        hardware: [
            b'array=[2, 2]\nbandwidth="16 GB/s"\nclock="1 GHz"\n[sram_bytes]\nifmap = 1\nfilter = 1\nofmap = 1\n'
        ],
        record: [first + b'{"iteration": 1, "loss": 0.5, "accuracy": 0.75}\n{"finished": true}\n'],
        timings: [
            b"\0iteration,cycles\n1,8000\n",
            b'\1[{"design": "d", "iteration": 1, "seconds": 1e-3}]',
            b'\6[{"ph": "X", "name": "ProfilerStep#1", "ts": 1, "dur": 2}]',
            b'\x09{"energy": 2.5, "latency": 3}',
        ],
        curves: [
            b"design,seed,epoch,batch,accuracy\nd,1,1,2,0.5\nd,1,2,2,0.75\n",
            b'{"design": "d", "iteration": 4, "accuracy": 0.5}\n',
            b':::MLLOG {"time_ms": 1, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.5, '
            b'"metadata": {"step": 3}}\n:::MLLOG {"time_ms": 2, "event_type": "INTERVAL_END", "key": "run_stop"}\n',
        ],
        saved: [_saved_bytes()],
        unit_name: [b"e5m2\ne6m9\n\n\n\n\n\n", b"e5m2\ne6m9\ne5m2\nsr\nrne\nsaturate\nbinary32\n16"],
    }


def write_seeds(folder: str) -> None:
    """Each seed as a file, unless the folder holds inputs already."""
    path = Path(folder)
    if any(path.iterdir()):
        return
    for check, inputs in seeds().items():
        for i, data in enumerate(inputs):
            (path / f"{check.__name__}-{i}").write_bytes(bytes([CHECKS.index(check)]) + data)


def main() -> None:
    """Fuzz until libFuzzer's options say stop."""
    if atheris is None:
        sys.exit("fuzz/formats.py needs atheris: pip install atheris")

    def refuse(text, *_):
        raise ValueError(f"not loaded: {text!r}")

    train.designs.objects.load_object = train.designs.reader.load_operator = refuse
    folders = [a for a in sys.argv[1:] if Path(a).is_dir()]
    if folders:
        write_seeds(folders[0])
    atheris.Setup([sys.argv[0], "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", *sys.argv[1:]], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
