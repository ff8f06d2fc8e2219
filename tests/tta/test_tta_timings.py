"""Timing files: what is read, and what each kind of bad file says."""

import json
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softnum.tta import IterationTime, gather_timings, read_timings, write_timings
from softnum.tta.quantities import bandwidth, frequency


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_units_are_decimal_and_exact():
    assert bandwidth("16 GB/s") == 16 * 10**9
    assert bandwidth("0.1kB/s") == 100
    assert frequency("1.5 GHz") == Fraction(3, 2) * 10**9
    assert frequency("32.768 kHz") == 32768


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (bandwidth, "16 GiB/s", "accepted units: B/s, kB/s, MB/s, GB/s, TB/s"),
        (bandwidth, "16 Gb/s", "did you mean 'GB/s'"),
        (bandwidth, "16", "not a number followed by a unit"),
        (bandwidth, "-1 GB/s", "not a number followed by a unit"),
        (bandwidth, "0 GB/s", "must be above zero"),
        (frequency, "1 ghz", "did you mean 'GHz'"),
        (frequency, "nan GHz", "accepted units: Hz, kHz, MHz, GHz"),
        (frequency, "one GHz", "clock 'one GHz'"),
    ],
)
def test_bad_quantities_name_value_and_units(reader, text, message):
    with pytest.raises(ValueError, match=message) as error:
        reader(text)
    assert repr(text) in str(error.value)


def test_a_bare_number_is_no_quantity():
    with pytest.raises(TypeError, match="must be a string with a unit, got 16"):
        bandwidth(16)


def test_csv_seconds_mean_and_count(tmp_path):
    path = write(
        tmp_path,
        "t.csv",
        "# measured by hand\nseconds, design, iteration\n0.1,base,1\n\n0.3,base,2\n1e-3,fast,7\n",
    )
    times = read_timings(path)
    assert list(times) == ["base", "fast"]
    base = times["base"]
    assert (base.design, base.seconds, base.iterations, base.source, base.kind) == ("base", 0.2, 2, str(path), "given")
    assert base.samples == (0.1, 0.3) and base.dropped == 0 and base.interval[0] == 0 < base.interval[1]
    assert times["fast"].seconds == 0.001
    assert (times["fast"].iterations, times["fast"].interval) == (1, None)


def test_csv_cycles_with_a_clock_column_or_argument(tmp_path):
    column = write(tmp_path, "a.csv", "design,iteration,cycles,clock\nbase,1,3000,2 GHz\nbase,2,5000,2 GHz\n")
    assert read_timings(column)["base"].seconds == 2e-6
    bare = write(tmp_path, "b.csv", "design,iteration,cycles\nbase,1,3000\n")
    assert read_timings(bare, clock="1.5 GHz")["base"].seconds == 2e-6
    # the file's own clock wins over the argument
    assert read_timings(column)["base"].seconds == 2e-6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("design,iteration,seconds\na,1,1e-3\n", "the file gives seconds; leave it out"),
        ("design,iteration,cycles,clock\na,1,100,2 GHz\n", "the file states a clock with all cycles; leave it out"),
    ],
)
def test_a_clock_that_nothing_needs_is_refused(tmp_path, text, said):
    file = write(tmp_path, "t.csv", text)
    with pytest.raises(ValueError, match=said):
        read_timings(file, clock="1 GHz")
    mixed = write(tmp_path, "mixed.csv", "design,iteration,cycles,clock\na,1,100,2 GHz\nb,1,100,\n")
    assert [time.seconds for time in read_timings(mixed, clock="1 GHz").values()] == [5e-8, 1e-7]


def test_json_rows(tmp_path):
    rows = [{"design": "x", "iteration": i, "cycles": 10 * i, "clock": "1 kHz"} for i in (1, 2, 3)]
    time = read_timings(write(tmp_path, "t.json", json.dumps(rows)))["x"]
    assert (time.seconds, time.samples) == (0.02, (0.01, 0.02, 0.03))


def test_iterations_are_taken_in_their_order(tmp_path):
    path = write(tmp_path, "t.csv", "design,iteration,seconds\na,2,1\na,10,2\na,1,9\n")
    assert read_timings(path)["a"].samples == (9.0, 1.0, 2.0)
    time = read_timings(path, warmup=1)["a"]
    assert (time.seconds, time.samples, time.dropped) == (1.5, (1.0, 2.0), 1)
    assert time.detail["warmup_seconds"] == [9.0]


def test_joules_are_averaged_over_what_is_kept(tmp_path):
    path = write(tmp_path, "t.csv", "design,iteration,seconds,joules\na,1,1,90\na,2,1,10\na,3,1,20\n")
    assert read_timings(path)["a"].joules == 40
    assert read_timings(path, warmup=1)["a"].joules == 15
    assert read_timings(write(tmp_path, "u.csv", "design,iteration,seconds\na,1,1\n"))["a"].joules is None


def test_a_stated_design_picks_rows_or_names_them(tmp_path):
    both = write(tmp_path, "both.csv", "design,iteration,seconds\na,1,1\nb,1,2\n")
    assert list(read_timings(both, design="b")) == ["b"]
    with pytest.raises(ValueError, match=r"no row of design 'bb'; did you mean 'b'\? It has 'a', 'b'"):
        read_timings(both, design="bb")
    assert read_timings(write(tmp_path, "c.csv", "iteration,seconds\n1,4\n"), design="c")["c"].seconds == 4


def test_several_files(tmp_path):
    one = write(tmp_path, "one.csv", "iteration,seconds\n1,1\n")
    two = write(tmp_path, "two.csv", "design,iteration,seconds\nb,1,2\nc,1,3\n")
    times = gather_timings([f"a={one}", two])
    assert {name: time.seconds for name, time in times.items()} == {"a": 1, "b": 2, "c": 3}
    with pytest.raises(ValueError, match=r"two.csv: times of design 'b', of which .*one.csv gives some too"):
        gather_timings([("b", one), two])
    odd = write(tmp_path, "x=y.csv", "design,iteration,seconds\nd,1,2\n")
    assert list(gather_timings([str(odd)])) == ["d"]


@given(
    st.lists(st.floats(1e-12, 1e3), min_size=1, max_size=40),
    st.sampled_from(["none", "auto", 0]),
    st.none() | st.floats(1e-9, 1e9),
)
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_back(seconds, warmup, joules):
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first.csv"), Path(folder, "second.csv")
        write_timings(first, [IterationTime("a", value, joules=joules) for value in seconds[:1]])
        rows = [f"a,{at},{value!r}" + (f",{joules!r}" if joules else "") for at, value in enumerate(seconds)]
        head = "design,iteration,seconds" + (",joules" if joules else "")
        first.write_text("\n".join([head, *rows]))
        (time,) = read_timings(first, warmup=warmup).values()
        write_timings(second, [time])
        (again,) = read_timings(second, warmup=warmup).values()
    same = ("seconds", "samples", "dropped", "interval", "iterations", "joules")
    assert [getattr(time, name) for name in same] == [getattr(again, name) for name in same]


def test_how_a_time_is_known_is_written_and_read(tmp_path):
    path = tmp_path / "t.csv"
    write_timings(path, [IterationTime("a", 1.0, kind="estimated"), IterationTime("b", 2.0, joules=0.5)])
    assert path.read_text() == "design,iteration,seconds,joules,kind\na,1,1.0,,estimated\nb,1,2.0,0.5,\n"
    times = read_timings(path)
    assert [(time.kind, time.joules) for time in times.values()] == [("estimated", None), ("given", 0.5)]


@pytest.mark.parametrize("name", ["", " a", "#a"])
def test_a_name_that_would_be_lost_is_not_written(tmp_path, name):
    with pytest.raises(ValueError, match="would not be read back"):
        write_timings(tmp_path / "t.csv", [IterationTime(name, 1.0)])
    assert not (tmp_path / "t.csv").exists()


def test_a_design_is_written_once(tmp_path):
    with pytest.raises(ValueError, match="design 'a' has two times"):
        write_timings(tmp_path / "t.csv", [IterationTime("a", 1.0), IterationTime("a", 2.0)])


HEAD = "design,iteration,seconds\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + "a,1,0.5\na,2", 3, "2 cells where the header has 3 .* truncated"),
        (HEAD + "a,1,fast\n", 2, "seconds must be a finite number, got 'fast'"),
        (HEAD + "a,1,inf\n", 2, "seconds must be a finite number, got 'inf'"),
        (HEAD + "a,1,0\n", 2, "seconds must be above zero"),
        (HEAD + "a,1,1e-999999999\n", 2, "seconds must be above zero"),
        (HEAD + "a,1,1/3\n", 2, "must be a finite number"),
        (HEAD + "a,x,1\n", 2, "iteration must be a finite number"),
        (HEAD + "a,1.5,1\n", 2, "iteration must be a whole number"),
        (HEAD + "a,1,1\na,1,1\n", 3, "iteration 1 of design 'a' is given twice"),
        (HEAD + ",1,1\n", 2, "lacks 'design'"),
        ("design,iteration,second\na,1,1\n", 1, "unknown key 'second'; did you mean 'seconds'"),
        ("design,seconds\na,1\n", 1, "lacks 'iteration'"),
        ("design,iteration,seconds,seconds\n", 1, "column 'seconds' appears twice"),
        ("design,iteration,cycles\na,1,5\n", 2, "cycles without a clock"),
        ("design,iteration,cycles,clock\na,1,5,1 gigahertz\n", 2, "accepted units"),
        ("design,iteration,seconds,cycles\na,1,5,\nb,1,,5\n", 3, "cycles without a clock"),
        ("design,iteration,seconds,cycles,clock\na,1,5,,\nb,1,,5,1 Hz\n", 3, "gives cycles where .* gives seconds"),
        ("design,iteration,seconds,clock\na,1,5,1 Hz\n", 2, "a clock goes with cycles only"),
        ("design,iteration,seconds,cycles\na,1,5,5\n", 2, "expected either seconds or cycles"),
        ("design,iteration,seconds,joules\na,1,5,0\n", 2, "joules must be above zero"),
        (
            "design,iteration,seconds,joules\na,1,5,1\na,2,5,\n",
            3,
            "joules of design .a. are given in some rows and not in others",
        ),
        ("design,iteration,seconds,kind\na,1,5,guessed\n", 2, "kind must be one of given, measured, .*, got 'guessed'"),
        (
            "design,iteration,seconds,kind\na,1,5,\na,2,5,measured\n",
            3,
            "kind 'measured' of design 'a' where .*line 2 says",
        ),
        (HEAD + "a,1,1_000\n", 2, "must be a finite number, got '1_000'"),
        (HEAD + "a,1,٣\n", 2, "must be a finite number"),
        (HEAD + f"a,1,{'9' * 5000}\n", 2, r"got '9{39}\.\.\. \(5002 characters\)"),
        ('design,iteration,seconds\n"a,1,5\n', 2, "not readable as CSV"),
    ],
)
def test_bad_csv_names_file_line_and_way_out(tmp_path, text, line, message):
    path = write(tmp_path, "t.csv", text)
    with pytest.raises(ValueError, match=message) as error:
        read_timings(path)
    assert f"{path}, line {line}:" in str(error.value)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[\n {"design": "a",\n', 3, "not JSON"),
        ('{"design": "a"}', 1, "expected a list of objects"),
        ('[\n {"design": "a", "iteration": 1, "seconds": 1},\n 5]', 3, "expected an object"),
        ('[\n {"design": "a", "iteration": 1,\n  "seconds": 1},\n\n {"design": 3, "iteration": 1, "seconds": 1}]', 5,
         "design must be a name, got 3"),
        ('[{"design": "a", "iteration": true, "seconds": 1}]', 1, "iteration must be a number, got True"),
        ('[{"design": "a", "iteration": 1, "seconds": NaN}]', 1, "must be a finite number"),
    ],
)  # fmt: skip
def test_bad_json_names_file_line_and_way_out(tmp_path, text, line, message):
    path = write(tmp_path, "t.json", text)
    with pytest.raises(ValueError, match=message) as error:
        read_timings(path)
    assert f"{path}, line {line}:" in str(error.value)


def test_missing_empty_and_foreign_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no timing file .*expected a CSV or JSON"):
        read_timings(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="holds no rows"):
        read_timings(write(tmp_path, "t.csv", HEAD))
    assert read_timings(write(tmp_path, "t.txt", HEAD + "a,1,1\n"))["a"].seconds == 1
    with pytest.raises(ValueError, match=r"t\.txt, line 1: of no known format: 'hello'; say which with --format"):
        read_timings(write(tmp_path, "t.txt", "\nhello\n"))
    (tmp_path / "b.csv").write_bytes(HEAD.encode() + b"a,1,\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"b\.csv, line 2: not UTF-8 text .*; save it as UTF-8"):
        read_timings(tmp_path / "b.csv")


def test_a_time_must_be_a_time():
    with pytest.raises(ValueError, match="must be finite and above zero"):
        IterationTime("a", 0.0)
