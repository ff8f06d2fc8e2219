"""`softnum.torch.workload` and `gemms`: what they leave as it was, and what they count."""

import copy
import math
from collections import OrderedDict

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import softnum.torch as st  # noqa: E402
from softnum.torch.dataflow.steps import Step  # noqa: E402
from softnum.torch.products import workload_of_step  # noqa: E402
from softnum.train import load_design, workload  # noqa: E402
from softnum.tta import memory_of  # noqa: E402


def counted(model, *inputs, design="a-float32", optimizer=None, **options):
    model = st.convert(model, design, quiet=True, **options)
    own = None if optimizer is None else optimizer(model)
    return st.workload(model, *inputs, batch=len(inputs[0]), optimizer=own)


def tensors(work, kind):
    return [(x.layer, x.name, x.elements, x.format) for x in work.tensors if x.tensor_class == kind]


# -- what is left as it was --------------------------------------------------------------------------------------------


class Caching(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.table, self.calls, self.seen, self.by_size = torch.nn.Linear(4, 4), None, 0, [], {}
        self.register_buffer("scales", None)
        self.sums = torch.zeros(4)

    def forward(self, x):
        if self.table is None:
            self.table = torch.linspace(0, 1, 4)
        if len(x) not in self.by_size:
            self.by_size[len(x)] = torch.ones(len(x), 1)
        if self.scales is None:
            self.scales = torch.ones(4)
        self.calls += 1
        self.seen.append(x)
        self.sums += x.detach().sum(0)
        return self.first(x) * self.scales + self.table * self.by_size[len(x)]


@pytest.mark.parametrize("asks", [False, True])
def test_modules_keep_nothing_of_what_was_counted(asks):
    class Model(Caching):
        def forward(self, x):
            y = super().forward(x)
            return y * 2 if asks and y.sum().item() > 1e9 else y

    model, x = st.convert(Model(), "a-float32", quiet=True, elementwise="torch"), torch.ones(2, 4)
    st.gemms(model, x)
    st.workload(model, x, batch=2)
    assert (
        model.table is model.scales is None
        and not model.sums.any()
        and (model.calls, model.seen, model.by_size) == (0, [], {})
    )
    y = model(x)
    assert type(y) is torch.Tensor and type(model.table) is torch.Tensor
    st.gemms(model, x)
    assert torch.equal(model(x), y)


def test_delayed_scales_are_left_as_they_were():
    class Chosen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.fc = (torch.nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            h = self.second(self.first(x))
            return self.fc(h[h.sum(1) > -1e9])

    torch.manual_seed(0)
    model = st.convert(Chosen(), "te-delayed-scaling", quiet=True, elementwise="torch")
    model(torch.randn(8, 8)).sum().backward()
    st.next_step(model)
    before = copy.deepcopy(model.state_dict())
    assert any(name.startswith("softnum_scale") for name in before)
    st.gemms(model, 9 * torch.randn(8, 8))
    st.workload(model, 9 * torch.randn(8, 8), batch=8)
    after = model.state_dict()
    assert after.keys() == before.keys() and all(torch.equal(after[name], x) for name, x in before.items())


def test_sites_in_program_order_are_left_as_they_were():
    model = st.convert(torch.nn.Linear(4, 4), "g-q44-stochastic", quiet=True, program_order=True)
    st.gemms(model, torch.ones(2, 4))
    model(torch.ones(2, 4))
    st.workload(model, torch.ones(2, 4), batch=2)


# -- what is refused ---------------------------------------------------------------------------------------------------


class Times(torch.nn.Module):
    def __init__(self, *shape, dtype=torch.float32):
        super().__init__()
        self.other = torch.nn.Parameter(torch.zeros(*shape, dtype=dtype))

    def forward(self, x):
        return x @ self.other


@pytest.mark.parametrize("model, shape", [
    (torch.nn.Linear(64, 10), (32, 65)),
    (torch.nn.Conv2d(3, 4, 3), (2, 4, 8, 8)),
    (torch.nn.Conv2d(3, 4, 3), (2, 3, 2, 9)),
    (Times(7, 3), (2, 5)),
    (Times(2, 7, 3), (2, 4, 5)),
    (Times(5, 3, dtype=torch.float64), (2, 5)),
])  # fmt: skip
def test_operands_that_do_not_belong_together_are_refused_as_by_a_real_call(model, shape):
    model, x = st.convert(copy.deepcopy(model), "a-float32", quiet=True), torch.zeros(shape)
    with pytest.raises(ValueError) as real:
        model(x)
    for count in (st.gemms, lambda *call: st.workload(*call, batch=2)):
        with pytest.raises(ValueError) as found:
            count(model, x)
        assert str(found.value) == str(real.value)


# -- what is counted ---------------------------------------------------------------------------------------------------


class Changing(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.first, self.second, self.change = torch.nn.Linear(100, 100), torch.nn.Linear(100, 100), change

    def forward(self, x):
        return self.second(self.change(self.first(x).clone()))


@pytest.mark.parametrize("elementwise", ["torch", "exact"])
def test_a_part_that_is_changed_leaves_the_rest(elementwise):
    def part(h):
        h[:, 0] += 1
        return h

    def whole(h):
        h += 1
        return h

    def filled(h):
        h[:, 0] = 0
        return h

    x = torch.zeros(50, 100)
    plain, added, wholly, zeros = (
        counted(Changing(change), x, elementwise=elementwise) for change in (lambda h: h, part, whole, filled)
    )
    assert sum("empty" in part.kind for part in added.operations) == 0

    def read(work):
        product = [part for part in work.operations if part.layer == "second" and part.stage == "backward_weight"]
        return product[0].bytes_read

    maps = memory_of(plain).allocated["feature_maps"]
    assert read(plain) == read(wholly) == read(zeros)
    assert read(plain) <= read(added) <= read(plain) + 8
    assert memory_of(zeros).allocated["feature_maps"] == maps
    assert maps < memory_of(added).allocated["feature_maps"] <= maps + 3 * 4 * 50 + 8


@pytest.mark.parametrize("elementwise, fmt", [("torch", "binary32"), ("exact", "e6m9")])
def test_buffers_are_state_and_no_samples(elementwise, fmt):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.fc = torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4)
            self.register_buffer("table", torch.zeros(32, 8))

        def forward(self, x):
            return self.fc(self.norm(self.first(x + self.table[: len(x)])))

    def work(model, size=5):
        return st.workload(model, torch.zeros(size, 8), batch=size)

    model = st.convert(Model(), "c-wang-fp8", quiet=True, elementwise=elementwise)
    found = work(model)
    assert tensors(found, "optimiser_state")[-3:] == [
        ("", "table", 256, "binary32"), ("norm", "running_mean", 16, fmt), ("norm", "running_var", 16, fmt),
    ]  # fmt: skip
    samples = [(x.name, x.elements) for x in found.tensors if x.per_sample and x.live and x.live[0] == 0]
    assert ("table", 256) not in samples and max(size for _, size in samples) <= 80
    norm = [part for part in found.operations if part.layer == "norm" and part.stage == "forward"]
    evaluated = [part for part in work(model.eval()).operations if part.layer == "norm" and part.stage == "forward"]
    written = [sum(part.bytes_written for part in parts) for parts in (norm, evaluated)]
    statistics = 2 * 16 * (4 if fmt == "binary32" else 2)
    assert written[0] >= statistics + 5 * 16 * 2 > written[1]


def test_operands_that_are_buffers_are_no_samples():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(8, 4)
            self.register_buffer("table", torch.zeros(32, 8))

        def forward(self, x):
            return x @ self.fc(self.table).T

    work = counted(Model(), torch.zeros(2, 4), design="c-wang-fp8")
    assert [x.per_sample for x in work.tensors if x.elements == 256 and x.tensor_class == "feature_maps"] == [False]


@pytest.mark.parametrize("elementwise", ["exact", "torch"])
def test_tensors_of_modules_and_of_the_program_are_no_samples(elementwise):
    class Model(torch.nn.Module):
        def __init__(self, own):
            super().__init__()
            self.fc, self.tables = torch.nn.Linear(8, 4), {"scales": [torch.linspace(0, 1, 64).view(8, 8)]}
            self.own = own

        def forward(self, x):
            if self.own:
                return self.fc(x @ self.tables["scales"][0]) * torch.tensor([1.0, 2.0, 3.0, 4.0])
            return self.fc(x @ torch.eye(8)) * torch.ones(4)

    works = [counted(Model(own), torch.zeros(2, 8), elementwise=elementwise) for own in (True, False)]
    assert works[0].tensors == works[1].tensors
    assert [x.elements for x in works[0].tensors if x.name in ("samples", "input")] == [16]


def test_a_narrower_dtype_is_that_of_what_is_kept():
    def work(dtype, optimizer):
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8)).to(dtype)
        return counted(model, torch.zeros(5, 8, dtype=dtype), optimizer=optimizer)

    def own(model):
        return torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)

    def ours(model):
        return st.Optimizer(own(model), model)

    def allocated(*arguments):
        return memory_of(work(*arguments)).allocated

    wide, narrow = allocated(torch.float32, own), allocated(torch.bfloat16, own)
    assert set(wide) == set(narrow)
    for kind, size in wide.items():
        assert abs(size - 2 * narrow[kind]) <= 40, kind  # bits of signs
    held = work(torch.bfloat16, ours)
    assert {x.format for x in held.tensors if x.tensor_class != "optimiser_state"} <= {"bfloat16", "bit"}
    states = [(name, fmt) for _, name, _, fmt in tensors(held, "optimiser_state")][:2]
    assert sorted(states) == [("weight master", "binary32"), ("weight velocity", "binary32")]
    assert len(tensors(held, "optimiser_state")) == 8


@pytest.mark.parametrize("momenta", [(0.0, 0.9), (0.9, 0.0)])
def test_a_parameters_constants_are_those_of_its_group(momenta):
    def optimizer(model):
        groups = [{"params": model[i].parameters(), "momentum": x, "nesterov": x > 0} for i, x in enumerate(momenta)]
        return torch.optim.SGD(groups, lr=1.0)

    def work(optimizer):
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        return counted(model, torch.zeros(5, 8), optimizer=optimizer)

    kept = str(momenta.index(0.9))
    found = work(optimizer)
    assert {layer for layer, *_ in tensors(found, "optimiser_state")} == {kept}
    for updated in (found, work(lambda model: st.Optimizer(optimizer(model), model))):
        flops = {part.layer: part.flops for part in updated.operations if part.stage == "update"}
        assert flops[kept] == max(flops.values()) > min(flops.values())


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("elementwise", ["torch", "exact"])
def test_what_a_checkpoint_computes_again_is_of_its_layers(elementwise, reentrant):
    class Model(torch.nn.Module):
        def __init__(self, kept):
            super().__init__()
            self.kept, self.blocks = kept, torch.nn.ModuleList()
            for _ in range(4):
                block = torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)
                self.blocks.append(torch.nn.Sequential(*block))

        def forward(self, x):
            for block in self.blocks:
                x = block(x) if self.kept else checkpoint(block, x, use_reentrant=reentrant)
            return x

    x = torch.zeros(16, 8, requires_grad=True)
    plain, again = (counted(Model(kept), x, elementwise=elementwise) for kept in (True, False))
    assert [x.elements for x in again.tensors if x.name in ("samples", "input")] == [16 * 8]

    def known(work, forward):
        return sorted(
            (part.layer, part.kind, part.flops) for part in work.operations
            if (part.stage == "forward") == forward
        )  # fmt: skip

    assert known(again, False) == known(plain, False)
    computed = known(again, True)
    for part in known(plain, True):
        last = part[0] in ("blocks.0.2", "blocks.1.2", "blocks.2.2", "blocks.3.2")
        assert computed.count(part) == 2 or (last and not reentrant)
    assert memory_of(again).peak < memory_of(plain).peak


@pytest.mark.parametrize("design", ["a-float32", "c-wang-fp8"])
def test_rows_that_are_looked_up_are_moved(design):
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 16), torch.nn.Linear(16, 4))
    work = counted(model, torch.zeros(4, 8, dtype=torch.int64), design=design, known_as={"1": "fc"})
    first, *_, last = work.operations
    bits, errors = (32, 32) if design == "a-float32" else (16, 8)  # of the last layer's operands; of the first's errors
    assert (first.layer, first.kind) == ("1", "gemm")
    assert first.bytes_read == (4 * 8 * 16 + 64 + 4) * bits // 8
    assert (last.layer, last.stage, last.flops) == ("0", "backward_weight", 2 * 4 * 8 * 16)
    assert (last.bytes_read, last.bytes_written) == (4 * 8 * 16 * errors // 8, 16000 * bits // 8)
    assert all(x.elements <= 4 * 8 * 16 for x in work.tensors if x.per_sample)


@pytest.mark.parametrize("elementwise", ["torch", "exact"])
def test_a_dropouts_mask_is_one_bit_an_element(elementwise):
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4))
    work = counted(model, torch.zeros(32, 16), elementwise=elementwise)
    kept = [(x.elements, x.bits) for x in work.tensors if x.layer == "1" and x.live and x.live[1] > 2]
    assert sorted(kept) == [(512, 1), (512, 32), (512, 32)]
    part = next(part for part in work.operations if part.layer == "1")
    assert (part.bytes_read, part.bytes_written) == (2048, 2048 + 64)


@pytest.mark.parametrize("elementwise", ["torch", "exact"])
@pytest.mark.parametrize("network, kind, module, shape", [
    ("transformer", "layer_norm", torch.nn.LayerNorm(32), (64, 32)),
    ("resnet", "batch_norm", torch.nn.BatchNorm2d(32), (8, 32, 4, 4)),
    ("transformer", "softmax", torch.nn.Softmax(-1), (128, 8)),
])  # fmt: skip
def test_functions_of_several_steps_count_about_as_in_softnum_train(network, kind, module, shape, elementwise):
    def flops(work):
        """Of the first such layer that is alone: forwards the first operation, backwards the last."""
        found = [
            (x.stage, x.flops / math.prod(shape)) for x in work.operations if x.kind.removeprefix("scale+") == kind
        ]
        return dict([*found, found[0]])

    model = torch.nn.Sequential(copy.deepcopy(module))
    ours = flops(counted(model, torch.zeros(shape, requires_grad=True), elementwise=elementwise))
    theirs = flops(workload(network, load_design("a-float32"), 8))
    assert ours.keys() == theirs.keys() == {"forward", "backward_data"}
    scale = int(kind == "softmax")  # of an attention, forwards and backwards
    for stage, flops in theirs.items():
        assert ours[stage] == pytest.approx(flops - scale, rel=0.05), stage


@pytest.mark.parametrize("design", ["a-float32", "i-mxfp8"])
def test_all_but_the_loss_is_that_of_the_same_network_in_softnum_train(design):
    layers = [("fc1", torch.nn.Linear(64, 128)), ("relu", torch.nn.ReLU()), ("fc2", torch.nn.Linear(128, 10))]
    net = st.convert(torch.nn.Sequential(OrderedDict(layers)), design, quiet=True, elementwise="exact")
    step = Step(net, lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]))
    optimizer = st.Optimizer(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4), net)
    batch = torch.zeros(32, 64), torch.zeros(32, dtype=torch.int64)

    def operations(work):
        return [
            (x.stage, x.kind, x.flops, x.bytes_read, x.bytes_written, x.formats) for x in work.operations
            if x.layer != "loss"
        ]  # fmt: skip

    ours = operations(workload_of_step(step, batch, 32, "mlp", {"loss": optimizer}))
    assert ours == operations(workload("mlp", load_design(design), 32))


@pytest.mark.parametrize("elementwise", ["torch", "exact"])
def test_gradients_of_a_sum_are_moved_and_added_where_they_meet(elementwise):
    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.third = (torch.nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            h = self.first(x)
            return self.third(h + self.second(h))

    work = counted(Residual(), torch.zeros(5, 8), elementwise=elementwise)
    added = [x for x in work.operations if "add" in x.kind and x.stage == "backward_data"]
    assert [(x.flops, x.bytes_read, x.bytes_written) for x in added] == [(40, 320, 160)]
