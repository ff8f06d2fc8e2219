"""Simulators in environments of their own, and what they have computed.

A simulator needs packages of its own, sometimes older ones than softnum, so it is never a dependency: it gets a virtual
environment in the user's cache folder, made on first use. Its results are kept beside it, each as soon as it is there
and under the digest of what the simulator was given: what is interrupted goes on, and nothing is simulated twice.

A simulation is a `Task`: files in, one file out. A *runner* is a small program in the simulator's environment that
stays up for many tasks: it reads the folder of each from its standard input and answers in one line of JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from softnum.runtime.atomic import one_at_a_time, write_atomic
from softnum.runtime.caching import cache_folder

__all__ = ["TOOLS", "Task", "Tool", "create_environment", "default_environment", "run_tasks"]

# The runner's frame: what a simulator prints goes to stderr, answers go where stdout was. argv: the version expected.
_FRAME = """\
import importlib.metadata, json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
try:
    found = importlib.metadata.version("{package}")
    if found != sys.argv[1]:
        sys.exit("{package} " + found + " is installed, not " + sys.argv[1])
{setup}
except ImportError:
    sys.exit(traceback.format_exc())
for line in sys.stdin:
    os.chdir(json.loads(line))
    try:
{work}
        answer = None
    except BaseException:
        answer = traceback.format_exc()[-1500:]
    print(json.dumps(answer), file=answers, flush=True)
"""

_SCALESIM = (
    "    from scalesim.scale_sim import scalesim",
    """\
        sim = scalesim(save_disk_space=True, verbose=False, config="run.cfg", topology="topology.csv",
                       layout="layout.csv", input_type_gemm=True)
        sim.run_scale(top_path="out")""",
)

# ZigZag's own pipeline ("latency", the default search), without the pictures and the pickle that its API adds: the
# drawing of loops fails on a product that fits the array whole. Its log goes nowhere; its results are in the JSON.
_ZIGZAG = (
    """\
    import logging
    logging.disable(logging.CRITICAL)
    from zigzag.mapping.temporal_mapping import TemporalMappingType
    from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
    from zigzag.stages.main import MainStage
    from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
    from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
    from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
    from zigzag.stages.parser.workload_parser import WorkloadParserStage
    from zigzag.stages.results.reduce_stages import MinimalLatencyStage, SumStage
    from zigzag.stages.results.save import CompleteSaveStage
    from zigzag.stages.workload_iterator import WorkloadStage
    STAGES = [WorkloadParserStage, AcceleratorParserStage, SumStage, WorkloadStage, CompleteSaveStage,
              MinimalLatencyStage, SpatialMappingGeneratorStage, MinimalLatencyStage, TemporalMappingGeneratorStage,
              CostModelStage]""",
    """\
        MainStage(list_of_callables=STAGES, workload="workload.yaml", accelerator="accelerator.yaml",
                  mapping="mapping.yaml", dump_folder="out", loma_lpf_limit=6, loma_show_progress_bar=False,
                  nb_mappings_generated=3, enable_mix_spatial_mapping_generation=False,
                  access_same_data_considered_as_no_access=True,
                  temporal_mapping_type=TemporalMappingType("uneven")).run()""",
)


@dataclass(frozen=True)
class Tool:
    """A simulator: what to install, and how to run it.

    Parameters
    ----------
    name : str
        As in messages.
    package, version : str
        What it is on PyPI.
    requirements : tuple of str
        What pip is asked for.
    module : str
        What is imported to see that it is there.
    runner : str
        The program that carries out tasks.

    Examples
    --------
    >>> TOOLS["zigzag"].requirements
    ('zigzag-dse==3.9.1', 'six')
    """

    name: str
    package: str
    version: str
    requirements: tuple[str, ...]
    module: str
    runner: str = field(repr=False)

    @classmethod
    def of(cls, name: str, package: str, version: str, extra: str, module: str, program: str) -> Tool:
        """A tool whose runner imports and runs the two parts of a program."""
        runner = _FRAME.format(package=package, setup=program[0], work=program[1])
        return cls(name, package, version, (f"{package}=={version}", *extra), module, runner)


#: The simulators that softnum drives.
TOOLS: Mapping[str, Tool] = {
    # scalesim 3.0.0 converts one-element arrays with int(), which NumPy 2.4 refuses
    "scalesim": Tool.of("SCALE-Sim", "scalesim", "3.0.0", ("numpy<2.4",), "scalesim.scale_sim", _SCALESIM),
    # zigzag-dse 3.9.1 imports six without naming it as a requirement
    "zigzag": Tool.of("ZigZag", "zigzag-dse", "3.9.1", ("six",), "zigzag.api", _ZIGZAG),
}


def default_environment(tool: str = "scalesim") -> Path:
    """Return where a simulator's environment is kept: in ``SOFTNUM_CACHE``, else in ``softnum/`` under
    ``$XDG_CACHE_HOME`` or ``~/.cache``.

    Parameters
    ----------
    tool : str
        "scalesim" or "zigzag".

    Returns
    -------
    Path
    """
    return cache_folder(_part(tool), make=False)


def _part(tool: str) -> str:
    return f"{tool}-{TOOLS[tool].version}-py{sys.version_info[0]}.{sys.version_info[1]}"


def create_environment(environment: str | os.PathLike[str] | None = None, tool: str = "scalesim") -> Path:
    """Make a virtual environment with a simulator, or take the one that is there.

    Parameters
    ----------
    environment : path-like, optional
        Its folder. Default: `default_environment`.
    tool : str
        "scalesim" (default) or "zigzag".

    Returns
    -------
    Path
        The environment's Python.

    Raises
    ------
    ValueError
        If there is no such tool, or the default folder is one where others can put files (`cache_folder`).
    RuntimeError
        If it cannot be made; the message holds the end of what pip said.

    Examples
    --------
    >>> create_environment()  # doctest: +SKIP
    PosixPath('/home/me/.cache/softnum/scalesim-3.0.0-py3.12/bin/python')
    """
    if tool not in TOOLS:
        raise ValueError(f"unknown simulator {tool!r}; softnum drives {', '.join(TOOLS)}")
    what = TOOLS[tool]
    environment = Path(environment) if environment is not None else cache_folder(_part(tool))
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if _holds(python, what):
        return python
    with one_at_a_time(environment.with_name(f".{environment.name}.lock")):
        if not _holds(python, what):  # which another process may have made meanwhile
            _install(environment, python, what)
    return python


def _holds(python: Path, what: Tool) -> bool:
    """Whether an environment's Python runs, and has the tool in its version."""
    check = f"import importlib.metadata as m, {what.module}; print(m.version({what.package!r}))"
    try:
        probe = subprocess.run([python, "-I", "-c", check], capture_output=True, text=True, check=False)
    except OSError:  # it is absent, or no program
        return False
    return probe.returncode == 0 and probe.stdout.strip() == what.version


def _install(environment: Path, python: Path, what: Tool) -> None:
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what.requirements],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(
                f"could not make {what.name}'s environment in {environment}: {' '.join(command)} failed with\n"
                f"{(done.stderr or done.stdout).strip()[-1500:]}\nInstall {' '.join(what.requirements)} into a virtual "
                "environment yourself and name it (environment=, or --venv of python -m softnum.tta remake)"
            )


@dataclass(frozen=True)
class Task:
    """One simulation: files in, one file out.

    Parameters
    ----------
    label : str
        What it is, for progress and messages.
    files : Mapping of str to str
        Names and texts of what the simulator is given.
    result : str
        Path of what it writes, in the same folder.
    check : callable
        Called with the result's text; raises ValueError if it is not that of this task.
    size : int
        How much work it is (multiply-adds): the largest run first.

    Examples
    --------
    >>> task = Task("2 x 2 x 2", {"in.txt": "2"}, "out.txt", check=int)
    >>> len(task.key("scalesim")), task.key("scalesim") == task.key("zigzag")
    (64, False)
    """

    label: str
    files: Mapping[str, str] = field(repr=False)
    result: str
    check: Callable[[str], object] = field(repr=False)
    size: int = 0

    def key(self, tool: str) -> str:
        """SHA-256 of everything that determines the result."""
        facts = [tool, TOOLS[tool].version, TOOLS[tool].runner, self.result, sorted(self.files.items())]
        return hashlib.sha256(json.dumps(facts).encode("utf-8")).hexdigest()


def _kept(path: Path, task: Task) -> str | None:
    """The result that is kept in a file; None if there is none, or the file is damaged."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        text = entry["text"]
        if entry["sha256"] != hashlib.sha256(text.encode("utf-8")).hexdigest():
            return None
        task.check(text)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # an unreadable entry is no entry: the task is simulated again, and the entry replaced
    return text


class _Worker:
    """A runner process; `run` carries out one task after another."""

    def __init__(self, tool: str, python: Path) -> None:
        self._tool = TOOLS[tool]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        self._process = subprocess.Popen(
            [python, "-I", "-c", self._tool.runner, self._tool.version],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip

    def run(self, task: Task) -> str:
        with tempfile.TemporaryDirectory(prefix=f"softnum-{self._tool.package}-") as folder:
            for name, text in task.files.items():
                Path(folder, name).write_text(text, encoding="utf-8")
            with contextlib.suppress(BrokenPipeError):  # it has died: the empty answer says so
                self._process.stdin.write(json.dumps(folder) + "\n")
                self._process.stdin.flush()
            answer = self._process.stdout.readline()
            where, result = f"{self._tool.name} failed on {task.label}", Path(folder, task.result)
            if not answer:
                code = self._process.wait()
                self._log.seek(0)
                said = self._log.read().decode("utf-8", errors="replace").strip()[-1500:]
                raise RuntimeError(f"{where} (exit code {code}):\n{said}")
            error = json.loads(answer)
            if error is not None:
                raise RuntimeError(f"{where}:\n{error}")
            if not result.is_file():
                raise RuntimeError(f"{where}: it ended without an error and without {task.result}")
            text = result.read_text(encoding="utf-8")
        task.check(text)
        return text

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # it died before it read what was written
            self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


def run_tasks(
    tool: str,
    tasks: Sequence[Task],
    *,
    environment: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    reuse: bool = True,
    jobs: int | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[str]:
    """Carry out simulations, or take what is kept of earlier ones.

    Parameters
    ----------
    tool : str
        "scalesim" or "zigzag".
    tasks : sequence of Task
        The simulations; equal ones run once.
    environment : path-like, optional
        The simulator's environment, as in `create_environment`; made only if something has to run.
    cache : path-like, optional
        Folder of kept results. Default: ``simulations`` beside `default_environment`.
    reuse : bool
        Whether to take kept results; new ones are kept in any case.
    jobs : int, optional
        Processes. Default: one for each core.
    progress : callable, optional
        Called with one line of text after each simulation.

    Returns
    -------
    list of str
        Text of each result, in the order of `tasks`.

    Raises
    ------
    RuntimeError
        If the simulator cannot be installed or fails; what is finished is kept.
    ValueError
        If a result is not that of its task.

    Examples
    --------
    >>> run_tasks("scalesim", [])
    []
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}; leave it out for one process a core")
    folder = cache_folder("simulations", make=False) if cache is None else Path(cache)
    keys = [task.key(tool) for task in tasks]
    files = {key: folder / tool / key[:2] / f"{key}.json" for key in keys}
    texts: dict[str, str] = {}
    missing: dict[str, Task] = {}
    for key, task in zip(keys, tasks, strict=True):
        text = _kept(files[key], task) if reuse and key not in texts and key not in missing else None
        if text is not None:
            texts[key] = text
        elif key not in texts:
            missing.setdefault(key, task)
    name, total, found = TOOLS[tool].name, len(files), len(texts)
    if progress is not None and found:
        progress(f"{name}: {found} of {total} GEMMs found among earlier simulations")
    if missing:
        python = create_environment(environment, tool)
        for key, text in _simulated(tool, python, missing, min(jobs or _cores(), len(missing))):
            digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
            entry = {"task": missing[key].label, "sha256": digest, "text": text}
            write_atomic(files[key], json.dumps(entry, indent=1) + "\n")
            texts[key] = text
            if progress is not None:
                progress(f"{name}: {len(texts)} of {total} GEMMs, last {missing[key].label}")
    return [texts[key] for key in keys]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _simulated(tool: str, python: Path, tasks: Mapping[str, Task], jobs: int) -> Iterator[tuple[str, str]]:
    """(key, text) of each task as it is done."""
    own, lock, workers = threading.local(), threading.Lock(), []
    stopped, failed = threading.Event(), threading.Event()

    def work(task: Task) -> str:
        with lock:
            if stopped.is_set() or failed.is_set():
                raise RuntimeError(f"{task.label} was not begun")
            if not hasattr(own, "worker"):
                own.worker = _Worker(tool, python)
                workers.append(own.worker)
        try:
            return own.worker.run(task)
        except BaseException:  # raised again where results are taken; none is begun until then
            failed.set()
            raise

    pool = ThreadPoolExecutor(jobs)
    try:
        order = sorted(tasks, key=lambda key: -tasks[key].size)
        futures = {pool.submit(work, tasks[key]): key for key in order}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        with lock:
            stopped.set()
            for worker in workers:
                worker.kill()
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            worker.close()
