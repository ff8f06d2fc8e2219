"""Timing files: what is read, and what each kind of bad file says."""

import json
from fractions import Fraction

import pytest

from softnum.tta import IterationTime, bandwidth, frequency, read_timings


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
    assert times["base"] == IterationTime("base", 0.2, 2, str(path))
    assert times["fast"].seconds == 0.001
    assert times["fast"].iterations == 1


def test_csv_cycles_with_a_clock_column_or_argument(tmp_path):
    column = write(tmp_path, "a.csv", "design,iteration,cycles,clock\nbase,1,3000,2 GHz\nbase,2,5000,2 GHz\n")
    assert read_timings(column)["base"].seconds == 2e-6
    bare = write(tmp_path, "b.csv", "design,iteration,cycles\nbase,1,3000\n")
    assert read_timings(bare, clock="1.5 GHz")["base"].seconds == 2e-6
    # the file's own clock wins over the argument
    assert read_timings(column, clock="1 Hz")["base"].seconds == 2e-6


def test_json_rows(tmp_path):
    rows = [{"design": "x", "iteration": i, "cycles": 10 * i, "clock": "1 kHz"} for i in (1, 2, 3)]
    assert read_timings(write(tmp_path, "t.json", json.dumps(rows)))["x"] == IterationTime(
        "x", 0.02, 3, str(tmp_path / "t.json")
    )


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
    with pytest.raises(ValueError, match=r"must end in \.csv or \.json, not '\.txt'"):
        read_timings(write(tmp_path, "t.txt", HEAD))
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not UTF-8"):
        read_timings(tmp_path / "b.csv")


def test_a_time_must_be_a_time():
    with pytest.raises(ValueError, match="must be finite and above zero"):
        IterationTime("a", 0.0)
