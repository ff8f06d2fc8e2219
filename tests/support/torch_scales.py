"""What several processes compute of one batch by scales of whole tensors, each on its part of it."""

import datetime
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

import softnum.torch as st
from softnum.torch.sharing import Sharing

#: how many samples the ranks have
PARTS = (1, 2, 2)
STEPS, WAIT = 3, 3.0

_DESIGN = """
name = "{name}"
[roles]
input = {{ {forward} }}
activations = {{ {forward} }}
weights = {{ {forward} }}
errors = {{ {backward} }}
[units]
forward = {{ {unit} }}
backward_data = {{ {unit} }}
backward_weight = {{ {unit} }}
"""
_EXACT, _BLOCKS = 'kind = "exact", accumulator = "binary32"', 'accumulator = "binary32"'
_FP4 = 'format = "e2m1fn", scale = { rule = "nvfp4" }'
#: name -> the text of a design
DESIGNS = {
    name: _DESIGN.format(name=name, forward=forward, backward=backward, unit=unit)
    for name, forward, backward, unit in (
        ("tensor", 'format = "e4m3fn", scale = { per = "tensor" }',
         'format = "e5m2", scale = { per = "tensor" }', _EXACT),
        ("delayed", 'format = "e4m3fn", scale = { rule = "delayed", history = 2 }',
         'format = "e5m2", scale = { rule = "delayed", history = 2 }', _EXACT),
        ("nvfp4", _FP4, _FP4.replace(", scale", ', rounding = "stochastic", scale'), _EXACT),
        ("transformed", *[_FP4.replace(", scale", ", hadamard = { size = 16 }, scale")] * 2, _EXACT),
        ("tiles", *['format = "e4m3fn", scale = { per = [4, 16] }'] * 2, _EXACT),
        ("blocks", 'format = "nvfp4"', 'format = "nvfp4"', _BLOCKS),
    )
}  # fmt: skip
DESIGNS["saved"] = DESIGNS["tensor"].replace("errors", 'saved_activations = { format = "nvfp4" }\nerrors')


class Network(nn.Module):
    """Products of parameters, of samples' matrices, and within a checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 5)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = checkpoint(self.second, h, use_reentrant=False, context_fn=st.checkpoint_contexts)
        return self.last(h + torch.softmax(h @ h.transpose(1, 2), -1) @ h)


def begun(design) -> tuple:
    """A converted network, a batch whose samples are of different sizes, and the gradient of its results."""
    generator = torch.Generator().manual_seed(3)
    sizes = torch.tensor([1.0, 1.0, 9.0, 1.0, 40.0])[:, None, None]
    x, gradient = torch.randn(5, 4, 16, generator=generator), torch.randn(5, 4, 5, generator=generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = st.convert(Network(), design, seed=5, elementwise="torch", quiet=True)
    x = x * sizes
    x[4, 1, 2] = 100.0  # which becomes a NaN
    return model, x, gradient * sizes.flip(0)


def recurrent(design, rows=slice(None)) -> list[torch.Tensor]:
    """Passes of some rows of a batch through an LSTM whose steps are one exact function."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model, x = nn.LSTM(8, 8, bias=False, batch_first=True), torch.randn(4, 3, 8)
        x[2] *= 9
    model = st.convert(model, design, seed=5, elementwise="exact", quiet=True)
    if rows != slice(None):
        st.set_rank(model, dist.get_rank())
    x = x[rows].clone().requires_grad_()
    y = model(x)[0]
    y.sum().backward()
    return [y.detach(), x.grad]


def trained(model, x, gradient) -> list[torch.Tensor]:
    """Results and gradients of x of some steps, of which none changes a parameter; the last with a NaN in a sample."""
    found = []
    for step in range(STEPS):
        given = x.clone()
        given[x == 100.0] *= float("nan") if step == STEPS - 1 else 1.0
        given.requires_grad_()
        y = model(given)
        y.backward(gradient)
        found += [y.detach(), given.grad]
        st.next_step(model)
    return found


def scales(model) -> dict:
    """What delayed scaling keeps."""
    return {name: x for name, x in model.state_dict().items() if name.startswith("softnum_scale")}


def part(x, rank: int):
    first = sum(PARTS[:rank])
    return x[first : first + PARTS[rank]]


def placed(model, **options):
    """A model on this rank."""
    rank = dist.get_rank()
    st.set_rank(model, rank, first=sum(PARTS[:rank]), whole=sum(PARTS), **options)
    return model


def parts(folder, designs) -> dict:
    """A rank's part of all of it, by the designs' names; without the ranks' common magnitudes too."""
    found, rank = {}, dist.get_rank()
    for design in designs:
        model, x, gradient = begun(design)
        own = trained(placed(model), part(x, rank), part(gradient, rank))
        found[design.stem] = own, scales(model)
        model, x, gradient = begun(design)
        with patch.object(Sharing, "largest", lambda self, magnitudes, asked, where: magnitudes):
            found[f"{design.stem}, alone"] = trained(placed(model), part(x, rank), part(gradient, rank)), {}
    return found


def spread(folder, design) -> list[torch.Tensor]:
    """A rank's part by fully_shard, by DistributedDataParallel, of an LSTM; and evaluation of a model by itself."""
    rows, found = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2), []
    for wrap in (fully_shard, nn.parallel.DistributedDataParallel):
        model, x, gradient = begun(design)
        wrapped = wrap(model)
        x = x[rows].requires_grad_()
        y = wrapped(x)
        y.backward(gradient[rows])
        found += [y.detach(), x.grad]
    found += recurrent(design, rows)
    if dist.get_rank() == 0:  # alone, as one process
        found.append(model.eval()(x).detach())
    return found


def mismatched(folder, design) -> list[str]:
    """What is said where the ranks compute different things: by their seeds, by the order, and by one rank alone."""
    said, rank = [], dist.get_rank()

    def noted(run) -> None:
        try:
            run()
            said.append("")
        except RuntimeError as error:
            said.append(str(error))

    model, x, _ = begun(design)
    model.softnum_state[0] += rank
    noted(lambda: placed(model)(part(x, rank)))
    model, x, _ = begun(design)
    order = [model.first, model.second] if rank else [model.second, model.first]
    noted(lambda: [placed(model) and layer(torch.ones(2, layer.in_features)) for layer in order])
    group = dist.new_group(timeout=datetime.timedelta(seconds=WAIT))
    if rank == 0:
        noted(lambda: placed(model, group=group)(part(x, rank)))
    dist.barrier()
    return said
