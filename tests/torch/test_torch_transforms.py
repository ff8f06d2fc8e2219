"""What PyTorch does to functions, softnum.torch's bear: compiling, exporting, transforming, checkpointing."""

import copy
import io

import pytest

torch = pytest.importorskip("torch")
from torch.utils.checkpoint import checkpoint  # noqa: E402

import softnum.torch as st  # noqa: E402
from tests.support.cases import cases  # noqa: E402
from tests.support.torch_models import STOCHASTIC, feedforward, gradients, inputs, same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
DESIGNS = {"i-mxfp8": "i-mxfp8", "stochastic": STOCHASTIC}
X = inputs(5, 4)


def converted(design, model=None, **how):
    return st.convert(model or feedforward(), DESIGNS.get(design, design), seed=7, quiet=True, **how)


def functional(model):
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def loss(parameters, x):
        return torch.func.functional_call(model, (parameters, buffers), (x,)).square().sum()

    return parameters, loss


@cases("design", DESIGNS)
def test_a_compiled_model_has_the_same_bits(design):
    expected = gradients(converted(design), X)
    model = converted(design)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert same(gradients(model, X, compiled), expected)


def test_compiled_steps_are_those_of_eager_ones():
    models = [converted("stochastic") for _ in range(2)]
    compiled = torch.compile(models[1], fullgraph=True, backend="aot_eager")
    for _ in range(3):
        assert same(gradients(models[0], X), gradients(models[1], X, compiled))
        for model in models:
            st.next_step(model)
    assert torch.equal(models[0].softnum_state, models[1].softnum_state)


def test_sizes_may_be_dynamic():
    model = converted("i-mxfp8")
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (3, 6, 7):
        x = inputs(rows, 4)
        assert torch.equal(compiled(x), model(x))


@cases("design", DESIGNS)
def test_an_exported_program_trains_alike(design):
    program = torch.export.export(converted(design), (X,)).module()
    assert same(gradients(program, X), gradients(converted(design), X))


@cases("design", DESIGNS)
def test_functional_gradients(design):
    parameters, loss = functional(converted(design))
    found = torch.func.grad(loss)(parameters, X)
    assert same(found.values(), gradients(converted(design), X))
    parameters, loss = functional(converted(design))
    value, back = torch.func.vjp(loss, parameters, X)
    assert same(back(torch.ones_like(value))[0].values(), found.values())


def test_a_vectorised_call_is_a_loop():
    parameters, loss = functional(converted("i-mxfp8"))
    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, X)
    for name, gradient in found.items():
        rows = [torch.func.grad(loss)(parameters, x)[name] for x in X]
        assert torch.equal(gradient, torch.stack(rows))


def test_slices_of_a_vectorised_call_have_random_bits_of_their_own():
    mode = st.arithmetic("g-q44-stochastic")
    x = torch.full((4, 1, 64), 0.3)
    rows = torch.func.vmap(lambda x: st.matmul(x, torch.eye(64), arithmetic=mode))(x)
    assert len({tuple(row.flatten().tolist()) for row in rows}) == 4


def test_other_derivatives_say_that_they_are_not_there():
    model = converted("i-mxfp8")
    with pytest.raises(NotImplementedError, match="forward-mode"):
        torch.func.jvp(model, (X,), (X,))
    (gradient,) = torch.autograd.grad(model(X).square().sum(), model[0].weight, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        gradient.sum().backward()


class Checkpointed(torch.nn.Module):
    def __init__(self, **how):
        super().__init__()
        self.body, self.how = feedforward(), how

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False, **self.how) if self.how is not None else self.body(x)


def test_a_checkpoint_has_the_same_bits():
    plain = Checkpointed()
    plain.how = None
    expected = gradients(converted("i-mxfp8", plain), X)
    assert same(gradients(converted("i-mxfp8", Checkpointed()), X), expected)


@cases("outside", (False, True))
def test_a_stochastic_checkpoint_has_the_same_bits(outside):
    plain = Checkpointed()
    plain.how = None
    model = converted("stochastic", copy.deepcopy(plain))
    for step in range(2):
        expected = gradients(model, X)
        if outside:
            other = converted("stochastic", copy.deepcopy(plain))
            other.softnum_state[1] = step
            found = gradients(
                other, X,
                lambda x: checkpoint(other, x, use_reentrant=False, context_fn=st.checkpoint_contexts),  # noqa: B023
            )  # fmt: skip
        else:
            other = converted("stochastic", Checkpointed(context_fn=st.checkpoint_contexts))
            other.softnum_state[1] = step
            found = gradients(other, X)
        assert same(found, expected)
        st.next_step(model)


def test_two_checkpointed_passes_before_one_backward_pass():
    model = converted("stochastic", Checkpointed(context_fn=st.checkpoint_contexts))
    plain = Checkpointed()
    plain.how = None
    other = converted("stochastic", plain)
    for each in (model, other):
        (each(X).square().sum() + each(2 * X).square().sum()).backward()
    assert same([p.grad for p in model.parameters()], [p.grad for p in other.parameters()])


def test_a_stochastic_checkpoint_without_contexts_is_an_error():
    model = converted("stochastic", Checkpointed())
    with pytest.raises(RuntimeError, match="checkpoint_contexts"):
        gradients(model, X)


@cases("design", DESIGNS)
def test_copies_and_pickles_compute_alike(design):
    model = converted(design)
    twin = copy.deepcopy(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    expected = gradients(model, X)
    assert same(gradients(twin, X), expected)
    assert same(gradients(loaded, X), expected)
    assert twin.softnum_state.tolist()[2] == 1


def test_inference_mode_leaves_training_as_it_is():
    model = converted("stochastic")
    expected = gradients(converted("stochastic"), X)
    model.eval()
    with torch.inference_mode():
        model(X)
    model.train()
    assert same(gradients(model, X), expected)


@cases("design", ("g-q44-stochastic", "stochastic"))
def test_gradients_of_copies_are_rounded_too(design):
    """The hooks that round gradients are not copied with parameters; the first call makes them again."""
    model = converted(design)
    for twin in (copy.deepcopy(model), copy.deepcopy(copy.deepcopy(model))):
        assert same(gradients(twin, X), gradients(copy.deepcopy(model), X))
    plain = [p.grad for p in feedforward().parameters()]
    assert all(gradient is None for gradient in plain)


def test_a_copy_is_called_before_it_is_compiled():
    model = copy.deepcopy(converted("g-q44-stochastic"))
    with pytest.raises(Exception, match="call a copied"):
        torch.compile(model, fullgraph=True, backend="aot_eager")(X)


def test_transforms_do_not_leave_gradients_unrounded():
    parameters, loss = functional(converted("g-q44-stochastic", elementwise="torch"))
    with pytest.raises(NotImplementedError, match="weight_gradients"):
        torch.func.grad(loss)(parameters, X)
    with pytest.raises(NotImplementedError, match=r"model.eval\(\)"):
        torch.export.export(converted("g-q44-stochastic", elementwise="torch"), (X,))
    program = torch.export.export(converted("g-q44-stochastic", elementwise="torch").eval(), (X,)).module()
    assert torch.equal(program(X), converted("g-q44-stochastic", elementwise="torch").eval()(X))


def test_nested_slices_have_random_bits_of_their_own():
    mode = st.arithmetic(STOCHASTIC)
    x = torch.full((3, 3, 1, 64), 0.3)
    rows = torch.func.vmap(torch.func.vmap(lambda x: st.matmul(x, torch.eye(64), arithmetic=mode)))(x)
    assert len({tuple(row.tolist()) for row in rows.reshape(9, 64)}) == 9
    y = torch.func.vmap(lambda x: st.quantize(x, "q4.4", rounding="stochastic", key=(2**64 - 1, 3)))(x[0])
    assert len({tuple(row.tolist()) for row in y.reshape(3, 64)}) == 3


def test_a_second_derivative_of_an_exported_program_is_an_error():
    program = torch.export.export(converted("i-mxfp8"), (X,)).module()
    (gradient,) = torch.autograd.grad(program(X).square().sum(), list(program.parameters())[:1], create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        gradient.sum().backward()
