"""Chakra execution traces: the graph of what one rank computes, moves and sends, in a file of messages.

A file holds messages of Protocol Buffers, each after its length: GlobalMetadata, then one Node for each operation. What
is read is a graph that can run: every dependency is there, none waits for itself. Layout: et_def.proto and
src/third_party/utils/protolib.py of github.com/mlcommons/chakra.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.traces.schema import Schema, load_chakra_schema

__all__ = ["TraceIO", "TraceAttribute", "Trace", "TraceNode", "check_graph", "read_trace", "trace_bytes", "write_trace"]

_LARGEST = 2**32 - 1  # of a length, as Chakra's own readers take it
_AGAIN = "copy or write it again"
_OWN = "softnum."  # begins the names of attributes that softnum writes
_DIGEST = f"{_OWN}sha256"  # of all that follows the metadata


@dataclass(frozen=True)
class TraceAttribute:
    """A value of a node or of a trace, of the type that the file gives it.

    Parameters
    ----------
    field : str
        The schema's field: "int64_val", "string_val", "bool_val", "string_list", ...
    value : int, float, bool, str, bytes or tuple of these
    doc : str

    Examples
    --------
    >>> TraceAttribute("int64_val", 4096).value
    4096
    """

    field: str
    value: object
    doc: str = ""


@dataclass(frozen=True)
class TraceIO:
    """Operands or results of a node: three texts, as tracers write them.

    Examples
    --------
    >>> TraceIO(shapes="[[32, 64]]").shapes
    '[[32, 64]]'
    """

    values: str = ""
    shapes: str = ""
    types: str = ""


@dataclass(frozen=True)
class TraceNode:
    """One operation of a trace.

    Parameters
    ----------
    id : int
        Its number, of its own in the trace.
    name : str
    type : str
        As the schema calls it: "COMP_NODE", "MEM_LOAD_NODE", "COMM_COLL_NODE", ...
    data_deps, ctrl_deps : tuple of int
        Numbers of the nodes that it waits for.
    start, duration : int
        Microseconds; 0 where they are not known.
    inputs, outputs : TraceIO or None
    attributes : Mapping of str to TraceAttribute

    Examples
    --------
    >>> TraceNode(0, "fc1", "COMP_NODE", attributes={"num_ops": TraceAttribute("int64_val", 64)}).get("num_ops")
    64
    """

    id: int
    name: str
    type: str
    data_deps: tuple[int, ...] = ()
    ctrl_deps: tuple[int, ...] = ()
    start: int = 0
    duration: int = 0
    inputs: TraceIO | None = None
    outputs: TraceIO | None = None
    attributes: Mapping[str, TraceAttribute] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        found = self.attributes.get(name)
        return default if found is None else found.value


@dataclass(frozen=True)
class Trace:
    """What one rank does.

    Parameters
    ----------
    nodes : tuple of TraceNode
        In the order of the file.
    version : str
        Of Chakra, as the file's metadata has it.
    attributes : Mapping of str to TraceAttribute
        Of the metadata.
    source : str
        The file, for messages.

    Examples
    --------
    >>> Trace((TraceNode(0, "a", "COMP_NODE"), TraceNode(1, "b", "COMP_NODE", (0,)))).count("COMP_NODE")
    2
    """

    nodes: tuple[TraceNode, ...] = field(repr=False)
    version: str = ""
    attributes: Mapping[str, TraceAttribute] = field(default_factory=dict, repr=False)
    source: str = ""

    def count(self, type: str) -> int:
        """How many nodes there are of a type."""
        return sum(node.type == type for node in self.nodes)


def check_graph(nodes: Sequence[TraceNode], source: str = "the trace") -> None:
    """Raise ValueError unless a graph can run: numbers of their own, every dependency there, no cycle.

    Parameters
    ----------
    nodes : sequence of TraceNode
    source : str
        The file, for the message.

    Raises
    ------
    ValueError
        It names the file, the node and, of a cycle, all nodes on it.

    Examples
    --------
    >>> check_graph([TraceNode(0, "a", "COMP_NODE", (1,)), TraceNode(1, "b", "COMP_NODE", (0,))], "my.0.et")
    Traceback (most recent call last):
    ValueError: my.0.et: nodes 0 'a' -> 1 'b' -> 0 'a' wait for each other in a cycle; nothing of it can begin
    """
    by_id: dict[int, TraceNode] = {}
    for node in nodes:
        if node.id in by_id:
            raise ValueError(
                f"{source}: node {node.id} {node.name!r} has the number of {by_id[node.id].name!r}; every node needs "
                "one of its own"
            )
        by_id[node.id] = node
    waits: dict[int, set[int]] = {}
    followers: dict[int, list[int]] = {}
    for node in nodes:
        waits[node.id] = set()
        for kind, needed in (("data", node.data_deps), ("control", node.ctrl_deps)):
            for other in needed:
                if other not in by_id:
                    raise ValueError(
                        f"{source}: node {node.id} {node.name!r} has a {kind} dependency on node {other}, which is not "
                        f"in the file; it has {len(by_id)} nodes"
                    )
                if other not in waits[node.id]:
                    waits[node.id].add(other)
                    followers.setdefault(other, []).append(node.id)
    left = {number: len(needed) for number, needed in waits.items()}
    free = [number for number, count in left.items() if not count]
    while free:
        number = free.pop()
        del left[number]
        for follower in followers.get(number, ()):
            left[follower] -= 1
            if not left[follower]:
                free.append(follower)
    if left:
        path = [min(left)]
        while path.count(path[-1]) < 2:  # who is left waits for one that is left
            path.append(min(other for other in waits[path[-1]] if other in left))
        cycle = path[path.index(path[-1]) :]
        shown = cycle if len(cycle) <= 8 else [*cycle[:4], None, *cycle[-3:]]
        told = " -> ".join("..." if number is None else f"{number} {by_id[number].name!r}" for number in shown)
        raise ValueError(f"{source}: nodes {told} wait for each other in a cycle; nothing of it can begin")


def read_trace(
    path: str | os.PathLike[str], proto: str | os.PathLike[str] | None = None, *, schema: Schema | None = None
) -> Trace:
    """Read a Chakra trace.

    Parameters
    ----------
    path : path-like
        The file of one rank, ``NAME.0.et``, or that in gzip.
    proto : path-like, optional
        Chakra's ``et_def.proto``; see `load_chakra_schema`.
    schema : Schema, optional
        In its place, one that is compiled.

    Returns
    -------
    Trace

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is cut off, no such file, not what its own count of nodes and digest say, or
        `check_graph` refuses the graph; the message names the file and the node, or the byte at which it lies.

    Examples
    --------
    >>> [node.name for node in read_trace("job/rank.0.et", "et_def.proto").nodes[:2]]  # doctest: +SKIP
    ['fc1 forward', 'fc2 forward']
    """
    path, schema = Path(path), schema or load_chakra_schema(proto)
    if not path.is_file():
        raise FileNotFoundError(f"no trace {str(path)!r}; Chakra's are called NAME.RANK.et")
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: the gzip file is damaged or cut off ({error}); {_AGAIN}") from None
    if not data:
        raise ValueError(f"{path}: the file is empty; {_AGAIN}")
    view, at, number, begins = memoryview(data), 0, 0, 0
    metadata, nodes = None, []
    names = {value: name for name, value in schema.node_types.items()}
    while at < len(view):
        where = f"{path}: message {number}, byte {at}"
        size, begin = _length(view, at, where)
        if begin + size > len(view):
            raise ValueError(
                f"{where}: it says {size} bytes and {len(view) - begin} are left: cut off, or no Chakra trace; {_AGAIN}"
            )
        part, at = bytes(view[begin : begin + size]), begin + size
        if number == 0:
            metadata, begins = _parsed(schema.metadata, part, where, "GlobalMetadata"), at
        else:
            nodes.append(_node(_parsed(schema.node, part, where, "Node"), names, path))
        number += 1
    if not nodes:
        raise ValueError(f"{path}: metadata and no node; a trace without operations cannot run")
    attributes = _attributes(metadata.attr, f"{path}: metadata")
    stated = attributes.get("softnum.nodes")
    if stated is not None and stated.value != len(nodes):
        raise ValueError(f"{path}: has {len(nodes)} nodes and says that it has {stated.value}: cut off; {_AGAIN}")
    digest = attributes.pop(_DIGEST, None)
    if digest is not None and digest.value != hashlib.sha256(view[begins:]).hexdigest():
        raise ValueError(
            f"{path}: its {len(nodes)} nodes are not those that were written: the digest {_DIGEST} of the metadata is "
            f"of others; {_AGAIN}, or take the attribute out of a trace that was changed on purpose"
        )
    check_graph(nodes, str(path))
    return Trace(tuple(nodes), metadata.version, attributes, str(path))


def _length(view: memoryview, at: int, where: str) -> tuple[int, int]:
    """(length, where the message begins) of a message at a byte."""
    size = 0
    for shift in range(0, 70, 7):
        if at >= len(view):
            raise ValueError(f"{where}: the file ends inside a length: cut off; {_AGAIN}")
        byte = view[at]
        at += 1
        size |= (byte & 127) << shift
        if byte < 128:
            break
    if byte >= 128 or size > _LARGEST:
        raise ValueError(f"{where}: no length of a message: damaged, or no Chakra trace (JSON and text are none)")
    return size, at


def _parsed(make, part: bytes, where: str, what: str):
    from google.protobuf.message import DecodeError

    try:
        return make.FromString(part)
    except DecodeError:
        raise ValueError(f"{where}: no {what} of the schema: damaged, or no Chakra trace; {_AGAIN}") from None


def _node(message, names: Mapping[int, str], path: Path) -> TraceNode:
    where = f"{path}: node {message.id} {message.name!r}"
    if message.type not in names:
        raise ValueError(f"{where} has the unknown type {message.type}; the schema knows {', '.join(names.values())}")
    return TraceNode(
        message.id,
        message.name,
        names[message.type],
        tuple(message.data_deps),
        tuple(message.ctrl_deps),
        message.start_time_micros,
        message.duration_micros,
        _io(message, "inputs"),
        _io(message, "outputs"),
        _attributes(message.attr, where),
    )


def _io(message, name: str) -> TraceIO | None:
    if not message.HasField(name):
        return None
    found = getattr(message, name)
    return TraceIO(found.values, found.shapes, found.types)


def _attributes(rows, where: str) -> dict[str, TraceAttribute]:
    found: dict[str, TraceAttribute] = {}
    for row in rows:
        if row.name in found:
            raise ValueError(f"{where} has the attribute {row.name!r} twice; which one counts?")
        name = row.WhichOneof("value")
        if name is None:
            raise ValueError(f"{where} has the attribute {row.name!r} without a value")
        value = getattr(row, name)
        found[row.name] = TraceAttribute(name, tuple(value.values) if name.endswith("_list") else value, row.doc_string)
    return found


def trace_bytes(trace: Trace, schema: Schema) -> bytes:
    """The content of a trace's file: the same bytes for the same trace.

    The metadata of softnum's own traces has a digest of all that follows it; `read_trace` compares it, and leaves it
    out.

    Parameters
    ----------
    trace : Trace
    schema : Schema

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If `check_graph` refuses it, or the schema has no such type or value.
    """
    source = trace.source or "the trace"
    check_graph(trace.nodes, source)
    parts = []
    for node in trace.nodes:
        where = f"{source}: node {node.id} {node.name!r}"
        if node.type not in schema.node_types:
            raise ValueError(f"{where} has the type {node.type!r}; the schema has {', '.join(schema.node_types)}")
        fields = {
            "id": node.id, "name": node.name, "type": schema.node_types[node.type], "ctrl_deps": node.ctrl_deps,
            "data_deps": node.data_deps, "start_time_micros": node.start, "duration_micros": node.duration,
        }  # fmt: skip
        for name, io in (("inputs", node.inputs), ("outputs", node.outputs)):
            if io is not None:
                fields[name] = {"values": io.values, "shapes": io.shapes, "types": io.types}
        parts.append(_message(schema.node, fields, node.attributes, schema, where))
    content = b"".join(piece for part in parts for piece in (_varint(len(part)), part))
    facts = dict(trace.attributes)
    if any(name.startswith(_OWN) for name in facts):
        facts[_DIGEST] = TraceAttribute("string_val", hashlib.sha256(content).hexdigest())
    head = _message(schema.metadata, {"version": trace.version}, facts, schema, f"{source}: metadata")
    return _varint(len(head)) + head + content


def _message(
    make, fields: dict[str, Any], attributes: Mapping[str, TraceAttribute], schema: Schema, where: str
) -> bytes:
    try:
        message = make(**fields)
        for name, attribute in attributes.items():
            if attribute.field not in schema.value_fields:
                raise ValueError(f"the schema has no value {attribute.field!r}")
            row = message.attr.add(name=name, doc_string=attribute.doc)
            if attribute.field.endswith("_list"):
                getattr(row, attribute.field).SetInParent()
                getattr(row, attribute.field).values.extend(attribute.value)
            else:
                setattr(row, attribute.field, attribute.value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where} cannot be written: {error}") from None
    return message.SerializeToString(deterministic=True)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_trace(path: str | os.PathLike[str], trace: Trace, proto: str | os.PathLike[str] | None = None) -> None:
    """Write a Chakra trace; in gzip where the name ends in ``.gz``.

    Parameters
    ----------
    path : path-like
        ``NAME.RANK.et``; an old file is replaced.
    trace : Trace
    proto : path-like, optional
        Chakra's ``et_def.proto``; see `load_chakra_schema`.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_chakra_schema` and `trace_bytes`.

    Examples
    --------
    >>> write_trace("my.0.et", Trace((TraceNode(0, "fc", "COMP_NODE"),), "1.0.0"), "et_def.proto")  # doctest: +SKIP
    """
    data = trace_bytes(trace, load_chakra_schema(proto))
    write_atomic(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)
