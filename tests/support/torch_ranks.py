"""What several processes compute of one batch, each on its part: DistributedDataParallel and fully_shard on gloo."""

import datetime
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import softnum.torch as st

RANKS, STEPS, LIMIT = 2, 3, 120.0  # seconds, for all of it

#: rounds all that products take, their sums, and the update
DESIGN = """
name = "random"
[roles]
input = { format = "e5m2", rounding = "stochastic" }
activations = { format = "e5m2", rounding = "stochastic" }
weights = { format = "e5m2", rounding = "stochastic" }
errors = { format = "e5m2", rounding = "stochastic" }
weight_gradients = { format = "bfloat16", rounding = "stochastic" }
master = { format = "bfloat16", rounding = "stochastic" }
"update.weight" = { format = "bfloat16", rounding = "stochastic" }
[units]
forward = { kind = "mad", accumulator = "e6m9", rounding = "stochastic", stochastic_bits = 12 }
backward_data = { kind = "mad", accumulator = "e6m9", rounding = "stochastic", stochastic_bits = 12, chunk = 4 }
backward_weight = { kind = "mad", accumulator = "e6m9", rounding = "stochastic", stochastic_bits = 12 }
"""


class Block(nn.Module):
    """A transformer's block; its positions are computed, the same for every sample."""

    def __init__(self, width: int = 8, heads: int = 2, steps: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.ahead = nn.LayerNorm(width), nn.LayerNorm(width)
        self.positions, self.table = nn.Linear(2, width), nn.Parameter(torch.randn(steps, 2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.positions(self.table)
        n, steps, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(n, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.ahead(x))))


def transformer() -> nn.Module:
    encoder = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True)  # which puts time first
    return nn.Sequential(Block(), encoder, nn.Flatten(), nn.Linear(32, 3))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, groups=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(6 * 9, 3),
    )  # fmt: skip


NETWORKS = {"transformer": (transformer, (4, 4, 8)), "cnn": (cnn, (4, 2, 10, 10))}


def begun(network: str, design) -> tuple:
    """A converted network, a batch, and the gradient of its results."""
    make, shape = NETWORKS[network]
    generator = torch.Generator().manual_seed(3)
    x, gradient = torch.randn(shape, generator=generator), torch.randn(shape[0], 3, generator=generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = make()
    return st.convert(model, design, seed=5, elementwise="torch", quiet=True), x, gradient


def computed(model, x, gradient) -> list[torch.Tensor]:
    """The results for x, and the gradient of x."""
    x = x.clone().requires_grad_()
    y = model(x)
    y.backward(gradient)
    return [y.detach(), x.grad]


def encoder() -> nn.Module:
    return nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True)


def begun_encoder(design) -> tuple:
    """An encoder layer all of whose functions are softnum's, a batch, and the gradient of its results."""
    generator = torch.Generator().manual_seed(3)
    x, gradient = (torch.randn(4, 3, 8, generator=generator) for _ in range(2))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = st.convert(encoder(), design, seed=5, elementwise="exact", quiet=True)
    return model, x, gradient


def encoded(folder, design) -> list[torch.Tensor]:
    """A rank's part of the passes of an encoder layer."""
    model, x, gradient = begun_encoder(design)
    half = len(x) // RANKS
    part = slice(dist.get_rank() * half, (dist.get_rank() + 1) * half)
    return computed(nn.parallel.DistributedDataParallel(model), x[part], gradient[part])


def whole(x):
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def gradients(model) -> list[torch.Tensor]:
    return [whole(p.grad).clone() for p in model.parameters()]


def wrapped(model, how: str):
    """A model spread over the ranks, and the converted one."""
    if how == "ddp":
        return nn.parallel.DistributedDataParallel(model), model
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (RANKS,))
    for part in model:
        if isinstance(part, (Block, nn.Conv2d)):
            fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, model


def trained(how: str, network: str, design, folder) -> dict:
    """What one rank computes: passes and gradients of the first step, and parameters after all of them.

    In the folder: what rank 0 would resume the run from, after two steps.
    """
    own, x, gradient = begun(network, design)
    if saved := folder.exists():
        model_state, optimizer_state = torch.load(folder, weights_only=False)
        own.load_state_dict(model_state)
    model, own = wrapped(own, how)
    part = slice(dist.get_rank() * len(x) // RANKS, (dist.get_rank() + 1) * len(x) // RANKS)
    optimizer = st.Optimizer(torch.optim.Adam(model.parameters(), lr=0.01), model)
    if saved:
        optimizer.load_state_dict(optimizer_state)
    found = {}
    for step in range(2 if saved else 0, STEPS):
        optimizer.zero_grad()
        passes = computed(model, x[part], gradient[part])
        if step == 0:
            found = {"passes": passes, "gradients": gradients(model)}
        optimizer.step()
        if step == 1:
            states = {name: whole(x) for name, x in own.state_dict().items()}, _whole(optimizer.state_dict())
            dist.barrier()
            if dist.get_rank() == 0:
                torch.save(states, folder)
    dist.barrier()
    return {**found, "parameters": [whole(p).detach().clone() for p in model.parameters()]}


def _whole(state: dict) -> dict:
    entries = {i: {name: whole(x) for name, x in kept.items()} for i, kept in state["state"].items()}
    return {**state, "state": entries}


def alone(network: str, design) -> tuple:
    """What becomes of a model that is not spread: what is said in training, and results in evaluation and if told."""
    model, x, _ = begun(network, design)
    try:
        said = model(x)
    except RuntimeError as error:
        said = str(error)
    state = model.softnum_state
    st.set_rank(model, None)
    trained = model(x).detach()
    own, _, _ = begun(network, design)
    own.softnum_state = state
    return said, trained, own.eval()(x).detach()


def work(rank: int, folder, ranks: int, job, *arguments) -> None:
    """One rank: what a job makes of its folder and arguments, in a file."""
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # nothing leaves the machine
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=LIMIT / 2),
    )  # fmt: skip
    torch.save(job(folder, *arguments), folder / f"rank{rank}.pt")
    dist.destroy_process_group()


def everything(folder, cases) -> dict:
    """What a rank computes of cases, and of a model that is not spread."""
    found = {}
    for how, network, design in cases:
        state = folder / f"{how}-{network}-{design.stem}.pt"
        first = trained(how, network, design, state)
        found[how, network, design.stem] = {**first, "resumed": trained(how, network, design, state)["parameters"]}
    found["alone"] = alone(*cases[0][1:])
    return found


def run(folder, job, *arguments, ranks: int = RANKS) -> list:
    """What a job returns on all ranks, each in a process; those that take too long are ended, and an error says so."""
    root = str(Path(__file__).parents[2])  # where a new process finds this module
    before = sys.path[:]
    sys.path.insert(0, root)
    try:
        context = torch.multiprocessing.spawn(work, (folder, ranks, job, *arguments), nprocs=ranks, join=False)
    finally:
        sys.path[:] = before
    end = time.monotonic() + LIMIT
    try:
        while not context.join(timeout=1.0):
            if time.monotonic() > end:
                raise TimeoutError(f"the ranks took more than {LIMIT:g} s")
    finally:
        for process in context.processes:
            if process.is_alive():
                process.kill()
    return [torch.load(folder / f"rank{rank}.pt", weights_only=False) for rank in range(ranks)]
