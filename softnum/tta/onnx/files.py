"""ONNX files: what they say is checked, dynamic dimensions get their sizes, and functions are written out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softnum.tta.quantities import positive_int

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray

__all__ = ["LARGEST", "OLDEST", "dynamic_dims", "input_dims", "load_model", "load_values", "shape_of"]

#: Elements of the largest tensor that is taken for one; the inference of shapes computes in 64 bits.
LARGEST = 2**48
#: The first version of operators that is read: before it a broadcast was an attribute.
OLDEST = 7
#: Elements up to which a constant may be a shape, an axis or a limit, whose value says something.
SMALL = 4096

Dim = int | str | None


def load_model(path: str | os.PathLike) -> onnx.ModelProto:
    """Read a file, without external data, with functions written out and checked by onnx's own checker.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file or it is none of ONNX; its operators' version is older than 7 or newer than the
        installed onnx knows; or it contradicts itself.
    """
    onnx = _package()
    from google.protobuf.message import DecodeError

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no ONNX file {str(path)!r}")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no ONNX model: {error}") from None
    if not model.HasField("graph") or not model.graph.node:
        raise ValueError(f"{path} is no ONNX model: it holds no graph with a node")
    version = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), None)
    newest = onnx.defs.onnx_opset_version()
    if version is None:
        domains = ", ".join(each.domain for each in model.opset_import) or "none"
        raise ValueError(f"{path} imports no operators of ONNX itself (its sets of operators: {domains})")
    if not OLDEST <= version <= newest:
        way = "convert it by onnx.version_converter" if version < OLDEST else "install a newer onnx"
        raise ValueError(f"{path} has operators of version {version}; versions {OLDEST} to {newest} are read: {way}")
    _check_tensors(path, model)
    try:
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        onnx.checker.check_model(_skeleton(onnx, model))
    except (onnx.checker.ValidationError, RuntimeError) as error:
        raise ValueError(f"{path}: onnx's checker refuses it: {str(error).strip().splitlines()[0]}") from None
    return model


def _package():
    try:
        import onnx
        import onnx.checker
        import onnx.inliner
    except ModuleNotFoundError as error:
        raise ValueError(f"{error.name} is not installed: pip install 'softnum[onnx]'") from None
    return onnx


def _skeleton(onnx, model):
    """The model with large tensors as inputs: the checker wants no bytes of them."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.initializer[:]
    for value in bare.graph.output:
        value.type.tensor_type.shape.SetInParent()  # a result's shape may be left out
    given = {value.name for value in bare.graph.input}
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= SMALL and not _external(tensor):
            bare.graph.initializer.append(tensor)
        elif tensor.name not in given:
            bare.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return bare


def _external(tensor) -> dict[str, str]:
    """Where a tensor's bytes are, if in another file."""
    return {entry.key: entry.value for entry in tensor.external_data} if tensor.data_location == 1 else {}


def _check_tensors(path: Path, model) -> None:
    """A tensor's bytes must be as many as its shape and type say; those of other files, where the file is there."""
    seen = set()
    for tensor in model.graph.initializer:
        where = f"{path}: initializer {tensor.name!r}"
        if tensor.name in seen:
            raise ValueError(f"{where} comes twice")
        seen.add(tensor.name)
        if any(size < 0 for size in tensor.dims) or prod(tensor.dims) > LARGEST:
            raise ValueError(f"{where} has the shape {list(tensor.dims)}; sizes are at most 2^48 elements, and not < 0")
        needed = -(-prod(tensor.dims) * _bits(tensor.data_type, where) // 8)
        place = _external(tensor)
        if tensor.data_location == 1:
            _check_place(path, where, place, needed)
        elif tensor.HasField("raw_data") and len(tensor.raw_data) != needed:
            raise ValueError(
                f"{where} has {len(tensor.raw_data)} bytes, and its shape {list(tensor.dims)} and type take {needed}"
            )


def _check_place(path: Path, where: str, place: Mapping[str, str], needed: int) -> None:
    name = place.get("location", "")
    file = (path.parent / name).resolve()
    if not name or not file.is_relative_to(path.parent.resolve()):
        raise ValueError(f"{where} has its bytes in {name!r}, which is no file in the model's folder")
    try:
        offset, length = int(place.get("offset", 0)), int(place.get("length", needed))
    except ValueError:
        raise ValueError(f"{where}: offset and length of its bytes must be integers, got {dict(place)}") from None
    if length != needed or offset < 0:
        raise ValueError(f"{where} has {length} bytes from {offset} in {name!r}, and its shape and type take {needed}")
    if file.is_file() and file.stat().st_size < offset + length:
        raise ValueError(f"{where} ends at byte {offset + length} of {name!r}, which has {file.stat().st_size}")


def _bits(kind: int, where: str) -> int:
    import onnx

    names = {"STRING": 0, "COMPLEX64": 64, "COMPLEX128": 128, "BOOL": 8}
    try:
        name = onnx.TensorProto.DataType.Name(kind)
    except ValueError:
        raise ValueError(f"{where} has the unknown type {kind}") from None
    if name in names and name != "STRING":
        return names[name]
    if name in ("UNDEFINED", "STRING"):
        raise ValueError(f"{where} is of type {name}, of which nothing is computed")
    if name.startswith("BFLOAT16"):
        return 16
    digits = "".join(
        c if c.isdigit() else " " for c in name.replace("FLOAT8E", "FLOAT8 ").replace("FLOAT4E", "FLOAT4 ")
    )
    return {"DOUBLE": 64, "FLOAT": 32}.get(name) or int(digits.split()[0])


def type_bits(kind: int) -> int:
    """Bits of an element of a type of ONNX.

    >>> type_bits(1), type_bits(7), type_bits(9)
    (32, 64, 8)
    """
    return _bits(kind, "a tensor")


def shape_of(kind: onnx.TypeProto) -> tuple[Dim, ...] | None:
    """Sizes of a tensor's type: an integer, a name, or None where nothing is said; None of what has no shape."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    found: list[Dim] = []
    for dim in kind.tensor_type.shape.dim:
        which = dim.WhichOneof("value")
        found.append(dim.dim_value if which == "dim_value" else dim.dim_param or None if which else None)
    return tuple(found)


def _named(model) -> dict[str, tuple[Dim, ...]]:
    """Input -> its dimensions; those without a name are called INPUT:AXIS."""
    held = {tensor.name for tensor in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        if value.name in held:
            continue
        shape = shape_of(value.type)
        if shape is None:
            raise ValueError(f"input {value.name!r} states no shape; export the model with the shapes of its inputs")
        found[value.name] = tuple(
            dim if isinstance(dim, str) or (isinstance(dim, int) and dim > 0) else f"{value.name}:{axis}"
            for axis, dim in enumerate(shape)
        )
    return found


def dynamic_dims(path: str | os.PathLike) -> dict[str, str]:
    """Dimensions of a model's inputs that have a name and no size, and where each stands.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict of str to str
        ``{"batch": "axis 0 of x"}``; a dimension without a name is called INPUT:AXIS, like x:0.

    Raises
    ------
    FileNotFoundError, ValueError
        As of `read_onnx`.
    """
    return _dynamic(_named(load_model(path)))


def _dynamic(inputs: Mapping[str, tuple[Dim, ...]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, shape in inputs.items():
        for axis, dim in enumerate(shape):
            if isinstance(dim, str):
                found.setdefault(dim, f"axis {axis} of {name}")
    return found


def input_dims(
    path: str | os.PathLike[str], model: onnx.ModelProto, dims: Mapping[str, int], batch: int | None
) -> tuple[dict[str, tuple[int, ...]], int]:
    """Shapes of a model's inputs with dynamic dimensions as given, and the samples of an iteration.

    Raises
    ------
    ValueError
        If a dimension has no size, one that is given does not exist, or the batch is not what it must be.
    """
    inputs = _named(model)
    known = _dynamic(inputs)
    for name, size in dims.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            has = f"it has {', '.join(known)}" if known else "all its sizes are stated"
            raise ValueError(f"{path} has no dynamic dimension {name!r}{hint} ({has})")
        if positive_int(size, f"dimension {name!r}") > LARGEST:
            raise ValueError(f"dimension {name!r} must be at most 2^48, got {size}")
    sizes = dict(dims)
    leading = next((shape[0] for shape in inputs.values() if shape), None)
    if batch is not None:
        positive_int(batch, "batch")
        if isinstance(leading, str) and sizes.setdefault(leading, batch) != batch:
            raise ValueError(
                f"batch {batch} and {leading}={sizes[leading]} contradict each other: it is the first dimension of the "
                "first input; leave one of them out"
            )
        if isinstance(leading, int) and leading != batch:
            raise ValueError(
                f"the shapes in {path} are those of a batch of {leading} (first dimension of the first input), not "
                f"{batch}; leave the batch out, or export the model with a dynamic one"
            )
    missing = [f"{name} ({where})" for name, where in known.items() if name not in sizes]
    if missing:
        name = next(name for name in known if name not in sizes)
        raise ValueError(f"{path} has dimensions without a size: {', '.join(missing)}; give each: --dim {name}=8")
    shapes = {name: tuple(sizes.get(dim, dim) for dim in shape) for name, shape in inputs.items()}
    return shapes, next((shape[0] for shape in shapes.values() if shape), 1)


def load_values(path: Path, tensor: onnx.TensorProto) -> NDArray[Any] | None:
    """A small constant's value as an array of NumPy; None of a large one.

    Raises
    ------
    ValueError
        If its bytes are in a file that is not there.
    """
    from onnx import external_data_helper, numpy_helper

    if prod(tensor.dims) > SMALL:
        return None
    if _external(tensor):
        file = path.parent / _external(tensor)["location"]
        if not file.is_file():
            return None if tensor.data_type in FLOATS else _missing(path, tensor, file)
        kept, tensor = tensor, type(tensor)()
        tensor.CopyFrom(kept)
        external_data_helper.load_external_data_for_tensor(tensor, str(path.parent))
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: initializer {tensor.name!r} cannot be read: {error}") from None


def _missing(path: Path, tensor, file: Path):
    raise ValueError(
        f"{path}: the shape or index {tensor.name!r} is in the file {file.name}, which is not beside it; copy it there"
    )


#: Types of floating point: FLOAT, FLOAT16, DOUBLE, BFLOAT16.
FLOATS = (1, 10, 11, 16)
#: FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT4E2M1, FLOAT8E8M0.
NARROW = (17, 18, 19, 20, 23, 24)
