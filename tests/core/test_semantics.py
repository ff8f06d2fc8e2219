"""The semantics, sentence by sentence: each has a test, here or where `PLACES` says.

The tests below state a rule in words and work its result out by hand, by integers or by Fractions.
"""

import ast
import itertools
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats.facts import fits
from softnum.formats.names import format as format_of
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC

NONE, INEXACT, UNDERFLOW, OVERFLOW, DIVIDE_BY_ZERO, INVALID = 0, 1, 2, 4, 8, 16
HERE = "core/test_semantics.py::"

#: the rule in a few words -> its tests. `test_every_rule_has_its_tests` looks them up.
PLACES = {
    "formats: default bias": [HERE + "test_default_bias", "core/test_formats.py::test_specified_facts"],
    "formats: fn inside the names of FP4 and FP6 means none": [HERE + "test_fn_in_names_of_fp6_and_fp4"],
    "formats: every fact is a keyword, repr round-trips": [
        HERE + "test_repr_round_trips", "core/test_formats.py::test_repr_pickle_hash",
    ],
    "formats: exponent_bits <= 15, significand <= 62 bits": [HERE + "test_limits_of_widths"],
    "formats: compared by facts": ["core/test_formats.py::test_formats_compare_by_facts"],
    "formats: lowest_binade zero": [HERE + "test_lowest_binade_zero_rounds_among_its_values"],
    "formats: even is the code's lowest bit": [
        HERE + "test_even_is_the_code_s_lowest_bit", "core/test_peers.py::test_e8m0_zero_ties_and_negative",
    ],
    "formats: ieee with m = 0 refused, with m = 1 one quiet NaN": [HERE + "test_ieee_with_few_mantissa_bits"],
    "formats: P3109, where the codes lie": [HERE + "test_p3109_codes"],
    "formats: P3109 finite kinds overflow to the largest": [
        HERE + "test_p3109_finite_kinds_saturate",
        "core/test_regressions.py::test_p3109_finite_formats_overflow_to_the_largest_value",
    ],
    "formats: P3109, below 0, x/0, order, flags": [
        HERE + "test_p3109_operations", "core/test_reference_p3109.py::test_p3109_by_hand",
        "core/test_reference_p3109.py::test_the_total_order_starts_with_nan",
    ],
    "formats: values beyond binary64 decode to no float64": [HERE + "test_values_beyond_binary64"],
    "formats: fixed point, flags and invalid results": [HERE + "test_fixed_point_flags"],
    "formats: wrap is the rounded value mod 2**bits": [
        HERE + "test_wrap_is_modular", "core/test_exhaustive.py::test_wrapping_by_integer_arithmetic_alone",
        "core/test_mixed_formats.py::test_floats_wrap_into_fixed_point",
    ],
    "rounding: the grid goes on past the largest value": [HERE + "test_the_grid_goes_on_past_the_largest_value"],
    "rounding: which modes follow overflow=": [HERE + "test_which_modes_follow_the_overflow_rule"],
    "rounding: the first grid point above max overflows": [HERE + "test_the_first_point_above_max_overflows"],
    "rounding: saturate and exact infinities": [HERE + "test_saturate_and_saturate_finite"],
    "rounding: NaN stays NaN": [HERE + "test_saturate_and_saturate_finite"],
    "rounding: OVERFLOW under every rule": [HERE + "test_overflow_is_raised_under_every_rule"],
    "rounding: flush_results": [
        HERE + "test_flush_results", "core/test_reference_operations.py::test_flushed_results_by_hand",
        "core/test_operations.py::test_flushing_in_the_basic_operations",
    ],
    "rounding: flush_inputs": [
        HERE + "test_flush_inputs", "core/test_reference_operations.py::test_flushed_inputs_by_hand",
    ],
    "rounding: stochastic works on magnitudes, stochastic_floor on two's complement": [
        HERE + "test_stochastic_modes_by_integers", "core/test_reference.py::test_stochastic_by_hand",
    ],
    "rounding: gfloat's modes by name": [
        HERE + "test_stochastic_modes_by_integers", "core/test_reference_p3109.py::test_stochastic_modes_are_gfloat_s",
    ],
    "rounding: tininess of a stochastic result": [HERE + "test_a_stochastic_result_is_tiny_before_rounding"],
    "rounding: -0 in formats without it": [HERE + "test_minus_zero_becomes_plus_zero"],
    "operations: different formats need out_fmt": [HERE + "test_different_formats_need_out_fmt"],
    "operations: codes give codes, Arrays give Arrays": [HERE + "test_codes_give_codes_and_arrays_arrays"],
    "operations: the default NaN, fma(inf, 0, NaN), tininess after": [
        HERE + "test_defaults_are_softfloat_s", "core/test_softfloat.py::test_edges_crossed",
    ],
    "operations: NaN profiles": [
        HERE + "test_nan_profiles", "core/test_exhaustive.py::test_every_pair_under_each_nan_profile",
        "core/test_reference_nans.py::test_profiles_by_hand",
        "core/test_reference_nans.py::test_the_x86_profile_is_the_cpu_s",
    ],
    "operations: a stated value for invalid results": [HERE + "test_invalid_results_with_a_stated_value"],
    "operations: integers": [
        HERE + "test_invalid_integers", "core/test_reference_integers.py::test_invalid_integers_by_hand",
    ],
    "operations: 256-bit intermediates": [
        HERE + "test_wide_fixed_point_fma", "core/test_mixed_formats.py::test_wrap_of_190_bits_worked_by_hand",
        "core/test_mixed_formats.py::test_terms_far_beyond_fixed_point_that_cancel",
    ],
    "operations: probe tells sign, exponent, significand, guard, round, sticky, decision and flags": [
        HERE + "test_a_probe_worked_by_hand", "core/test_probe.py::test_pairs_of_six_bits_in_every_mode",
        "core/test_probe.py::test_all_pairs_of_eight_bits", "core/test_probe.py::test_wide_formats",
        "core/test_probe.py::test_stochastic_modes", "core/test_probe.py::test_elementary_functions",
    ],
    "operations: remainder by modular reduction": [HERE + "test_remainder_of_far_exponents"],
    "operations: the caller's FP environment": [
        "core/test_fp_environment.py::test_results_do_not_change_and_the_environment_is_restored",
    ],
    "carriers: when float32 carries a format": [
        HERE + "test_which_formats_float32_carries",
        "core/test_in_and_out.py::test_quantize_keeps_the_carrier_or_raises",
    ],
    "carriers: the type of a matmul's result": ["core/test_matmul_interface.py::test_result_types"],
    "carriers: NaNs written": ["core/test_quantize.py::test_nan_zero_and_infinity"],
    "carriers: decode is exact or raises": [HERE + "test_decode_is_exact_or_raises"],
    "carriers: fast paths": [
        HERE + "test_tf32_through_binary32_rounds_twice", HERE + "test_a_fused_binary16_beyond_binary64",
        "core/test_matmul_paths.py::test_fused_sums_that_two_roundings_get_wrong",
        "core/test_matmul_paths.py::test_every_pair_of_table_values",
    ],
    "carriers: the magic constant": [HERE + "test_large_values_quantize_without_nan"],
    "units: sums start from +0, C, chunks": [
        "core/test_matmul_reference.py::test_a_sum_of_nothing",
        "core/test_matmul_reference.py::test_the_order_of_summation_is_k_then_chunks",
    ],
    "units: product_rounding=None means rounding": [HERE + "test_product_rounding_defaults_to_rounding"],
    "units: random words": [
        HERE + "test_philox_of_zero", "core/test_reference_units.py::test_elementwise_words",
        "core/test_reference_units.py::test_matmul_words", "core/test_quantize.py::test_keys_equal_their_words",
    ],
    "units: random_bits=": ["core/test_matmul_reference.py::test_random_bits_equal_the_key"],
    "units: lanes, reductions, where C enters": [
        "core/test_mad_unit.py::test_lanes_take_turns_within_a_chunk",
        "core/test_mad_unit.py::test_the_orders_of_reduction", "core/test_mad_unit.py::test_where_c_enters",
    ],
    "units: reductions are numbered from K in the order of execution": [
        "core/test_mad_unit.py::test_steps_are_counted_and_numbered_in_their_order",
        "core/test_mad_unit.py::test_random_words_by_an_explicit_loop",
    ],
    "units: sums have a domain of random words": ["core/test_sums.py::test_sums_equal_a_loop_of_additions"],
    "units: conv2d's m, n and k": ["core/test_conv.py::test_equals_loops_over_the_reference"],
    "units: FusedDotUnit, and what recorded data prove": [
        "core/test_fused_unit.py::test_worked_by_hand", "core/test_hardware_vectors.py::test_recorded_results",
        "core/test_presets.py::test_evidence_belongs_to_the_preset",
    ],
    "units: return_stats counts saturated, overflowed, underflowed and inexact roundings": [
        HERE + "test_counts_of_roundings_by_hand", "core/test_statistics.py::test_counts_are_the_reference_s",
        "core/test_statistics.py::test_blocks", "core/test_statistics.py::test_counts_do_not_depend_on_threads",
    ],
    "units: ExactDotUnit states its width and refuses more than 11 exponent bits": [
        "core/test_exact_unit.py::test_the_width_of_the_accumulator", "core/test_exact_unit.py::test_refusals",
    ],
    "collectives: a result is its definition's, addition by addition": [
        "collectives/test_definition.py::test_all_reduce_is_the_definition",
        "collectives/test_definition.py::test_reduce_scatter_is_a_part_of_all_reduce",
        "collectives/test_definition.py::test_what_only_moves_is_rounded_by_the_wire",
    ],
    "collectives: parts that are computed at once change nothing": [
        "collectives/test_definition.py::test_parts_that_are_computed_at_once_do_not_matter",
    ],
    "collectives: ranks differ only where that is stated": [
        "collectives/test_collective.py::test_ranks_differ_only_where_that_is_stated",
    ],
    "collectives: no random word is used twice": ["collectives/test_collective.py::test_no_word_is_used_twice"],
    "collectives: split_matmul is the all-reduce of what ranks multiply": [
        "collectives/test_split.py::test_it_is_the_all_reduce_of_what_ranks_multiply",
        "collectives/test_split.py::test_a_chain_of_ranks_is_a_unit_of_chunks",
    ],
    "collectives: gloo's bits": ["torch/test_gloo_collectives.py::test_gloo_is_reproduced"],
    "scaling laws: a law is found again from runs that follow it": [
        "tta/test_tta_law.py::test_a_law_is_found_again_from_its_runs",
        "tta/test_tta_law.py::test_intervals_hold_what_is_true_and_are_drawn_alike",
    ],
    "scaling laws: a term that is not there does not enter": [
        "tta/test_tta_law_designs.py::test_a_term_that_is_not_there_does_not_enter",
        "tta/test_tta_law_designs.py::test_terms_that_are_there_are_found_and_intervals_hold_them",
    ],
    "scaling laws: intervals cover as often as they say": [
        "tta/test_tta_law_designs.py::test_intervals_cover_as_often_as_they_say",
    ],
    "scaling laws: asked near their runs, else an error": [
        "tta/test_tta_law.py::test_a_law_is_asked_near_its_runs",
        "tta/test_tta_law_designs.py::test_a_law_of_designs_is_asked_near_its_runs",
    ],
    "traces: what is written is read back": [
        "tta/test_tta_traces.py::test_round_trip", "tta/test_tta_traces.py::test_workload_comes_back",
    ],
    "traces: a trace takes as long as the model that it is of": [
        "tta/test_tta_traces.py::test_traces_take_as_long_as_the_model_says",
        "tta/test_tta_traces_plans.py::test_steps_take_as_long_as_their_schedule",
    ],
    "traces: graphs that cannot run and ranks that wait for each other are refused": [
        "tta/test_tta_traces.py::test_graphs_that_cannot_run",
        "tta/test_tta_traces.py::test_ranks_that_wait_for_each_other",
    ],
    "traces: a file that is not the one that was written is refused": [
        "tta/test_tta_traces.py::test_files_that_are_none",
        "tta/test_tta_traces.py::test_files_that_were_changed_and_jobs_that_are_not_whole",
    ],
}  # fmt: skip


def test_every_rule_has_its_tests():
    """Every node of the table exists."""
    folder = Path(__file__).parent.parent
    names = {}
    for path, name in (node.split("::") for nodes in PLACES.values() for node in nodes):
        if path not in names:
            tree = ast.parse((folder / path).read_text())
            names[path] = {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}
        assert name in names[path], f"{path} has no {name}"
    mine = {n for n in names["core/test_semantics.py"] if n.startswith("test_")} - {"test_every_rule_has_its_tests"}
    assert mine == {name for nodes in PLACES.values() for n in nodes for p, name in [n.split("::")] if HERE == p + "::"}


def value(code, fmt):
    return ref.to_fraction(int(code), fmt)


def code(x, fmt):
    return int(sn.encode(np.array(Fraction(x), object), fmt))


# -- formats -----------------------------------------------------------------------------------------------------------
def test_default_bias():
    """Half the exponent range less one; half of it where the one NaN takes -0's place."""
    for e in range(2, 16):
        for specials, more in (("ieee", -1), ("fn", -1), ("none", -1), ("fnuz", 0), ("p3109", 0)):
            assert FloatFormat(e, 3, specials=specials).bias == 2 ** (e - 1) + more
    assert format_of("e8m0fnu").bias == 127


def test_fn_in_names_of_fp6_and_fp4():
    """There the letters mean finite, with no NaN; in e4m3fn they mean a NaN without infinities."""
    for name in ("e2m1fn", "e3m2fn", "e2m3fn"):
        assert not format_of(name).has_nan and not format_of(name).infinities
    assert format_of("e4m3fn").has_nan and not format_of("e4m3fn").infinities


def test_repr_round_trips():
    """What repr prints makes the format again, name included."""
    for facts in itertools.product(
        ("ieee", "fn", "fnuz", "p3109", "none"), (True, False), ("subnormal", "normal", "zero")
    ):
        fmt = FloatFormat(4, 3, specials=facts[0], signed=facts[1], lowest_binade=facts[2], bias=5, name="mine")
        again = eval(repr(fmt), {"FloatFormat": FloatFormat})
        assert again == fmt and again.name == "mine" and pickle.loads(pickle.dumps(fmt)) == fmt


def test_limits_of_widths():
    """15 bits of exponent, 62 of significand, 64 in all; one more is refused."""
    assert FloatFormat(15, 48).bits == 64 and FloatFormat(2, 61).precision == 62
    for widths in ((16, 1), (1, 62), (15, 49)):
        with pytest.raises(ValueError):
            FloatFormat(*widths)


def test_lowest_binade_zero_rounds_among_its_values():
    """Below the smallest normal lies only zero, and a result rounds to one of the two as the mode says."""
    fmt = FloatFormat(4, 3, lowest_binade="zero")
    least = fmt.smallest_normal
    x = least * np.array([0.25, 0.5, 0.75])
    want = {
        "nearest_even": [0, 0, 1], "nearest_away": [0, 1, 1], "up": [1, 1, 1], "down": [0, 0, 0],
        "toward_zero": [0, 0, 0], "away_from_zero": [1, 1, 1],
    }  # fmt: skip
    for mode, units in want.items():
        assert (sn.quantize(x, fmt, rounding=mode) / least).tolist() == units, mode


def test_even_is_the_code_s_lowest_bit():
    """A tie in e8m0, whose values are powers of two, goes to the even code: 3.0 lies between 2 (128) and 4 (129)."""
    assert sn.encode([3.0, 6.0, 1.5], "e8m0fnu").tolist() == [128, 130, 128]
    assert (
        sn.encode([2.5, 5.0], FloatFormat(4, 0, specials="none")).tolist()
        == sn.encode([2.0, 4.0], FloatFormat(4, 0, specials="none")).tolist()
    )


def test_ieee_with_few_mantissa_bits():
    """Without a mantissa there is no code for NaN; with one bit the one NaN is quiet."""
    with pytest.raises(ValueError, match="leaves no code for NaN"):
        FloatFormat(5, 0)
    fmt = FloatFormat(5, 1)
    nans = [c for c in range(1 << fmt.bits) if ref.decode(c, fmt).kind == "nan"]
    assert len(nans) == 2 and not any(ref.decode(c, fmt).signaling for c in nans)
    assert sn.add(nans, nans, fmt, return_flags=True)[1].tolist() == [NONE, NONE]


@pytest.mark.parametrize("k", [3, 4, 6, 8, 16])
def test_p3109_codes(k):
    """Where NaN and the infinities lie, the bias and the width of the exponent, signed and not."""
    for p in range(1, k + 1):
        if p < k:
            signed = format_of(f"binary{k}p{p}se")
            assert (signed.nan_code, signed.bias, signed.exponent_bits) == (1 << (k - 1), 2 ** (k - p - 1), k - p)
            assert signed.inf_code == 2 ** (k - 1) - 1 and not signed.negative_zero
            finite = format_of(f"binary{k}p{p}sf")
            assert finite.max_code == 2 ** (k - 1) - 1 and finite.inf_code is None
        if k - p + 1 <= 15:
            unsigned = format_of(f"binary{k}p{p}ue")
            assert (unsigned.nan_code, unsigned.inf_code) == (2**k - 1, 2**k - 2)
            assert (unsigned.exponent_bits, unsigned.bias) == (k - p + 1, 2 ** (k - p))
    with pytest.raises(ValueError):
        format_of(f"binary{k}p{k + 1}ue")


def test_p3109_finite_kinds_saturate():
    """No infinity, and none is asked for: both rules give the largest value."""
    for name in ("binary8p4sf", "binary8p3uf"):
        fmt = format_of(name)
        for rule in ("infinity", "saturate", "saturate_finite"):
            assert int(sn.add(fmt.max_code, fmt.max_code, fmt, overflow=rule)) == fmt.max_code
            assert int(sn.encode(np.inf, fmt, overflow=rule)) == fmt.max_code


def test_p3109_operations():
    """Below 0 an unsigned format has NaN, or 0 if it saturates; x / 0 is NaN; NaN is first; nothing raises a flag."""
    for name in ("binary8p4se", "binary8p4sf", "binary8p4ue", "binary8p4uf"):
        fmt = format_of(name)
        one, zero, nan = code(1, fmt), 0, fmt.nan_code
        assert sn.divide([one, zero, nan], [0, 0, 0], fmt).tolist() == [nan] * 3
        everything = np.arange(256, dtype=np.uint8)
        assert sn.ops.total_order(nan, everything, fmt).all() and sn.ops.total_order(everything, nan, fmt).sum() == 1
        for operation in (sn.add, sn.subtract, sn.multiply, sn.divide, sn.remainder):
            assert not operation(everything[:, None], everything, fmt, return_flags=True)[1].any()
        assert not sn.sqrt(everything, fmt, return_flags=True)[1].any()
        if not fmt.signed:
            for rule, want in (("infinity", nan), ("saturate", 0), ("saturate_finite", 0)):
                assert int(sn.subtract(zero, one, fmt, overflow=rule)) == want == sn.negate(one, fmt, overflow=rule)
                assert int(sn.convert(code(-3, "e5m2"), "e5m2", fmt, overflow=rule)) == want


def test_values_beyond_binary64():
    """Decoding to float64 raises; to objects it is exact."""
    fmt = format_of("e15m8")
    with pytest.raises(ValueError, match="not exact in float64"):
        sn.decode([fmt.max_code], fmt)
    assert sn.decode([fmt.max_code], fmt, dtype=object)[0] == Fraction(511, 256) * Fraction(2) ** 16383


def test_fixed_point_flags():
    """Out of range OVERFLOW, a lost fraction INEXACT; x / 0 DIVIDE_BY_ZERO and invalid; inf and NaN invalid."""
    fmt = format_of("q4.4")
    add = sn.add([0x70, 0x10], [0x70, 0x10], fmt, return_flags=True)
    assert [a.tolist() for a in add] == [[0x7F, 0x20], [OVERFLOW, NONE]]
    multiply = sn.multiply([0x11, 0x7F], [0x11, 0x7F], fmt, return_flags=True)
    assert [a.tolist() for a in multiply] == [[0x12, 0x7F], [INEXACT, OVERFLOW | INEXACT]]
    quotient, flags = sn.divide([0x10, 0x00], [0, 0], fmt, return_flags=True, invalid=-1)
    assert quotient.tolist() == [0xF0, 0xF0] and flags.tolist() == [DIVIDE_BY_ZERO | INVALID, INVALID]
    for x in (np.inf, -np.inf, np.nan):
        with pytest.raises(ValueError, match="no code"):
            sn.encode(x, fmt)
        with pytest.raises(ValueError, match="no code"):
            sn.divide(0x10, 0, fmt)


def test_wrap_is_modular():
    """The exactly rounded value, modulo 2**bits."""
    fmt = FixedFormat(3, 2, signed=False)
    for x in (Fraction(81, 10), Fraction(-1, 4), Fraction(1000003, 7), Fraction(-99, 8)):
        rounded = round(x * 4)  # to even
        assert code_wrapped(x, fmt) == rounded % 32


def code_wrapped(x, fmt):
    return int(sn.encode(np.array(x, object), fmt, overflow="wrap"))


# -- rounding and overflow ---------------------------------------------------------------------------------------------
def test_the_grid_goes_on_past_the_largest_value():
    """e5m2: after 57344 would come 65536; nearest modes decide at 61440 between the two, as anywhere else."""
    x = np.array([61439.0, 61440.0, 61441.0])
    assert sn.quantize(x, "e5m2").tolist() == [57344, np.inf, np.inf]
    assert sn.quantize(x, "e5m2", rounding="nearest_zero").tolist() == [57344, 57344, np.inf]
    assert sn.quantize(x, "e5m2", rounding="stochastic", random_bits=1, stochastic_bits=1).tolist() == [
        57344, np.inf, np.inf,
    ]  # fmt: skip
    codes, flags = sn.convert(sn.encode([61439.0], "binary32"), "binary32", "e5m2", return_flags=True)
    assert codes.tolist() == [0x7B] and flags.tolist() == [INEXACT]


OUTWARD = {"nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "away_from_zero", *STOCHASTIC}


@cases("mode", MODES)
def test_which_modes_follow_the_overflow_rule(mode):
    """Nearest, away from zero, stochastic, and up and down away from zero; the others stop at the largest value.

    Also where there is no infinity but a NaN: toward zero and to odd stay at the largest value.
    """
    for sign in (1, -1):
        x = np.array([sign * 1e9])
        words = {"random_bits": 0} if mode in STOCHASTIC else {}
        outward = mode in OUTWARD or mode == ("up" if sign > 0 else "down")
        got = sn.quantize(x, "e5m2", rounding=mode, **words)[0]
        assert got == sign * (np.inf if outward else 57344.0)
        got = sn.quantize(x, "e4m3fn", rounding=mode, **words)[0]
        assert np.isnan(got) if outward else got == sign * 448.0
        assert sn.quantize(x, "e2m1fn", rounding=mode, **words)[0] == sign * 6.0
        assert sn.quantize(x, "e5m2", rounding=mode, overflow="saturate", **words)[0] == sign * 57344.0


def test_the_first_point_above_max_overflows():
    """e5m2: 2 * 32768 lies exactly on the first grid point above the largest value; toward zero the largest value."""
    two, big = code(2, "e5m2"), code(32768, "e5m2")
    got, flags = sn.multiply(two, big, "e5m2", rounding="toward_zero", return_flags=True)
    assert int(got) == 0x7B and int(flags) == OVERFLOW | INEXACT
    got, flags = sn.multiply(two, big, "e5m2", return_flags=True)
    assert int(got) == 0x7C and int(flags) == OVERFLOW | INEXACT


def test_saturate_and_saturate_finite():
    """ "saturate" takes exact infinities too to the largest value, "saturate_finite" keeps them; NaN stays NaN."""
    inf, one, zero, nan = 0x7C, 0x3C, 0x00, 0x7E
    for rule, want in (("saturate", 0x7B), ("saturate_finite", inf)):
        assert int(sn.add(inf, one, "e5m2", overflow=rule)) == want
        quotient, flags = sn.divide(one, zero, "e5m2", overflow=rule, return_flags=True)
        assert int(quotient) == want and int(flags) == DIVIDE_BY_ZERO
        assert int(sn.ops.logb(zero, "e5m2", overflow=rule)) == want | 0x80
        assert int(sn.add(nan, one, "e5m2", overflow=rule)) == nan
        assert int(sn.add(0x7B, 0x7B, "e5m2", overflow=rule)) == 0x7B
        assert int(sn.encode(-np.inf, "e5m2", overflow=rule)) == want | 0x80


def test_overflow_is_raised_under_every_rule():
    """Whenever a finite exact result was too large; not for an exact infinity."""
    for rule in ("infinity", "saturate", "saturate_finite"):
        for fmt in ("e5m2", "e4m3fn", "e2m1fn", "e4m3fnuz"):
            top = format_of(fmt).max_code
            assert int(sn.add(top, top, fmt, overflow=rule, return_flags=True)[1]) == OVERFLOW | INEXACT
        assert int(sn.add(0x7C, 0x3C, "e5m2", overflow=rule, return_flags=True)[1]) == NONE
    for rule in ("saturate", "wrap"):
        assert int(sn.add(0x7F, 0x7F, "q4.4", overflow=rule, return_flags=True)[1]) == OVERFLOW


def test_flush_results():
    """What is tiny before ("before") or after ("after") a rounding with unbounded exponent becomes a zero of its sign.

    e5m2: 2**-14 less an eighth of an ulp is tiny; rounded to three bits with unbounded exponent it is 2**-14.
    """
    nearly = Fraction(2) ** -14 * (1 - Fraction(1, 64))
    wide = code(nearly, "binary32") | 1 << 31
    got, flags = sn.convert(wide, "binary32", "e5m2", flush_results="before", return_flags=True)
    assert int(got) == 0x80 and int(flags) == UNDERFLOW | INEXACT
    got, flags = sn.convert(wide, "binary32", "e5m2", flush_results="after", return_flags=True)
    assert int(got) == 0x84 and int(flags) == INEXACT
    got, flags = sn.convert(
        code(Fraction(2) ** -15, "binary32"), "binary32", "e5m2", flush_results="after", return_flags=True
    )
    assert int(got) == 0x00 and int(flags) == UNDERFLOW | INEXACT  # though it is a value of the format


def test_flush_inputs():
    """Subnormal operands read as zeros of their sign; the smallest normal does not."""
    assert sn.add([0x83, 0x84], [0x80, 0x80], "e5m2", flush_inputs=True).tolist() == [0x80, 0x84]
    quotient, flags = sn.divide(0x3C, 0x83, "e5m2", flush_inputs=True, return_flags=True)
    assert int(quotient) == 0xFC and int(flags) == DIVIDE_BY_ZERO


@pytest.mark.parametrize("mode", STOCHASTIC)
def test_stochastic_modes_by_integers(mode):
    """With t the discarded fraction in N-ths, N = 2**r, and R the random bits: when a magnitude goes up.

    stochastic: floor(t) + R >= N; stochastic_fast: t + R + 1/2 >= N; stochastic_even, stochastic_odd: t rounded to
    nearest, ties to even or to odd, + R >= N. stochastic_equal: 2 R >= N where t is not 0. stochastic_floor:
    floor(x N) + R, toward minus infinity.
    """
    r, size = 3, 8
    for sixteenths in range(17):
        t = Fraction(sixteenths, 2)  # in eighths of an ulp
        low, nearest = t.numerator // t.denominator, t + Fraction(1, 2)
        even = round(t)
        odd = even if t.denominator == 1 else low | 1
        for bits in range(size):
            for sign in (1, -1):
                up = {
                    "stochastic": low + bits >= size, "stochastic_fast": t > 0 and nearest + bits >= size,
                    "stochastic_even": even + bits >= size, "stochastic_odd": odd + bits >= size,
                    "stochastic_equal": (t % size != 0 and 2 * bits >= size) or t == size,
                }  # fmt: skip
                x = sign * (1 + t / 32)
                if mode == "stochastic_floor":  # in ulps of 1/4
                    want = Fraction((x * 4 * size).__floor__() + bits) // size / Fraction(4)
                else:
                    want = sign * (1 + Fraction(1, 4) * up[mode])
                got = sn.quantize(float(x), "e5m2", rounding=mode, stochastic_bits=r, random_bits=bits)
                assert Fraction(float(got)) == want, (x, bits)


def test_a_stochastic_result_is_tiny_before_rounding():
    """UNDERFLOW does not hang on the random bits, nor on tininess=: what lies below the normals is tiny."""
    nearly = code(Fraction(2) ** -14 * (1 - Fraction(1, 64)), "binary32")
    for mode in STOCHASTIC:
        for bits in (0, 0xFFFFFFFF):
            for tininess in ("after", "before"):
                flags = sn.convert(
                    nearly, "binary32", "e5m2", rounding=mode, random_bits=bits, tininess=tininess, return_flags=True
                )[1]
                assert int(flags) == UNDERFLOW | INEXACT


def test_minus_zero_becomes_plus_zero():
    """In a format without -0 its code is NaN: no operation may make it out of a zero."""
    for name in ("e4m3fnuz", "e5m2fnuz", "binary8p3se"):
        minus_one, zero = code(-1, name), 0
        assert int(sn.multiply(minus_one, zero, name)) == 0
        assert int(sn.negate(zero, name)) == 0 and int(sn.ops.copysign(zero, minus_one, name)) == 0
        assert int(sn.add(code(1, name), minus_one, name, rounding="down")) == 0
        assert (
            int(sn.multiply(minus_one | 1, 1, name, rounding="toward_zero", out_fmt=name)) != format_of(name).nan_code
        )
        assert int(sn.encode(-1e-30, name)) == 0 and int(sn.encode(-0.0, name)) == 0
        assert not np.signbit(sn.quantize([-0.0, -1e-30], name)).any()


# -- operations --------------------------------------------------------------------------------------------------------
def test_different_formats_need_out_fmt():
    """Without it a ValueError; with it the exact result is rounded once."""
    with pytest.raises(ValueError, match=r"give the result's format as out_fmt="):
        sn.add(0x3C, 0x38, ("e5m2", "e4m3fn"))
    assert int(sn.add(0x3C, 0x38, ("e5m2", "e4m3fn"), out_fmt="q4.4")) == 0x20
    with pytest.raises(ValueError, match="out_fmt"):
        sn.add(sn.array(1.0, "e5m2"), sn.array(1.0, "e4m3fn"))


def test_codes_give_codes_and_arrays_arrays():
    assert type(sn.add([0x3C], [0x3C], "e5m2")) is np.ndarray
    assert type(sn.add(sn.array([1.0], "e5m2"), sn.array([1.0], "e5m2"))) is sn.Array


def test_defaults_are_softfloat_s():
    """Canonical NaN: sign 0, quiet bit only. fma(inf, 0, quiet NaN) raises INVALID. Tininess after rounding."""
    for fmt, nan, minus_nan in (
        ("binary16", 0x7E00, 0xFE01),
        ("binary32", 0x7FC00000, 0xFFC00001),
        ("e5m2", 0x7E, 0xFF),
    ):
        f = format_of(fmt)
        got, flags = sn.add(minus_nan, code(1, fmt), fmt, return_flags=True)
        assert (int(got), int(flags)) == (nan, NONE)
        got, flags = sn.fma(f.inf_code, 0, minus_nan, fmt, return_flags=True)
        assert (int(got), int(flags)) == (nan, INVALID)
        assert int(sn.subtract(f.inf_code, f.inf_code, fmt)) == nan
    nearly = code(Fraction(2) ** -14 * (1 - Fraction(1, 64)), "binary32")
    assert int(sn.convert(nearly, "binary32", "e5m2", return_flags=True)[1]) == INEXACT
    assert int(sn.convert(nearly, "binary32", "e5m2", return_flags=True, tininess="before")[1]) == INEXACT | UNDERFLOW


def test_nan_profiles():
    """x86: the first NaN, quieted, else the negative default NaN. arm: a signaling one first, fma's addend before.

    Canonical, riscv and arm_default are one rule. The sign and the leading fraction bits go along to another format.
    """
    quiet, signaling, one, inf = 0xFE01, 0x7D03, 0x3C00, 0x7C00
    for name, default in (
        ("canonical", 0x7E00),
        ("riscv", 0x7E00),
        ("arm_default", 0x7E00),
        ("x86", 0xFE00),
        ("arm", 0x7E00),
    ):
        assert int(sn.subtract(inf, inf, "binary16", nan=name)) == default
        first = {"x86": 0xFE01, "arm": 0x7F03}.get(name, default)
        got, flags = sn.add(quiet, signaling, "binary16", nan=name, return_flags=True)
        assert (int(got), int(flags)) == (first, INVALID)
        addend = {"x86": 0xFE01, "arm": 0x7E55}.get(name, default)
        assert int(sn.fma(quiet, one, 0x7E55, "binary16", nan=name)) == addend
        got, flags = sn.fma(inf, 0, 0x7E55, "binary16", nan=name, return_flags=True)
        want = {"x86": (0x7E55, NONE), "arm": (0x7E00, INVALID)}.get(name, (0x7E00, INVALID))
        assert (int(got), int(flags)) == want
        wide = {"x86": 0xFFC02000, "arm": 0xFFC02000}.get(name, 0x7FC00000)
        assert int(sn.convert(quiet, "binary16", "binary32", nan=name)) == wide


def test_invalid_results_with_a_stated_value():
    """Where there is no NaN: a ValueError, or the value stated, with INVALID; it must be a value of the format."""
    for fmt, x, want in (("q4.4", -8.0, 0x80), ("e2m1fn", 6.0, 0x07), ("uq2.6", 0.5, 0x20)):
        zero = 0
        with pytest.raises(ValueError, match="no code"):
            sn.divide(zero, zero, fmt)
        got, flags = sn.divide(zero, zero, fmt, invalid=x, return_flags=True)
        assert (int(got), int(flags)) == (want, INVALID)
        with pytest.raises(ValueError, match="is not a value of"):
            sn.divide(zero, zero, fmt, invalid=0.3)


def test_invalid_integers():
    """NaN, infinity or out of range: INVALID alone, and what the machine delivers; else INEXACT if asked."""
    codes = sn.encode([np.nan, np.inf, -np.inf, 1e9, -1e9, 2.5], "binary32")
    want = {
        "riscv": [127, 127, -128, 127, -128, 2], "arm": [0, 127, -128, 127, -128, 2],
        "x86": [-128, -128, -128, -128, -128, 2], 7: [7, 7, 7, 7, 7, 2],
    }  # fmt: skip
    for rule, integers in want.items():
        got, flags = sn.ops.to_integer(codes, "binary32", np.int8, invalid=rule, return_flags=True)
        assert got.tolist() == integers and flags.tolist() == [INVALID] * 5 + [INEXACT]
    got, flags = sn.ops.to_integer(codes[-1:], "binary32", np.int8, exact=False, return_flags=True)
    assert got.tolist() == [2] and flags.tolist() == [NONE]


def test_wide_fixed_point_fma():
    """q1.63 x q1.63 + q64.0 spans 190 bits, and a bit at its end decides."""
    a, b, c = (1 << 62) + 1, (1 << 62) + 1, 5  # about 1/4, with a crumb of 2**-126
    exact = Fraction(a * b, 1 << 126) + 5
    for mode in ("up", "down", "nearest_even"):
        got, flags = sn.fma(a, b, c, ("q1.63", "q1.63", "q64.0"), out_fmt="q32.32", rounding=mode, return_flags=True)
        assert (int(got), int(flags)) == ref.encode(exact, "q32.32", rounding=mode)
    up = sn.fma(a, b, c, ("q1.63", "q1.63", "q64.0"), out_fmt="q32.32", rounding="up")
    assert int(up) == (5 << 32) + (1 << 30) + 1


def test_a_probe_worked_by_hand():
    """1.25 * 1.75 = 2.1875 = 1.000110b * 2: 1.00 are e5m2's bits, 011 lie below."""
    p = sn.probe("multiply", [code(1.25, "e5m2")], [code(-1.75, "e5m2")], fmt="e5m2")
    assert (p.sign, p.exponent, p.significand, p.last_place) == (1, 1, 0b100, -1)
    assert (p.guard, p.round, p.sticky, bool(p.rounds_up), p.flags) == (0, 1, 1, False, INEXACT)
    assert value(p.result[0], "e5m2") == -2
    p = sn.probe(sn.divide, [1], [code(4, "e5m2")], fmt="e5m2", rounding="up")  # a quarter of the smallest subnormal
    assert (p.exponent, p.significand, p.last_place, p.result) == (-18, 0, -16, 1)
    assert (p.guard, p.round, p.sticky, bool(p.rounds_up), p.flags) == (0, 1, 0, True, INEXACT | UNDERFLOW)


def test_remainder_of_far_exponents():
    """By modular reduction: 2**16383 and 3 * 2**-16445 are 2**32828 apart, and the answer is exact."""
    fmt = format_of("e15m48")
    a, b = code(Fraction(2) ** 16383, fmt), 3  # three of the least subnormals
    exact = pow(2, 16383 + 16382 + 48, 3)
    want = exact if exact == 1 else -1
    assert value(sn.remainder(a, b, fmt), fmt) == want * Fraction(2) ** (fmt.emin - 48)


# -- carriers ----------------------------------------------------------------------------------------------------------
def test_which_formats_float32_carries():
    """Precision at most 24, largest exponent at most 127, least value at least 2**-149."""
    assert fits(FloatFormat(8, 23), np.float32) and not fits(FloatFormat(8, 24), np.float32)
    assert not fits(FloatFormat(9, 5), np.float32) and fits(FloatFormat(5, 10, bias=140), np.float32)
    assert not fits(FloatFormat(5, 10, bias=141), np.float32)
    assert fits(FloatFormat(5, 2, bias=-97), np.float32) and not fits(FloatFormat(5, 2, bias=-98), np.float32)


def test_decode_is_exact_or_raises():
    x = FloatFormat(8, 24)
    odd = code(1 + Fraction(1, 2**24), x)
    with pytest.raises(ValueError, match="not exact in float32"):
        sn.decode([odd], x, dtype=np.float32)
    assert Fraction(float(sn.decode([odd], x)[0])) == 1 + Fraction(1, 2**24)


def test_tf32_through_binary32_rounds_twice():
    """A product of tf32 below binary32's normals: rounded to binary32 first, it becomes a tie that it is not."""
    ulp = Fraction(2) ** -136
    for a in range(1540, 2048):
        b, short = divmod(3 << 20, a)  # a * b is 1.5 ulp, less a crumb that binary32 drops if it is short
        if 0 < short < 60:
            x, y = (code(n * Fraction(2) ** -e, "tf32") for n, e in ((a, 78), (b, 79)))
            exact = value(x, "tf32") * value(y, "tf32")
            assert 1 < exact / ulp < Fraction(3, 2)
            assert value(ref.encode(exact, "binary32")[0], "binary32") / ulp == Fraction(3, 2)
            assert value(sn.multiply(x, y, "tf32"), "tf32") == ulp
            break
    else:
        raise AssertionError("no pair lies so near")


def test_a_fused_binary16_beyond_binary64():
    """32768 + 2**-48: binary64 cannot hold it, and rounding up must see the crumb."""
    least = code(Fraction(2) ** -24, "binary16")
    big = code(32768, "binary16")
    assert int(sn.fma(least, least, big, "binary16", rounding="up")) == big + 1
    assert int(sn.fma(least, least, big, "binary16", rounding="down")) == big


def test_large_values_quantize_without_nan():
    """1e34 at seven bits of mantissa: the constant that rounds must not overflow."""
    for m in (1, 7, 21):
        x = np.float32([1e34, -3e38, 3.4028235e38])
        got = sn.quantize(x, FloatFormat(8, m), overflow="saturate")
        assert np.isfinite(got).all() and (np.abs(got / x - 1) < 2.0**-m).all()


# -- units and random words --------------------------------------------------------------------------------------------
def test_product_rounding_defaults_to_rounding():
    a, b = np.float32([[1.25, 1.75]]), np.float32([[1.25], [1.75]])
    for mode in ("up", "down", "toward_zero"):
        stated = sn.MadUnit("e5m2", operand="e5m2", product="e5m2", rounding=mode, product_rounding=mode)
        left_out = sn.MadUnit("e5m2", operand="e5m2", product="e5m2", rounding=mode)
        assert sn.matmul(a, b, stated) == sn.matmul(a, b, left_out)


def test_counts_of_roundings_by_hand():
    """e5m2: 7 * 7 = 49 rounds to 48, 48 + 48 is exact; 2**-16 * 0.25 underflows; 57344 * 2 saturates."""
    unit = sn.MadUnit("e5m2", operand="e5m2", product="e5m2", overflow="saturate")
    for a, b, product, total in (
        ([7, 7], [7, 7], (2, 2, 0, 0, 0, 0), (2, 0, 0, 0, 0, 0)),
        ([2.0**-16], [0.25], (1, 1, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0)),
        ([57344, 57344], [2, 1], (2, 1, 0, 1, 1, 0), (2, 1, 0, 1, 1, 0)),
        ([np.inf, 0], [1, np.inf], (2, 0, 0, 0, 1, 1), (2, 0, 0, 0, 0, 0)),
    ):
        _, stats = sn.dot(np.array(a, np.float32), np.array(b, np.float32), unit, return_stats=True)
        assert tuple(stats["product"].to_dict().values()) == product
        assert tuple(stats["sum"].to_dict().values()) == total


def test_philox_of_zero():
    """Philox4x32-10 of an all-zero key and counter."""
    assert ref.philox4x32_10((0, 0), (0, 0, 0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
