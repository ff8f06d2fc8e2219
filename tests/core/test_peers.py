"""Defects found in other packages: each is a test here, so that softnum does not share one.

Not testable as a result, or not yet there:
- Berkeley SoftFloat "fixed formats only", gfloat "no arithmetic", ApproxTrain "only the multiplier", MMA-Sim "nothing
  trains with it": something that is missing there; that it is here, other tests show.
- gfloat "50-75 ns per element", MMA-Sim "one value at a time": speed, which the benchmarks measure.
- QPyTorch "GEMM in plain fp32", microxcaling "accumulation undefined", mptorch "CPU and GPU sum in different orders":
  the matmul tests compare each unit with its definition, and the kernels' tests compare the GPU with the CPU.
- QPyTorch "compiles at import": the package's own build test imports the wheel where there is no compiler.
- microxcaling "scale never encoded": block formats are not there yet.
- ml_dtypes ".npy loses the type": `test_array_files.py` saves and loads Arrays with their formats.
"""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from benchmarks import compiled_peers
from softnum import reference as ref
from softnum.formats.names import format as format_of
from tests.support.matmul_units import definition


def test_cpfloat_directed_and_odd_arithmetic():
    """CPFloat: directed and odd arithmetic is wrong at any precision (the operation rounds in binary64 first)."""
    one, tiny = sn.encode(1.0, "binary64"), sn.encode(2.0**-200, "binary64")
    got = {
        m: float(sn.decode(sn.add(one, tiny, "binary64", out_fmt="e5m2", rounding=m), "e5m2"))
        for m in ("up", "down", "toward_zero", "away_from_zero", "to_odd")
    }
    assert got == {"up": 1.25, "down": 1.0, "toward_zero": 1.0, "away_from_zero": 1.25, "to_odd": 1.25}
    got = sn.subtract(one, tiny, "binary64", out_fmt="e5m2", rounding="to_odd")
    assert sn.decode(got, "e5m2") == 0.875  # 0x3b, odd; nearest would be 1


def test_cpfloat_signaling_nan_stays_nan():
    """CPFloat: a signalling NaN becomes infinity."""
    signaling = np.array([0x7F800001, 0xFF800001, 0x7FBFFFFF], np.uint32)
    assert np.isnan(sn.quantize(signaling.view(np.float32), "binary16")).all()
    codes, flags = sn.convert(signaling, "binary32", "binary16", return_flags=True)
    assert codes.tolist() == [0x7E00] * 3 and (flags == sn.Flags.INVALID).all()


def test_cpfloat_stochastic_bits_do_not_depend_on_threads():
    """CPFloat: stochastic bits change with the thread count; apytypes: two runs with two threads differ; mptorch: seeds
    from the clock."""
    rng = np.random.default_rng(0)
    a = sn.quantize(rng.normal(size=(40, 33)).astype(np.float32), "e5m2")
    b = sn.quantize(rng.normal(size=(33, 200)).astype(np.float32), "e5m2")
    unit = sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=12)
    want = sn.matmul(a, b, unit, key=1, threads=1)
    for threads in (1, 2, 2, 2, 5, 8, None):
        assert np.array_equal(sn.matmul(a, b, unit, key=1, threads=threads), want)
    assert np.array_equal(definition(a, b, unit, key=1), want)


def test_cpfloat_e4m3_stops_at_448():
    """CPFloat: E4M3 reaches 480, the code that is NaN. And any name of a format is accepted."""
    assert sn.quantize(np.float32([448, 460, 480, 1e9]), "e4m3fn", overflow="saturate").tolist() == [448] * 4
    assert np.isnan(sn.quantize(np.float32([480, 1e9, np.inf]), "e4m3fn")).all()
    for name in ("e4m3x", "fp8", "", "float"):
        with pytest.raises(ValueError, match="unknown format"):
            sn.format(name)


def test_apytypes_subnormal_edge_of_e5m2():
    """apytypes: at the subnormal edge of e5m2 a value rounds to 0 (what rounds up to the least normal is flushed)."""
    least, normal = 2.0**-16, 2.0**-14
    x = np.array([least, least * 0.51, least * 0.5, least * 1.5, normal * 0.99, normal * (1 - 2**-20), normal])
    assert sn.quantize(x, "e5m2").tolist() == [least, least, 0.0, 2 * least, normal, normal, normal]
    assert sn.quantize(x.astype(np.float32), "e5m2").tolist() == [least, least, 0.0, 2 * least, normal, normal, normal]


def test_apytypes_number_of_stochastic_bits():
    """apytypes (#738): the number of random bits cannot be chosen."""
    x = np.full(2**12, 1 + 2.0**-7)  # 1/32 of an ulp of e5m2
    words = np.arange(2**12, dtype=np.uint32)
    ups = {
        r: int((sn.quantize(x, "e5m2", rounding="sr", random_bits=words, stochastic_bits=r) > 1).sum())
        for r in (3, 4, 5, 6, 12)
    }
    assert ups == {3: 0, 4: 0, 5: 2**7, 6: 2**7, 12: 2**7}


def test_apytypes_formats_without_infinity():
    """apytypes (#784): formats without infinity are missing."""
    assert sn.quantize([7.0, -1e9, np.inf], "e2m1fn").tolist() == [6, -6, 6]
    assert sn.quantize([300.0], "e4m3fnuz", overflow="saturate").tolist() == [240]


def test_mptorch_every_random_bit_counts():
    """mptorch: the mask of the random bits is broken by C's precedence, so results are not unbiased."""
    low, high = 1.0, 1.25
    for r in (1, 3, 8, 16):
        words = np.arange(1 << r, dtype=np.uint32)
        for numerator in (1, 3, 5, 7):
            x = np.full(1 << r, low + (high - low) * numerator / 8)
            ups = int(
                (sn.quantize(x, "e5m2", rounding="stochastic", random_bits=words, stochastic_bits=r) == high).sum()
            )
            assert ups == (numerator << r) // 8


def test_mptorch_fused_binary16_rounds_once():
    """mptorch: a binary32 carrier rounds a binary16 fma twice; universal: half fma rounds twice."""
    # 1025, and a crumb of 2^-24 that binary32 cannot keep beside it
    a, b, c = 1024.0, 1.0 + 2.0**-10, 2.0**-24
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = sn.fma(*(sn.encode(v, "binary16") for v in (a, b, c)), "binary16", rounding="up")
    assert int(got) == ref.encode(exact, "binary16", rounding="up")[0] == int(sn.encode(1026.0, "binary16"))
    unit = sn.MadUnit("binary16", operand="binary16")
    a = np.array([[1.0 + 2.0**-10]], np.float32)
    b = np.array([[1.0 - 2.0**-10]], np.float32)  # 1 - 2^-20: below the tie of 2048 + 1 by 2^-20
    up = sn.matmul(a, b, unit, np.array([[2050.0]], np.float32))
    assert up == 2050  # 2051 - 2^-20; rounded to binary32 first it is the tie 2051, and goes to 2052


def test_qpytorch_nan_infinity_and_ties():
    """QPyTorch: NaN and infinity become 114688; ties go away from zero although documented even."""
    assert np.isnan(sn.quantize(np.float32([np.nan]), "e5m2"))[0]
    assert sn.quantize(np.float32([np.inf, -np.inf]), "e5m2").tolist() == [np.inf, -np.inf]
    assert sn.quantize(np.float32([1.125, 1.375, -1.125]), "e5m2").tolist() == [1.0, 1.5, -1.0]


def test_microxcaling_exponent_just_below_a_power_of_two():
    """microxcaling: floor(log2()) gives the wrong exponent just below a power of two."""
    for e in range(-14, 16):
        for dtype in (np.float32, np.float64):
            below = np.nextafter(dtype(2.0**e), dtype(0))
            assert sn.quantize(below, "e5m2", rounding="toward_zero") == 2.0**e * (1 - (0.125 if e > -14 else 0.25))
            assert sn.quantize(below, "e5m2") == 2.0**e


def test_ml_dtypes_float64_rounds_once():
    """ml_dtypes: casts from float64 round twice, through float32; no saturation switch."""
    x = 1.125 + 2.0**-40  # above the tie; binary32 takes it to the tie
    assert sn.quantize(np.float64(x), "e5m2") == 1.25 and sn.quantize(np.float32(x), "e5m2") == 1.0
    assert sn.encode(x, "e5m2") == 0x3D
    assert [float(sn.quantize(1e9, "e5m2", overflow=o)) for o in ("infinity", "saturate")] == [np.inf, 57344]


def test_ml_dtypes_matmul_and_dot_agree():
    """ml_dtypes (#235): matmul and dot accumulate differently."""
    rng = np.random.default_rng(1)
    a, b = (sn.quantize(rng.normal(size=(6, 300)).astype(np.float32), "e5m2") for _ in range(2))
    unit = sn.MadUnit("e6m9", operand="e5m2")
    product = sn.matmul(a, b.T, unit)
    for m in range(6):
        for n in range(6):
            assert sn.dot(a[m], b[n], unit) == product[m, n]


def test_e8m0_zero_ties_and_negative():
    """ml_dtypes and gfloat: 3.0 becomes 4.0 or 0 becomes NaN in e8m0fnu (even is the code's lowest bit: 2.0)."""
    assert sn.quantize([3.0, 6.0, 1.5], "e8m0fnu").tolist() == [2.0, 8.0, 2.0]
    code, flags = sn.convert([0], "binary32", "e8m0fnu", return_flags=True)
    assert code == 0 and flags == sn.Flags.INEXACT | sn.Flags.UNDERFLOW
    assert np.isnan(sn.quantize([-1.0], "e8m0fnu"))[0]


def test_gfloat_ties_away_below_half_the_least_subnormal():
    """gfloat: ties-away is wrong below half the least subnormal."""
    least = 2.0**-16
    x = np.array([least / 2, np.nextafter(least / 2, 0), least / 4, least / 1024])
    assert sn.quantize(x, "e5m2", rounding="nearest_away").tolist() == [least, 0, 0, 0]


def test_universal_modes_and_gated_saturation():
    """universal: nearest-even only; saturation cannot be switched off."""
    results = {m: float(sn.quantize(1.1, "e5m2", rounding=m)) for m in ("nearest_even", "up", "down")}
    assert results == {"nearest_even": 1.0, "up": 1.25, "down": 1.0}
    assert sn.quantize(1e6, "e5m2", overflow="infinity") == np.inf


def test_flexfloat_flags_and_overflow_toward_zero():
    """flexfloat: flags and overflow toward zero are wrong."""
    largest, two = sn.encode([57344.0, 2.0], "e5m2")
    code, flags = sn.multiply(largest, two, "e5m2", rounding="toward_zero", return_flags=True)
    assert int(code) == 0x7B and int(flags) == sn.Flags.OVERFLOW | sn.Flags.INEXACT
    least = np.uint8(1)
    code, flags = sn.multiply(least, least, "e5m2", return_flags=True)
    assert int(code) == 0 and int(flags) == sn.Flags.UNDERFLOW | sn.Flags.INEXACT
    assert int(sn.multiply(two, two, "e5m2", return_flags=True)[1]) == 0


def test_pychop_large_values_do_not_become_zero():
    """pychop: binary16 70000 becomes 0.0, and E4M3 448 becomes 0.0."""
    assert sn.quantize([70000.0, 65504.0, 65519.9], "binary16").tolist() == [np.inf, 65504.0, 65504.0]
    assert sn.quantize([448.0, -448.0], "e4m3fn").tolist() == [448.0, -448.0]


def test_intel_toolkit_every_binary16_rounds_rightly_to_e4m3():
    """Intel FP8 toolkit: 6,350 of 48,642 binary16 inputs round wrongly to E4M3; NaN becomes 448."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    got = sn.convert(codes, "binary16", "e4m3fn")
    wrong = [c for c in range(1 << 16) if got[c] != ref.convert(c, "binary16", "e4m3fn")[0]]
    assert wrong == [] and got[0x7E00] == 0x7F
    values = sn.quantize(codes.view(np.float16).astype(np.float32), "e4m3fn")
    assert np.array_equal(values, sn.decode(got, "e4m3fn", dtype=np.float32), equal_nan=True)


def test_approxtrain_zero_times_anything_is_zero():
    """ApproxTrain: 0 x 1e30 is 5.8e-9."""
    for name in ("binary32", "bfloat16", "e5m2", "e4m3fn", "q4.4"):
        fmt = format_of(name)
        largest = fmt.max_code if fmt.kind == "float" else (1 << (fmt.bits - 1)) - 1
        assert int(sn.multiply(0, largest, fmt)) == 0
    unit = sn.MadUnit("binary32", operand="binary32", product="binary32")
    assert sn.dot(np.zeros(3, np.float32), np.full(3, 1e30, np.float32), unit) == 0


def test_softfloat_has_no_global_rounding_mode_here():
    """Berkeley SoftFloat: the rounding mode is global. Here one call's mode does not reach the next."""
    sn.quantize(1.1, "e5m2", rounding="up")
    assert sn.quantize(1.1, "e5m2") == 1.0 and int(sn.add(0x3C, 0x20, "e5m2")) == 0x3C


def test_apytypes_fma_and_sqrt_are_there():
    """apytypes (#98): no fma, no sqrt."""
    assert int(sn.sqrt(sn.encode(2.25, "q4.4"), "q4.4")) == 0x18
    assert int(sn.fma(0x18, 0x18, 0x04, "q4.4")) == 0x28  # 1.5 * 1.5 + 0.25


def test_universal_posits_apart_every_mode_of_a_half_fma():
    """universal: half fma rounds twice. Here in every directed mode too, by the exact value."""
    a, b, c = (int(sn.encode(v, "binary16")) for v in (1 + 2.0**-10, 1 + 2.0**-10, 2.0**-24))
    exact = sum((Fraction((1 + 2.0**-10) ** 2), Fraction(2.0**-24)))
    for mode in ("nearest_even", "up", "down", "toward_zero", "away_from_zero", "to_odd"):
        assert int(sn.fma(a, b, c, "binary16", rounding=mode)) == ref.encode(exact, "binary16", rounding=mode)[0]


def test_ml_dtypes_signs_of_zero_and_saturation_switch():
    """ml_dtypes (#147, #260, #400): there is no switch for saturation."""
    x = np.float32([1e6, -1e6, np.inf, np.nan])
    assert sn.encode(x, "e4m3fn", overflow="saturate").tolist() == [0x7E, 0xFE, 0x7E, 0x7F]
    assert sn.encode(x, "e4m3fn").tolist() == [0x7F, 0x7F, 0x7F, 0x7F]
    assert sn.encode(x, "e5m2", overflow="saturate_finite").tolist() == [0x7B, 0xFB, 0x7C, 0x7E]


def test_libraries_that_are_compiled_for_the_benchmark(tmp_path, monkeypatch):
    """Without sources they are left out, and said; of a folder that holds none, the compiler says what is missing."""
    compiled_peers.built.cache_clear()
    try:
        for peer in compiled_peers.COMPILED:
            monkeypatch.delenv(peer.variable, raising=False)
            assert compiled_peers.built(peer) is None and peer.variable in compiled_peers.version(peer)
            compiled_peers.built.cache_clear()
            monkeypatch.setenv(peer.variable, str(tmp_path))
            assert compiled_peers.version(peer) == "of no known commit"
            with pytest.raises(RuntimeError, match="failed:"):
                compiled_peers.built(peer)
    finally:
        compiled_peers.built.cache_clear()
