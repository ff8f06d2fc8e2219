"""All-reduces by PyTorch's Gloo, ranks that send messages over sockets, against `softnum.collective`, bit for bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pytest

import softnum as sn

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="PyTorch was built without Gloo")
_NAMES = {torch.float32: "binary32", torch.bfloat16: "bfloat16", torch.float16: "binary16"}


def _inputs(rank: int, n: int, dtype):
    made = torch.Generator().manual_seed(100 * rank + n)
    x = torch.randn(n, generator=made) * torch.exp2(torch.randint(-6, 7, (n,), generator=made))
    if n > 8:
        x[0], x[1] = -0.0, float("inf") if rank != 1 else float("-inf")
        x[2 + rank % 2] = float("nan") if rank == 0 else torch.finfo(dtype).max
    return x.to(dtype)


def _by_gloo(ranks: int, sizes, folder) -> dict:
    """What ranks have, a thread for each: (type, size, operation) -> a tensor of each."""
    store = dist.FileStore(str(folder / "store"), ranks)

    def run(rank: int) -> dict:
        group = dist.ProcessGroupGloo(store, rank, ranks, timedelta(seconds=60))
        found = {}
        for dtype in _NAMES:
            for n in sizes:
                for name in ("SUM", "AVG"):
                    options = dist.AllreduceOptions()
                    options.reduceOp = getattr(dist.ReduceOp, name)
                    x = _inputs(rank, n, dtype)
                    group.allreduce([x], options).wait()
                    found[dtype, n, name] = x
        return found

    with ThreadPoolExecutor(ranks) as pool:
        rows = list(pool.map(run, range(ranks)))
    return {what: [row[what] for row in rows] for what in rows[0]}


def _check(ranks: int, sizes, folder) -> None:
    for (dtype, n, name), got in _by_gloo(ranks, sizes, folder).items():
        c = sn.collective("gloo", ranks, unit=_NAMES[dtype], average="after" if name == "AVG" else None)
        want = c.all_reduce([_inputs(rank, n, dtype).float().numpy() for rank in range(ranks)])
        for x, y in zip((x.float().numpy() for x in got), want, strict=True):
            same = (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)
            assert same.all(), f"{c}, {n} elements, {name}: {x[~same]} of Gloo, {y[~same]}"


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_gloo_is_reproduced(ranks, tmp_path):
    _check(ranks, (1, 7, 1003), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 6, 7, 8])
def test_gloo_is_reproduced_by_more_ranks_and_long_arrays(ranks, tmp_path):
    """Arrays of more than 2 MiB a rank have more than two segments of a chunk."""
    _check(ranks, (37, 1_200_001), tmp_path)
