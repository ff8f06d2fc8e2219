"""What a training iteration of a reference network consists of, under a design: the workload that time, memory, network
and energy are computed from (`softnum.tta.Workload`)."""

from __future__ import annotations

import math
from dataclasses import replace

from softnum.runtime.plain import plain
from softnum.train.designs.design import Design
from softnum.train.designs.gemms import design_gemms
from softnum.train.engine.watch import watching
from softnum.train.inspect.dataflow import Flow, Group, Value
from softnum.train.inspect.dry_run import DryBackend, stand_in
from softnum.train.runs.loop import Run
from softnum.train.runs.own import is_own, load_own
from softnum.train.runs.settings import Settings
from softnum.tta.workloads.hardware import Gemm
from softnum.tta.workloads.operations import Operation, StoredTensor, Workload

__all__ = ["short_name", "trace", "weights_of", "workload", "workspace_of"]

#: what masks and the places of maxima are of, which no operation computes with
_NO_NUMBERS = ("bit", "index")


@plain
def workload(model: str | Settings, design: Design, batch: int | None = None, **settings) -> Workload:
    """List the operations and the stored tensors of a network's training iteration under a design.

    The network, its tape and the optimiser run on zeros in place of numbers (``train/inspect/dry_run.py``), so
    that what is listed is what they do; no data set's files are needed. What is read, written and stored follows from
    that:

    - moving is free, and rounding happens where a value is made: a value is written once in each format in which
      another operation reads it;
    - element-by-element steps of one layer that follow each other are one operation, named by what they do, like
      "batch_norm+relu";
    - a feature map is what the forward pass makes and a later operation reads; of what the backward pass only
      tests for its sign (a ReLU's result in another format than the next product's operand) one bit an element, as in
      Gist; of the role ``saved_activations``, where it is stated, what the backward pass multiplies;
    - weights are stored in the format in which products read them, those that a pattern prunes packed, each with its
      index in the group; the update prunes them as it rounds them; a master copy, where it has another format, is
      optimiser state, as are running statistics;
    - a convolution has its unfolded operand as workspace, a unit of several lanes a sum for each of them, as a product
      whose K is split would; by whatever algorithm a design computes it, it counts as the direct one.

    Labels and the numbers of words are not counted.

    Parameters
    ----------
    model : str or Settings
        A network's name, or all settings of a run: network, data, optimiser, clipping. Of a network of the user's own
        (``"file.py:function"``), what its `softnum.torch.Training` says of itself. Of workers that share a batch it is
        the iteration of one of them, with its part of the batch; their sum is no operation of it.
    design : Design
    batch : int, optional
        Samples of the iteration. Default: the settings'.
    **settings
        Of a network's name: the keywords of `Settings`, like ``optimiser="adam"``.

    Returns
    -------
    softnum.tta.Workload
        Its matrix products are those of `design_gemms`. Each tensor says during which operations it is held.

    Raises
    ------
    ValueError
        As of `softnum.train.run`.

    References
    ----------
    A. Jain et al., "Gist: Efficient Data Encoding for Deep Neural Network Training", ISCA 2018, section 3 (one bit of a
    ReLU's result); the classes of tensors are those of H. Zhu et al., "TBD: Benchmarking and Analyzing Deep Neural
    Network Training", 2018.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("c-wang-fp8"), 32)
    >>> work.parameters, work.operations[0].kind, work.operations[0].gemm.shape
    (9610, 'gemm', (32, 128, 64))
    >>> workload("mlp", load_design("c-wang-fp8"), 32, workers=4, collective="ring").batch
    8
    >>> [(t.name, t.format, t.bytes) for t in work.tensors if t.layer == "fc1" and t.tensor_class == "feature_maps"]
    [('input', 'e6m9', 4096), ('product', 'e6m9', 8192), ('relu', 'e6m9', 8192)]
    """
    chosen = model if isinstance(model, Settings) else Settings(network=model, **settings)
    if batch is not None:
        chosen = replace(chosen, batch=batch)
    if chosen.workers > 1:
        chosen = replace(chosen, batch=chosen.batch // chosen.workers, workers=1, collective=None)
    if is_own(chosen.network):
        return load_own(chosen.network, chosen.network_options).workload(chosen, design)
    return _Table(trace(chosen, design), design, _sizes(_other(chosen, design))).workload()


@plain
def trace(settings: Settings, design: Design, *, dry: bool = True) -> Flow:
    """Run an iteration and follow its values.

    Parameters
    ----------
    settings : Settings
    design : Design
    dry : bool
        Whether to run on zeros rather than in the design's arithmetic.

    Returns
    -------
    softnum.train.inspect.dataflow.Flow
    """
    samples = settings.batch * settings.network_options.get("critic_updates", 5 if settings.network == "wgan" else 1)
    settings = replace(settings, samples=None, held_out=None, epochs=1)
    network = settings.make_network()
    data = stand_in(settings.data, samples, network.inputs if network.kind == "text" else None, settings.data_folder)
    work = Run(settings, design, 1, data=data)
    if dry:
        work.numerics.backend = DryBackend(work.numerics.backend)
    iteration, part = next(iter(work.plan(1)))
    losses = work.task.losses
    flow = Flow(work)

    def seen(numerics, part):
        for update in losses(numerics, part):
            flow.saw(update.loss)
            yield update

    work.task.losses = seen
    with watching(work.numerics, flow):
        row = work.train(iteration, part)
    if not math.isfinite(row["loss"]) or "skipped" in row:
        raise ValueError(f"{design.name}: the loss of zeros is not finite, so that there is no update to look at")
    flow.finish()
    return flow


def _other(settings: Settings, design: Design) -> Flow:
    """The same iteration of another batch: half of it, which takes less time, or twice where half is none."""
    if settings.batch % 2 == 0:
        try:
            return trace(replace(settings, batch=settings.batch // 2), design)
        except ValueError:  # of so few samples there is none
            pass
    return trace(replace(settings, batch=2 * settings.batch), design)


def _sizes(flow: Flow) -> dict:
    """Elements of each value that is read, by (layer, name, format, stage), in order."""
    found: dict = {}
    for value in filter(_is_read, flow.values):
        found.setdefault(_name_of(flow, value), []).append(value.elements)
    return found


def _is_read(value: Value) -> bool:
    """Whether a value is a tensor that lives for a while."""
    owner = None if value.owner is None else value.owner[0]
    return bool(value.readers) and value.copy_of is None and owner in (None, "gradient")


def _name_of(flow: Flow, value: Value) -> tuple:
    stage = "" if value.maker is None else flow.groups[value.maker].stage
    return value.layer, value.name, value.format, stage


def short_name(name: str) -> str:
    """A format's name as products give it (`design_gemms`): of ``file.py:object`` the object.

    >>> short_name("posit8.py:posit8"), short_name("e5m2")
    ('posit8', 'e5m2')
    """
    return name.rpartition(":")[2]


def weights_of(layer: str, name: str, master: Value, copies: list[Value], whole: bool):
    """The tensors that a parameter is stored as: in the formats that are read, and a master copy where that is another.

    Parameters
    ----------
    layer, name : str
        Of the parameter.
    master : Value
        What updates change.
    copies : list of Value
        The working copies that operations read.
    whole : bool
        Whether an operation of a pass reads the master copy itself.

    Yields
    ------
    softnum.tta.workloads.StoredTensor
    """
    first, *others = [master, *copies] if whole or not copies else copies
    yield StoredTensor(layer, name, "weights", master.elements, first.bits, short_name(first.format))
    for other in others:
        yield StoredTensor(
            layer, f"{name} (another copy)", "workspace", other.elements, other.bits, short_name(other.format)
        )  # fmt: skip
    if first is not master:
        yield StoredTensor(
            layer, f"{name} master", "optimiser_state", master.elements, master.bits, short_name(master.format)
        )  # fmt: skip


def workspace_of(groups: list[Group]):
    """What the operations of an iteration need for themselves, each while it runs: unfolded operands, units' lanes.

    Yields
    ------
    softnum.tta.workloads.StoredTensor
    """
    for number, group in enumerate(groups):
        for name, facts in (("unfolded", group.unfolded), ("lanes", group.lanes)):
            if facts is not None:
                elements, bits, fmt = facts
                grows = name == "unfolded" or group.stage != "backward_weight"
                yield StoredTensor(
                    group.layer, name, "workspace", elements, bits, short_name(fmt), grows, group.stage,
                    (number, number),
                )  # fmt: skip


class _Table:
    """A workload in the making."""

    def __init__(self, flow: Flow, design: Design, grown: dict) -> None:
        self.flow, self.design, self._grown, self._seen = flow, design, grown, {}
        self.work = flow.work
        rows = design_gemms(design, self.work.network, self.work.settings.batch)
        self._rows = {(row["layer"], row["pass"], row["M"], row["N"], row["K"]): row for row in rows}

    def workload(self) -> Workload:
        """All of it."""
        self.copies = self._copies()
        operations = tuple(self._operation(number, group) for number, group in enumerate(self.flow.groups))
        tensors = [*self._parameters(), *self._states(), *self._transients(), *workspace_of(self.flow.groups)]
        settings = self.work.settings
        return Workload(settings.network, self.design.name, settings.batch, operations, tuple(tensors))

    # -- operations ------------------------------------------------------------------------------------------------
    def _operation(self, number: int, group: Group) -> Operation:
        read = sum(value.size(elements) for value, elements in group.reads.items())
        written = sum(value.size() for value in group.made if self._stored(value))
        if group.stage == "update":
            written += self._copied_by(number)
        formats, gemm = group.formats, None
        if group.product is not None and group.stage != "update":  # an optimiser's own are not the network's
            gemm = self._gemm(group)
            formats = gemm.formats
        else:
            numbers = [value.format for value in group.reads if value.format not in _NO_NUMBERS]
            formats = tuple(dict.fromkeys(map(short_name, numbers)))
        return Operation(
            group.layer, group.stage, self.flow.kind(group), group.flops, read, written, formats, gemm
        )  # fmt: skip

    def _gemm(self, group: Group) -> Gemm:
        m, n, k, count = group.product
        row = self._rows.get((group.layer, group.stage, m, n, k))
        if row is None:
            raise AssertionError(f"{self.work.network.name} does not list its product {group.product} of {group.layer}")
        return Gemm.from_table({**row, "count": count})

    @staticmethod
    def _stored(value: Value) -> bool:
        """Whether a value leaves the operation that makes it."""
        return bool(value.readers) or (value.owner is not None and value.owner[0] != "gradient")

    def _copies(self) -> dict[int, list[Value]]:
        """The working copies of each parameter that operations read, one for each format and axis of blocks."""
        found: dict[int, dict] = {}
        for value in self.flow.values:
            if value.copy_of is not None and value.readers:
                found.setdefault(value.copy_of, {}).setdefault((value.format, value.along), value)
        return {index: list(copies.values()) for index, copies in found.items()}

    def _copied_by(self, number: int) -> int:
        """Bytes of the working copies that an update writes for the iteration after it."""
        return sum(
            copy.size()
            for value in self.flow.groups[number].made
            if value.owner is not None and value.owner[0] == "parameter" and not value.rounded
            for copy in self.copies.get(value.owner[1], ())
        )

    # -- tensors ---------------------------------------------------------------------------------------------------
    def _parameters(self):
        for index, parameter in enumerate(self.work.network.parameters):
            layer, name = parameter.layer.name, parameter.name.rpartition(".")[2]
            master = next(v for v in self.flow.values if v.owner is not None and v.owner[:2] == ("parameter", index))
            stages = ("forward", "backward_data", "backward_weight")
            whole = any(
                value.owner is not None and value.owner[:2] == ("parameter", index)
                and any(self.flow.groups[reader].stage in stages for reader in value.readers)
                for value in self.flow.values
            )  # fmt: skip
            copies = self.copies.get(index, [])
            yield from weights_of(layer, name, master, copies, whole)

    def _states(self):
        seen = set()
        for value in self.flow.values:
            if value.owner is None or value.owner[0] not in ("state", "buffer") or value.owner in seen:
                continue
            seen.add(value.owner)
            kind, index, name = value.owner
            if kind == "state":
                name = f"{self.work.network.parameters[index].name.rpartition('.')[2]} {name}"
            else:
                name = name.rpartition(".")[2]
            yield StoredTensor(
                value.layer, name, "optimiser_state", value.elements, value.bits, short_name(value.format)
            )

    def _transients(self):
        weighted = {parameter.layer.name for parameter in self.work.network.parameters}
        for value in filter(_is_read, self.flow.values):
            gradient = value.owner is not None
            stage = "forward" if value.maker is None else self.flow.groups[value.maker].stage
            if gradient:
                kind = "weight_gradients"
            elif stage == "forward":
                kind = "feature_maps"
            elif stage == "update" or (stage == "backward_weight" and value.layer in weighted):
                kind = "workspace"
            else:
                kind = "gradient_maps"
            name, shape = value.name, None
            if gradient:
                parameter = self.work.network.parameters[value.owner[1]]
                name, shape = parameter.name.rpartition(".")[2], tuple(parameter.value.shape)
                if math.prod(shape) != value.elements:  # of the rows that were looked up
                    shape = None
            live = (value.maker or 0, max(value.readers))
            yield StoredTensor(
                value.layer, name, kind, value.elements, value.bits, short_name(value.format), self._grows(value),
                stage, live, shape,
            )  # fmt: skip

    def _grows(self, value: Value) -> bool:
        """Whether a value has more elements in a larger batch."""
        key = _name_of(self.flow, value)
        place = self._seen[key] = self._seen.get(key, -1) + 1
        sizes = self._grown.get(key, ())
        return place >= len(sizes) or sizes[place] != value.elements
