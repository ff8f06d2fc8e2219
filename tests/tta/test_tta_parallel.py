"""Data-parallel iterations: timelines by hand, the least bandwidth judged on both of its sides, the command."""

import csv
import json
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import load_design, workload
from softnum.tta import (
    IterationTime,
    Operation,
    Workload,
    architecture,
    device,
    load_reports,
    lower,
    parallel_time,
    roofline,
    scalesim_timings,
)
from softnum.tta.outcomes import plot_parallel
from softnum.tta.quantities import bit_rate, duration
from softnum.tta.workloads import (
    Exchange,
    StoredTensor,
    gemm_layer_times,
    gradient_bytes,
    minimum_bandwidth,
    parallel_sweep,
)
from tests.support.cases import cases


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(part) for part in arguments])


def chain(*elements, live=False):
    """Layers l0, l1, ... with so many weights each, whose gradients have 32 bits; the first has no backward_data."""
    operations, tensors = [], []
    for number, count in enumerate(elements):
        operations.append(Operation(f"l{number}", "forward", "gemm", 1, 1, 1))
        tensors.append(StoredTensor(f"l{number}", "w", "weights", count, 8))
    for number, count in reversed(list(enumerate(elements))):
        if number:
            operations.append(Operation(f"l{number}", "backward_data", "gemm", 1, 1, 1))
        operations.append(Operation(f"l{number}", "backward_weight", "gemm", 1, 1, 1))
        span = (len(operations) - 1, len(operations) - 1) if live else None
        tensors.append(
            StoredTensor(
                f"l{number}", "w", "weight_gradients", count, 32, "binary32", stage="backward_weight", live=span
            )
        )
    operations += [Operation(f"l{number}", "update", "sgd", 1, 1, 1) for number in range(len(elements))]
    return Workload("chain", "mine", 16, tuple(operations), tuple(tensors))


#: seconds: forward 3, backwards 2 of l2, 2 of l1 and 1 of l0, so that the backward pass ends at 8; update 1
TIMES = {"l0": (1, 0, 1, 1), "l1": (1, 1, 1, 0), "l2": (1, 1, 1, 0)}


@pytest.mark.parametrize("live", [True, False])
def test_a_timeline_by_hand(live):
    """Two workers, 1 bit a second: an exchange takes as many seconds as its gradients have bits."""
    work = chain(1, 2, 3, live=live)  # 32, 64, 96 bits
    time = parallel_time(work, TIMES, 2, 32)  # 1, 2, 3 seconds
    assert [(t.layer, t.bytes, t.ready, t.start, t.end) for t in time.transfers] == [
        ("l2", 12, 5, 5, 8), ("l1", 8, 7, 8, 10), ("l0", 4, 8, 10, 11),
    ]  # fmt: skip
    assert (time.compute, time.exposed, time.seconds, time.communication) == (9, 3, 12, 6)
    assert (time.speedup, time.efficiency) == (Fraction(3, 2), Fraction(3, 4))
    assert time.throughput == Fraction(2 * 16, 12)
    late = parallel_time(work, TIMES, 2, 32, Exchange(overlap=False))
    assert (late.transfers[0].start, late.exposed) == (8, 6)
    fast = parallel_time(work, TIMES, 2, 320)
    assert fast.exposed == Fraction(1, 10)  # that of the last layer cannot be hidden
    alone = parallel_time(work, TIMES, 1, 1)
    assert (alone.transfers, alone.exposed, alone.speedup) == ((), 0, 1)


def test_a_ring_and_servers_by_hand():
    work = chain(1, 2, 3)
    ring = parallel_time(work, TIMES, 4, 32, Exchange(latency=Fraction(1, 10)))
    # 2 * 3 / 4 of 96 bits at 32 bits a second, and 6 messages of a tenth
    assert ring.transfers[0].end - ring.transfers[0].start == Fraction(3, 2) * 3 + Fraction(6, 10)
    server = parallel_time(work, TIMES, 4, 32, Exchange(Fraction(1, 10), "server"))
    # 4 times 96 bits of gradients and 24 of weights, and 2 messages
    assert server.transfers[0].end - server.transfers[0].start == Fraction(4 * (96 + 24), 32) + Fraction(2, 10)
    two = parallel_time(work, TIMES, 4, 32, Exchange(method="server", servers=2))
    assert two.transfers[0].end - two.transfers[0].start == Fraction(4 * (96 + 24), 64)


def test_compression_is_by_format():
    work = chain(64, 2, 3)
    assert gradient_bytes(work) == {"l2": 12, "l1": 8, "l0": 256}
    assert gradient_bytes(work, "e5m2") == {"l2": 3, "l1": 2, "l0": 64}
    assert gradient_bytes(work, "mxfp8_e4m3") == {"l2": 4, "l1": 3, "l0": 66}  # 8.25 bits
    small = parallel_time(work, TIMES, 2, 32, Exchange(compress="e5m2"))
    assert small.transfers[0].end - small.transfers[0].start == Fraction(24, 32)
    assert small.to_table()["compress"] == "e5m2"


def test_least_bandwidth_by_hand():
    work = chain(1, 2, 3)
    # two workers gain if 2 * 9 > 9 + exposed. Exposed is the largest of 192 / B - 3, 96 / B - 1 and 32 / B: below 9
    assert minimum_bandwidth(work, TIMES, 2) == 16  # 192 / 12; 96 / 10 and 32 / 9 are less
    assert minimum_bandwidth(work, TIMES, 2, exchange=Exchange(overlap=False)) == Fraction(192, 9)
    # four: 36 > 9 + exposed, with 1.5 times the bits
    assert minimum_bandwidth(work, TIMES, 4) == Fraction(288, 30)
    assert minimum_bandwidth(work, TIMES, 2, exchange=Exchange(compress="e5m2")) == 4


@cases("latency", [Fraction(0), Fraction(1, 50), Fraction(1, 3)])
@cases("method", ["ring", "server"])
@cases("seed", range(6))
def test_least_bandwidth_on_both_sides(method, latency, seed):
    """Just above it they are faster, at it they are not, and far above it still; exactly."""
    rng = random.Random(seed)
    size = rng.randint(1, 6)
    work = chain(*(rng.randint(1, 50) for _ in range(size)))
    times = {f"l{n}": tuple(rng.randint(0, 20) for _ in range(3)) for n in range(size)} | {"l0": (1, 0, 2)}
    exchange = Exchange(latency * rng.randint(0, 3), method, rng.randint(1, 3))
    for workers, over in ((2, 1), (5, 1), (3, 2), (9, 8), (8, 3)):
        least = minimum_bandwidth(work, times, workers, over, exchange)

        def gain(rate, workers=workers, over=over):
            more, fewer = (parallel_time(work, times, count, rate, exchange) for count in (workers, over))
            return more.throughput - fewer.throughput

        if least is None:
            assert gain(10**30) < Fraction(1, 10**20)
        elif least == 0:
            assert all(gain(Fraction(10) ** power) > 0 for power in range(-9, 25))
        else:
            assert gain(least) == 0
            assert gain(least * (1 + Fraction(1, 10**12))) > 0
            assert all(gain(least * Fraction(3, 2) ** power) > 0 for power in range(1, 60))


def test_latency_alone_can_be_too_much():
    work = chain(1, 2, 3)
    assert minimum_bandwidth(work, TIMES, 2, exchange=Exchange(latency=5)) is None
    assert minimum_bandwidth(work, TIMES, 3, 2) == 0  # in a ring the last one always helps: it takes hardly more data


def test_more_bandwidth_never_hurts():
    work = workload("lenet5", load_design("c-wang-fp8"), 32)
    times = roofline(work, device("v100")).layer_times
    rates = [bit_rate(f"{n} Gb/s") for n in (1, 10, 100, 1000, 10000)]
    for count in (2, 4, 16):
        speeds = [time.speedup for time in parallel_sweep(work, times, [count], rates)]
        assert speeds == sorted(speeds) and 0 < speeds[-1] <= count
    total = sum(seconds for stages in times.values() for seconds in stages.values())
    assert float(parallel_time(work, times, 1, 1).compute) == pytest.approx(total, rel=1e-12)


def test_layers_are_sent_in_the_order_in_which_they_are_done():
    work = workload("lenet5", load_design("c-wang-fp8"), 32)
    time = parallel_time(work, roofline(work, device("v100")).layer_times, 2, bit_rate("1 Tb/s"))
    assert [transfer.layer for transfer in time.transfers] == ["fc2", "fc1", "conv3", "conv2", "conv1"]
    for before, after in zip(time.transfers, time.transfers[1:], strict=False):
        assert before.ready <= after.ready and before.end <= after.start and after.start >= after.ready
    timed = lower(architecture("gnmt"), 8)  # whose recurrent layers are computed in parts
    found = parallel_time(timed, roofline(timed, device("v100")).layer_times, 2, bit_rate("10 Gb/s"))
    assert sum(transfer.bytes for transfer in found.transfers) == sum(gradient_bytes(timed).values()) > 10**9


def test_times_of_a_simulator():
    store = load_reports()
    time = scalesim_timings([store.designs["a-float32"]], store)["a-float32"]
    times = gemm_layer_times(time)
    total = sum(seconds for stages in times.values() for seconds in stages.values())
    assert total == pytest.approx(time.seconds, rel=1e-12)
    assert set(times) == {"fc1", "fc2"} and set(times["fc1"]) == {"forward", "backward_weight"}
    with pytest.raises(ValueError, match="does not say what each GEMM takes"):
        gemm_layer_times(IterationTime("a", 1.0))


def test_products_that_a_simulator_counts_take_their_time_each():
    store = load_reports()
    point = store.designs["a-float32"]
    first = replace(point.gemms[0], count=8)  # as the steps of an LSTM
    many = scalesim_timings([replace(point, gemms=(first, *point.gemms[1:]))], store)["a-float32"]
    one = scalesim_timings([point], store)["a-float32"]
    times, alone = gemm_layer_times(many), gemm_layer_times(one)
    assert many.seconds == pytest.approx(one.seconds + 7 * 3574e-9, rel=1e-12)  # the report's cycles, at 1 GHz
    assert times["fc1"]["forward"] == pytest.approx(8 * 3574e-9, rel=1e-12)
    assert times["fc2"]["backward_data"] == pytest.approx(alone["fc2"]["backward_data"], rel=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"times": {"l9": (1, 1, 1)}}, "'l9', which is no layer"),
        ({"times": {}}, "no layer of 'chain' takes any time"),
        ({"times": {"l0": (1, 1)}}, "must be"),
        ({"times": {"l0": {"forwards": 1}}}, "the stage 'forwards'"),
        ({"times": {"l0": (1, -1, 1)}}, "in backward_data must be a number of seconds"),
        ({"times": {"l0": (1, float("nan"), 1)}}, "must be a number of seconds"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"bandwidth": 0}, "bandwidth must be a positive number of bits"),
        ({"bandwidth": "10 Gb/s"}, "see bit_rate"),
        (
            {"workload": Workload("none", "mine", 1, chain(1, 2, 3).operations)},
            "no weight gradients",
        ),
    ],
)
def test_what_is_refused(change, said):
    arguments = {"workload": chain(1, 2, 3), "times": TIMES, "workers": 2, "bandwidth": 10} | change
    with pytest.raises(ValueError, match=said):
        parallel_time(**arguments)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "tree"}, "method must be one of ring, server"),
        ({"servers": 0}, "servers must be at least 1"),
        ({"latency": -1}, "latency must be a number"),
        ({"latency": "5 us"}, "see duration"),
        ({"compress": "e99"}, "e99"),
    ],
)
def test_exchanges_that_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Exchange(**options)
    with pytest.raises(ValueError, match="over must be fewer than the 2 workers"):
        minimum_bandwidth(chain(1), {"l0": (1, 1, 1)}, 2, 2)


def test_several_updates_are_refused():
    work = workload("wgan", load_design("a-float32"), 8)
    with pytest.raises(ValueError, match="updated several times"):
        parallel_time(work, {"critic.fc": (1, 1, 1)}, 2, 10)


def test_links_are_in_bits():
    assert (bit_rate("10 Gb/s"), duration("5 us")) == (10**10, Fraction(1, 200000))
    for text, said in (("10 GB/s", "the same is '80 Gb/s'"), ("10", "accepted units: b/s"), ("0 b/s", "above zero")):
        with pytest.raises(ValueError, match=said):
            bit_rate(text)


def test_a_picture(tmp_path):
    rows = parallel_sweep(chain(1, 2, 3), TIMES, [2, 4], [10, 100])
    rows += parallel_sweep(chain(1, 2, 3), TIMES, [2, 4], [10, 100], Exchange(compress="e5m2"))
    for name in ("a.png", "b.png"):
        plot_parallel(tmp_path / name, rows)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    with pytest.raises(ValueError, match="must end in"):
        plot_parallel(tmp_path / "a.gif", rows)


def test_the_command(tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("layer,forward,backward_data,backward_weight\nfc1,3e-6,0,3e-6\nfc2,1e-6,1e-6,1e-6\n")
    out, links = tmp_path / "p.json", ("--workers", "2,4", "--bandwidth", "10 Gb/s,100 Gb/s")
    done = run("parallel", "mlp", *links, "--layer-times", times, "--compress", "e5m2", "--per-layer", "--out", out)
    assert done.exit_code == 0, done.output
    tables = json.loads(out.read_text())["parallel"]
    assert len(tables) == 2 and tables[0]["times"] == str(times)
    four = next(r for r in tables[0]["iterations"] if (r["workers"], r["bandwidth"]) == (4, 1e11))
    assert four["exposed"] == pytest.approx(1.5 * 266240 / 1e11)  # of the first layer, which is ready last
    assert tables[0]["least_bandwidth"]["2"]["over_1"] == pytest.approx(266240 / 9e-6)
    done = run("parallel", "resnet", *links, "--device", "v100", "--latency", "1 us", "--plot", tmp_path / "p.png",
               "--out", tmp_path / "p.csv")  # fmt: skip
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert [(row["workers"], row["bandwidth"]) for row in rows] == [
        ("2", "10000000000.0"), ("2", "100000000000.0"), ("4", "10000000000.0"), ("4", "100000000000.0"),
    ]  # fmt: skip
    assert (tmp_path / "p.png").stat().st_size > 5000


def test_the_command_takes_reports(tmp_path):
    from importlib import resources

    done = run("parallel", "mlp", "--workers", "2", "--bandwidth", "10 Gb/s", "--out", tmp_path / "p.json",
               "--reports", resources.files("softnum.tta") / "reports")  # fmt: skip
    assert done.exit_code == 0, done.output
    (table,) = json.loads((tmp_path / "p.json").read_text())["parallel"]
    time = load_reports().designs["a-float32"]
    from softnum.tta import scalesim_timings

    assert table["times"].startswith("SCALE-Sim")
    seconds = scalesim_timings([time], load_reports())["a-float32"].seconds
    assert table["iterations"][0]["compute"] == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "0"], "--workers must be whole numbers"),
        (["--bandwidth", "10 GB/s"], "the same is '80 Gb/s'"),
        (["--device", "v100", "--layer-times", "t.csv"], "both state the times of the layers; leave one of them out"),
        (["--layer-times", "none.csv"], "no file 'none.csv'"),
        (["--layer-times", "a.csv"], "line 1: the columns must be layer,forward"),
        (["--layer-times", "b.csv"], "line 3: backward_data must be a finite number, got 'x'"),
        (["--layer-times", "c.csv"], "line 3: has layer 'fc1' again"),
        (["--layer-times", "d.csv"], "line 2: 3 cells where the header has 4 (layer, forward, backward_data,"),
        (["--layer-times", "f.csv"], "f.csv, line 2: not UTF-8 text"),
        (["--layer-times", "g.csv"], "g.csv, line 2: not readable as CSV"),
        (["--layer-times", "h.csv"], "h.csv, line 2: forward must be from 0 up, got '-1'"),
        (["--layer-times", "i.csv"], "i.csv, line 2: forward must be a finite number, got 'inf'"),
        (["--latency", "5"], "accepted units: s, ms, us, ns"),
        (["--compress", "e99"], "e99"),
        (["--method", "tree"], "method must be one of"),
        (["--device", "v1000"], "v100"),
        (["--layer-times", "e.csv", "--efficiency", "0.5"], "--efficiency scales the roofline and has no effect with"),
        (["--device", "v100,p100", "--plot", "x.png"], "one design on one device, and 2 are given"),
    ],
)
def test_the_command_says_what_is_wrong(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "layer,forward,backward_data,backward_weight\n"
    (tmp_path / "a.csv").write_text("layer,seconds\nfc1,1\n")
    (tmp_path / "b.csv").write_text(f"{head}fc1,1,1,1\nfc2,1,x,1\n")
    (tmp_path / "c.csv").write_text(f"{head}fc1,1,1,1\nfc1,1,1,1\n")
    (tmp_path / "d.csv").write_text(f"{head}fc1,1,1\n")
    (tmp_path / "f.csv").write_bytes(head.encode() + b"\xff,1,1,1\n")
    (tmp_path / "g.csv").write_text(f'{head}"fc1,1,1,1\n')
    (tmp_path / "h.csv").write_text(f"{head}fc1,-1,1,1\n")
    (tmp_path / "i.csv").write_text(f"{head}fc1,inf,1,1\n")
    given = {"--workers": "2", "--bandwidth": "10 Gb/s"} | dict(zip(arguments[::2], arguments[1::2], strict=True))
    done = run("parallel", "mlp", *(part for pair in given.items() for part in pair))
    assert done.exit_code == 2 and said in done.output, done.output
