"""Formats, units and operators of the user's own, through the design file alone: used, recorded, and refused."""

import json

import numpy as np
import pytest

import softnum as sn
from softnum.train import Numerics, Parameter, Settings, Tensor, activation, load_design, operate, run
from softnum.train.engine import tensor as engine
from softnum.train.inspect.gradients import check_gradients
from softnum.train.runs.loop import read_rows

MLP = Settings(network_options={"sizes": (64, 6, 10)}, epochs=1, batch=338, evaluate_every=4)
LSTM = Settings(network="lstm", network_options={"sizes": (8, 4, 10)}, epochs=1, batch=338, evaluate_every=4)
PRODUCTS = ("forward", "backward_data", "backward_weight")

#: the paper's fp8, (1, 5, 2), rounded to nearest even without tables: what a user writes
FP8 = """
#include <math.h>
#include <string.h>
typedef struct { uint s : 1; uint e : 5; uint m : 2; } new_fp;

float as_float(new_fp a) {
    if (a.e == 31) return a.m ? NAN : a.s ? -INFINITY : INFINITY;
    float value = a.e ? ldexpf(4 + a.m, (int)a.e - 17) : ldexpf(a.m, -16);
    return a.s ? -value : value;
}

new_fp convert(float x) {
    new_fp r = { signbit(x) != 0, 31, 0 };
    x = fabsf(x);
    if (isnan(x)) return (new_fp){ 0, 31, 2 };
    if (x >= 61440) return r;
    int e = x < 0x1p-14f ? -14 : ilogbf(x);
    uint n = (uint)nearbyintf(ldexpf(x, 2 - e));   /* in units of the last place: below 8, or 8 at the next binade */
    if (n == 8) { n = 4; e++; }
    r.e = n < 4 ? 0 : e + 15;
    r.m = n & 3;
    return r;
}
"""
MAD = """
import numpy as np
import softnum as sn
from softnum import kernels

e6m9 = kernels.scalar("e6m9")
ready = sn.ExactDotUnit("binary32", operand="binary32")
number = 3


def mad(acc, a, b):
    return e6m9.fma(a, b, acc)


def four(a, b, c, d):
    return a


def loops(acc, a, b):
    return acc + undefined_name
"""
TILE = {
    "exact_tanh.tile": "function (X) -> (Y) { Y = tanh(X); }",
    "exact_sigmoid.tile": "function (X) -> (Y) { Y = sigmoid(X); }",
    "clip.tile": "function (X) -> (Y) { Y = X < -1 ? -1 : X > 1 ? 1 : X; }",
    "scaled.tile": "function (X) -> (Y) { Y = 0.75 * tanh(X); }",
    "two.tile": "function (X) -> (Y, Z) { Y = tanh(X); Z = X * X; }",
    "sum.tile": "function (X[B, N]) -> (Y) { Y[b, 0: B, 1] = +(X[b, n]); }",
    "wrong.tile": "function (X) -> (Y) {\n    Y = tahn(X);\n}",
    "dense.tile": "function (X[B, K], W[K, N]) -> (Y) { Y[b, n: B, N] = +(X[b, k] * W[k, n]); }",
    "step.tile": "function (X) -> (Y) { Y = X > 0 ? 1 : -1; }",
    "leaky.tile": "function (X) -> (Y) { Y = X > 0 ? X : 0.125 * X; }",
}


@pytest.fixture
def folder(tmp_path):
    """A folder of a user's files."""
    (tmp_path / "fp8.c").write_text(FP8)
    (tmp_path / "my_mad.py").write_text(MAD)
    for name, text in TILE.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def write(folder, text, name="mine"):
    file = folder / f"{name}.toml"
    file.write_text(text)
    return load_design(file)


def roles(fmt, names=("weights", "activations", "errors")):
    return "[roles]\n" + "".join(f'{name} = "{fmt}"\n' for name in names)


def rows_of(design, settings, folder):
    return read_rows(run(design, settings, seed=2, out=folder / "runs"))


# -- formats -----------------------------------------------------------------------------------------------------------
def test_a_format_in_c_trains_as_the_built_in_one(folder):
    """Every role but those that round stochastically; operands, elementwise arithmetic, optimiser."""
    everything = roles("{}", ("default", "elementwise", "update.decay", "master"))
    units = "[units]\n" + "".join(f'{key} = {{ accumulator = "binary32" }}\n' for key in PRODUCTS)
    loss = "[loss]\nscale = 256\n"
    own = write(folder, everything.format(*["fp8.c:new_fp"] * 4) + units + loss, "own")
    built_in = write(folder, everything.format(*["e5m2"] * 4) + units + loss, "built-in")
    a, b = (rows_of(design, LSTM, folder) for design in (own, built_in))
    assert a[1:] == b[1:] and len(a) == 5
    config = a[0]["config"]["design"]
    assert config["layers"]["fc"]["roles"]["weights"]["format"] == "fp8.c:new_fp"
    assert list(config["sources"]) == ["fp8.c:new_fp"] and len(config["sources"]["fp8.c:new_fp"]) == 64
    assert [file.name for file in own.files] == ["fp8.c"]
    assert b[0]["config"]["design"]["sources"] == {}


def test_a_format_in_c_is_an_accumulator_with_its_own_arithmetic(folder):
    """A user's add that drops what it is given second shows in every sum."""
    (folder / "deaf.c").write_text(FP8 + "new_fp add(new_fp a, new_fp b) { (void)b; return a; }\n")
    text = roles("deaf.c:new_fp") + '[units]\nforward = { accumulator = "deaf.c:new_fp", product = "deaf.c:new_fp" }\n'
    layer = Numerics(write(folder, text), ["fc1", "fc2"], seed=1).layer("fc2")
    ones = np.ones((1, 5), np.float32)
    assert layer.matmul("forward", ones, ones.T, np.float32([[3.0]])).tolist() == [[3.0]]


def test_posits_train_by_name(folder):
    """A design that names them trains as one whose units are those of the same formats made by hand."""
    design = load_design("examples/custom/posits.toml")
    rows = rows_of(design, MLP, folder)
    assert [row["loss"] for row in rows[1:] if "loss" in row][-1] < 2.3
    facts = rows[0]["config"]["design"]
    assert facts["layers"]["fc1"]["roles"]["weights"] == facts["layers"]["fc1"]["roles"]["activations"]
    assert facts["layers"]["fc1"]["roles"]["weights"]["format"] == "posit8" and not facts["sources"]
    assert facts["layers"]["fc1"]["units"]["forward"]["accumulator"] == "posit16"
    text = roles("posit8") + '[units]\nforward = { accumulator = "posit8" }\n'
    layer = Numerics(write(folder, text), ["fc1", "fc2"], seed=1).layer("fc2")
    x = sn.quantize(np.linspace(-3, 3, 15, dtype=np.float32).reshape(3, 5), "posit8")
    unit = sn.MadUnit("posit8", operand="posit8")
    assert np.array_equal(layer.matmul("forward", x, x.T), sn.matmul(x, x.T, unit))


def test_logarithmic_numbers_train_by_name(folder):
    """The products of a layer are those of a unit of the same formats."""
    design = load_design("examples/custom/logarithms.toml")
    rows = rows_of(design, MLP, folder)
    losses = [row["loss"] for row in rows[1:] if "loss" in row]
    assert losses[-1] < losses[0]
    assert rows[0]["config"]["design"]["layers"]["fc1"]["roles"]["errors"]["format"] == "lns5.10"
    text = roles("takum8") + '[units]\nforward = { accumulator = "binary32", product = "binary32" }\n'
    layer = Numerics(write(folder, text), ["fc1", "fc2"], seed=1).layer("fc2")
    x = sn.quantize(np.linspace(-3, 3, 15, dtype=np.float32).reshape(3, 5), "takum8")
    unit = sn.MadUnit("binary32", operand="takum8", product="binary32")
    assert np.array_equal(layer.matmul("forward", x, x.T), sn.matmul(x, x.T, unit))


# -- units -------------------------------------------------------------------------------------------------------------
def test_a_units_function_trains_as_the_built_in_unit(folder):
    unit = '{{ kind = "custom", function = "my_mad.py:mad", accumulator = "e6m9"{} }}'
    built_in = '{{ kind = "mad", accumulator = "e6m9"{} }}'
    texts = [
        roles("e5m2") + "[units]\n" + "".join(f"{key} = {kind.format(', chunk = 16')}\n" for key in PRODUCTS)
        for kind in (unit, built_in)
    ]
    own, other = write(folder, texts[0], "own"), write(folder, texts[1], "built-in")
    a, b = (rows_of(design, MLP, folder) for design in (own, other))
    assert a[1:] == b[1:]
    facts = a[0]["config"]["design"]["layers"]["fc1"]["units"]["forward"]
    assert (facts["kind"], facts["function"], facts["chunk"]) == ("custom", "my_mad.py:mad", 16)
    assert list(a[0]["config"]["design"]["sources"]) == ["my_mad.py:mad"]


MAD_IN_C = """
static new_fp product(new_fp a, new_fp b) { return convert(as_float(a) * as_float(b)); }   /* exact in a float */

new_fp4 mad(new_fp4 a, new_fp4 b) {
    return (new_fp4){ product(a.x, b.x), product(a.y, b.y), product(a.z, b.z), product(a.w, b.w) };
}
"""


def test_a_format_and_its_unit_from_one_c_file_train_as_the_built_in_ones(folder):
    """The paper's two listings together: four products at a time, rounded to fp8, added in fp8."""
    (folder / "wang.c").write_text(FP8 + MAD_IN_C)
    unit = '{ kind = "custom", function = "wang.c:mad", chunk = 16 }'
    built_in = '{ accumulator = "e5m2", product = "e5m2", lanes = 4, chunk = 16 }'
    loss = '[loss]\nscale = 64\n[units]\nbackward_weight = { accumulator = "binary32" }\n'
    both = "forward = {0}\nbackward_data = {0}\n"
    own = write(
        folder, roles("wang.c:new_fp", ("weights", "input", "activations", "errors")) + loss + both.format(unit)
    )
    other = write(
        folder, roles("e5m2", ("weights", "input", "activations", "errors")) + loss + both.format(built_in), "other"
    )
    a, b = (rows_of(design, MLP, folder) for design in (own, other))
    assert a[1:] == b[1:] and a[-1]["loss"] < a[1]["loss"]
    assert sorted(a[0]["config"]["design"]["sources"]) == ["wang.c:mad", "wang.c:new_fp"]
    assert [file.name for file in own.files] == ["wang.c"]


def test_a_unit_that_is_there_already(folder):
    design = write(folder, '[units]\nforward = { kind = "custom", function = "my_mad.py:ready" }\n')
    layer = design.layer("fc1")
    assert layer.units["forward"] == sn.ExactDotUnit("binary32", operand="binary32")
    assert layer.describe()["units"]["forward"]["function"] == "my_mad.py:ready"


# -- operators ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "rounding", ['"e6m9"', '{ format = "binary16", rounding = "toward_zero" }', '{ format = "q4.8" }']
)
def test_an_operator_that_says_tanh_is_the_exact_function(rounding, folder):
    """Forwards and backwards: the derived gradients are softnum.train.engine.functions', operation by operation."""
    text = f"[roles]\nelementwise = {rounding}\n"
    operators = '[operators]\ntanh = "exact_tanh.tile"\nsigmoid = "exact_sigmoid.tile"\n'
    exact, own = write(folder, text, "exact"), write(folder, text + operators, "own")
    a, b = (rows_of(design, LSTM, folder) for design in (exact, own))
    assert a[1:] == b[1:]
    assert b[0]["config"]["design"]["layers"]["fc"]["operators"] == {
        "tanh": "exact_tanh.tile", "sigmoid": "exact_sigmoid.tile",
    }  # fmt: skip
    assert sorted(b[0]["config"]["design"]["sources"]) == ["exact_sigmoid.tile", "exact_tanh.tile"]


def test_operators_of_some_layers_win(folder):
    text = '[operators]\ntanh = "exact_tanh.tile"\n[layers."lstm.hidden".operators]\ntanh = "scaled.tile"\n'
    design = write(folder, text)
    names = [design.layer(name).operators["tanh"].source for name in ("lstm.input", "lstm.hidden")]
    assert names == ["exact_tanh.tile", "scaled.tile"]
    layer = Numerics(design, ["lstm.input", "lstm.hidden", "fc"], seed=1).layer("lstm.hidden")
    x = Tensor(np.float32([[0.5]]), layer.numerics.backend, requires_gradient=True)
    y = activation("tanh", x, layer)
    tanh = sn.tanh(sn.array(np.float32([[0.5]]), "binary32"))
    assert y.value == np.asarray(sn.multiply(tanh, sn.array([[0.75]], "binary32")))


def test_relu_is_replaced_too(folder):
    own = write(folder, '[operators]\nrelu = "leaky.tile"\n')
    rows = rows_of(own, MLP, folder)
    plain = rows_of(write(folder, 'name = "plain"\n', "plain"), MLP, folder)
    assert rows[1]["loss"] != plain[1]["loss"] and rows[-1]["loss"] < rows[1]["loss"]


BINARY64 = (
    roles("binary64", ("default",)) + "[units]\n" + "".join(f'{k} = {{ accumulator = "binary64" }}\n' for k in PRODUCTS)
)


@pytest.mark.parametrize("text", ["exact_tanh.tile", "scaled.tile"])
def test_gradients_of_operators_agree_with_finite_differences(text, folder):
    from tests.support.lstm_cases import loss_of, small

    case = small(folder, BINARY64 + f'[operators]\ntanh = "{text}"\n')
    # the file lies beside the design
    assert check_gradients(loss_of(*case), case[0].parameters) < 1e-7


def test_an_operator_with_sums_is_a_layer(folder):
    """A matrix product in Tile has the bits of softnum.train.engine.tensor.linear, forwards and backwards."""
    text = (
        '[roles]\nweights = "e4m3"\nactivations = "e5m2"\nerrors = "e5m2"\nweight_gradients = "e6m9"\n'
        '[loss]\nscale = 64\n[units]\nforward = { accumulator = "e6m9", chunk = 8 }\n'
        'backward_data = { accumulator = "e6m5" }\nbackward_weight = { accumulator = "e6m7" }\n'
    )
    layer = Numerics(write(folder, text), ["fc1", "fc2"], seed=1).layer("fc2")
    backend, rng = layer.numerics.backend, np.random.default_rng(3)
    x, w, errors = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 20), (20, 4), (6, 4)))
    found = []
    for make in (
        lambda a, b: engine.linear(a, b, Parameter(np.zeros(4, np.float32), layer, "bias"), layer),
        lambda a, b: operate(sn.operator(folder / "dense.tile"), (a, b), layer),
    ):
        a, b = Tensor(x, backend, requires_gradient=True), Parameter(w, layer, "weight")
        y = make(a, b)
        y.backward(errors)
        found.append((y.value, a.gradient, b.gradient))
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


def test_what_an_output_does_not_depend_on_has_a_gradient_of_zero(folder):
    layer = Numerics(write(folder, 'name = "plain"\n'), ["fc1", "fc2"], seed=1).layer("fc2")
    backend, ones = layer.numerics.backend, np.ones((2, 3), np.float32)
    second = sn.operator("function (X, W) -> (Y) { Y = W < 5 ? 2 * X : 0; }")
    x, w = Tensor(ones, backend, requires_gradient=True), Parameter(4 * ones, layer, "weight")
    operate(second, (x, w), layer).backward(ones)
    assert x.gradient.tolist() == (2 * ones).tolist() and w.gradient.tolist() == (0 * ones).tolist()
    twice = Tensor(ones, backend, requires_gradient=True)
    operate(second, (twice, twice), layer).backward(ones)
    assert twice.gradient.tolist() == (2 * ones).tolist()
    losses = [row["loss"] for row in rows_of(write(folder, '[operators]\nrelu = "step.tile"\n'), MLP, folder)[1:]]
    assert losses[-1] < losses[0]  # the last layer learns, those before it stay


def test_an_operator_rounds_stochastically_with_the_runs_key(folder):
    text = '[roles]\nelementwise = { format = "e6m9", rounding = "stochastic", stochastic_bits = 10 }\n'
    design = write(folder, text + '[operators]\ntanh = "scaled.tile"\n')
    records = [
        run(design, LSTM, seed=seed, out=folder / str(threads), threads=threads).read_bytes()
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    ]
    assert records[0] == records[1]
    losses = [[json.loads(line)["loss"] for line in record.splitlines()[1:]] for record in records]
    assert losses[0] != losses[2]
    nearest = write(folder, '[roles]\nelementwise = "e6m9"\n[operators]\ntanh = "scaled.tile"\n', "nearest")
    assert [row["loss"] for row in rows_of(nearest, LSTM, folder)[1:]] != losses[2]


def test_one_output_is_a_layer(folder):
    layer = Numerics(write(folder, ""), ["fc1"], seed=1).layer("fc1")
    with pytest.raises(ValueError, match="two.tile: a layer has one output, this operator has Y, Z"):
        operate(sn.operator(folder / "two.tile"), (Tensor(np.zeros((1, 1), "f4"), layer.numerics.backend),), layer)


def test_a_changed_operator_is_another_run(folder):
    design = write(folder, '[operators]\ntanh = "scaled.tile"\n')
    run(design, LSTM, seed=1, out=folder)
    (folder / "scaled.tile").write_text(TILE["scaled.tile"].replace("0.75", "0.5"))
    with pytest.raises(ValueError, match=r"another run: config.design.sources.scaled.tile is"):
        run(load_design(design.path), LSTM, seed=1, out=folder)


# -- what is refused ---------------------------------------------------------------------------------------------------
WEIGHTS = "[roles]\nweights = "
UNIT = '[units]\nforward = { kind = "custom"'
TANH = "[operators]\ntanh = "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WEIGHTS + '"none.c:new_fp"', r"roles.weights.format: no file .*none\.c"),
        (WEIGHTS + '"fp8.c:old_fp"', r"roles.weights.format: .*old_fp"),
        (WEIGHTS + '"broken.c:fp"', r"roles.weights.format: .*broken.c:3"),
        (UNIT + " }", "units.forward: has no function"),
        (UNIT + ', functoin = "a.py:b" }', "unknown key 'functoin'; did you mean 'function'"),
        (UNIT + ", function = 3 }", "units.forward.function: must be 'file.py:name', got 3"),
        (UNIT + ', function = "none.py:mad" }', "units.forward.function: no file .*none.py"),
        (UNIT + ', function = "my_mad.py:mda" }', "my_mad.py has no object 'mda'"),
        (UNIT + ', function = "my_mad.py:number" }', "must be a function or a unit, got int"),
        (UNIT + ', function = "my_mad.py:ready", lanes = 2 }', "is a unit already; leave out lanes"),
        (TANH + "3", "operators.tanh: must be a Tile file's name, got 3"),
        (TANH + '"none.tile"', r"operators.tanh: no file .*none\.tile"),
        (TANH + '"wrong.tile"', r"operators.tanh: wrong.tile, line 2, column 9: .*'tahn'"),
        (TANH + '"my_mad.py:number"', "operators.tanh: 'my_mad.py:number' is not an operator but int"),
        (TANH + '"fp8.c:new_fp"', "operators.tanh: .*expected an object of a Python file or module, not of a C file"),
        ('[layers."fc".operators]\ntanh = "none.tile"', r'layers."fc".operators.tanh: no file .*none\.tile'),
        ('[layers."fc"]\noperator = {}', r"unknown key 'operator'; did you mean 'operators'"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(folder, text, message):
    (folder / "broken.c").write_text("typedef struct { uint s : 1; } fp;\nfloat as_float(fp a) {\n  return a.t;\n}\n")
    file = folder / "bad.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match="(?s)" + message) as caught:
        load_design(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[operators]\nthan = "exact_tanh.tile"',
            r"no function 'than'; did you mean 'tanh'\? \(it has sigmoid, tanh\)",
        ),
        ('[operators]\nrelu = "leaky.tile"', "operators: the network has no function 'relu'"),
        (
            TANH + '"two.tile"',
            "operators.tanh: 'two.tile' takes 1 tensors to 2, element by element; tanh needs a function",
        ),
        (TANH + '"sum.tile"', "'sum.tile' takes 1 tensors to 1, not element by element"),
        (
            '[layers."lstm.input".operators]\ntanh = "scaled.tile"',
            r'layers."lstm.input".operators: no layer that matches computes .tanh.; the layers that do are lstm.hidden',
        ),
        ('[layers."lstm.*".operators]\ntanh = "dense.tile"', r'layers."lstm.\*".operators.tanh: .dense.tile. takes 2'),
        (UNIT + ', function = "my_mad.py:four", accumulator = "binary32" }', "units.forward: .*four.*my_mad.py"),
        (UNIT + ', function = "fp8.c:mad", accumulator = "e5m2" }', "units.forward: .*mad"),
        (UNIT + ', function = "my_mad.py:mad", lanes = [4] }', r"units.forward: lanes must be .*, got \[4\]"),
        (
            UNIT + ', function = "fp8.c:mad", carrier = "codes" }',
            "'fp8.c:mad' declares its number types; leave out carrier",
        ),
        (UNIT + ', function = "my_mad.py:loops", accumulator = "binary32" }', "cannot train, .*undefined_name"),
    ],
)
def test_what_does_not_fit_the_network_leaves_no_file(folder, text, message):
    design = write(folder, text)
    before = sorted(folder.iterdir())
    with pytest.raises(ValueError, match="(?s)" + message) as caught:
        run(design, LSTM, seed=1, out=folder / "runs")
    assert str(design.path) in str(caught.value) and sorted(folder.iterdir()) == before


def test_records_are_plain_json(folder):
    design = write(folder, roles("fp8.c:new_fp") + '[operators]\ntanh = "clip.tile"\n')
    assert json.loads(json.dumps(design.describe(["lstm.input", "fc"])))["sources"].keys() == {
        "fp8.c:new_fp",
        "clip.tile",
    }


def test_an_operator_that_makes_nans_is_named_with_its_place(folder):
    (folder / "log.tile").write_text("function (X) -> (Y) {\n    Y = log(X);\n}")
    design = write(folder, '[operators]\nrelu = "log.tile"\n')
    message = r"cannot train, its first samples end with: .*log.tile, line 2, column 9: Y\[.*\] is NaN where X is -"
    with pytest.raises(ValueError, match=message):
        run(design, Settings(epochs=1), seed=1, out=folder / "runs")
    assert not (folder / "runs").exists()
