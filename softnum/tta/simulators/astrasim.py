"""ASTRA-sim: a job's traces and a stated system in its files, and the simulator's run.

ASTRA-sim is the user's own build; softnum is given its program, of the analytical network, congestion-unaware or
congestion-aware. What was found in its source (518bd51, March 2026) and is minded here:

- a bandwidth of 1 GB/s is 2**30 bytes a second, so that rates are divided by 2**30 in its file;
- what a message takes is cut off to whole nanoseconds;
- a collective of fewer bytes than ranks counts as one byte a rank, times the chunks; so chunks are one unless stated;
- chunks that are under way at once do not share a link in the congestion-unaware network;
- collectives of groups in a network of one dimension are freed twice when it ends, after all that it says;
- a message over a Switch passes two links, and takes the latency twice;
- where an endpoint takes no time, a rank that begins with a collective ends it with an error: one takes a nanosecond;
- a duration of zero is one nanosecond; MEM nodes are accesses of memory elsewhere, and end it with an error when it
  writes its statistics.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.parallelism import System
from softnum.tta.quantities import positive_int
from softnum.tta.timings.astrasim import is_astrasim
from softnum.tta.timings.formats import read_timings
from softnum.tta.traces.folder import TRACE_NAME, check_job, read_groups, read_job
from softnum.tta.workloads.iteration import IterationTime

try:
    import resource
except ImportError:  # no POSIX
    resource = None

__all__ = ["AstraSystem", "NetworkDimension", "run_astrasim", "write_astrasim"]

_TOPOLOGIES = ("Ring", "FullyConnected", "Switch")
_ALGORITHMS = ("ring", "direct", "halvingDoubling", "doubleBinaryTree")
_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
_FILES = {"network": "network.yml", "system": "system.json", "memory": "memory.json"}
_LOG = "astrasim.log"


@dataclass(frozen=True)
class NetworkDimension:
    """One dimension of a network: groups of ranks that are joined alike.

    Parameters
    ----------
    topology : str
        "Ring", "FullyConnected" or "Switch".
    ranks : int
        Of each group, at least 2.
    bandwidth : Fraction or int
        *Bits* per second of a link, in each direction (`bit_rate`).
    latency : Fraction or float
        Seconds that a message takes besides, on each link: over a Switch there are two.
    algorithm : str
        How collectives are carried out in it: "ring", "direct", "halvingDoubling" or "doubleBinaryTree".

    Raises
    ------
    ValueError
        If a value is out of its range, or there is no such name.

    Examples
    --------
    >>> NetworkDimension("Switch", 8, 3600 * 10**9, algorithm="direct").ranks
    8
    """

    topology: str
    ranks: int
    bandwidth: Fraction | int
    latency: Fraction | float = 0
    algorithm: str = "ring"

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.topology, _TOPOLOGIES, "topology"), (self.algorithm, _ALGORITHMS, "algorithm"),
        ):  # fmt: skip
            if value not in known:
                raise ValueError(f"{what} must be one of {', '.join(known)}, got {value!r}")
        positive_int(self.ranks, "ranks of a dimension")
        if self.ranks < 2:
            raise ValueError(f"ranks of a dimension must be at least 2, got {self.ranks}; leave the dimension out")
        for value, least, what in ((self.bandwidth, 0, "bandwidth"), (self.latency, -1, "latency")):
            number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
            if not number or not least < value < float("inf") or value < 0:
                raise ValueError(f"{what} must be a number, of bits a second or seconds, got {value!r}")
        if self.algorithm == "halvingDoubling" and self.ranks & (self.ranks - 1):
            raise ValueError(f"halvingDoubling needs a power of two of ranks, got {self.ranks}")


@dataclass(frozen=True)
class AstraSystem:
    """A system as ASTRA-sim takes it.

    Parameters
    ----------
    dimensions : sequence of NetworkDimension
        The innermost first: ranks 0, 1, ... of one group of it are neighbours.
    chunks : int
        Into how many parts a collective is cut, which pass the dimensions one behind the other.
    endpoint_delay : int
        Nanoseconds that a rank takes to send a message of a collective, at least 1.
    peak, memory_bandwidth : float, optional
        FLOP/s and bytes/s of a rank: then what parts take is told from their operations and bytes (roofline), and not
        from durations.

    Raises
    ------
    ValueError
        If a value is out of its range.

    Examples
    --------
    >>> system = AstraSystem([NetworkDimension("Ring", 4, 400 * 10**9, 500e-9)])
    >>> print(system.network(), end="")
    topology: [ Ring ]
    npus_count: [ 4 ]
    bandwidth: [ 46.566128730773926 ]
    latency: [ 500.0 ]
    """

    dimensions: Sequence[NetworkDimension]
    chunks: int = 1
    endpoint_delay: int = 1
    peak: float | None = None
    memory_bandwidth: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        if not 1 <= len(self.dimensions) <= 4:  # collectives of more run in the first four alone
            raise ValueError(f"a system has 1 to 4 dimensions, got {len(self.dimensions)}")
        positive_int(self.chunks, "chunks")
        positive_int(self.endpoint_delay, "endpoint_delay")
        if (self.peak is None) != (self.memory_bandwidth is None):
            raise ValueError("peak and memory_bandwidth make a roofline together; state both, or neither")

    @classmethod
    def of(cls, where: System, ranks: int) -> AstraSystem:
        """The part of a system that some ranks are on: a dimension for each tier.

        Every tier is taken for a switch, over which a message passes two links, each with half of its latency; a link
        has the share of its rate that the system reaches.

        Raises
        ------
        ValueError
            If the system has fewer devices, or the ranks do not fill the units of a tier.

        Examples
        --------
        >>> from softnum.tta.parallelism import system
        >>> [(each.ranks, float(each.bandwidth)) for each in AstraSystem.of(system("dgx-h100"), 64).dimensions]
        [(8, 2880000000000.0), (8, 320000000000.0)]
        """
        if ranks > where.devices:
            raise ValueError(f"{where.name} has at most {where.devices} devices, fewer than {ranks} ranks")
        rows, below = [], 1
        for tier in where.tiers:
            here = min(ranks, tier.devices)
            if ranks % here or here % below:
                raise ValueError(
                    f"{ranks} ranks do not fill units of {tier.devices} devices ({tier.name}) of {where.name}"
                )
            if here > below:
                rate = Fraction(tier.bandwidth) * 8 * Fraction(str(where.efficiency["link"]))
                rows.append(NetworkDimension("Switch", here // below, rate, Fraction(str(tier.latency)) / 2))
            below = here
        return cls(rows)

    @property
    def ranks(self) -> int:
        """How many there are."""
        return prod(dimension.ranks for dimension in self.dimensions)

    def network(self) -> str:
        """The network's configuration, YAML. Its GB/s are 2**30 bytes a second, its latencies nanoseconds."""
        rows = {
            "topology": [dimension.topology for dimension in self.dimensions],
            "npus_count": [dimension.ranks for dimension in self.dimensions],
            "bandwidth": [float(Fraction(dimension.bandwidth) / 8 / 2**30) for dimension in self.dimensions],
            "latency": [float(Fraction(dimension.latency) * 10**9) for dimension in self.dimensions],
        }
        return "".join(f"{key}: [ {', '.join(map(str, values))} ]\n" for key, values in rows.items())

    def system(self) -> dict[str, Any]:
        """The system layer's configuration."""
        algorithms = [dimension.algorithm for dimension in self.dimensions]
        roofline = self.peak is not None
        return {
            "scheduling-policy": "LIFO",
            "endpoint-delay": self.endpoint_delay,
            "active-chunks-per-dimension": 1,
            "preferred-dataset-splits": self.chunks,
            **{f"{name}-implementation": algorithms for name in _COLLECTIVES},
            "collective-optimization": "localBWAware",
            "roofline-enabled": int(roofline),
            **({"peak-perf": self.peak / 1e12, "local-mem-bw": self.memory_bandwidth / 1e9} if roofline else {}),
        }


def write_astrasim(folder: str | os.PathLike[str], system: AstraSystem) -> list[Path]:
    """Write a system's configuration beside a job's traces.

    Parameters
    ----------
    folder : path-like
        As `write_traces` wrote it.
    system : AstraSystem

    Returns
    -------
    list of Path
        ``network.yml``, ``system.json`` and ``memory.json``.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such folder, or the system has another number of ranks than the job.

    Examples
    --------
    >>> write_astrasim("job", AstraSystem([NetworkDimension("Ring", 4, 10**11)]))[0]  # doctest: +SKIP
    PosixPath('job/network.yml')
    """
    folder = Path(folder)
    job = read_job(folder)
    if system.ranks != job["ranks"]:
        sizes = " x ".join(str(dimension.ranks) for dimension in system.dimensions)
        raise ValueError(f"the system has {sizes} = {system.ranks} ranks, and the job in {folder} {job['ranks']}")
    if not job["timed"] and system.peak is None:
        raise ValueError(
            f"the traces in {folder} state no durations: state the peak and the memory's bandwidth of a rank, or write "
            "them with times"
        )
    texts = {
        "network": system.network(),
        "system": json.dumps(system.system(), indent=1) + "\n",
        "memory": json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}) + "\n",
    }
    for what, text in texts.items():
        write_atomic(folder / _FILES[what], text)
    return [folder / _FILES[what] for what in texts]


def run_astrasim(
    folder: str | os.PathLike[str],
    program: str | os.PathLike[str],
    *,
    files: Mapping[str, str | os.PathLike[str]] | None = None,
    queues: int = 1,
) -> IterationTime:
    """Simulate a job by ASTRA-sim.

    Parameters
    ----------
    folder : path-like
        As `write_traces` wrote it; the log stays in it, ``astrasim.log``.
    program : path-like
        ``AstraSim_Analytical_Congestion_Unaware`` or ``..._Aware``, of the user's own build.
    files : Mapping of str to path-like, optional
        Configurations of the user's own: "network", "system", "memory". Default: those in the folder.
    queues : int
        Of each dimension (``--num-queues-per-dim``).

    Returns
    -------
    IterationTime
        Of the slowest rank, as `read_timings` reads the log.

    Raises
    ------
    FileNotFoundError, ValueError
        If a file is missing, the process may not open as many files as there are ranks, or the simulator ends with an
        error or before every rank is done.

    Examples
    --------
    >>> run_astrasim("job", "bin/AstraSim_Analytical_Congestion_Unaware").detail["ranks"]  # doctest: +SKIP
    4
    """
    folder, program = Path(folder).absolute(), Path(program).absolute()
    job = read_job(folder)
    if job["memory"]:
        raise ValueError(
            f"the traces in {folder} have MEM nodes: ASTRA-sim takes them for accesses of memory elsewhere, and ends "
            "with an error when it writes its statistics; write them without"
        )
    for rank in range(job["ranks"]):
        path = folder / f"{TRACE_NAME}.{rank}.et"
        if not path.is_file():
            packed = path.with_name(f"{path.name}.gz").is_file()
            way = "ASTRA-sim takes them unpacked: gunzip them" if packed else "write them again"
            raise FileNotFoundError(f"no {path}, of {job['ranks']} ranks; {way}")
    if job["groups"]:
        check_job(folder, job["ranks"], len(read_groups(folder / "groups.json")))
    if not program.is_file() or not os.access(program, os.X_OK):
        raise FileNotFoundError(
            f"no program {str(program)!r}; ASTRA-sim's are build/astra_analytical/build/bin/"
            "AstraSim_Analytical_Congestion_Unaware and ..._Aware, built as its documentation says"
        )
    given = {what: Path(path).absolute() for what, path in (files or {}).items()}
    for what, path in {**{what: folder / name for what, name in _FILES.items()}, **given}.items():
        if what not in _FILES:
            raise ValueError(f"files must be of {', '.join(_FILES)}, got {what!r}")
        if not path.is_file():
            raise FileNotFoundError(f"no {what} configuration {str(path)!r}; write_astrasim writes one, or name yours")
        given[what] = path
    command = [
        str(program),
        f"--workload-configuration={folder / TRACE_NAME}",
        f"--system-configuration={given['system']}",
        f"--network-configuration={given['network']}",
        f"--remote-memory-configuration={given['memory']}",
        f"--logging-folder={folder / 'log'}",
        f"--num-queues-per-dim={positive_int(queues, 'queues')}",
    ]
    if job["groups"]:
        command.append(f"--comm-group-configuration={folder / 'groups.json'}")
    log = folder / _LOG
    with open(log, "wb") as out:
        ended = subprocess.run(
            command, stdout=out, stderr=subprocess.STDOUT, cwd=folder, check=False, preexec_fn=_files_for(job["ranks"])
        )
    return _read(log, ended.returncode, job)


def _files_for(ranks: int):
    """What lets the simulator hold a file open for each rank."""
    if resource is None:
        return None
    needed = ranks + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ValueError(
            f"ASTRA-sim holds the trace of each of {ranks} ranks open, and a process here may open {hard} files: raise "
            f"the limit to {needed} (ulimit -Hn), or simulate fewer ranks"
        )
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _read(log: Path, code: int, job: Mapping[str, Any]) -> IterationTime:
    """The time that a log says, where every rank is in it: a signal (a code below 0) may come when all are done."""
    text = log.read_text(encoding="utf-8", errors="replace")
    time = None
    if code <= 0 and is_astrasim(text):
        (time,) = read_timings(log, format="astrasim", design=job["design"] or "traces").values()
    if time is not None and time.detail["ranks"] == job["ranks"]:
        said = f"ASTRA-sim was ended by signal {-code} after every rank was done, in tidying up"
        return replace(time, detail={**time.detail, "hint": said}) if code else time
    said = [line for line in text.splitlines() if line.strip()]
    done = 0 if time is None else time.detail["ranks"]
    raise ValueError(
        f"ASTRA-sim ended with {code} when {done} of {job['ranks']} ranks were done: "
        f"{said[-1][-300:] if said else 'it said nothing'}; all of it is in {log}. Is the network of as many ranks?"
    )
