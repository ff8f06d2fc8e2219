"""Tables of matrix products, what is extrapolated from them, the roll-up and the figure of merit."""

import itertools
import math
import random
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softnum.tta import DesignPoint, Gemm, Operation, Workload, device, load_reports, workload_of_gemms
from softnum.tta.estimates import (
    FARTHEST,
    GemmTable,
    GemmTime,
    figure_of_merit,
    matrix_share,
    measure_gemms,
    read_rates,
    roll_up,
    units_per_day,
    utilisation,
)

# as DeepBench's code/nvidia/gemm_bench.cu prints it (layout of that file; first lines of its README's example)
PRINTED = """\
                  Running training benchmark
                         Times
----------------------------------------------------------------------------------------
    m       n      k      a_t     b_t      precision        time (usec)
   1760     16   1760      0      0        float          180
   1760     32   1760      0      0        float          182
   1760     64   1760      0      0        float          247
   1760    128   1760      0      0        float          318
"""


def gemm(m, n, k, phase="forward", formats=("binary32",), count=1):
    return Gemm("fc", phase, m, n, k, 32, formats, count)


def table_of(rate, sizes, **options):
    return GemmTable(tuple(GemmTime(*size, 2 * math.prod(size) / rate(*size), **options) for size in sizes))


CUBE = [(m, n, k) for m in (16, 64, 256) for n in (16, 64, 256) for k in (16, 64, 256)]


def test_reads_what_deepbench_prints(tmp_path):
    path = tmp_path / "titanxp.txt"
    path.write_text(PRINTED)
    table = GemmTable.read(path)
    assert table.rows[3] == GemmTime(128, 1760, 1760, 318e-6)
    assert table.kind == "given"
    assert table.rows[3].rate == pytest.approx(2 * 1760 * 128 * 1760 / 318e-6)
    estimate = table.estimate(gemm(64, 1760, 1760))  # a layer of 1760 x 1760 at batch 64
    assert (estimate.seconds, estimate.rule, estimate.proxy) == (247e-6, "measured", False)


def test_what_deepbench_prints_is_of_arrays_stored_by_columns(tmp_path):
    """The same memory by columns and by rows, in NumPy: DeepBench's weights x samples is our samples x weights."""
    m, n, k = 6, 2, 5  # outputs, samples, inputs
    numbers = np.random.Generator(np.random.Philox(key=1))
    for a_t, b_t, phase in ((0, 0, "forward"), (1, 0, "backward_data"), (0, 1, "backward_weight")):
        a = np.asfortranarray(numbers.standard_normal((k, m) if a_t else (m, k)))
        b = np.asfortranarray(numbers.standard_normal((n, k) if b_t else (k, n)))
        theirs = (a.T if a_t else a) @ (b.T if b_t else b)
        left, right = b.ravel("K").reshape(b.shape[::-1]), a.ravel("K").reshape(a.shape[::-1])
        ours = (left.T if b_t else left) @ (right.T if a_t else right)
        np.testing.assert_allclose(ours, theirs.T)
        path = tmp_path / "printed.txt"
        path.write_text(f"  m  n  k  a_t  b_t  precision  time (usec)\n{m} {n} {k} {a_t} {b_t} float 7\n")
        (row,) = GemmTable.read(path).rows
        assert (row.m, row.n, row.k) == (*ours.shape, left.size // ours.shape[0])
        # the transposes that an estimate takes for a pass's own
        assert (row.a_t, row.b_t) == (phase == "backward_weight", phase == "backward_data")


def test_last_lines_of_int8(tmp_path):
    path = tmp_path / "int8.txt"
    path.write_text(
        "  m  n  k  a_t  b_t  precision  time (usec)  pad_kerenels\n  35 700 2048 0 n int8 50 1\n"
        " Total kernels padded: 1\n Total kernels: 1\n"
    )
    assert GemmTable.read(path).rows == (GemmTime(700, 35, 2048, 50e-6, "int8"),)


def test_a_table_of_the_other_order_is_told():
    table = GemmTable((GemmTime(1760, 16, 1760, 180e-6),))
    with pytest.raises(
        ValueError, match=r"110 times away.*stored by columns, where \(1760, 16, 1760\) is near it, exch"
    ):
        table.estimate(gemm(16, 1760, 1760))
    with pytest.raises(ValueError, match="near it to the table, or accept more"):
        table.estimate(gemm(100000, 100000, 1760))


@pytest.mark.parametrize(
    "text",
    [
        "m,n,k,a_t,b_t,precision,time (ms)\n8,9,10,1,0,half,2.5\n",
        "# mine\n\nk, m, n, precision, a_trans, time (usec)\n10,8,9,float16,T,2500\n",
        "m n k a_t precision time(s)\n8 9 10 t fp16 0.0025\n",
    ],
)
def test_columns_in_any_order_and_units(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert GemmTable.read(path).rows == (GemmTime(8, 9, 10, 0.0025, "fp16", True, False),)


def test_writes_what_it_reads(tmp_path):
    table = table_of(lambda m, n, k: 3e9 + m, CUBE, precision="fp64", b_t=True)
    table.write(tmp_path / "t.csv")
    assert GemmTable.read(tmp_path / "t.csv").rows == table.rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; write or copy it again"),
        ("just words\n", "line 1: no line names the columns"),
        ("m,n,k,time (usec)\n", "holds no sizes"),
        ("m,n,k\n1,2,3\n", "line 1: expected one column of time"),
        ("m,n,k,time\n1,2,3,4\n", "line 1: the column 'time' names no unit"),
        ("m,n,k,time (h)\n1,2,3,4\n", "names no unit"),
        ("m,n,k,kk,time (s)\n1,2,3,4,5\n", "line 1: unknown column 'kk'"),
        ("m,n,k,k,time (s)\n1,2,3,4,5\n", "line 1: the column 'k' appears twice"),
        ("m,n,k,time (s)\n1,2,3\n", "line 2: 3 cells where the header has 4"),
        ("m,n,k,time (s)\n1,2,0,1\n", "line 2: k must be a whole number from 1 up, got '0'"),
        ("m,n,k,time (s)\n1,2.5,3,1\n", "line 2: n must be"),
        ("m,n,k,time (s)\n1,2,3,0\n", "line 2: the time must be a finite number above zero"),
        ("m,n,k,time (s)\n1,2,3,nan\n", "line 2: the time must be"),
        ("m,n,k,time (s)\n1,2,3,1e-999999999\n", "line 2: the time must be"),
        ("m,n,k,a_t,time (s)\n1,2,3,x,1\n", "line 2: a_t must be 0 or 1"),
        ("m,n,k,precision,time (s)\n1,2,3,fp7,1\n", "line 2: unknown precision 'fp7'"),
        ('m,n,k,time (s)\n1,"2,3,1\n', "line 2: not readable as CSV"),
    ],
)
def test_malformed_tables_name_file_line_and_reason(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        GemmTable.read(path)
    assert str(path) in str(error.value)


def test_other_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no table of matrix products"):
        GemmTable.read(tmp_path / "absent.csv")
    (tmp_path / "b.csv").write_bytes(b"m,n,k,time (s)\n\xff")
    with pytest.raises(ValueError, match="not UTF-8"):
        GemmTable.read(tmp_path / "b.csv")


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutations_raise_nothing_but_value_errors(tmp_path, data):
    """A good file with a piece cut out, doubled or overwritten reads or says what is wrong."""
    good = PRINTED if data.draw(st.booleans()) else "m,n,k,a_t,b_t,precision,time (s)\n8,9,10,1,0,half,2.5\n"
    start = data.draw(st.integers(0, len(good)))
    end = data.draw(st.integers(start, len(good)))
    junk = data.draw(st.text(max_size=4) | st.just(good[start:end] * 2))
    path = tmp_path / "t.csv"
    path.write_text(good[:start] + junk + good[end:], encoding="utf-8", errors="replace")
    try:
        table = GemmTable.read(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        assert all(0 < row.seconds < math.inf and min(row.m, row.n, row.k) > 0 for row in table.rows)


# -------------------------------------------------------------------------------------------------------- extrapolation


@given(st.tuples(*[st.floats(16, 256)] * 3))
@settings(max_examples=50, deadline=None)
def test_power_laws_are_interpolated_exactly(size):
    """The logarithm of the rate is linear in the logarithms of the sizes, so any simplices give it back."""
    m, n, k = map(round, size)
    table = table_of(lambda m, n, k: 1e9 * m**0.3 * n**0.2 * k**0.1, CUBE)
    found = table.estimate(gemm(m, n, k))
    assert found.rule in ("interpolated", "measured")
    assert found.seconds == pytest.approx(2 * m * n * k / (1e9 * m**0.3 * n**0.2 * k**0.1), rel=1e-9)


@given(st.permutations(CUBE), st.tuples(*[st.integers(16, 256)] * 3))
@settings(max_examples=30, deadline=None)
def test_the_order_of_lines_does_not_matter(sizes, size):
    def rate(m, n, k):
        return 1e9 * (m % 7 + n % 5 + k % 3 + 1)

    assert table_of(rate, sizes).estimate(gemm(*size)).seconds == table_of(rate, CUBE).estimate(gemm(*size)).seconds


def test_between_two_sizes_by_hand():
    """Only N differs: halfway between 16 and 64 in the logarithm is 32; the rates 1e9 and 4e9 give 2e9."""
    table = GemmTable((GemmTime(8, 16, 8, 2048 / 1e9), GemmTime(8, 64, 8, 8192 / 4e9)))
    found = table.estimate(gemm(8, 32, 8))
    assert found.rule == "interpolated"
    assert found.seconds == pytest.approx(4096 / 2e9)
    other = table.estimate(gemm(16, 32, 8))  # M was never measured at 16
    assert (other.rule, other.distance) == ("nearest", 2.0)


def test_on_a_plane_between_axes_there_is_no_hull():
    table = table_of(lambda m, n, k: 1e9, [(size, size, size) for size in (16, 32, 64, 128, 256)])
    found = table.estimate(gemm(20, 20, 20))
    assert (found.rule, found.distance) == ("nearest", 1.25)
    assert found.seconds == pytest.approx(2 * 20**3 / 1e9)


def test_outside_the_nearest_stands_in_until_it_is_too_far():
    table = table_of(lambda m, n, k: 1e9 * m, CUBE)
    found = table.estimate(gemm(1024, 64, 64))
    assert (found.rule, found.distance) == ("nearest", 4.0)
    assert found.seconds == pytest.approx(2 * 1024 * 64 * 64 / 256e9)
    assert table.estimate(gemm(int(256 * FARTHEST), 64, 64)).distance == FARTHEST
    with pytest.raises(ValueError, match=r"\(256, 64, 64\), 8.0\d times away, and more than 8 is no estimate"):
        table.estimate(gemm(int(256 * FARTHEST) + 8, 64, 64))
    assert table.estimate(gemm(25600, 64, 64), farthest=100).distance == 100


def test_transposes_and_repeats():
    rows = (
        GemmTime(8, 8, 8, 1.0),
        GemmTime(8, 8, 8, 3.0),
        GemmTime(8, 8, 8, 10.0, a_t=True),
        GemmTime(16, 8, 8, 5.0, b_t=True),
        GemmTime(16, 8, 8, 7.0, a_t=True),
    )
    table = GemmTable(rows)
    assert table.estimate(gemm(8, 8, 8)).seconds == 2.0
    assert table.estimate(gemm(8, 8, 8, "backward_weight", count=3)).seconds == 30.0
    assert table.estimate(gemm(8, 8, 8, "backward_data")).seconds == pytest.approx(14 / 3)  # none transposes B
    assert table.estimate(gemm(16, 8, 8)).seconds == 6.0
    assert table.estimate(gemm(16, 8, 8, "backward_data")).seconds == 5.0


def test_precisions_follow_the_formats():
    table = GemmTable((GemmTime(8, 8, 8, 2.0), GemmTime(8, 8, 8, 1.0, "fp16"), GemmTime(8, 8, 8, 0.5, "int8")))
    assert table.estimate(gemm(8, 8, 8, formats=("binary16",))).seconds == 1.0
    found = table.estimate(gemm(8, 8, 8, formats=("e5m2",)))
    assert (found.seconds, found.precision, found.proxy) == (1.0, "fp16", True)
    assert table.estimate(gemm(8, 8, 8, formats=("q4.4",))).seconds == 0.5
    with pytest.raises(ValueError, match=r"fc forward: no listed rate \(int8\)"):
        GemmTable(table.rows[2:]).estimate(gemm(8, 8, 8))


def test_measuring_this_machine():
    table = measure_gemms([(128, 128, 128), (32, 10, 128)], repeats=2, warmup=1)
    assert table.kind == "measured"
    assert "NumPy" in table.source
    assert [(row.m, row.n, row.k) for row in table.rows] == [(128, 128, 128), (32, 10, 128)]
    assert all(1e6 < row.rate < 1e14 for row in table.rows)
    assert measure_gemms([(8, 8, 8)], repeats=1, precision="fp64").rows[0].precision == "fp64"
    for wrong in ({"repeats": 0}, {"warmup": -1}, {"precision": "fp16"}):
        with pytest.raises(ValueError, match="repeats|warmup|precision"):
            measure_gemms([(8, 8, 8)], **wrong)


@pytest.mark.slow
def test_extrapolation_holds_on_this_machine():
    """Sizes drawn between those of a 4 x 4 x 4 grid, estimated and then measured."""
    grid = (16, 64, 256, 1024)
    table = measure_gemms(itertools.product(grid, grid, grid), repeats=21)
    rng = random.Random(1)
    sizes = [tuple(round(2 ** rng.uniform(4, 10)) for _ in range(3)) for _ in range(40)]
    estimates = [table.estimate(gemm(*size)) for size in sizes]
    assert {each.rule for each in estimates} == {"interpolated"}
    rows = measure_gemms(sizes, repeats=21).rows
    errors = [abs(each.seconds / row.seconds - 1) for each, row in zip(estimates, rows, strict=True)]
    print(f"median error {statistics.median(errors):.1%}, largest {max(errors):.1%}")
    assert statistics.median(errors) < 0.3


# -------------------------------------------------------------------------------------------------------------- roll-up


def two_layers():
    relu = Operation("fc", "forward", "relu", 900, 9 * 10**5, 0, ("binary32",))
    gemms = [gemm(8, 8, 8, name) for name in ("forward", "backward_data", "backward_weight")]
    work = workload_of_gemms(DesignPoint("mine", None, tuple(gemms)), 32, "net")
    return Workload("net", "mine", 32, (*work.operations, relu))


def test_roll_up_by_hand():
    """Three products of 1 ms; a quarter of the time is something else; 100 samples are 4 batches of 32."""
    table = GemmTable((GemmTime(8, 8, 8, 1e-3),), "somewhere")
    run = roll_up(two_layers(), table, share=0.75, samples=100, epochs=5, nodes=10)
    assert run.passes == {"forward": 1e-3, "backward_data": 1e-3, "backward_weight": 1e-3}
    assert run.seconds == pytest.approx(4e-3)
    assert run.iterations_per_epoch == 4
    assert run.epoch_seconds == pytest.approx(16e-3)
    assert run.run_seconds == pytest.approx(80e-3)
    assert run.units_per_day == pytest.approx(86400 / 80e-3 * 10)
    assert run.time.kind == "estimated"
    assert run.time.detail["gemms"][0]["rule"] == "measured"


def test_other_operations_have_a_rule():
    table = GemmTable((GemmTime(8, 8, 8, 1e-3),))
    bounded = roll_up(two_layers(), table, device=device("v100"))
    assert bounded.other == pytest.approx(1e-6)  # 900 kB at 900 GB/s
    assert "V100" in bounded.other_rule
    bare = roll_up(two_layers(), table)
    assert (bare.other, bare.other_rule) == (0.0, "left out")
    with pytest.raises(ValueError, match="not known; give samples"):
        _ = bare.epoch_seconds
    with pytest.raises(ValueError, match="give one of the two"):
        roll_up(two_layers(), table, share=0.5, device=device("v100"))
    for wrong in (0, 1.01, -0.5):
        with pytest.raises(ValueError, match="share of matrix products"):
            roll_up(two_layers(), table, share=wrong)
    with pytest.raises(ValueError, match="samples must be at least 1"):
        roll_up(two_layers(), table, samples=0)
    with pytest.raises(ValueError, match="no matrix product"):
        roll_up(Workload("n", "d", 1, two_layers().operations[3:]), table)


def test_a_measured_table_gives_back_what_was_measured():
    work = workload_of_gemms(load_reports().designs["a-float32"], 32, "mlp")
    sizes = sorted({each.shape for each in work.gemms})
    table = measure_gemms(sizes, repeats=1)
    run = roll_up(work, table)
    by_size = {(row.m, row.n, row.k): row.seconds for row in table.rows}
    assert run.seconds == pytest.approx(math.fsum(by_size[each.shape] for each in work.gemms))
    assert {each.rule for each in run.gemms} == {"measured"}


def test_utilisation_of_a_rolled_up_time():
    """Three products of 1024 FLOPs that take 1 ms each, on a device whose fp32 peak is 15.7 TFLOP/s."""
    run = roll_up(two_layers(), GemmTable((GemmTime(8, 8, 8, 1e-3),)), share=0.5)
    whole, *parts = utilisation(two_layers(), run.time, device("v100"))
    assert whole.share == pytest.approx(3 * 1024 / 15.7e12 / 6e-3)
    assert [part.share for part in parts] == pytest.approx([1024 / 15.7e12 / 1e-3] * 3)
    assert [part.stage for part in parts] == ["forward", "backward_data", "backward_weight"]


def test_from_tables_to_a_figure_of_merit():
    """Twice the speed on every product and three times the nodes: the lecture's chain gives 6."""
    slow, fast = (GemmTable((GemmTime(8, 8, 8, seconds),)) for seconds in (2e-3, 1e-3))
    old = roll_up(two_layers(), slow, share=0.4, samples=100, epochs=3, nodes=5)
    new = roll_up(two_layers(), fast, share=0.4, samples=100, epochs=3, nodes=15)
    assert float(figure_of_merit([new.units_per_day], [old.units_per_day])) == pytest.approx(6)


# the profile of P1B3 in the lecture (milliseconds), with the operations it does not print as one
P1B3 = "MatMul 115.52,Assign 73.65,Mul 61.46,Add 22.31,Sub 2.22,RandomUniform 1.75,RealDiv 1.75,BiasAdd 1.19,rest 7.44"


def test_the_lectures_profile(tmp_path):
    path = tmp_path / "p1b3.csv"
    path.write_text("operation,time\n" + P1B3.replace(" ", ";").replace(",", "\n").replace(";", ",") + "\n")
    assert matrix_share(path) == pytest.approx(0.4021, abs=5e-5)
    assert matrix_share(path, ["MatMul", "Mul"]) == pytest.approx((115.52 + 61.46) / 287.29)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("op,time\n", "line 1: expected the columns operation, time"),
        ("operation,time\nMatMul\n", "line 2: 1 cells"),
        ("operation,time\nMatMul,-1\n", "line 2: time must be from 0 up, got '-1'"),
        ("operation,time\nMatMul,x\n", "line 2: time must be a finite number, got 'x'"),
        ("operation,time\nAdd,1\n", "no operation that takes time starts with MatMul"),
        ("", "the file is empty; write or copy it again"),
    ],
)
def test_bad_profiles(tmp_path, text, message):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        matrix_share(path)
    assert str(path) in str(error.value)


# ------------------------------------------------------------------------------------------------------ figure of merit


def test_the_lectures_figure_of_merit():
    old, new = [7475, 74752, 37376], [564000, 4512000, 9024000]
    merit = figure_of_merit(new, old)
    assert merit == Fraction(68509785, 829426)
    assert f"{float(merit):.2f}" == "82.60"
    # the lecture's rates are rounded; from hours and nodes it is the same to two places
    hours = [units_per_day(each, 18688) for each in (60, 6, 12)]
    assert [round(rate) for rate in hours] == [7475, 74752, 37376]
    nodelets = [units_per_day(each, 94000) for each in (4, 0.5, 0.25)]
    assert nodelets == new
    assert f"{float(figure_of_merit(nodelets, hours)):.2f}" == "82.60"
    # the formula on the slide: H = 3 x1 x2 x3 / (x1 x2 + x1 x3 + x2 x3)
    (a, b, c), (d, e, f) = new, old
    slide = Fraction(3 * a * b * c, a * b + a * c + b * c) / Fraction(3 * d * e * f, d * e + d * f + e * f)
    assert merit == slide
    assert float(Fraction(3 * d * e * f, d * e + d * f + e * f)) == pytest.approx(17250.1, abs=0.05)


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=1, max_size=5), st.integers(1, 1000))
@settings(deadline=None)
def test_a_figure_of_merit_is_a_ratio(pairs, factor):
    new, old = zip(*pairs, strict=True)
    merit = figure_of_merit(new, old)
    assert figure_of_merit(old, new) == 1 / merit
    assert figure_of_merit([Fraction(repr(rate)) * factor for rate in new], old) == merit * factor
    ratios = [Fraction(repr(a)) / Fraction(repr(b)) for a, b in pairs]
    assert min(ratios) <= merit <= max(ratios)


@pytest.mark.parametrize(
    ("new", "old", "message"),
    [
        ([0], [1], "new rate 1 must be finite and above 0"),
        ([1], [-1], "old rate 1 must be finite"),
        ([math.nan], [1], "must be finite"),
        ([10**400], [1], "new rate 1 must be at most 1.7e308, the limit of binary64, got one of 401 digits"),
        ([math.inf], [1], "must be finite"),
        (["1"], [1], "must be a number"),
        ([True], [1], "must be a number"),
        ([], [], "at least one"),
        ([1, 2], [1], "got 2 and 1"),
    ],
)
def test_bad_rates(new, old, message):
    with pytest.raises(ValueError, match=message):
        figure_of_merit(new, old)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit = 3", "must hold a table"),
        ("[units.P1]\nold = 1", "unknown key 'units'; did you mean 'unit'"),
        ("[unit.P1]\nold = 1", r"\[unit.P1\] lacks 'new'"),
        ("[unit.P1]\nold = 1\nnew = { hour = 1, nodes = 2 }", "did you mean 'hours'"),
        ("[unit.P1]\nold = 0\nnew = 1", r"\[unit.P1\] old must be finite and above 0"),
        ("[unit.P1]\nold = 1\nnew = { hours = 1, nodes = 0 }", "nodes must be at least 1"),
        ("[unit.P1", "not TOML"),
    ],
)
def test_bad_files_of_rates(tmp_path, text, message):
    path = tmp_path / "rates.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_rates(path)
    assert str(path) in str(error.value)
