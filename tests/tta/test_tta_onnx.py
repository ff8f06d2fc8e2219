"""ONNX files as workloads: FLOPs and bytes against sums written by hand and PyTorch's own counts; what is refused."""

import doctest
import math
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import lower, memory_of

onnx = pytest.importorskip("onnx", reason="extra onnx is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from softnum.tta.onnx import dynamic_dims, files, graph, read_onnx  # noqa: E402


def weight(name, *shape):
    return helper.make_tensor(name, TensorProto.FLOAT, shape, bytes(4 * math.prod(shape)), raw=True)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def saved(folder, nodes, inputs, weights=(), *, version=23, outputs=("y",), kind=TensorProto.FLOAT):
    """A file of these nodes; every node but the last may leave its name out."""
    given = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "graph", given, results, list(weights))
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)]), path)
    return path


def one(folder, kind, inputs, weights=(), **attributes):
    """The network of one node, whose operands are the inputs, then the weights."""
    names = [*inputs, *(each.name for each in weights)]
    return read_onnx(saved(folder, [helper.make_node(kind, names, ["y"], "n", **attributes)], inputs, weights))


def flops(net, stage="forward", kind="gemm"):
    return sum(op.flops for op in lower(net, net.batch).operations if (op.stage, op.kind) == (stage, kind))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("size", [(11,), (9, 11), (7, 8, 9)])
def test_convolutions_of_every_rank_with_groups_and_dilations(tmp_path, size, groups):
    rank = len(size)
    options = {"group": groups, "dilations": [2] * rank, "strides": [2] * rank, "pads": [1] * (2 * rank)}
    w = weight("w", 6, 4 // groups, *[3] * rank)
    net = one(tmp_path, "Conv", {"x": [2, 4, *size]}, [w, weight("b", 6)], **options)
    out = [(n + 2 - 5) // 2 + 1 for n in size]  # a kernel of 3 with holes covers 5
    macs = 2 * math.prod(out) * 6 * (4 // groups) * 3**rank
    assert net.layers[0].shape == (2, 6, *out)
    assert flops(net) == flops(net, "backward_weight") == 2 * macs
    assert flops(net, "backward_data") == 0  # of the graph's input
    assert flops(net, "backward_weight", "bias") == 2 * 6 * math.prod(out)
    (product,) = [op for op in lower(net, 2).operations if op.stage == "forward"]
    assert product.bytes_read == 4 * (2 * 4 * math.prod(size) + 6 * 4 // groups * 3**rank)
    assert product.bytes_written == 4 * 2 * 6 * math.prod(out)
    assert net.parameters == 6 * 4 // groups * 3**rank + 6


def test_a_transposed_convolution_multiplies_each_input_by_each_place(tmp_path):
    net = one(tmp_path, "ConvTranspose", {"x": [2, 4, 5, 6]}, [weight("w", 4, 3, 3, 2)], group=2, strides=[2, 2])
    assert net.layers[0].shape == (2, 6, 11, 12)
    assert net.macs == 2 * 4 * 5 * 6 * 3 * 3 * 2


@pytest.mark.parametrize(
    ("left", "right", "sizes"),
    [
        ([8, 5, 7], [7, 3], (1, 40, 3, 7)),
        ([8, 5, 7], [8, 7, 3], (8, 5, 3, 7)),
        ([2, 1, 5, 7], [4, 7, 3], (1, 10, 12, 7)),
        ([7], [7, 3], (1, 1, 3, 7)),
        ([5, 7], [7], (1, 5, 1, 7)),
    ],
)
def test_products_of_two_inputs_broadcast(tmp_path, left, right, sizes):
    net = one(tmp_path, "MatMul", {"a": left, "b": right})
    (gemm,) = lower(net, net.batch).gemms
    assert (gemm.count, *gemm.shape) == sizes


def test_a_weight_on_the_left_is_the_weight_all_the_same(tmp_path):
    nodes = [helper.make_node("Gemm", ["w", "x", "b"], ["y"], "n", transB=1, alpha=0.5)]
    net = read_onnx(saved(tmp_path, nodes, {"x": [9, 7]}, [weight("w", 5, 7), weight("b", 5, 9)]))
    work = lower(net, net.batch)
    assert [(gemm.phase, gemm.shape) for gemm in work.gemms] == [("forward", (9, 5, 7)), ("backward_weight", (7, 5, 9))]
    assert flops(net, kind="scale") == 45


@pytest.mark.parametrize(
    ("equation", "left", "right", "macs"),
    [
        ("bhqd,bhkd->bhqk", [2, 3, 5, 7], [2, 3, 6, 7], 2 * 3 * 5 * 7 * 6),
        ("...ij,jk->...ik", [2, 3, 5], [5, 4], 2 * 3 * 5 * 4),
        ("ab,bc", [3, 4], [4, 5], 60),
        ("bi,bj->bij", [4, 3], [4, 5], 60),
    ],
)
def test_einsum_multiplies_once_for_each_set_of_labels(tmp_path, equation, left, right, macs):
    assert one(tmp_path, "Einsum", {"a": left, "b": right}, equation=equation).macs == macs


def test_einsum_of_sums_that_are_no_product_is_refused(tmp_path):
    for equation, shapes, why in (
        ("ii,ij->j", ([3, 3], [3, 4]), "repeats a label"), ("ab,c->c", ([3, 4], [5]), "sums over a, b"),
        ("a,b,c->abc", ([3], [4], [5]), "has 3 operands"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            one(tmp_path, "Einsum", dict(zip("xzw", shapes, strict=False)), equation=equation)


def test_attention_with_shared_keys(tmp_path):
    shapes = {"q": [2, 8, 5, 16], "k": [2, 4, 9, 16], "v": [2, 4, 9, 12]}
    net = one(tmp_path, "Attention", shapes)
    assert [gemm.shape for gemm in lower(net, 2).gemms] == [(5, 9, 16), (5, 12, 9)]
    assert flops(net) == 2 * 2 * 8 * 5 * 9 * (16 + 12)
    assert flops(net, kind="softmax") == 6 * 2 * 8 * 5 * 9
    assert all(op.stage == "forward" for op in lower(net, 2).operations)  # nothing is trained


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_cells(tmp_path, kind, gates):
    weights = [weight("w", 1, gates * 6, 5), weight("r", 1, gates * 6, 6), weight("b", 1, 2 * gates * 6)]
    net = one(tmp_path, kind, {"x": [7, 2, 5]}, weights, hidden_size=6)
    assert net.macs == 7 * 2 * 5 * gates * 6 + 6 * 2 * 6 * gates * 6  # the first state is 0
    assert net.parameters == gates * 6 * (5 + 6 + 2)


def test_elements_and_their_gradients(tmp_path):
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["a"], "mul"),
        helper.make_node("Relu", ["a"], ["r"], "relu"),
        helper.make_node("Reshape", ["r", "shape"], ["s"], "view"),
        helper.make_node("ReduceMean", ["s", "axes"], ["y"], "mean"),
    ]
    net = read_onnx(
        saved(tmp_path, nodes, {"x": [4, 3, 5]}, [weight("gain", 5), ints("shape", 4, 15), ints("axes", 1)])
    )
    rows = [(op.layer, op.stage, op.flops, op.bytes_read, op.bytes_written) for op in lower(net, 4).operations]
    assert rows == [
        ("mul", "forward", 60, 4 * 65, 240), ("relu", "forward", 60, 240, 240), ("mean", "forward", 60, 240, 16),
        ("mean", "backward_data", 4, 16, 240), ("relu", "backward_data", 60, 480, 240),
        ("mul", "backward_weight", 120, 480, 20), ("mul", "update", 10, 40, 20),
    ]  # fmt: skip
    kept = {(t.layer, t.name): t.elements for t in lower(net, 4).tensors if t.tensor_class == "feature_maps"}
    assert kept == {("mul", "input"): 60, ("relu", "output"): 60}
    assert memory_of(lower(net, 4)).peak > 0


def test_integers_keep_their_bytes_under_any_precision(tmp_path):
    nodes = [helper.make_node("Gather", ["w", "i"], ["y"], "rows")]
    net = read_onnx(saved(tmp_path, nodes, {"i": [2, 3]}, [weight("w", 50, 8)], kind=TensorProto.INT64))
    forward, gradient, _ = lower(net, 2, "bfloat16").operations
    assert (forward.kind, forward.flops, forward.bytes_read) == ("embedding", 0, 2 * 48 + 8 * 6)
    assert gradient.flops == 48


def test_shapes_that_a_graph_computes_itself(tmp_path):
    nodes = [
        helper.make_node("Shape", ["x"], ["all"]),
        helper.make_node("Gather", ["all", "zero"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["new"], axis=0),
        helper.make_node("Reshape", ["x", "new"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["y"], "fc"),
    ]
    weights = [ints("zero", 0), ints("rest", -1), weight("w", 12, 4)]
    path = saved(tmp_path, nodes, {"x": ["batch", 3, "side"]}, weights)
    assert dynamic_dims(path) == {"batch": "axis 0 of x", "side": "axis 2 of x"}
    net = read_onnx(path, {"side": 4}, batch=6)
    assert net.operators == {"MatMul": 1} and net.macs == 6 * 12 * 4 and net.batch == 6
    with pytest.raises(ValueError, match=r"without a size: batch \(axis 0 of x\), side \(axis 2 of x\); .*--dim batch"):
        read_onnx(path)
    with pytest.raises(ValueError, match="no dynamic dimension 'sides'; did you mean 'side'"):
        read_onnx(path, {"sides": 4})
    with pytest.raises(ValueError, match="batch 6 and batch=5 contradict"):
        read_onnx(path, {"side": 4, "batch": 5}, batch=6)
    with pytest.raises(ValueError, match="node '(Reshape_3|fc)' "):
        read_onnx(path, {"side": 5}, batch=6)  # 15 features do not fit 12 rows
    with pytest.raises(ValueError, match="at most 2\\^48"):
        read_onnx(path, {"side": 2**50}, batch=6)
    with pytest.raises(ValueError, match="more than 2\\^48 elements"):
        read_onnx(path, {"side": 2**40}, batch=2**30)
    with pytest.raises(ValueError, match="read with a batch of 6, not 7"):
        lower(net, 7)


def test_factors_of_a_size_are_no_parameters_and_unused_results_need_no_gradient(tmp_path):
    factors = numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "f")
    nodes = [
        helper.make_node("Resize", ["x", "", "f"], ["big"], "up", mode="linear"),
        helper.make_node("Split", ["big"], ["", "b"], "halves", axis=1, num_outputs=2),
        helper.make_node("Relu", ["b"], ["unused"], "dead"),
        helper.make_node("Conv", ["b", "w"], ["y"], "conv"),
    ]
    net = read_onnx(saved(tmp_path, nodes, {"x": [2, 4, 5, 6]}, [factors, weight("w", 3, 2, 1, 1)]))
    assert net.parameters == 6 and net.operators == {"Resize": 1, "Split": 1, "Conv": 1}
    assert flops(net, kind="upsample") == 7 * 2 * 4 * 10 * 18  # four corners: four products, three sums
    assert net.macs == 2 * 10 * 18 * 3 * 2
    assert {op.stage for op in lower(net, 2).operations if op.layer != "conv"} == {"forward"}


def test_what_is_not_known_is_named(tmp_path):
    x = {"x": [2, 3]}

    def refused(node, match, **options):
        with pytest.raises(ValueError, match=match):
            read_onnx(saved(tmp_path, [node], x, **options))

    refused(
        helper.make_node("TopK", ["x", "k"], ["y", "i"], "top"), "'top' has the operator TopK", weights=[ints("k", 1)]
    )
    refused(helper.make_node("NonZero", ["x"], ["y"], "nz"), "operator NonZero, whose work is not known")
    quantised = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], "q")
    refused(quantised, "export that before quantisation", weights=[weight("s")])
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "b", [], [
        helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])  # fmt: skip
    condition = numpy_helper.from_array(np.array(True), "c")
    branches = helper.make_node("If", ["c"], ["y"], "if", then_branch=branch, else_branch=branch)
    refused(branches, "how often its body runs", weights=[condition])
    for version, way in ((3, "version_converter"), (99, "newer onnx")):
        refused(helper.make_node("Relu", ["x"], ["y"]), way, version=version)
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], x)
    model = onnx.load(path)
    model.graph.node.append(helper.make_node("FusedGelu", ["x"], ["z"], "g", domain="com.example"))
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    onnx.save(model, path)
    with pytest.raises(ValueError, match="FusedGelu of com.example"):
        read_onnx(path)
    with pytest.raises(ValueError, match="those of a batch of 2"):
        read_onnx(path, batch=4)


def test_files_that_are_not_whole(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = saved(tmp_path, nodes, {"x": [2, 64]}, [weight("w", 64, 4)])
    whole = path.read_bytes()
    for length in (0, 1, 40, len(whole) - 30):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"net\.onnx"):
            read_onnx(path)
    with pytest.raises(FileNotFoundError, match="no ONNX file"):
        read_onnx(tmp_path / "none.onnx")
    path.write_bytes(whole)
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = b"1234"
    onnx.save(model, path)
    with pytest.raises(ValueError, match="'w' has 4 bytes, and its shape .64, 4. and type take 1024"):
        read_onnx(path)
    path.write_bytes(whole)
    model = onnx.load(path)
    model.graph.node[0].input[1] = "missing"
    onnx.save(model, path)
    with pytest.raises(ValueError, match="checker refuses"):
        read_onnx(path)


def test_external_data_are_not_needed_but_checked(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = saved(tmp_path, nodes, {"x": [2, 64]}, [weight("w", 64, 4)])
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert read_onnx(path).macs == 512
    (tmp_path / "w.bin").write_bytes(bytes(100))
    with pytest.raises(ValueError, match="ends at byte 1024 of 'w.bin', which has 100"):
        read_onnx(path)
    (tmp_path / "w.bin").unlink()
    assert read_onnx(path).macs == 512
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../w.bin"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="no file in the model's folder"):
        read_onnx(path)


def test_docstrings_run():
    for module in (files, graph):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed


def test_names_and_ranks_that_no_file_may_have(tmp_path):
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], {"x": [2]})
    path.write_bytes(path.read_bytes().replace(b"Relu", b"\xff\xfflu"))
    with pytest.raises(ValueError, match=r"net\.onnx"):
        read_onnx(path)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "conv", kernel_shape=[3])]
    with pytest.raises(ValueError, match=r"net\.onnx: node 'conv' .Conv."):
        read_onnx(saved(tmp_path, nodes, {"x": [2, 3, 5]}, [weight("w", 4)]))
    constant = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    narrow = helper.make_tensor("q", TensorProto.INT8, [5, 4], bytes(20), raw=True)
    with pytest.raises(ValueError, match="DequantizeLinear, whose work is not known; it is of a quantised network"):
        read_onnx(saved(tmp_path, constant, {"x": [2, 5]}, [narrow, weight("s")]))
    eight = helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [5, 4], bytes(20), raw=True)
    with pytest.raises(ValueError, match="'w' is of a type of 8 bits or fewer"):
        read_onnx(saved(tmp_path, [helper.make_node("Cast", ["w"], ["y"], to=1)], {"x": [2, 5]}, [eight]))


def test_commands_take_a_file(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "fc")]
    path = str(saved(tmp_path, nodes, {"x": ["batch", "n", 64]}, [weight("w", 64, 4)]))

    def run(*words):
        return CliRunner().invoke(build_app(), [str(word) for word in words])

    found = run("estimate", path, "--device", "v100", "--dim", "n=3", "--batch", "2,4", "--per-layer")
    assert found.exit_code == 0 and "fc" in found.output and "net: estimated by roofline" in found.output
    found = run("memory", path, "--dim", "n=3", "--batch", "2", "--device-memory", "1 GB", "--optimiser", "adam")
    assert found.exit_code == 0 and "Fits" in found.output
    for words, text in (
        (("estimate", path, "--device", "v100"), "--dim batch=8"),
        (("estimate", path, "--device", "v100", "--dim", "n=x"), "NAME=SIZE"),
        (("estimate", path, "--device", "v100", "--dim", "n=3", "--dim", "n=4"), "given twice"),
        (("memory", "resnet50", "--dim", "n=3"), "--dim is of a .onnx file"),
        (("tta", "--model", path), "timed and not trained"),
    ):
        found = run(*words)
        assert found.exit_code == 2 and text in found.output, (words, found.output)


@pytest.mark.slow
def test_pytorch_counts_as_many(tmp_path):
    torch = pytest.importorskip("torch", reason="extra torch is not installed")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    class Images(torch.nn.Sequential):
        def __init__(self):
            super().__init__(
                torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                torch.nn.Conv2d(8, 16, 3, dilation=2), torch.nn.ConvTranspose2d(16, 8, 3, stride=2), torch.nn.GELU(),
                torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 10),
            )  # fmt: skip

    class Words(torch.nn.Sequential):
        def __init__(self):
            block = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
            super().__init__(torch.nn.Embedding(50, 32), block, torch.nn.Linear(32, 50))

    for model, x in ((Images(), torch.randn(2, 3, 17, 17)), (Words(), torch.randint(0, 50, (2, 6)))):
        for parameter in model.parameters():  # equal ones become one in the file
            torch.nn.init.normal_(parameter)
        forward, whole = FlopCounterMode(display=False), FlopCounterMode(display=False)
        with sdpa_kernel(SDPBackend.MATH):
            with forward:
                model(x)
            with whole:
                model(x).sum().backward()
        path = tmp_path / "torch.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model, (x,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}},
                training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
            )  # fmt: skip
        net = read_onnx(path, batch=2)
        assert net.parameters == sum(parameter.numel() for parameter in model.parameters())
        assert 2 * net.macs == forward.get_total_flops()
        assert sum(op.flops for op in lower(net, 2).operations if op.gemm) == whole.get_total_flops()
