"""elementwise="exact": every function by its definition in softnum's operations, and what it means in PyTorch."""

import contextlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import softnum as sn  # noqa: E402
import softnum.torch as st  # noqa: E402
from softnum.torch.functions import UNARY  # noqa: E402
from softnum.train import Numerics, load_design  # noqa: E402
from softnum.train.engine.functions import RULES  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_functions import MEANS  # noqa: E402
from tests.support.torch_models import feedforward, gradients, inputs, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


def narrow(tmp_path, fmt="bfloat16", **roles):
    file = tmp_path / "own.toml"
    lines = [f'{role} = "{name}"' for role, name in ({"elementwise": fmt} | roles).items()]
    file.write_text("[roles]\n" + "\n".join(lines) + "\n")
    return file


# -- by definition -----------------------------------------------------------------------------------------------------


def operation(name, fmt, *values):
    """One of softnum's operations on values of a format, from which it takes nothing but codes."""
    codes = [sn.encode(np.asarray(x, np.float64), fmt) for x in values]
    return sn.decode(getattr(sn.ops, name)(*codes, fmt), fmt)


class Rounded:
    """Numbers of a format, with operators that are softnum's: what a gradient's rule is followed by."""

    def __init__(self, values, fmt):
        self.values, self.fmt = sn.quantize(np.asarray(values, np.float64), fmt).astype(np.float64), fmt

    def of(self, name, *others):
        parts = [x.values if isinstance(x, Rounded) else Rounded(x, self.fmt).values for x in (self, *others)]
        return Rounded(operation(name, self.fmt, *np.broadcast_arrays(*parts)), self.fmt)

    def __add__(self, other):
        return self.of("add", other)

    def __sub__(self, other):
        return self.of("subtract", other)

    def __mul__(self, other):
        return self.of("multiply", other)

    def __truediv__(self, other):
        return self.of("divide", other)

    def __neg__(self):
        return Rounded(-self.values, self.fmt)

    def __radd__(self, other):
        return Rounded(other, self.fmt) + self

    def __rsub__(self, other):
        return Rounded(other, self.fmt) - self

    def __rmul__(self, other):
        return Rounded(other, self.fmt) * self


FUNCTIONS = {name: lambda x, name=name: x.of(name) for name in ("exp", "erf", "sigmoid", "cos", "sin", "cosh", "sinh",
                                                              "log", "rsqrt")}  # fmt: skip
FUNCTIONS["pow"] = lambda x, y: x.of("pow", y)


def values_for(name, count=200):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.standard_normal(count) * 2, np.float32([1.0, 0.5, 2.0**-20, 0.75, 3.0])]).astype(np.float32)
    if name in ("sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow"):
        x = np.abs(x) + np.float32(2.0**-10)
    return np.clip(x, -0.98, 0.98) if name in ("asin", "acos") else x


@cases("name", [name for name in UNARY if name not in ("relu", "sigmoid", "silu", "tanh")])
@cases("fmt", ("binary32", "bfloat16", "e6m9"))
def test_functions_are_by_definition(name, fmt, tmp_path):
    """Values are softnum's, rounded once; gradients follow the rule, operation by operation."""
    x = torch.from_numpy(values_for(name)).requires_grad_()
    call = getattr(torch, name, None) or getattr(F, name, None)
    if call is None:
        return
    with st.arithmetic(narrow(tmp_path, fmt)):
        y = call(x)
    error = inputs(*y.shape, seed=9)
    y.backward(error)
    a = Rounded(x.detach().numpy(), fmt)
    expected = Rounded(operation(name, fmt, a.values), fmt)
    np.testing.assert_array_equal(y.detach().numpy(), expected.values)
    rule = eval(RULES[name][0], FUNCTIONS, {"g": Rounded(error.numpy(), fmt), "a": a, "y": expected})
    np.testing.assert_array_equal(x.grad.numpy(), rule.values)


@cases("name", ("add", "subtract", "multiply", "divide", "pow", "hypot"))
@cases("fmt", ("binary32", "bfloat16"))
def test_functions_of_two_are_by_definition(name, fmt, tmp_path):
    a, b = (torch.from_numpy(np.roll(values_for(name), shift)).requires_grad_() for shift in (0, 7))
    with st.arithmetic(narrow(tmp_path, fmt)):
        y = getattr(torch, name)(a, b)
    error = inputs(*y.shape, seed=9)
    y.backward(error)
    values = {key: Rounded(x.detach().numpy(), fmt) for key, x in (("a", a), ("b", b))}
    expected = Rounded(operation(name, fmt, values["a"].values, values["b"].values), fmt)
    np.testing.assert_array_equal(y.detach().numpy(), expected.values)
    if name in ("add", "subtract"):  # whose gradients pass as they are
        return
    for x, rule in zip((a, b), RULES[name], strict=True):
        found = eval(rule, FUNCTIONS, {"g": Rounded(error.numpy(), fmt), "y": expected, **values})
        np.testing.assert_array_equal(x.grad.numpy(), found.values)


@cases("fmt", ("binary32", "bfloat16"))
def test_interpolation_is_by_definition(fmt, tmp_path):
    """The two neighbours times their rounded weights, added, along the columns and then along the rows."""
    x = inputs(2, 3, 4, 5).requires_grad_()
    with st.arithmetic(narrow(tmp_path, fmt)):
        y = F.interpolate(x, (7, 9), mode="bilinear")
    expected = Rounded(x.detach().numpy(), fmt)
    for axis, (count, wanted) in ((3, (5, 9)), (2, (4, 7))):
        at = np.clip((np.arange(wanted) + 0.5) * (count / wanted) - 0.5, 0, None)
        low = at.astype(int)
        above = (at - low).astype(np.float32).reshape(-1, *[1] * (3 - axis))
        below = (1 - (at - low)).astype(np.float32).reshape(-1, *[1] * (3 - axis))
        first, second = (
            Rounded(np.take(expected.values, index, axis), fmt) for index in (low, np.minimum(low + 1, count - 1))
        )
        expected = first * below + second * above
    np.testing.assert_array_equal(y.detach().numpy(), expected.values)


@cases("fmt", ("binary32", "bfloat16"))
def test_running_sums_and_products_are_chains(fmt, tmp_path):
    """One after another; gradients from the last one backwards, those of products without a division."""
    values = inputs(4, 9)
    values[1, 3] = values[2, 1] = values[2, 5] = 0.0
    error = inputs(4, 9, seed=9)
    x, y = values.clone().requires_grad_(), values.clone().requires_grad_()
    with st.arithmetic(narrow(tmp_path, fmt, statistics=fmt)):
        sums, products, last = x.cumsum(1), y.cumprod(1), y.prod(1)
    (from_last,) = torch.autograd.grad(last, y, error[:, 0], retain_graph=True)
    sums.backward(error)
    products.backward(error)

    def chain(columns, of):
        found = [Rounded(columns[0], fmt)]
        for column in columns[1:]:
            found.append(of(found[-1], Rounded(column, fmt)))
        return found

    a, g = values.numpy().T, error.numpy().T
    np.testing.assert_array_equal(sums.detach().numpy().T, [s.values for s in chain(a, Rounded.__add__)])
    np.testing.assert_array_equal(x.grad.numpy().T[::-1], [s.values for s in chain(g[::-1], Rounded.__add__)])
    done = chain(a, Rounded.__mul__)
    np.testing.assert_array_equal(products.detach().numpy().T, [s.values for s in done])
    np.testing.assert_array_equal(last.detach().numpy(), done[-1].values)
    for errors, found in ((g, y.grad), (np.vstack([0 * g[1:], g[:1] * 0 + error.numpy()[:, 0]]), from_last)):
        held = Rounded(errors[-1], fmt)
        for i in reversed(range(9)):
            want = held * done[i - 1] if i else held
            np.testing.assert_array_equal(found.numpy().T[i], want.values)
            held = Rounded(errors[i - 1], fmt) + held * Rounded(a[i], fmt)


def average(places, fmt):
    total = tree([np.asarray(place, np.float64) for place in places], fmt)
    return Rounded(total / len(places), fmt).values


def test_averages_of_windows_of_several_sizes_are_trees(tmp_path):
    x = inputs(2, 3, 5, 7).requires_grad_()
    with st.arithmetic(narrow(tmp_path, "e6m9")):
        edges, any_size = F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.adaptive_avg_pool2d(x, (3, 4))
    v = x.detach().numpy()
    for found, bounds in (
        (edges, ([(0, 2), (1, 4), (3, 5)], [(0, 2), (1, 4), (3, 6), (5, 7)])),
        (any_size, ([(0, 2), (1, 4), (3, 5)], [(0, 2), (1, 4), (3, 6), (5, 7)])),
    ):
        for i, rows in enumerate(bounds[0]):
            for j, columns in enumerate(bounds[1]):
                places = [v[:, :, r, c] for r in range(*rows) for c in range(*columns)]
                np.testing.assert_array_equal(found.detach().numpy()[:, :, i, j], average(places, "e6m9"))


@cases("fmt", ("binary32", "bfloat16"))
def test_cubic_interpolation_is_by_definition(fmt, tmp_path):
    """Four neighbours times their rounded weights, added in pairs."""
    x = inputs(2, 3, 5)
    with st.arithmetic(narrow(tmp_path, fmt)):
        y = F.interpolate(x[..., None], (8, 1), mode="bicubic")[..., 0]
    at = (np.arange(8) + 0.5) * (5 / 8) - 0.5
    low, a = np.floor(at), -0.75
    parts = []
    for offset in (-1, 0, 1, 2):
        d = np.abs(at - low - offset)
        near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        taken = x.numpy()[..., np.clip(low.astype(int) + offset, 0, 4)]
        parts.append(Rounded(taken, fmt) * np.where(d <= 1, near, far).astype(np.float32))
    want = (parts[0] + parts[1]) + (parts[2] + parts[3])
    np.testing.assert_array_equal(y.numpy(), want.values)


def test_roots_of_nothing_have_no_gradient():
    """As of PyTorch's norms: 0, and not 0 times an infinity."""
    x = torch.zeros(2, 3, requires_grad=True)
    with st.arithmetic("a-float32"):
        y, z = x.norm(dim=1) + torch.linalg.vector_norm(x, dim=1) + x.std(1), F.normalize(x)
    y.sum().backward()
    assert not y.any() and not x.grad.any()
    z.backward(torch.ones_like(z))
    assert (x.grad == np.float32(1) / np.float32(1e-12)).all()


def test_numbers_without_a_dimension():
    x = torch.tensor(0.3, requires_grad=True)
    with st.arithmetic("a-float32"):
        (1 - (x.exp() - x) * x).backward()
    assert x.grad == pytest.approx(-(np.exp(0.3) - 0.3) - 0.3 * (np.exp(0.3) - 1), rel=1e-6)


SPECIAL = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-45, -1e38, 1.0])


@cases("name", ("exp", "log", "sqrt", "erf", "tanh", "gelu", "softplus", "sin", "rsqrt", "expm1"))
def test_special_values_are_softnums(name):
    with st.arithmetic("a-float32"):
        y = (getattr(torch, name, None) or getattr(F, name))(SPECIAL)
    want = sn.decode(getattr(sn.ops, name)(sn.encode(SPECIAL.numpy(), "binary32"), "binary32"), "binary32", np.float32)
    np.testing.assert_array_equal(y.numpy(), want)
    assert np.array_equal(np.signbit(y.numpy())[want == 0], np.signbit(want)[want == 0])


def tree(rows, fmt):
    """The total of rows: neighbours in pairs, then the sums in pairs; an odd last one waits."""
    rows = [sn.quantize(np.asarray(row, np.float64), fmt).astype(np.float64) for row in rows]
    while len(rows) > 1:
        pairs = [operation("add", fmt, a, b) for a, b in zip(rows[::2], rows[1::2], strict=False)]
        rows = pairs + ([rows[-1]] if len(rows) % 2 else [])
    return rows[0]


def test_gradients_of_what_is_broadcast_are_a_tree_of_sums(tmp_path):
    x, shift, gain = inputs(7, 5), inputs(5, seed=4).requires_grad_(), inputs(5, seed=6).requires_grad_()
    with st.arithmetic(narrow(tmp_path, statistics="e6m9")):
        y = x * gain + shift
        z = shift.expand(7, 5)
    error = inputs(7, 5, seed=8)
    y.backward(error)
    np.testing.assert_array_equal(shift.grad.numpy(), tree(error.numpy(), "e6m9"))
    products = Rounded(error.numpy(), "bfloat16") * Rounded(x.numpy(), "bfloat16")
    np.testing.assert_array_equal(gain.grad.numpy(), tree(products.values, "e6m9"))
    shift.grad = None
    z.backward(error)
    np.testing.assert_array_equal(shift.grad.numpy(), tree(error.numpy(), "e6m9"))


def test_sums_are_trees(tmp_path):
    x = inputs(3, 13).requires_grad_()
    with st.arithmetic(narrow(tmp_path, statistics="e6m9")):
        y = x.sum(1)
    np.testing.assert_array_equal(y.detach().numpy(), tree(x.detach().numpy().T, "e6m9"))
    y.backward(torch.tensor([1.0, 0.1, 3.0]))
    assert torch.equal(x.grad, torch.tensor([[1.0], [0.1], [3.0]]).expand(3, 13))


def test_elements_that_are_taken_twice(tmp_path):
    x, rows = inputs(4, 3).requires_grad_(), torch.tensor([3, 0, 3, 3, 2])
    error = inputs(5, 3, seed=8)
    for take in (lambda: x[rows], lambda: x.index_select(0, rows), lambda: x[rows.tolist()],
                 lambda: x.gather(0, rows[:, None].expand(5, 3))):  # fmt: skip
        with st.arithmetic(narrow(tmp_path, statistics="e6m9")):
            y = take()
        assert torch.equal(y, x.detach()[rows])
        x.grad = None
        y.backward(error)
        np.testing.assert_array_equal(x.grad.numpy()[3], tree(error.numpy()[[0, 2, 3]], "e6m9"))
        assert not x.grad[1].any()


def test_parts_that_are_added_to_rows(tmp_path):
    x, parts, rows = inputs(4, 3), inputs(5, 3, seed=4).requires_grad_(), torch.tensor([3, 0, 3, 3, 2])
    with st.arithmetic(narrow(tmp_path, "e6m9")):
        results = [
            x.index_add(0, rows, parts), x.clone().index_add_(0, rows, parts),
            x.scatter_add(0, rows[:, None].expand(5, 3), parts),
        ]  # fmt: skip
    want = tree([x[3].numpy(), *parts.detach().numpy()[[0, 2, 3]]], "e6m9")
    for y in results:
        np.testing.assert_array_equal(y.detach().numpy()[3], want)
        np.testing.assert_array_equal(y.detach().numpy()[1], sn.quantize(x.numpy()[1], "e6m9"))
    (gradient,) = torch.autograd.grad(results[0].sum(), parts)
    assert torch.equal(gradient, torch.ones(5, 3))


def test_numbers_are_rounded_from_binary64(tmp_path):
    """1 + 2**-8 + 2**-30 lies above the middle of two numbers of bfloat16, on which binary32 would put it."""
    with st.arithmetic(narrow(tmp_path)):
        y = torch.zeros(1) + (1 + 2.0**-8 + 2.0**-30)
    assert y.item() == 1 + 2.0**-7


# -- what they mean in PyTorch -----------------------------------------------------------------------------------------


def test_smoothed_labels_are_computed_in_binary64_and_rounded_once(tmp_path):
    """Whatever the design: the gradient is softmax * sum(t) - t, over the count."""
    for design in ("a-float32", narrow(tmp_path)):
        x = inputs(7, 5).bfloat16().float().requires_grad_()
        labels = torch.tensor([0, 4, 2, -100, 1, 1, 3])
        with st.arithmetic(design):
            loss = F.cross_entropy(x, labels, label_smoothing=0.1)
        loss.backward()
        keep = labels != -100
        target = F.one_hot(labels[keep], 5).double() * (1 - 0.1) + 0.1 / 5
        wide = x.detach()[keep].double().requires_grad_()
        want = -(wide.log_softmax(1) * target).sum() / 6
        want.backward()
        assert loss.item() == np.float32(want.item())
        torch.testing.assert_close(x.grad[keep], wide.grad.float(), rtol=2.0**-23, atol=0)
        assert (x.grad[~keep] == 0).all()
    with (
        pytest.raises(NotImplementedError, match="without weights where labels are smoothed"),
        st.arithmetic("a-float32"),
    ):
        F.cross_entropy(x, labels, weight=torch.ones(5), label_smoothing=0.1)
    with pytest.raises(ValueError, match=r"label_smoothing must lie in 0\.\.1, got 1\.5"), st.arithmetic("a-float32"):
        F.cross_entropy(x, labels, label_smoothing=1.5)


@cases("name", MEANS)
def test_functions_mean_what_they_mean_in_pytorch(name):
    found = []
    for inside in (False, True):
        x = inputs(4, 6, 6).requires_grad_()
        with st.arithmetic("a-float32") if inside else contextlib.nullcontext():
            y = MEANS[name](x)
        (y * inputs(*y.shape, 1, seed=5).squeeze(-1)).sum().backward()
        found.append((y, x.grad))
    for own, plain in zip(*found, strict=True):
        torch.testing.assert_close(plain, own, rtol=5e-5, atol=1e-5)


@cases("name", [name for name in MEANS if name != "in place by signs"])
def test_they_compute_where_gradients_are_added_in_the_design(name, tmp_path):
    """In bfloat16, near PyTorch's; and whose results are changed in place has the gradients of what it became."""
    found = []
    for inside in (False, True):
        x = (inputs(4, 6, 6) / 2).bfloat16().float().requires_grad_()
        with st.arithmetic(narrow(tmp_path)) if inside else contextlib.nullcontext():
            y = MEANS[name](x)
        (y * inputs(*y.shape, 1, seed=5).squeeze(-1)).sum().backward()
        found.append((y, x.grad))
    for own, plain in zip(*found, strict=True):
        assert (own - plain).norm() <= 0.04 * own.norm()


def test_a_bfloat16_operand_and_a_float32_one():
    x, y = inputs(3).bfloat16(), inputs(3, seed=4)
    with st.arithmetic("a-float32"):
        assert (x * y).dtype == torch.float32 and (x + 1.5).dtype == torch.bfloat16
        assert (x + torch.tensor(0.5)).dtype == torch.bfloat16 and (x + x.half()).dtype == torch.float32


# -- dropout, masks ----------------------------------------------------------------------------------------------------


@cases("function", ("dropout", "dropout1d", "dropout2d", "dropout3d"))
def test_dropout_draws_as_pytorch(function):
    shape = (4, 5) + (3,) * {"dropout": 0, "dropout1d": 1, "dropout2d": 2, "dropout3d": 3}[function]
    found = []
    for inside in (False, True):
        torch.manual_seed(3)
        x = inputs(*shape).requires_grad_()
        with st.arithmetic("a-float32") if inside else contextlib.nullcontext():
            y = getattr(F, function)(x, 0.3)
        y.backward(torch.ones_like(y))
        found.append((y, x.grad))
    (plain, _), (own, own_gradient) = found
    assert torch.equal(own == 0, plain == 0) and 0 < (own == 0).sum() < own.numel()
    factor = np.float32(1 / 0.7)
    np.testing.assert_array_equal(own_gradient.numpy(), np.where(plain.detach() == 0, 0, factor))
    torch.testing.assert_close(own, plain)
    with st.arithmetic("a-float32"):
        assert torch.equal(F.dropout(x, 1.0), torch.zeros(shape)) and F.dropout(x, 0.5, training=False) is x


def test_infinite_elements_take_no_part_in_softmax(tmp_path):
    x = inputs(3, 4)
    x[0, 1] = x[1] = -torch.inf
    with st.arithmetic("a-float32"):
        y = x.softmax(-1)
    assert y[0, 1] == 0 and y[1].isnan().all() and y[2].sum() == pytest.approx(1)
    with st.arithmetic(narrow(tmp_path, "q4.4")):  # which has no infinity
        y = x[[0, 2]].softmax(-1)
    assert y[0, 1] == 0 and y.isfinite().all()
    with st.arithmetic("a-float32"):
        z = torch.where(torch.tensor([True, False]), torch.tensor([1.0, -1e39]), 0.0).softmax(0)
    assert z.isfinite().all()


# -- compilers, checkpoints, whole models ------------------------------------------------------------------------------


class Block(nn.Module):
    """Normalisation, attention, GELU, masks, sums, changes in place."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.gain = nn.Parameter(torch.ones(8))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, -torch.inf).softmax(-1) @ v
        y = x + F.gelu(self.out(y)) * scores
        y += scores / 3.0
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain
        return y[:, torch.tensor([0, 1, 1])].sum(1)


ROWS = inputs(2, 4, 8)


@cases("design", ("a-float32", "i-mxfp8"))
def test_a_compiled_model_has_the_same_bits(design):
    expected = gradients(st.convert(Block(), design, quiet=True), ROWS)
    model = st.convert(Block(), design, quiet=True)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert same(gradients(model, ROWS, lambda x: compiled(x)), expected)  # a module alone has no truth value


def test_transforms():
    model = st.convert(Block(), "a-float32", quiet=True)
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def loss(parameters):
        return torch.func.functional_call(model, (parameters, buffers), (ROWS,)).square().sum()

    found = torch.func.grad(loss)(parameters)
    assert same(found.values(), gradients(st.convert(Block(), "a-float32", quiet=True), ROWS))


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.drop, self.again = Block(), nn.Dropout(0.5), True

    def forward(self, x):
        run = lambda x: self.drop(self.body(x))  # noqa: E731
        return checkpoint(run, x, use_reentrant=False, context_fn=st.checkpoint_contexts) if self.again else run(x)


@cases("design", ("a-float32", "stochastic"))
def test_checkpoints(design, tmp_path):
    if design == "stochastic":
        design = tmp_path / "own.toml"
        design.write_text('[roles]\nelementwise = { format = "bfloat16", rounding = "stochastic" }\n')
    found = []
    for again in (False, True):
        model = st.convert(Checkpointed(), design, seed=3, quiet=True)
        model.again = again
        torch.manual_seed(1)
        found.append(gradients(model, ROWS))
    assert same(*found)


def test_a_run_that_is_resumed(tmp_path):
    """State and random bits of a model whose element-by-element roundings are stochastic."""
    file = tmp_path / "own.toml"
    file.write_text('[roles]\nelementwise = { format = "bfloat16", rounding = "stochastic" }\n')

    def run(model, steps):
        optimizer = st.Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
        for _ in range(steps):
            optimizer.zero_grad()
            model(ROWS).square().sum().backward()
            optimizer.step()
        return model

    whole = run(st.convert(Block(), file, seed=3, quiet=True), 4)
    half = run(st.convert(Block(), file, seed=3, quiet=True), 2)
    rest = st.convert(Block(), file, seed=3, quiet=True)
    rest.load_state_dict(half.state_dict())
    assert same(run(rest, 2).state_dict().values(), whole.state_dict().values())


# -- the design's engine -----------------------------------------------------------------------------------------------


def test_the_design_says_which_engine(tmp_path):
    file = tmp_path / "own.toml"
    engines = []
    for text in ("", '[elementwise]\nengine = "exact"\n', '[elementwise]\nengine = "torch"\n'):
        file.write_text(text)
        model = st.convert(feedforward(), file, quiet=True)
        engines.append((load_design(file).engine, model.softnum_mode.exact, st.arithmetic(file).exact))
    assert engines == [("exact", True, True)] * 2 + [("torch", False, False)]
    assert st.arithmetic(file, elementwise="exact").exact
    with pytest.raises(ValueError, match=r"own\.toml: elementwise\.engine is 'torch'.*softnum\.torch"):
        Numerics(load_design(file), ["fc1"], seed=1)


@cases("text", ('[elementwise]\nengine = "numpy"\n', '[elementwise]\nengines = "torch"\n', "elementwise = 3\n"))
def test_an_engine_that_is_none(text, tmp_path):
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(ValueError, match="elementwise"):
        load_design(tmp_path / "own.toml")


def test_operators_of_the_design_replace_functions(tmp_path):
    (tmp_path / "twice.tile").write_text("function (X) -> (Y) { Y = X + X; }")
    file = tmp_path / "own.toml"
    file.write_text('[operators]\ngelu = "twice.tile"\nrelu = "twice.tile"\nexp = "twice.tile"\n')
    with st.arithmetic(file):
        results = F.gelu(ROWS), F.relu(ROWS), torch.exp(ROWS)
    assert all(torch.equal(y, 2 * ROWS) for y in results)


def test_changes_in_place_of_views_are_refused_where_gradients_are_added(tmp_path):
    x = inputs(3, 4).requires_grad_()
    with st.arithmetic(narrow(tmp_path)), pytest.raises(NotImplementedError, match="changed in place"):
        y = torch.tanh(x).view(4, 3)
        y += 1


def test_boxes_of_torchvision():
    """Samples in boxes near PyTorch's, and the same boxes stay."""
    ops = pytest.importorskip("torchvision").ops
    boxes = torch.tensor([[0.0, 0.5, 3.0, 4.0, 5.5], [1.0, -3.0, 1.0, 9.0, 3.0], [0.0, 1.0, 1.0, 1.2, 1.1]])
    found = []
    for inside in (False, True):
        x = inputs(2, 3, 6, 7).requires_grad_()
        with st.arithmetic("a-float32") if inside else contextlib.nullcontext():
            y = sum(ops.roi_align(x, boxes, (2, 3), 0.9, 2, aligned) for aligned in (False, True))
            corners = inputs(60, 2, seed=5) * 3
            kept = ops.nms(torch.cat([corners, corners + 2], -1), inputs(60), 0.3)
        y.backward(inputs(3, 3, 2, 3, seed=7))
        found.append((y, x.grad, kept))
    for plain, own in zip(*found, strict=True):
        torch.testing.assert_close(own, plain, rtol=1e-5, atol=1e-6)
    assert 5 < len(found[0][2]) < 50
