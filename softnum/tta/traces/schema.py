"""Chakra's message types, compiled when they are used from the user's own copy of the schema.

softnum ships no schema: ``et_def.proto`` lies in schema/protobuf of github.com/mlcommons/chakra, and in
extern/graph_frontend/chakra/schema/protobuf of ASTRA-sim. What of it is used is checked when it is read.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PROTO_VARIABLE", "Schema", "load_chakra_schema"]

#: names the schema where no path is given
PROTO_VARIABLE = "SOFTNUM_CHAKRA_PROTO"

_PACKAGE = "ChakraProtoMsg"
#: fields that are read or written, by message
_FIELDS = {
    "GlobalMetadata": ("version", "attr"),
    "Node": (
        "id", "name", "type", "ctrl_deps", "data_deps", "start_time_micros", "duration_micros", "inputs", "outputs",
        "attr",
    ),
    "IOInfo": ("values", "shapes", "types"),
    "AttributeProto": ("name", "doc_string"),
}  # fmt: skip
_NODE_TYPES = ("COMP_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE")
_COLLECTIVES = ("ALL_REDUCE", "ALL_GATHER", "ALL_TO_ALL", "REDUCE_SCATTER")
_EXTRA = "pip install 'softnum[chakra]'"


@dataclass(frozen=True)
class Schema:
    """A compiled schema.

    Parameters
    ----------
    path : Path
        The file that it was compiled from.
    digest : str
        The first 16 digits of that file's SHA-256.
    metadata, node : type
        Classes of the messages GlobalMetadata and Node.
    node_types, collectives : dict of str to int
        The values of the enumerations NodeType and CollectiveCommType.
    value_fields : tuple of str
        The fields of which an attribute has one.

    Examples
    --------
    >>> load_chakra_schema("et_def.proto").node_types["COMP_NODE"]  # doctest: +SKIP
    4
    """

    path: Path
    digest: str
    metadata: type
    node: type
    node_types: dict[str, int]
    collectives: dict[str, int]
    value_fields: tuple[str, ...]


def load_chakra_schema(path: str | os.PathLike[str] | None = None) -> Schema:
    """Compile Chakra's schema.

    Parameters
    ----------
    path : path-like, optional
        ``et_def.proto``. Default: what the environment variable ``SOFTNUM_CHAKRA_PROTO`` names.

    Returns
    -------
    Schema
        Compiled once in a process, as long as the file stays the same.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none is named.
    ValueError
        If it is no such schema, or what compiles it is not installed.

    Examples
    --------
    >>> load_chakra_schema("chakra/schema/protobuf/et_def.proto").collectives["ALL_TO_ALL"]  # doctest: +SKIP
    6
    """
    if path is None:
        path = os.environ.get(PROTO_VARIABLE)
        if not path:
            raise FileNotFoundError(
                f"Chakra's schema is needed, et_def.proto: name the file by --proto, proto= or {PROTO_VARIABLE}. It "
                "lies in schema/protobuf of github.com/mlcommons/chakra, and in ASTRA-sim's "
                "extern/graph_frontend/chakra/schema/protobuf"
            )
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no schema {str(path)!r}; Chakra's is et_def.proto, in schema/protobuf")
    return _compiled(path, hashlib.sha256(path.read_bytes()).hexdigest()[:16])


@functools.lru_cache(maxsize=4)
def _compiled(path: Path, digest: str) -> Schema:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ValueError(f"Chakra's traces are read and written by protobuf, which is missing: {_EXTRA}") from None
    described = descriptor_pb2.FileDescriptorSet.FromString(_descriptors(path))
    pool = descriptor_pool.DescriptorPool()
    for file in described.file:
        pool.Add(file)

    def find(name):
        try:
            return pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
        except KeyError:
            raise ValueError(f"{path}: no message {_PACKAGE}.{name}; Chakra's schema is et_def.proto") from None

    messages = {name: find(name) for name in _FIELDS}
    for name, fields in _FIELDS.items():
        for field in fields:
            if field not in messages[name].fields_by_name:
                raise ValueError(f"{path}: {_PACKAGE}.{name} has no field {field!r}, which Chakra 0.0.4 to 1.0.0 have")
    value = messages["AttributeProto"].oneofs_by_name.get("value")
    if value is None:
        raise ValueError(f"{path}: {_PACKAGE}.AttributeProto has no oneof 'value', which Chakra 0.0.4 to 1.0.0 have")
    types = {entry.name: entry.number for entry in messages["Node"].fields_by_name["type"].enum_type.values}
    try:
        enum = pool.FindEnumTypeByName(f"{_PACKAGE}.CollectiveCommType")
    except KeyError:
        raise ValueError(
            f"{path}: no enumeration {_PACKAGE}.CollectiveCommType; Chakra's schema is et_def.proto"
        ) from None
    collectives = {entry.name: entry.number for entry in enum.values}
    for names, known, what in ((_NODE_TYPES, types, "NodeType"), (_COLLECTIVES, collectives, "CollectiveCommType")):
        for name in names:
            if name not in known:
                raise ValueError(f"{path}: {what} has no {name}, which Chakra 0.0.4 to 1.0.0 have")
    make = message_factory.GetMessageClass
    fields = tuple(field.name for field in value.fields)
    return Schema(path, digest, make(messages["GlobalMetadata"]), make(messages["Node"]), types, collectives, fields)


def _descriptors(path: Path) -> bytes:
    """What protoc makes of a schema: a FileDescriptorSet."""
    if importlib.util.find_spec("grpc_tools") is not None:
        compiler = [sys.executable, "-m", "grpc_tools.protoc"]
    elif (found := shutil.which("protoc")) is not None:
        compiler = [found]
    else:
        raise ValueError(f"neither grpcio-tools ({_EXTRA}) nor protoc is there to compile {path}")
    with tempfile.TemporaryDirectory(prefix="softnum-") as folder:
        out = Path(folder, "descriptors")
        command = [*compiler, f"--proto_path={path.parent}", f"--descriptor_set_out={out}", path.name]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode or not out.is_file():
            said = (run.stderr or run.stdout).strip().splitlines() or [f"protoc ended with {run.returncode}"]
            reason = next((line for line in said if line.startswith(path.name)), said[-1])
            raise ValueError(f"{path}: protoc does not compile it: {reason}; Chakra's schema is et_def.proto")
        return out.read_bytes()
