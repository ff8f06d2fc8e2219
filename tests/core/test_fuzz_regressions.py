"""What fuzzing found, a test each, and the seeds of fuzz/formats.py (fuzz/README.md)."""

import importlib.util
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference, train
from softnum.tta import read_timings
from softnum.tta.accuracy.records import read_record
from softnum.tta.quantities import bandwidth, frequency
from tests.support.matmul_units import definition

FORMATS = Path(__file__).parents[2] / "fuzz" / "formats.py"


@pytest.fixture(scope="module")
def formats():
    spec = importlib.util.spec_from_file_location("fuzz_formats", FORMATS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def in_time():
    start = time.process_time()
    yield
    assert time.process_time() - start < 30, "some megabits of number are too many"


def test_the_seeds_of_the_formats_target_hold(formats):
    seeds = formats.seeds()
    assert set(seeds) == set(formats.CHECKS)
    for check, inputs in seeds.items():
        check(inputs[0])  # without the exceptions that `run` lets pass
        for data in inputs:
            formats.run(bytes([formats.CHECKS.index(check)]) + data)


def test_the_formats_target_sees_a_fault(formats, monkeypatch):
    seed = bytes([formats.CHECKS.index(formats.number)]) + b"e5m2\nrne\n\n1/3"
    formats.run(seed)
    monkeypatch.setattr(formats.sn, "encode", lambda x, fmt, **options: 7 if isinstance(x, str) else 8)
    with pytest.raises(AssertionError):
        formats.run(seed)


@pytest.mark.parametrize(
    "text", ["1e999999999", "-1e-999999999", "1e" + "9" * 5000, "1e" + "٣" * 20, "0x1p" + "9" * 5000]
)
def test_numbers_with_an_enormous_exponent_are_refused_at_once(text):
    with pytest.raises(ValueError, match="encode: the exponent of .* is outside -1000000..1000000"):
        sn.encode(text, "e5m2")


def test_exponents_up_to_the_limit_and_leading_zeros():
    largest = sn.encode(sn.format("e5m2").max, "e5m2")
    assert (
        sn.encode("1e1000000", "e5m2", rounding="rtz") == sn.encode("1e0000000009", "e5m2", rounding="rtz") == largest
    )
    assert sn.encode("1e-1000000", "e5m2", rounding="up") == 1


@pytest.mark.parametrize("text", ["9" * 5000, "0." + "0" * 5000 + "1", "1." + "0" * 5000 + "1"])
def test_numbers_beyond_python_s_digits_are_not_rounded_by_float(text):
    # these went through float(): an infinity, a zero and a one, in modes where the result is another
    with pytest.raises(ValueError, match="is not a number; write a decimal of up to 4300 digits"):
        sn.encode(text, "e5m2", rounding="up")


def test_infinities_and_nans_in_text():
    assert sn.encode(["inf", "+Infinity", "-INF"], "e5m2").tolist() == [0x7C, 0x7C, 0xFC]
    assert sn.encode(["nan", "-NaN"], "e5m2").tolist() == [0x7E, 0x7E]
    for text in ("--inf", "+-nan", "infin", "", "-"):
        with pytest.raises(ValueError, match="is not a number"):
            sn.encode(text, "e5m2")


@pytest.mark.parametrize("read", [frequency, bandwidth])
def test_quantities_that_binary64_does_not_hold(read):
    unit = {frequency: "GHz", bandwidth: "GB/s"}[read]
    for large in ("1e999999999", "1e300"):  # 1e300 is a number of binary64, and as many GHz are not
        with pytest.raises(ValueError, match=r"is too large; the limit is that of binary64"):
            read(f"{large} {unit}")
    with pytest.raises(ValueError, match="must be above zero"):
        read(f"1e-999999999 {unit}")
    assert read(f"1e299 {unit}") == 10**308


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 3000, "not valid TOML"),
        (f'[layers."{"(" * 2000}{")" * 2000}"]', "not a regular expression"),
        ('[layers."a{99999999999}"]', "not a regular expression"),
        ("loss.scale = 1" + "0" * 400, "must be a positive number"),
        ('[units]\nforward = { kind = ["mad"], accumulator = "e5m2" }', "unknown kind"),
    ],
)
def test_designs_that_python_chokes_on(tmp_path, text, message):
    file = tmp_path / "design.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        train.load_design(file)


@pytest.mark.parametrize("mode", ["away_from_zero", "up", "nearest_even", "toward_zero"])
@pytest.mark.parametrize(("e", "m", "dtype"), [(8, 14, np.float32), (8, 1, np.float32), (11, 20, np.float64)])
def test_the_carrier_s_subnormals_where_the_lowest_binade_holds_zero_alone(isa, e, m, dtype, mode):
    # they were rounded as if the format had subnormals: 2**-148 away from zero to code 1
    fmt = sn.FloatFormat(e, m, subnormals=False)
    tiny = np.finfo(dtype).tiny
    x = np.array([np.finfo(dtype).smallest_subnormal, tiny / 4, tiny / 2, tiny * 0.75, tiny, -tiny / 2] * 3, dtype)
    want = [reference.encode(Fraction(float(v)), fmt, rounding=mode)[0] for v in x]
    assert sn.encode(x, fmt, rounding=mode).tolist() == want
    assert (sn.encode(sn.quantize(x, fmt, rounding=mode), fmt) == sn.encode(x, fmt, rounding=mode)).all()


@pytest.mark.parametrize("fmt", ["binary32", "binary16"])
def test_a_sum_of_nothing_is_c_under_a_fused_unit_that_saturates(isa, fmt):
    # C by the fast path, C brought to its own format under the unit's rule by the definition: the largest value
    rounding = "toward_zero" if fmt == "binary32" else "nearest_even"
    unit = sn.FusedDotUnit(6, 8, fmt, operand="e4m3", output_rounding=rounding, overflow="saturate")
    a, b = np.zeros((1, 0), np.float32), np.zeros((0, 4), np.float32)
    c = np.array([[np.inf, -np.inf, -0.0, 1.5]], np.float32)
    assert sn.matmul(a, b, unit, c).tobytes() == c.tobytes()
    none, C = sn.encode(a, "e4m3"), sn.encode(c, fmt)
    A, B, C = sn.Array(none, "e4m3"), sn.Array(none.reshape(0, 1).repeat(4, 1), "e4m3"), sn.Array(C, fmt)
    assert np.asarray(definition(A, B, unit, C)).tolist() == c.tolist()
    options = {"terms": 6, "fraction_bits": 8, "accumulator": fmt, "operand": "e4m3", "overflow": "saturate"}
    for code in C.codes[0].tolist():
        assert reference.fused_dot([], [], c=code, output_rounding=rounding, **options) == (code, sn.Flags(0))
    other = sn.FusedDotUnit(6, 8, fmt, operand="e4m3", output="e5m2", overflow="saturate")
    assert sn.matmul(a, b, other, c).tolist() == [[57344.0, -57344.0, -0.0, 1.5]]


@pytest.mark.parametrize("mode", ["toward_zero", "nearest_even", "up"])
def test_always_infinity_in_formats_that_raise_no_flags(mode):
    # the overflow was asked of the flags, which formats of P3109 do not raise: the largest value in directed modes
    unit = sn.FusedDotUnit(2, 20, "binary8p3se", operand="e5m2", output_rounding=mode, overflow="always_infinity")
    a = np.array([[32768, 32768], [-32768, -32768], [32768, 0]], np.float32)
    b = np.array([[4], [4]], np.float32)
    assert sn.matmul(a, b, unit).tolist() == [[np.inf], [-np.inf], [np.inf]]
    plain = sn.FusedDotUnit(2, 20, "binary8p3se", operand="e5m2", output_rounding="toward_zero")
    assert sn.matmul(a, b, plain).tolist() == [[49152.0], [-49152.0], [49152.0]]
    options = {"terms": 2, "fraction_bits": 20, "accumulator": "binary8p3se", "operand": "e5m2"}
    x, y = sn.encode(a[0], "e5m2").tolist(), sn.encode(b[:, 0], "e5m2").tolist()
    code, flags = reference.fused_dot(x, y, output_rounding=mode, overflow="always_infinity", **options)
    assert (code, flags) == (int(sn.encode(np.inf, "binary8p3se")), sn.Flags(0))


FIRST = '{"config": {"design": {"name": "d"}, "batch": 4}, "seed": 0, "versions": {}}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100000 + "\n", "not a row of JSON"),
        (FIRST + '{"iteration": 1, "accuracy": 1' + "0" * 400 + "}\n", "accuracy must be a number"),
        (FIRST + '{"iteration": 1, "accuracy": "0.5"}\n', "accuracy must be a number"),
        (FIRST + '{"iteration": 1, "accuracy": true}\n', "accuracy must be a number"),
    ],
)
def test_records_that_python_chokes_on(tmp_path, text, message):
    file = tmp_path / "seed-0.jsonl"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_record(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100000, "not readable as JSON"),
        ('[{"design": "d", "iteration": 1, "cycles": 1e308, "clock": "1e-300 Hz"}]', "more than 1.7e308 seconds"),
        ('[{"design": "d", "iteration": 1, "cycles": 1, "clock": "1e99999999 GHz"}]', "is too large"),
    ],
)
def test_timings_that_python_chokes_on(tmp_path, text, message):
    file = tmp_path / "times.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_timings(file)
