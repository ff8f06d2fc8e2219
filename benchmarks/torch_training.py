"""A step of training a PyTorch model in designs' arithmetic (`softnum.torch`) against the same step in float32.

The models are written here, of PyTorch's modules; a step is forward, backward and AdamW, of which softnum computes the
products alone. Times of one thread are the processor's, without those of others; of two threads, the clock's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

from benchmarks.measure import Row, against

__all__ = ["CASES", "DESIGNS", "Case", "model_of", "rows", "steps"]

HERE = Path(__file__).parent / "designs"


class Case(NamedTuple):
    """A model in batches, and how often its steps are measured."""

    name: str
    network: str
    options: dict
    repeats: int
    batch: int = 8  # of texts


CASES = (
    Case("GPT of 1.07 M", "gpt", {"layers": 5, "width": 128, "heads": 4}, 9),
    Case("GPT of 10.9 M", "gpt", {"layers": 6, "width": 384, "heads": 6}, 3),
    Case("CNN of 66,570", "cnn", {}, 9),
)


class Arithmetic(NamedTuple):
    """A design, and the most that a step on one thread may take, in PyTorch's."""

    text: str
    design: str | Path
    limit: float


DESIGNS = (
    Arithmetic("binary32 sums", "a-float32", 1.5),
    Arithmetic("e4m3/e5m2, Hopper's sums", HERE / "hopper.toml", 3.0),
    Arithmetic("e4m3/e5m2, binary16 in chunks of 64", HERE / "chunks.toml", 2.3),
    Arithmetic("mxfp8_e4m3", "i-mxfp8", 2.5),
    Arithmetic("e4m3/e5m2, (1,6,9) stochastic", HERE / "stochastic.toml", 9.0),
)
_EXACT = 5.0  # where element-by-element operations are softnum's too
_GAIN = 1.7  # of a second thread
VOCABULARY, CONTEXT = 256, 64
IMAGES, CLASSES = 32, 10


def rows() -> Iterator[Row]:
    """Models and designs, then packages that emulate less."""
    try:
        import torch
    except ImportError as error:
        yield Row(f"torch: left out, {error}", 0.0, "")
        return
    before = torch.get_num_threads()
    try:
        for case in CASES:
            yield from _rows(torch, case)
    finally:
        torch.set_num_threads(before)


def _rows(torch, case: Case) -> Iterator[Row]:
    from benchmarks import torch_peers

    theirs, peer = steps(case), 0.0
    for text, design, limit in DESIGNS:
        mine, name = steps(case, design), f"{case.name}, {text}"
        torch.set_num_threads(1)
        own, peer = against(mine, theirs, case.repeats, process_time)
        yield Row(name, own * 1e3, "ms", own / peer, "PyTorch float32", limit)
        two, one = against(_on(torch, 2, mine), _on(torch, 1, mine), case.repeats)
        yield Row(f"{name}, 2 threads", two * 1e3, "ms", one / two, "x 1 thread", -_GAIN)
    if case is CASES[0]:
        torch.set_num_threads(1)
        own, one = against(steps(case, "a-float32", elementwise="exact"), theirs, case.repeats, process_time)
        yield Row(f"{case.name}, binary32, all operations", own * 1e3, "ms", own / one, "PyTorch float32", _EXACT)
    yield Row(f"{case.name}, PyTorch float32", peer * 1e3, "ms")
    two, one = against(_on(torch, 2, theirs), _on(torch, 1, theirs), case.repeats)
    yield Row(f"{case.name}, PyTorch float32, 2 threads", two * 1e3, "ms", one / two, "x 1 thread")
    torch.set_num_threads(1)
    for text, change in torch_peers.PEERS.items():
        name = f"peer: {case.name}, {text}"
        try:
            work = steps(case, change)
        except (ImportError, OSError, RuntimeError) as error:
            yield Row(f"{name}: left out, {str(error).strip().splitlines()[0][:60]}", 0.0, "")
            continue
        own, peer = against(work, theirs, case.repeats, process_time)
        yield Row(name, own * 1e3, "ms", own / peer, "PyTorch float32")


def _on(torch, threads: int, work: Callable[[], object]) -> Callable[[], object]:
    def run():
        torch.set_num_threads(threads)
        return work()

    return run


def model_of(case: Case):
    """A model with the same parameters each time."""
    import torch

    torch.manual_seed(1)
    return {"gpt": _gpt, "cnn": _cnn}[case.network](**case.options)


def steps(
    case: Case, change: str | Path | Callable | None = None, *, elementwise: str = "torch", device: str = "cpu",
    alike: bool = False,
) -> Callable[[], float]:  # fmt: skip
    """A function that trains a model one step further and returns the loss.

    Parameters
    ----------
    case : Case
    change : design or callable, optional
        What the model computes in: a design, or what a function makes of the model. None: float32.
    elementwise : str
        With a design, what computes all but products (`softnum.torch.arithmetic`).
    device : str
        PyTorch's, on which the model and its inputs lie.
    alike : bool
        With a design, whether what is no model's is computed alike for every device: the loss on the CPU, and updates
        by softnum.
    """
    import torch

    import softnum.torch as st

    model, of_design = model_of(case), isinstance(change, (str, Path))
    if of_design:
        model = st.convert(model, change, elementwise=elementwise, quiet=True)
    elif change is not None:
        model = change(model)
    model = model.to(device)
    draw = torch.Generator().manual_seed(2)
    if case.network == "gpt":
        text = torch.randint(VOCABULARY, (case.batch, CONTEXT + 1), generator=draw)
        x, labels = text[:, :-1], text[:, 1:].flatten()
    else:
        x = torch.randn(IMAGES, 3, 32, 32, generator=draw)
        labels = torch.randint(CLASSES, (IMAGES,), generator=draw)
    x, labels = x.to(device), labels if alike else labels.to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    optimiser = st.Optimizer(optimiser, model) if alike else optimiser
    scaler = st.GradScaler(model) if of_design else None

    def step() -> float:
        y = model(x)
        loss = torch.nn.functional.cross_entropy(y.cpu() if alike else y, labels)
        optimiser.zero_grad()
        (scaler.scale(loss) if of_design else loss).backward()
        optimiser.step()
        if of_design:
            st.next_step(model)
        return loss.item()

    return step


def _gpt(layers: int, width: int, heads: int):
    """A decoder with learned positions and norms before its parts, as GPT-2 is."""
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            apart = self.joint(x).reshape(*x.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(*apart, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(x.shape))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(width), Attention()
            self.norm2 = nn.LayerNorm(width)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.feed(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(CONTEXT, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

        def forward(self, x):
            x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return Gpt()


def _cnn():
    """Three convolutions, each halved by a pooling, and a linear layer."""
    from torch import nn

    def convolved(inputs: int, outputs: int) -> list:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]

    parts = [*convolved(3, 32), *convolved(32, 64), *convolved(64, 64)]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(1024, CLASSES))
