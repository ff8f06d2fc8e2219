"""Tensors on a GPU: computed by softnum's kernels, where they lie, to the bits of the CPU.

Where PyTorch has no GPU, tensors of the CPU stand for those of one, and kernels run in Numba's simulator: all but the
exchange of memory is what runs on a GPU.
"""

import copy

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.train import load_design  # noqa: E402
from softnum.train.engine.devices import make_backend  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.design_texts import TEXTS  # noqa: E402
from tests.support.torch_functions import MEANS  # noqa: E402
from tests.support.torch_models import STOCHASTIC, feedforward, inputs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def on_gpu(device, monkeypatch):
    """Calls a function with what moves tensors and models to the GPU; returns its result, and the backends it made.

    Kernels must have been launched, or all was computed on the CPU.
    """
    from softnum.kernels import launches
    from softnum.kernels.device.runtime import _cuda, movement
    from softnum.torch import models, numerics, optimizer, tensors
    from softnum.torch import quantization as quantization

    if not _cuda.SIMULATOR and not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")

    def run(function):
        made, before = [], launches()

        def make(kind, dtype, **options):
            made.append(make_backend(kind, dtype, **options))
            return made[-1]

        with monkeypatch.context() as patch:
            patch.setattr(numerics, "make_backend", make)
            for module in (models, numerics, optimizer, quantization, tensors) if _cuda.SIMULATOR else ():
                patch.setattr(module, "device_of", lambda x: "cuda")
            if _cuda.SIMULATOR:
                patch.setattr(tensors, "taken", lambda x: movement.upload(x.numpy()))
                patch.setattr(tensors, "given", lambda x, _: torch.from_numpy(x.host()))
            result = function((lambda x: x) if _cuda.SIMULATOR else (lambda x: x.to("cuda")))
        assert launches() > before
        return result, made

    return run


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1, stride=2)
        self.norm, self.group = nn.BatchNorm2d(4), nn.GroupNorm(2, 4)
        self.up, self.fc = nn.ConvTranspose2d(4, 2, 2), nn.Linear(2, 3)

    def forward(self, x):
        x = self.group(F.relu(self.norm(self.conv(x))))
        x = F.avg_pool2d(F.max_pool2d(self.up(x), 2, stride=1), 2, stride=1)
        return self.fc(x.flatten(1))


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(5, 8), nn.LayerNorm(8)
        self.qkv, self.fc, self.scale = nn.Linear(8, 24), nn.Linear(8, 3), nn.RMSNorm(8)

    def forward(self, x):
        x = self.embed(x)
        parts = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)
        return self.fc(F.gelu(self.scale(x))).mean(1)


class Pictures(nn.Module):
    """All but its products PyTorch computes exactly, and so alike on all devices; and so for `Words`."""

    def __init__(self):
        super().__init__()
        self.conv, self.up = nn.Conv2d(2, 4, 3, padding=1, stride=2), nn.ConvTranspose2d(4, 2, 2)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = F.max_pool2d(self.up(F.relu(self.conv(x))), 2, stride=1)
        return self.fc(x.flatten(1))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.fc = nn.Embedding(5, 8), nn.Linear(8, 24), nn.Linear(8, 3)

    def forward(self, x):
        x = self.embed(x)
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        x = x + (F.relu(q @ k.transpose(-1, -2)) @ v).transpose(1, 2).flatten(2)
        return self.fc(x)[:, -1]


class Steps(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.steps, self.fc = kind(3, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(self.steps(x)[0][:, -1])


MODELS = {
    "feedforward": (feedforward, lambda: inputs(2, 4)),
    "images": (Images, lambda: inputs(2, 2, 4, 4)),
    "texts": (Texts, lambda: torch.tensor([[0, 3, 1], [4, 4, 2]])),
    "pictures": (Pictures, lambda: inputs(2, 2, 4, 4)),
    "words": (Words, lambda: torch.tensor([[0, 3, 1], [4, 4, 2]])),
    "lstm": (lambda: Steps(nn.LSTM), lambda: inputs(2, 2, 3)),
    "gru": (lambda: Steps(nn.GRU), lambda: inputs(2, 2, 3)),
}
#: model, design, engine
CASES = [
    *(("feedforward", design, "exact") for design in ("a-float32", "c-wang-fp8", "i-mxfp8", "te-delayed-scaling")),
    ("feedforward", "passes", "exact"), ("feedforward", "saved", "torch"),
    ("feedforward", "te-nvfp4-block-scaling", "torch"),
    ("images", "hopper", "exact"), ("texts", "stochastic", "exact"), ("lstm", "a-float32", "exact"),
]  # fmt: skip
MORE = [
    ("feedforward", "hopper", "exact"), ("feedforward", "stochastic", "exact"), ("feedforward", "c-wang-fp8", "torch"),
    ("images", "c-wang-fp8", "exact"), ("pictures", "i-mxfp8", "torch"), ("texts", "a-float32", "exact"),
    ("texts", "i-mxfp8", "exact"), ("words", "hopper", "torch"), ("words", "te-float8-block-scaling", "torch"),
    ("lstm", "i-mxfp8", "exact"), ("pictures", "torchao-rowwise", "torch"), ("words", "i-mxfp8", "torch"),
    ("gru", "c-wang-fp8", "exact"),
]  # fmt: skip
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.25, momentum=0.5),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def bits_of(x):
    """Of zeros the signs count, too."""
    return x.contiguous().reshape(-1).view(torch.uint8).tolist()


def design_of(name, tmp_path):
    if name == "stochastic":
        return STOCHASTIC
    if name not in TEXTS:
        return load_design(name)
    (tmp_path / f"{name}.toml").write_text(TEXTS[name])
    return load_design(tmp_path / f"{name}.toml")


def trained(model, x, optimizer, steps=2):
    """Losses and gradients of some steps, and what the model and its optimiser hold then."""
    optimizer, scaler, found = st.Optimizer(optimizer(model.parameters()), model), st.GradScaler(model), []
    for _ in range(steps):
        model.zero_grad()
        loss = F.cross_entropy(model(x).cpu(), torch.tensor([1, 2]), label_smoothing=0.1)  # PyTorch's, of one device
        scaler.scale(loss).backward()
        found += [loss.detach(), *(p.grad.clone() for p in model.parameters())]
        scaler.step(optimizer)
        scaler.update()
    states = [part for state in optimizer.state.values() for part in state.values() if torch.is_tensor(part)]
    model.eval()
    return [x.cpu() for x in (*found, *states, *model.state_dict().values(), model(x).detach())]


def converted(name, design, engine="exact"):
    torch.manual_seed(5)
    model, x = MODELS[name][0](), MODELS[name][1]()
    last = list(dict(model.named_modules()))[-1]
    named = last != "fc" and design.layers  # which are those of networks whose last layer has that name
    known = {"known_as": {last: "fc"}} if named else {}
    return st.convert(model, design, elementwise=engine, seed=3, quiet=True, **known), x


@pytest.mark.slow
@cases("name, design, engine", CASES)
def test_steps_on_a_gpu_have_the_bits_of_the_cpu(name, design, engine, tmp_path, on_gpu):
    check_steps(name, design, engine, tmp_path, on_gpu)


@pytest.mark.slow
@cases("name, design, engine", MORE)
def test_more_steps_on_a_gpu_have_the_bits_of_the_cpu(name, design, engine, tmp_path, on_gpu):
    check_steps(name, design, engine, tmp_path, on_gpu)


def check_steps(name, design, engine, tmp_path, on_gpu):
    design = design_of(design, tmp_path)
    model, x = converted(name, design, engine)
    optimizer = OPTIMIZERS["adamw" if name == "texts" else "sgd"]
    want = trained(copy.deepcopy(model), x, optimizer)
    model = converted(name, design, engine)[0]
    got, backends = on_gpu(lambda to: trained(to(model), to(x), optimizer))
    assert [bits_of(x) for x in got] == [bits_of(x) for x in want]
    assert {type(backend).__name__ for backend in backends} == {"CudaBackend"}
    assert not any(backend.host_copies for backend in backends)


FUNCTIONS = {
    "matmul, float64": ("d-e6m3-long", lambda to: to(inputs(2, 3, 4).double()) @ to(inputs(2, 4, 2).double())),
    "matmul, bfloat16": ("d-e6m3-long", lambda to: to(inputs(3, 4).bfloat16()) @ to(inputs(2, 4).bfloat16()).T),
    "linear, strided": ("i-mxfp8", lambda to: F.linear(to(inputs(4, 6))[::2, ::2], to(inputs(3, 3)), to(inputs(3)))),
    "linear, of no rows": ("a-float32", lambda to: F.linear(to(inputs(0, 4)), to(inputs(3, 4)))),
    "dot": ("a-float32", lambda to: to(inputs(4)) @ to(inputs(4))),
    "quantize": ("a-float32", lambda to: st.quantize(to(inputs(3, 5)), "e5m2", rounding="stochastic", key=(7, 1))),
    "quantize, one number": ("a-float32", lambda to: st.quantize(to(inputs(1)[0]), "e4m3fn")),
    "quantize, blocks": ("a-float32", lambda to: st.quantize(to(inputs(3, 40)), "mxfp8_e4m3", axis=0)),
    "quantize, float64": (
        "a-float32",
        lambda to: st.quantize(to(inputs(3, 5).double()), "bfloat16", rounding="to_odd"),
    ),
    "times a number of the CPU's": ("a-float32", lambda to: to(inputs(3)) * torch.tensor(0.3) + torch.tensor(2.0)),
    "quantize, float16": ("a-float32", lambda to: st.quantize(to(inputs(3, 5).half()), "e2m1fn")),
}


@cases("name", FUNCTIONS)
def test_functions_on_a_gpu_have_the_bits_of_the_cpu(name, on_gpu):
    design, function = FUNCTIONS[name]

    def computed(to):
        with st.arithmetic(design):
            return function(to).cpu()

    want = computed(lambda x: x)
    got, _ = on_gpu(computed)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert bits_of(got) == bits_of(want)


@pytest.mark.slow
@cases("name", MEANS)
def test_exact_functions_on_a_gpu_have_the_bits_of_the_cpu(name, on_gpu):
    def computed(to):
        x = to(inputs(4, 6, 6)).requires_grad_()
        with st.arithmetic("a-float32"):
            y = MEANS[name](x)
        y.sum().backward()
        return y.detach().cpu(), x.grad.cpu()

    want = computed(lambda x: x)
    got, _ = on_gpu(computed)
    assert [bits_of(x) for x in got] == [bits_of(x) for x in want]


FOUR_OVER_SIX = """
name = "four-over-six"
[roles]
input = { format = "e2m1fn", scale = { rule = "nvfp4", per = [1, 16], four_over_six = "squared" } }
activations = { format = "e2m1fn", scale = { rule = "nvfp4", per = [1, 16] } }
weights = { format = "e2m1fn", scale = { rule = "nvfp4", per = [1, 16] } }
"""


def test_what_goes_through_the_host_is_counted(on_gpu, tmp_path):
    (tmp_path / "own.toml").write_text(FOUR_OVER_SIX)

    def computed(to):
        model = to(st.convert(feedforward(), tmp_path / "own.toml", elementwise="torch", first="0", quiet=True))
        return model(to(inputs(2, 4))).detach().cpu(), st.host_copies(model)

    want, nothing = computed(lambda x: x)
    (got, copies), _ = on_gpu(computed)
    assert bits_of(want) == bits_of(got)
    assert not nothing
    assert copies == {"quantize_scaled": 1}


def test_a_training_on_a_gpu_that_pytorch_lacks_is_refused(device, tmp_path):
    from softnum.kernels.device.runtime import _cuda
    from softnum.train import Settings, run

    if not _cuda.SIMULATOR:
        pytest.skip("there is one")
    (tmp_path / "own.py").write_text(
        "import torch, softnum.torch as st\n"
        "def make():\n"
        "    data = torch.utils.data.TensorDataset(torch.ones(4, 2), torch.zeros(4, dtype=int))\n"
        "    sgd = lambda model: torch.optim.SGD(model.parameters(), 1.0)\n"
        "    return st.Training(lambda: torch.nn.Linear(2, 2), data, data, sgd)\n"
    )
    settings = Settings(network=f"{tmp_path / 'own.py'}:make", epochs=1, batch=2)
    with pytest.raises(ValueError, match="PyTorch .* finds no GPU here; leave the device out"):
        run(load_design("a-float32"), settings, seed=1, out=tmp_path / "runs", device="cuda")
