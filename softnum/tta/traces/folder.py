"""A job's traces in a folder: a file for each rank, the groups of ranks, and what the job is."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.quantities import check_keys
from softnum.tta.text import json_of, read_text
from softnum.tta.traces.ranks import RankTraces
from softnum.tta.traces.schema import load_chakra_schema
from softnum.tta.traces.trace import Trace, trace_bytes

__all__ = ["TRACE_NAME", "check_job", "check_ranks", "read_groups", "read_job", "write_traces"]

#: rank 3 of a job is in rank.3.et: what ASTRA-sim is told is the part before the first dot
TRACE_NAME = "rank"

_KEYS = ("softnum", "network", "design", "batch", "ranks", "groups", "timed", "memory", "schema")
_COMMUNICATION = ("COMM_COLL_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE")


def write_traces(
    folder: str | os.PathLike[str],
    job: RankTraces,
    proto: str | os.PathLike[str] | None = None,
    *,
    compress: bool = False,
) -> list[Path]:
    """Write the traces of all ranks.

    Ranks that do the same share the content of one file (hard links, where the file system has them).

    Parameters
    ----------
    folder : path-like
        Made where there is none. Traces of an earlier job in it are removed.
    job : RankTraces
    proto : path-like, optional
        Chakra's ``et_def.proto``; see `load_chakra_schema`.
    compress : bool
        In gzip, ``rank.0.et.gz``: Chakra's tools and ASTRA-sim take them unpacked alone.

    Returns
    -------
    list of Path
        ``rank.0.et`` and so on, then ``groups.json`` where there are groups, then ``job.json``.

    Raises
    ------
    FileNotFoundError, ValueError
        As `load_chakra_schema` and `check_ranks`; if the folder has files that are of no job of softnum's.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> from softnum.tta.traces import data_parallel_traces
    >>> job = data_parallel_traces(workload("mlp", load_design("a-float32"), 32), 4)
    >>> write_traces("traces", job, "et_def.proto")[0]  # doctest: +SKIP
    PosixPath('traces/rank.0.et')
    """
    schema = load_chakra_schema(proto)
    check_ranks([job.of(rank) for rank in range(job.ranks)], job.groups)
    content = [trace_bytes(trace, schema) for trace in job.traces]
    if compress:
        content = [gzip.compress(data, mtime=0) for data in content]
    folder, ending = Path(folder), "et.gz" if compress else "et"
    _clear(folder)
    folder.mkdir(parents=True, exist_ok=True)
    facts = {name.removeprefix("softnum."): found.value for name, found in job.traces[0].attributes.items()}
    kinds = {node.type for trace in job.traces for node in trace.nodes}
    groups = {name: list(members) for name, members in job.groups.items()}
    table = {
        "softnum": "Chakra traces of a job, a file for each rank",
        **{name: facts.get(name) for name in ("network", "design", "batch")},
        "ranks": job.ranks,
        "groups": len(groups),
        "timed": any(node.duration for trace in job.traces for node in trace.nodes),
        "memory": bool({"MEM_LOAD_NODE", "MEM_STORE_NODE"} & kinds),
        "schema": schema.digest,
    }
    write_atomic(folder / "job.json", json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    paths, first = [], {}
    for rank, which in enumerate(job.of_rank):
        path = folder / f"{TRACE_NAME}.{rank}.{ending}"
        if which in first:
            _link(first[which], path, content[which])
        else:
            write_atomic(path, content[which])
            first[which] = path
        paths.append(path)
    if groups:
        write_atomic(folder / "groups.json", json.dumps(groups) + "\n")
        paths.append(folder / "groups.json")
    return [*paths, folder / "job.json"]


def _link(first: Path, path: Path, content: bytes) -> None:
    try:
        os.link(first, path)
    except OSError:  # a file system without them, or with too many
        path.write_bytes(content)


def _clear(folder: Path) -> None:
    """Remove an earlier job; ValueError where the folder is of something else."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder for the traces")
    old = sorted(folder.glob(f"{TRACE_NAME}.*.et*")) if folder.is_dir() else []
    if old:
        try:
            read_job(folder)
        except (ValueError, OSError):
            raise ValueError(f"{old[0]} is of no job that softnum wrote, so it stays; choose another folder") from None
        for path in old:
            path.unlink()
        (folder / "groups.json").unlink(missing_ok=True)


def read_job(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a folder's ``job.json`` says of its traces.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is none, or it is none.
    """
    path = Path(folder) / "job.json"
    text = read_text(path, f"no job {str(path)!r}: name a folder that softnum traces write has made")
    table = json_of(text, str(path))
    check_keys(table, _KEYS, [], str(path))
    return table


def read_groups(path: str | os.PathLike[str]) -> dict[str, list[int]]:
    """The ranks of each group, as a job's ``groups.json`` has them.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is no object of lists of ranks.
    """
    path = Path(path)
    table = json_of(read_text(path, f"no groups {str(path)!r}"), str(path))
    if not isinstance(table, dict) or not all(
        isinstance(ranks, list) and all(type(rank) is int for rank in ranks) for ranks in table.values()
    ):
        raise ValueError(f'{path}: groups are an object of lists of ranks, like {{"1": [0, 1]}}')
    return table


def check_job(folder: str | os.PathLike[str], ranks: int, groups: int | None = None) -> None:
    """Compare what is there of a job with what its ``job.json`` says; a folder without one says nothing.

    Parameters
    ----------
    folder : path-like
    ranks : int
        Traces that are there.
    groups : int, optional
        Groups of ranks that are there.

    Raises
    ------
    ValueError
        If the job has another number of them.
    """
    if not (Path(folder) / "job.json").is_file():
        return
    job = read_job(folder)
    for what, count in (("ranks", ranks), ("groups", groups)):
        if count is not None and job[what] != count:
            raise ValueError(
                f"{Path(folder) / 'job.json'}: the job has {job[what]} {what}, and {count} are there; name all of "
                "them, or write the traces again"
            )


def check_ranks(traces: Iterable[Trace], groups: Mapping[str, Iterable[int]] | None = None) -> None:
    """Raise ValueError unless the ranks of a job can talk to each other.

    Every message that is sent is received, with its tag and size, and the ranks of every group call the same
    collectives with the same sizes, in the same order.

    Parameters
    ----------
    traces : iterable of Trace
        Of ranks 0, 1, ...
    groups : Mapping of str to iterable of int, optional
        As of `RankTraces`; "" is all ranks.

    Raises
    ------
    ValueError
        It names ranks and nodes.

    Examples
    --------
    >>> from softnum.tta.traces import TraceAttribute, TraceNode
    >>> facts = {name: TraceAttribute("int64_val", value) for name, value in (("comm_dst", 1), ("comm_size", 8))}
    >>> send = Trace((TraceNode(0, "send", "COMM_SEND_NODE", attributes=facts),), source="rank.0.et")
    >>> check_ranks([send, Trace((TraceNode(0, "fc", "COMP_NODE"),))])
    Traceback (most recent call last):
    ValueError: rank.0.et: node 0 'send' sends 8 bytes to rank 1, tag 0, which receives no such message
    """
    traces = list(traces)
    members = {name: tuple(ranks) for name, ranks in (groups or {}).items()}
    members[""], there = tuple(range(len(traces))), f"0 to {len(traces) - 1}"
    for name, ranks in members.items():
        if len(set(ranks)) != len(ranks) or not all(0 <= rank < len(traces) for rank in ranks):
            raise ValueError(
                f"group {name!r} has the ranks {list(ranks)[:8]}; there are 0 to {len(traces) - 1}, each once"
            )
    within = {name: frozenset(ranks) for name, ranks in members.items()}
    sent: Counter[Any] = Counter()
    names, calls = {}, {}
    known: dict[int, tuple[Any, ...]] = {}  # of traces that are one
    for rank, trace in enumerate(traces):
        if id(trace) not in known:
            nodes = [node for node in trace.nodes if node.type in _COMMUNICATION]
            known[id(trace)] = (nodes, [node for node in nodes if node.type == "COMM_COLL_NODE"])
        nodes, collectives = known[id(trace)]
        where = trace.source or f"rank {rank}"
        for node in nodes:
            what = f"{where}: node {node.id} {node.name!r}"
            if node.type == "COMM_COLL_NODE":
                group = _group(node)
                if rank not in within.get(group, ()):
                    of = f"without rank {rank}" if group in members else "which there is not"
                    raise ValueError(f"{what} is of the group {group!r}, {of}")
                continue
            sends = node.type == "COMM_SEND_NODE"
            other = node.get("comm_dst" if sends else "comm_src")
            if not isinstance(other, int) or not 0 <= other < len(traces):
                raise ValueError(f"{what} names the rank {other}; there are {there}")
            pair = (rank, other) if sends else (other, rank)
            key = (*pair, node.get("comm_tag", 0), node.get("comm_size"))
            sent[key] += 1 if sends else -1
            names[key, sends] = what
        calls[rank] = collectives
    for (source, target, tag, size), left in sent.items():
        if left:
            told = (
                f"sends {size} bytes to rank {target}, tag {tag}, which receives no such message"
                if left > 0
                else f"receives {size} bytes of rank {source}, tag {tag}, which sends no such message"
            )
            raise ValueError(f"{names[(source, target, tag, size), left > 0]} {told}")
    _check_calls(traces, members, calls)


def _group(node) -> str:
    """The group of a collective; "" is all ranks, which "0" is too."""
    name = node.get("pg_name", "")
    return "" if name == "0" else str(name)


def _check_calls(traces, members, calls) -> None:
    """Raise ValueError where ranks of a group do not call the same collectives in the same order."""
    told: dict[tuple[Any, ...], list[Any]] = {}
    for name, ranks in members.items():
        first = None
        for rank in ranks:
            key = (id(traces[rank]), name)
            if key not in told:
                told[key] = [
                    (node.get("comm_type"), node.get("comm_size"), node) for node in calls[rank] if _group(node) == name
                ]
            if first is None:
                first, leader = told[key], rank
            elif told[key] is not first:
                _compare(name, (leader, first), (rank, told[key]))


def _compare(name: str, one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    (leader, first), (rank, mine) = one, other
    for (kind, size, node), (other_kind, other_size, other_node) in zip(first, mine, strict=False):
        if (kind, size) != (other_kind, other_size):
            raise ValueError(
                f"group {name!r}: rank {leader} calls node {node.id} {node.name!r} with {size} bytes where rank {rank} "
                f"calls node {other_node.id} {other_node.name!r} with {other_size}; they would wait for each other"
            )
    if len(first) != len(mine):
        raise ValueError(
            f"group {name!r}: rank {leader} calls {len(first)} collectives, rank {rank} {len(mine)}; one would wait"
        )
