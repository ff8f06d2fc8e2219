"""Parameter servers: orders of updates, training with older weights by definition, resumption, and their time."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.collectives.servers import server
from softnum.train import Settings, load_design, run, workload
from softnum.train.runs.loop import Run
from softnum.tta.workloads import Exchange, served_time
from tests.support.cases import cases


def _first(text: str, workers: int, count: int) -> list:
    return list(islice(server(text, workers).updates(workers), count))


@cases(
    "text, workers",
    [
        ("asynchronous", 4),
        ("asynchronous(periods=(3, 5, 7, 50), spread=9, seed=3)", 4),
        ("stale_synchronous(bound=0, periods=(1, 4), spread=3)", 2),
        ("stale_synchronous(bound=3, periods=(1, 1, 9))", 3),
        ("delayed(by=(0, 1, 2))", 3),
        ("delayed(by=1)", 5),
    ],
)
def test_orders_hold_what_they_say(text, workers):
    """A worker reads no weights older than its own last update, none of the future, and versions are kept that long."""
    bound = server(text, workers).bound if text.startswith("stale") else None
    last, clocks, held = [0] * workers, [0] * workers, (0,)
    assert server(str(server(text, workers)), workers) == server(text, workers)
    updates = _first(text, workers, 300)
    for t, update in enumerate(updates, 1):
        assert last[update.worker] <= update.version < t
        assert update.version == t - 1 or update.version in held
        last[update.worker], held = t, update.held
        clocks[update.worker] += 1
        if bound is not None:
            assert max(clocks) - min(clocks) <= bound + 1
    assert updates == _first(text, workers, 300)
    assert (min(clocks) > 0) and len({u.version for u in updates}) > 50


def test_orders_by_hand():
    """Four equal workers: each update lacks those of the three others, once all have begun."""
    assert [t - u.version for t, u in enumerate(_first("asynchronous", 4, 20))] == [0, 1, 2, *[3] * 17]
    slow = _first("asynchronous(periods=(1, 1, 1, 4))", 4, 130)
    assert [sum(u.worker == w for u in slow) for w in range(4)] == [40, 40, 40, 10]
    bound = _first("stale_synchronous(bound=2, periods=(1, 1, 1, 4))", 4, 128)
    assert abs(sum(u.worker == 3 for u in bound) - 32) <= 2  # in the long run all are as fast as the slowest
    zero = _first("stale_synchronous(bound=0)", 3, 9)
    assert [u.version for u in zero] == [0, 0, 0, 3, 3, 3, 6, 6, 6]


def test_a_gradient_is_of_the_weights_that_its_worker_read():
    """SGD of a rate: each update by a second run whose weights are put to the version that the order says."""
    given = {"batch": 16, "samples": 96, "learning_rate": 0.5, "momentum": 0.0, "weight_decay": 0.0}
    served = Run(Settings("mlp", workers=3, server="delayed(by=(0, 2, 1))", **given), load_design("a-float32"), 1)
    other = Run(Settings("mlp", **given), load_design("a-float32"), 1)
    versions = [[p.value for p in other.network.parameters]]
    stale = []
    for iteration, part in served.plan(1):
        row = served.train(iteration, part)
        read = max(0, iteration - 1 - (0, 2, 1)[row["worker"]])
        stale.append(row["staleness"])
        for p, value in zip(other.network.parameters, versions[read], strict=True):
            p.value = value
        assert other.train(iteration, part)["loss"] == row["loss"]
        new = []
        for p, now, mine in zip(other.network.parameters, versions[-1], served.network.parameters, strict=True):
            new.append((now - np.float32(0.5) * p.gradient).astype(np.float32))
            assert np.array_equal(mine.value, new[-1])
        versions.append(new)
    assert stale == [0, 1, 1, 0, 2, 1]


def test_a_record_states_it_and_resumes_to_the_same_bytes(tmp_path):
    text = "stale_synchronous(bound=1, periods=(1, 3), spread=2)"
    settings = Settings("mlp", samples=64, batch=16, epochs=2, workers=2, server=text)
    whole = run(load_design("g-q44-stochastic"), settings, seed=1, out=tmp_path / "whole")

    def stop(iteration: int, *_):
        if iteration == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(load_design("g-q44-stochastic"), settings, seed=1, out=tmp_path / "cut", progress=stop)
    assert (
        run(load_design("g-q44-stochastic"), settings, seed=1, out=tmp_path / "cut").read_bytes() == whole.read_bytes()
    )
    header, *rows = map(json.loads, whole.read_text().splitlines())
    assert header["config"]["parallel"] == {"workers": 2, "server": str(server(text, 2))}
    order = _first(text, 2, len(rows))
    assert [(row["worker"], row["staleness"]) for row in rows] == [
        (u.worker, t - u.version) for t, u in enumerate(order)
    ]


def test_the_time_of_an_order():
    work, one = workload("mlp", load_design("a-float32"), 32), {"fc1": (1, 0, 0)}  # a second for each gradient
    bits = 8 * 2 * 38440  # there and back
    own = Exchange(method="server")

    def time(text, workers, bandwidth, **given):
        return served_time(work, one, workers, bandwidth, text, Exchange(method="server", **given), updates=40)

    free = 10**30
    assert abs(time("asynchronous", 4, free).speedup - 4) < Fraction(1, 10**9)
    assert abs(time("stale_synchronous(bound=0, periods=(1, 3))", 2, free).speedup - Fraction(2, 3)) < Fraction(
        1, 10**9
    )
    assert abs(time("delayed(by=0)", 4, free).speedup - 1) < Fraction(1, 10**9)  # each waits for the one before
    full = time("asynchronous", 4, bits)  # a second on the link: only the first computes meanwhile
    assert full.total == 1 + 40 and full.busy == 40
    assert time("asynchronous", 4, bits, servers=4).total == 9 * Fraction(5, 4) + 2  # ten rounds
    slow = time("asynchronous", 2, free, latency=Fraction(1, 2))
    assert slow.total > 20 * 2 - 1 and slow.staleness == Fraction(39, 40) and slow.most == 1
    assert served_time(work, one, 1, bits, "asynchronous", own, 3).total == 6
    with pytest.raises(ValueError, match="of gradients in a format"):
        time("asynchronous", 2, 1, compress="sign")


def test_the_command(tmp_path):
    given = ["parallel", "mlp", "--workers", "4", "--bandwidth", "100 Gb/s", "--method", "server"]
    given += ["--server", "asynchronous,stale_synchronous(bound=1,periods=(1,1,1,3))", "--updates", "50"]
    done = CliRunner().invoke(build_app(), [*given, "--out", str(tmp_path / "a.json")])
    assert done.exit_code == 0, done.output
    assert (
        "50 updates, asynchronous" in done.output and "stale_synchronous(periods=(1, 1, 1, 3), bound=1)" in done.output
    )
    found = json.loads((tmp_path / "a.json").read_text())["served"]
    assert [row["most"] for row in found] == [3, 6] and found[0]["speedup"] > found[1]["speedup"]
    for more, says in ((["--per-layer"], "--per-layer has no effect"), (["--updates", "0"], "updates must be")):
        assert says in CliRunner().invoke(build_app(), [*given, *more]).output
    ring = CliRunner().invoke(build_app(), [*given[:6], "--server", "asynchronous"])
    assert ring.exit_code == 2 and "method server" in " ".join(ring.output.split())


def test_without_delays_it_is_a_run_without_workers(tmp_path):
    given = {"samples": 64, "batch": 16, "epochs": 1}
    served, plain = (
        run(load_design("g-q44-stochastic"), Settings("mlp", **given, **more), seed=1, out=tmp_path / str(len(more)))
        for more in ({"workers": 2, "server": "delayed(by=0)"}, {})
    )
    found, alone = ([json.loads(line) for line in path.read_text().splitlines()[1:]] for path in (served, plain))
    assert [{k: v for k, v in row.items() if k not in ("worker", "staleness")} for row in found] == alone


@cases(
    "given, says",
    [
        ({"server": "asynchronous"}, "two workers or more"),
        ({"workers": 2, "server": "asynchronous", "collective": "ring"}, "neither of the others"),
        ({"workers": 2, "server": "asynchron"}, "did you mean 'asynchronous'"),
        ({"workers": 2, "server": "stale_synchronous"}, "needs bound="),
        ({"workers": 2, "server": "delayed(by=2)"}, "more than 2 workers have"),
        ({"workers": 2, "server": "asynchronous(periods=(1, 2, 3))"}, "has 3 numbers"),
        ({"workers": 2, "server": "asynchronous(periods=0)"}, "from 1 to"),
        ({"workers": 2, "server": "asynchronous(5)"}, "are named"),
    ],
)
def test_what_does_not_go_together_is_an_error(given, says):
    with pytest.raises(ValueError, match=says):
        Settings("mlp", **given)


@cases("network, batch", [("wgan", 32), ("actor-critic", 128)])
def test_iterations_that_are_not_one_gradient_are_refused(network, batch):
    with pytest.raises(ValueError, match="a server cannot train"):
        Run(Settings(network, batch=batch, workers=2, server="asynchronous"), load_design("a-float32"), 1)
