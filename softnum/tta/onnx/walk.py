"""A walk over a graph: each node's shapes by onnx's own inference, with what is constant computed beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softnum.tta.onnx.elementwise import ELEMENTWISE, FLAT
from softnum.tta.onnx.files import LARGEST, NARROW, SMALL, load_values, shape_of
from softnum.tta.onnx.layers import LAYERS, WITHOUT_GRADIENT, buffers
from softnum.tta.onnx.products import PRODUCTS
from softnum.tta.onnx.values import Op, Value

if TYPE_CHECKING:
    import onnx

__all__ = ["RULES", "walk"]

#: Operator -> the rule of its work.
RULES = {**PRODUCTS, **ELEMENTWISE, **LAYERS}

_BODIES = ("If", "Loop", "Scan", "SequenceMap")
#: Constants' results whose shape depends on values.
_BY_VALUE = ("NonZero", "Unique", "Compress")
_QUANTISED = ("Quantize", "Dequantize", "QLinear", "Integer")


def walk(path: Path, model: onnx.ModelProto, inputs: Mapping[str, tuple[int, ...]]) -> Iterator[Op]:
    """The nodes that compute something each iteration, in order.

    Parameters
    ----------
    path : Path
        For messages, and where external data are.
    model : onnx.ModelProto
    inputs : Mapping of str to tuple of int
        Shapes of the graph's inputs.

    Yields
    ------
    Op
        Whose outputs' `Value.needs` say whether their gradient is computed.

    Raises
    ------
    ValueError
        If an operator is not known, or a shape depends on values.
    """
    version = next(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    values = _given(path, model, inputs)
    used = {name for node in model.graph.node for name in node.input} | {value.name for value in model.graph.output}
    names: dict[str, int] = {}
    for index, node in enumerate(model.graph.node):
        name = node.name or f"{node.op_type}_{index}"
        names[name] = names.get(name, 0) + 1
        name = name if names[name] == 1 else f"{name}_{names[name]}"
        _check_known(path, name, node)
        taken = [values[each] if each else None for each in node.input]
        constant = all(value is None or value.constant for value in taken) or node.op_type in ("Shape", "Size")
        quantised = any(part in node.op_type for part in _QUANTISED)
        if node.op_type != "Constant" and node.op_type not in RULES and (quantised or not constant):
            raise ValueError(_unknown(path, name, node.op_type, quantised))
        outputs = _outputs(path, model, node, name, taken, version, used, constant)
        if outputs and not any(outputs):
            continue  # nothing takes a result of it
        op = Op(node.op_type, name, taken, outputs, _attributes(node), version)
        for value in buffers(op):
            value.parameter, value.needs, value.constant = "", False, True
        for value in outputs:
            if value is not None:
                values[value.name] = value
                value.constant = constant
                trains = any(each is not None and each.needs for each in taken)
                value.needs = trains and value.floating and node.op_type not in (*FLAT, *WITHOUT_GRADIENT)
        if not constant:
            yield op
    for result in model.graph.output:
        stated, found = shape_of(result.type), values[result.name].shape
        if stated and (len(stated) != len(found) or _fixed(stated, found) != list(found)):
            raise ValueError(
                f"{path}: the file says that its result {result.name!r} has the shape {list(stated)}, and nodes make "
                f"{list(found)} of the inputs; give the sizes that it was exported for"
            )


def _check_known(path: Path, name: str, node) -> None:
    if node.domain not in ("", "ai.onnx"):
        raise ValueError(
            f"{path}: node {name!r} has the operator {node.op_type} of {node.domain}, whose work is not known; export "
            "the model with operators of ONNX itself"
        )
    if node.op_type in _BODIES:
        raise ValueError(
            f"{path}: node {name!r} ({node.op_type}): how often its body runs depends on values; export the model "
            "with its loops written out"
        )


def _unknown(path: Path, name: str, kind: str, quantised: bool) -> str:
    if quantised:
        hint = "it is of a quantised network: export that before quantisation, and say the formats by --design"
    else:
        hint = f"known: {', '.join(sorted(RULES))}"
    return f"{path}: node {name!r} has the operator {kind}, whose work is not known; {hint}"


def _attributes(node) -> dict[str, Any]:
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _given(path: Path, model, inputs: Mapping[str, tuple[int, ...]]) -> dict[str, Value]:
    """Inputs and initializers. One of several numbers of floating point is trained."""
    values = {}
    for each in model.graph.input:
        if each.name in inputs:
            values[each.name] = _sized(Value(each.name, inputs[each.name], each.type.tensor_type.elem_type), path)
    for tensor in model.graph.initializer:
        value = Value(tensor.name, tuple(tensor.dims), tensor.data_type)
        if value.kind in NARROW:
            raise ValueError(
                f"{path}: initializer {value.name!r} is of a type of 8 bits or fewer, as quantised networks have them; "
                "export the network before quantisation, and say the formats by --design"
            )
        if value.floating and value.size > 1:
            value.parameter, value.needs = value.name, True
        else:
            value.constant = True
        value.known = load_values(path, tensor)
        values[tensor.name] = value
    if model.graph.sparse_initializer:
        raise ValueError(f"{path} has sparse initializers, whose products are not counted; export it with dense ones")
    return values


def _sized(value: Value, path: Path, name: str = "") -> Value:
    where = f"node {name!r}: " if name else ""
    if prod(value.shape) > LARGEST:
        raise ValueError(f"{path}: {where}{value.name!r} has the shape {value.shape}: more than 2^48 elements")
    return value


def _outputs(path, model, node, name, taken, version, used, constant) -> list[Value | None]:
    import onnx

    try:
        schema = onnx.defs.get_schema(node.op_type, version, "")
    except onnx.defs.SchemaError:
        raise ValueError(f"{path}: node {name!r}: ONNX has no operator {node.op_type} in version {version}") from None
    types = {value.name: onnx.helper.make_tensor_type_proto(value.kind, value.shape) for value in taken if value}
    data = {
        value.name: onnx.numpy_helper.from_array(value.known, value.name)
        for value in taken
        if value is not None and value.known is not None
    }
    sets = [each for each in model.opset_import if each.domain in ("", "ai.onnx")]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=sets, ir_version=model.ir_version
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path}: node {name!r} ({node.op_type}): {str(error).strip().splitlines()[-1]}") from None
    return [
        _output(path, node, name, taken, each, found.get(each), constant, sets) if each in used else None
        for each in node.output
    ]


def _output(path, node, name, taken, output, kind, constant, sets) -> Value | None:
    if not output:
        return None
    where = f"{path}: node {name!r} ({node.op_type})"
    shape = None if kind is None else shape_of(kind)
    if node.op_type in ("Shape", "Size") or (
        constant
        and all(value is None or value.known is not None for value in taken)
        and (_small(shape) or node.op_type in _BY_VALUE)
        and _small_inputs(node)
    ):
        known = _computed(node, taken, output, sets)
        if known is not None:
            import onnx

            return Value(output, known.shape, onnx.helper.np_dtype_to_tensor_dtype(known.dtype), known=known)
    if shape is None:
        raise ValueError(f"{where}: onnx's inference finds no shape of its result {output!r}")
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        sizes = ["?" if size is None else size for size in shape]
        raise ValueError(
            f"{where}: the shape of its result {output!r}, {sizes}, depends on "
            "values; export the model with shapes that depend on its inputs' alone"
        )
    if not constant and 0 in shape:
        raise ValueError(f"{where}: its result {output!r} has the shape {shape}, which holds no element")
    return _sized(Value(output, shape, kind.tensor_type.elem_type), path, name)


def _fixed(stated, found):
    """The sizes that are stated; the others as they were found."""
    return [a if isinstance(a, int) and a > 0 else b for a, b in zip(stated, found, strict=True)]


def _small(shape) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape) and prod(shape) <= SMALL


def _small_inputs(node) -> bool:
    return all(prod(each.t.dims) <= SMALL for each in node.attribute if each.HasField("t"))


def _computed(node, taken, output, sets):
    """The value of a constant; None where onnx cannot say."""
    import numpy as np
    import onnx
    from onnx.reference import ReferenceEvaluator

    if node.op_type in ("Shape", "Size"):
        shape = taken[0].shape
        if node.op_type == "Size":
            return np.array(prod(shape), np.int64)
        given = _attributes(node)
        return np.array(shape[slice(given.get("start", 0), given.get("end"))], np.int64)
    held = {value.name: value for value in taken if value is not None}
    inputs = [onnx.helper.make_tensor_value_info(v.name, v.kind, v.shape) for v in held.values()]
    results = [onnx.helper.make_empty_tensor_value_info(each) for each in node.output if each]
    graph = onnx.helper.make_graph([node], "one", inputs, results)
    try:
        run = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=sets))
        return np.asarray(run.run([output], {name: value.known for name, value in held.items()})[0])
    except Exception:  # whatever an operator's own code raises: its value is not known then, and shapes say so
        return None
