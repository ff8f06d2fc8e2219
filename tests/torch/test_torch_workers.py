"""Data-parallel training of PyTorch models: workers in one process, and real ranks, by the same collective."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import softnum as sn

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.torch.workers import CollectiveHook, backward_by_workers  # noqa: E402
from softnum.train import Settings  # noqa: E402
from softnum.train.update.workers import seed_of_worker  # noqa: E402

_RING = "ring(unit='bfloat16')"
_SR = "double_tree(unit=MadUnit('bfloat16', operand='bfloat16', rounding='stochastic'))"
_GLOO = pytest.mark.skipif(not dist.is_gloo_available(), reason="PyTorch was built without Gloo")


def _model(normalised: bool = True) -> torch.nn.Module:
    torch.manual_seed(3)
    norm = [torch.nn.BatchNorm1d(4)] if normalised else []
    return torch.nn.Sequential(torch.nn.Linear(5, 4), *norm, torch.nn.ReLU(), torch.nn.Linear(4, 3))


def _converted(design: str) -> torch.nn.Module:
    """A model in a design's arithmetic, or PyTorch's own ("none"); BatchNorm has no random bits on ranks."""
    model = _model("stochastic" not in design)
    return model if design == "none" else st.convert(model, design, seed=1, quiet=True)


def _parts(model, x, y, workers: int):
    return [
        lambda a=a, b=b: torch.nn.functional.cross_entropy(model(a), b)
        for a, b in zip(x.chunk(workers), y.chunk(workers), strict=True)
    ]


def _square(model, x) -> torch.Tensor:
    return model(x).square().mean()


def _data(count: int = 12):
    made = torch.Generator().manual_seed(1)
    return torch.randn(count, 5, generator=made), torch.randint(3, (count,), generator=made)


def test_buckets_that_end_at_so_many_bytes():
    x, y = _data()

    def gradients(**given):
        model = _model()
        backward_by_workers(model, _parts(model, x, y, 4), _RING, **given)
        return [parameter.grad for parameter in model.parameters()]

    names = [[name] for name, _ in reversed(list(_model().named_parameters()))]
    for mine, other in zip(gradients(bucket_bytes=1), gradients(buckets=names), strict=True):
        assert torch.equal(mine, other)
    for given, says in (({"bucket_bytes": 0}, "got 0"), ({"bucket_bytes": 1, "buckets": names}, "leave one out")):
        with pytest.raises(ValueError, match=says):
            gradients(**given)


def test_gradients_are_the_collective_of_the_workers_own():
    model, (x, y) = _model(), _data()
    own = []
    for loss_of in _parts(model, x, y, 3):
        model.zero_grad()
        loss_of().backward()
        own.append({name: p.grad.numpy().copy() for name, p in model.named_parameters()})
    model = _model()
    buckets = [["3.bias", "0.weight"], ["1.weight", "1.bias", "0.bias", "3.weight"]]
    backward_by_workers(model, _parts(model, x, y, 3), _SR, buckets=buckets, key=5, step=2)
    c = sn.collective(_SR, 3, average="reciprocal_before")
    for number, bucket in enumerate(buckets):
        rows = [sn.quantize(np.concatenate([g[name].reshape(-1) for name in bucket]), "bfloat16") for g in own]
        got = np.concatenate([dict(model.named_parameters())[name].grad.numpy().reshape(-1) for name in bucket])
        assert np.array_equal(got, c.all_reduce(rows, key=(5, (2 << 16) + number))[0]), bucket
    alone = _model()
    _parts(alone, x, y, 3)[0]()
    assert torch.equal(model[1].running_mean, alone[1].running_mean)  # worker 0's
    with pytest.raises(ValueError, match="'1.bias' among those"):
        short = [["3.bias", "0.weight", "1.weight", "0.bias", "3.weight"]]
        backward_by_workers(model, _parts(model, x, y, 3), _RING, buckets=short)


def test_delayed_scales_follow_from_all_workers_and_scales_of_whole_tensors_are_refused():
    """Its history has the largest number of all parts, which is the second's."""

    def made(design: str) -> torch.nn.Module:
        torch.manual_seed(1)
        layers = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(3)))
        return st.convert(layers, design, known_as={"2": "fc"}, seed=1, quiet=True)

    x, histories = torch.ones(8, 16), []
    x[7] = 64.0
    for parts in (x.chunk(2), x.chunk(1) * 2):
        model = made("te-delayed-scaling")
        backward_by_workers(model, [partial(_square, model, part) for part in parts], "ring")
        st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), model).step()
        noted = {key: value.tolist() for key, value in model.state_dict().items() if "softnum_scale" in key}
        histories.append({key: value for key, value in noted.items() if "|errors|" not in key})
    assert histories[0] == histories[1] and histories[0]
    model = made("te-float8-current-scaling")
    with pytest.raises(RuntimeError, match="backward_by_workers.* cannot ask: state scales of rows"):
        backward_by_workers(model, [partial(_square, model, part) for part in x.chunk(2)], "ring", rows=4)


def test_runs_of_workers_have_records_and_the_numbers_of_their_parts():
    x, y = _data(24)
    data = torch.utils.data.TensorDataset(x, y)
    rows = {}
    for design in ("g-q44-stochastic", "a-float32"):
        how = st.Training(
            model=partial(_model, "stochastic" not in design), train=data, held_out=data,
            optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        )  # fmt: skip
        settings = Settings("here:how", batch=12, epochs=1, workers=2, collective=_RING)
        work = how.make_run(settings, design, 1)
        plan = dict(work.plan(1))
        rows[design] = [work.train(i, part)["loss"] for i, part in plan.items()]
        header = work.header()["config"]
        assert header["parallel"]["buckets"]["all"] == [[name for name, _ in work.model.named_parameters()][::-1]]
        assert {row["M"] for row in header["gemms"] if row["pass"] == "forward"} == {6}  # of a worker's part
        again = how.make_run(settings, design, 1)
        assert [again.train(i, part)["loss"] for i, part in plan.items()] == rows[design]
    one = how.make_run(Settings("here:how", batch=12, epochs=1), "a-float32", 1)
    assert [one.train(i, part)["loss"] for i, part in one.plan(1)] != rows["a-float32"]  # BatchNorm of halves


class _Bucket:
    """What PyTorch hands a hook."""

    def __init__(self, index: int, parameters, rank: int) -> None:
        self._index, self._parameters = index, parameters
        self._buffer = torch.linspace(-1, 1, sum(p.numel() for p in parameters)) * (1 + rank)

    def index(self):
        return self._index

    def parameters(self):
        return self._parameters

    def buffer(self):
        return self._buffer


@_GLOO
@pytest.mark.parametrize("text", [_RING, _SR])
def test_a_hook_gives_every_rank_the_averages(text, tmp_path):
    store, model = dist.FileStore(str(tmp_path / "store"), 3), _model()
    named = dict(model.named_parameters())
    buckets = [["3.bias", "3.weight"], ["1.bias", "0.bias"]]

    def run(rank: int):
        group = dist.ProcessGroupGloo(store, rank, 3, timedelta(seconds=60))
        hook = CollectiveHook({id(p): name for name, p in named.items()}, text, 7, group)
        steps = [(i, [named[name] for name in names]) for _ in range(2) for i, names in enumerate(buckets)]
        found = [hook.averaged(_Bucket(i, parameters, rank)) for i, parameters in steps]
        return hook.buckets, found

    with ThreadPoolExecutor(3) as pool:
        ranks = list(pool.map(run, range(3)))
    c = sn.collective(text, 3, average="reciprocal_before")
    for noted, found in ranks:
        assert noted == [buckets, buckets]
        for i, got in enumerate(found):
            step, bucket = 1 + i // 2, i % 2
            rows = [_Bucket(0, [named[name] for name in buckets[bucket]], rank).buffer() for rank in range(3)]
            put = [sn.quantize(row.numpy(), "bfloat16") for row in rows]
            assert np.array_equal(got.numpy(), c.all_reduce(put, key=(7, (step << 16) + bucket))[0])


_RANK = """
import json, sys
import torch, torch.distributed as dist
import softnum.torch as st
from tests.torch.test_torch_workers import _converted, _data
folder, rank, ranks, design, text = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=ranks)
model = _converted(design)
ddp = torch.nn.parallel.DistributedDataParallel(model)
hook = st.use_collective(ddp, text, key=9)
own = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
optimizer = own if design == "none" else st.Optimizer(own, model)
x, y = _data()
for _ in range(3):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(ddp(x.chunk(ranks)[rank]), y.chunk(ranks)[rank]).backward()
    optimizer.step()
if rank == 0:
    values = {name: p.detach().tolist() for name, p in model.state_dict().items()}
    json.dump([values, hook.buckets], open(f"{folder}/found.json", "w"))
dist.destroy_process_group()
"""


@_GLOO
@pytest.mark.slow
@pytest.mark.parametrize(
    "design, ranks, text", [("none", 2, _RING), ("g-q44-stochastic", 3, _SR), ("a-float32", 4, _RING)]
)
def test_real_processes_and_workers_have_the_same_bits(design, ranks, text, tmp_path, request):
    threads = torch.get_num_threads()
    request.addfinalizer(lambda: torch.set_num_threads(threads))
    torch.set_num_threads(1)  # as the ranks: PyTorch's own BatchNorm has other bits on two
    root = Path(__file__).resolve().parents[2]
    started = [
        subprocess.Popen([sys.executable, "-c", _RANK, str(tmp_path), str(rank), str(ranks), design, text], cwd=root)
        for rank in range(ranks)
    ]
    assert [process.wait(timeout=300) for process in started] == [0] * ranks
    values, buckets = json.loads((tmp_path / "found.json").read_text())
    model = _converted(design)
    own = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = own if design == "none" else st.Optimizer(own, model)
    x, y = _data()
    for step, of_step in enumerate(buckets, start=1):
        parts = _parts(model, x, y, ranks)
        backward_by_workers(model, parts, text, buckets=of_step, key=9, step=step, rows=len(x) // ranks)
        optimizer.step()
    assert len(buckets) == 3 and len(values) == len(model.state_dict())
    for name, value in model.state_dict().items():
        if name != "softnum_state":
            assert value.tolist() == values[name], name


def test_seeds_of_workers_differ():
    assert len({seed_of_worker(1, worker) for worker in range(100)}) == 100
