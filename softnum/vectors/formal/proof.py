"""Whether a design computes an operation: by exhaustion, by ABC, or by solvers of SMT-LIB, whichever can decide."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softnum.vectors.files.text import TextLayout
from softnum.vectors.formal.checking import check_equivalence
from softnum.vectors.formal.definition import define
from softnum.vectors.formal.evaluation import evaluate
from softnum.vectors.formal.exhaustion import Compared, answer_of, exhaust, right_block, simulate
from softnum.vectors.formal.miter import is_nan, miter_of, query_of
from softnum.vectors.formal.netlist import read_design
from softnum.vectors.formal.ports import Wiring, wire
from softnum.vectors.formal.solvers import SOLVERS, installed, solve
from softnum.vectors.formal.unrolling import Reset, Unrolled, unroll
from softnum.vectors.plans.spec import Block, VectorSpec

__all__ = ["MOST_PATTERN_BITS", "METHODS", "Attempt", "Proof", "prove"]

#: Operands of more bits than this are not exhausted.
MOST_PATTERN_BITS = 28
_LIMIT_BITS = 40
METHODS = ("auto", "exhaustion", "cec", "smt")


@dataclass(frozen=True)
class Attempt:
    """A method that was tried, what came of it, and the seconds it took."""

    method: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class Proof:
    """What was found.

    Parameters
    ----------
    equivalent : bool or None
        None: not proved, neither way.
    method : str
        What decided: "exhaustion", "simulation" (a counterexample), "cec", or "smt (bitwuzla)" ...
    top : str
    spec : VectorSpec
    wiring : Wiring
    registers : int
        Bits of state of the design.
    attempts : tuple of Attempt
    patterns, differing : int or None
        Of exhaustion and simulation: how many patterns were compared, and differ.
    counterexample : Block or None
        One vector: the operands, and the design's result and flags (what is right, where it has none).
    want : Block or None
        The same operands with what is right, by softnum's core in C.
    depends : tuple of str
        Other inputs than operands (former contents of registers, other cycles, undefined values) that the
        counterexample sets.
    """

    equivalent: bool | None
    method: str
    top: str
    spec: VectorSpec
    wiring: Wiring
    registers: int
    attempts: tuple[Attempt, ...]
    patterns: int | None = None
    differing: int | None = None
    counterexample: Block | None = None
    want: Block | None = None
    depends: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all that was tried."""
        return sum(attempt.seconds for attempt in self.attempts)

    @property
    def vector(self) -> str | None:
        """The counterexample as a line of softnum's vector files, with the design's answer."""
        return (
            None if self.counterexample is None else TextLayout(self.spec).format(self.counterexample).decode().strip()
        )

    @property
    def right_vector(self) -> str | None:
        """The line with what is right."""
        return None if self.want is None else _line(self.spec, self.want)

    @property
    def vector_file(self) -> bytes | None:
        """The counterexample as a file of one vector, with a header, for ``softnum vectors check``."""
        if self.counterexample is None:
            return None
        columns = " ".join(f"{c.name}:{c.width}" for c in self.spec.columns)
        facts = {**self.spec.facts(), "columns": columns, "method": "counterexample", "vectors": "1"}
        return TextLayout.header_lines(facts) + TextLayout(self.spec).format(self.counterexample)


def _line(spec: VectorSpec, block: Block) -> str:
    return TextLayout(spec).format(block).decode().strip()


class _Undecided(Exception):
    """A method that did not decide: why."""


def prove(
    sources: Iterable[Any],
    spec: VectorSpec,
    *,
    top: str | None = None,
    parameters: Mapping[str, int] | None = None,
    include: Iterable[Any] = (),
    ports: Mapping[str, str] | None = None,
    ties: Mapping[str, int | str] | None = None,
    latency: int = 0,
    reset: Reset | None = None,
    hold: bool = False,
    pulse: tuple[str, ...] = (),
    flags: bool = True,
    any_nan: bool = False,
    method: str = "auto",
    solver: str | None = None,
    timeout: float = 600.0,
    most_bits: int = MOST_PATTERN_BITS,
    yosys: str = "yosys",
    abc: str = "yosys-abc",
    progress: Callable[[str], None] | None = None,
) -> Proof:
    """Prove that a design in Verilog computes an operation, or find operands that show that it does not.

    Parameters
    ----------
    sources, top, parameters, include, yosys
        As of `softnum.vectors.formal.read_design`.
    spec : VectorSpec or UnitSpec
        The operation, or a dot product of a unit. Its random bits are an input, its space is assumed of the operands.
    ports, ties : mapping, optional
        As of ``softnum.vectors.formal.ports.wire``.
    latency, reset, hold, pulse
        As of ``softnum.vectors.formal.unrolling.unroll``.
    flags : bool
        Whether flags are compared, where the design has them.
    any_nan : bool
        Whether any NaN is right where a NaN is.
    method : {"auto", "exhaustion", "cec", "smt"}
        "auto": exhaustion where operands have at most `most_bits`; else vectors as `softnum vectors generate` makes
        them, which find most faults, then ABC's ``cec``, then the solvers that are installed.
    solver : str, optional
        One of ``SOLVERS``. Default: those installed, one after the other.
    timeout : float
        Seconds for each method.
    most_bits : int
        Operands of more bits are not exhausted; at most 40.
    abc : str
        The program.
    progress : callable, optional
        Called with the name of each method before it starts.

    Returns
    -------
    Proof

    Raises
    ------
    FileNotFoundError, ValueError, TimeoutError
        As of `read_design`, `wire`, `unroll` and `define`; and if a method cannot be used.
    RuntimeError
        If a method's counterexample is none by softnum's core in C, or a program fails.

    Notes
    -----
    Exhaustion compares with softnum's core in C; the others with the circuit of `define`, which tests compare with the
    core. A counterexample of any of them is computed again by the core. What is proved is the design as Yosys reads
    it, for all former contents of its registers and all inputs of other cycles.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> found = prove(["fp8_add.v"], VectorSpec.make("add", "e4m3fn"))  # doctest: +SKIP
    >>> found.equivalent, found.method  # doctest: +SKIP
    (True, 'exhaustion')
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    if solver is not None and solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; there are {', '.join(SOLVERS)}")
    if latency < 0:
        raise ValueError(f"the latency is at least 0 cycles, got {latency}")
    if not 0 <= most_bits <= _LIMIT_BITS:
        raise ValueError(f"operands of 0 to {_LIMIT_BITS} bits can be exhausted, got {most_bits}")
    if not timeout > 0:
        raise ValueError(f"the time limit must be above 0 s, got {timeout:g}")
    if not isinstance(spec, VectorSpec) and spec.op != "dot":
        raise ValueError(
            f"{spec.op} of a unit cannot be proved; prove a dot product, or a step as a dot product of length 1 with C"
        )
    if spec.space != spec.space.of_operands:
        raise ValueError(f"only {','.join(spec.space.only)} is of vectors' results: a proof leaves out operands alone")
    bits = sum(c.width for c in spec.input_columns)
    if method in ("cec", "smt") or (method == "auto" and bits > most_bits):
        define(spec)
    design = read_design(sources, top=top, parameters=parameters, include=include, yosys=yosys, timeout=timeout)
    for name in (*pulse, *(() if reset is None else (reset.port,))):
        port = design.ports.get(name)
        if port is None or port.direction != "input" or port.width != 1:
            raise ValueError(f"{design.top} has no input {name!r} of one bit for a reset or a pulse")
    controls = (*pulse, *(() if reset is None else (reset.port,)))
    wiring = wire(design, spec, ports, ties, controls=controls, flags=flags and spec.has_flags)
    unrolled = unroll(design, wiring, latency, reset=reset, hold=hold, pulse=pulse)
    task = _Task(spec, unrolled, any_nan, timeout, most_bits, solver, abc)
    steps = _steps(task, method)
    attempts: list[Attempt] = []
    for name, step in steps:
        if progress is not None:
            progress(name)
        began = time.monotonic()
        try:
            found = step()
        except _Undecided as why:
            attempts.append(Attempt(name, str(why), time.monotonic() - began))
            continue
        equivalent = found.get("equivalent")
        outcome = {True: "equivalent", False: "a counterexample", None: "no difference"}[equivalent]
        attempts.append(Attempt(name, outcome, time.monotonic() - began))
        if equivalent is not None:
            return Proof(method=name, top=design.top, spec=spec, wiring=wiring, registers=design.registers,
                         attempts=tuple(attempts), **found)  # fmt: skip
    return Proof(None, "", design.top, spec, wiring, design.registers, tuple(attempts))


@dataclass(frozen=True)
class _Task:
    spec: VectorSpec
    unrolled: Unrolled
    any_nan: bool
    timeout: float
    most_bits: int
    solver: str | None
    abc: str

    @property
    def limit(self) -> str:
        return f"did not end in {self.timeout:g} s"


def _steps(task: _Task, method: str) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    bits = task.unrolled.operand_bits
    if method == "exhaustion" and bits > task.most_bits:
        raise ValueError(
            f"the operands have {bits} bits: exhaustion takes at most {task.most_bits}; --method auto chooses, and "
            "--most-bits raises it"
        )
    names = [task.solver] if task.solver is not None else installed()
    if method == "smt" and not names:
        raise ValueError("no solver is installed: pip install 'softnum[formal]'")
    solvers = [(f"smt ({name})", lambda name=name: _by_smt(task, name)) for name in names]
    small = bits <= task.most_bits
    steps = {
        "exhaustion": [("exhaustion", lambda: _by_exhaustion(task))],
        "cec": [("cec", lambda: _by_cec(task))],
        "smt": solvers,
    }
    if method != "auto":
        return steps[method]
    first = steps["exhaustion"] if small else [("simulation", lambda: _by_simulation(task))]
    return [*first, *steps["cec"], *solvers]


def _by_exhaustion(task: _Task) -> dict[str, Any]:
    found = exhaust(task.spec, task.unrolled, task.any_nan, task.timeout)
    if found.first is not None:
        return _differs(task, found)
    if not found.decided:
        if found.ended:
            raise _Undecided(task.limit)
        raise _Undecided("answers depend on former contents of registers, other cycles or undefined values")
    return {"equivalent": True, "patterns": found.patterns, "differing": 0}


def _by_simulation(task: _Task) -> dict[str, Any]:
    found = simulate(task.spec, task.unrolled, task.any_nan)
    if found.first is not None:
        return _differs(task, found)
    raise _Undecided(f"{found.patterns} vectors equal, which proves nothing")


def _differs(task: _Task, found: Compared) -> dict[str, Any]:
    return {"patterns": found.patterns, "differing": found.differing, **_shown(task, found.first, {})}


def _by_cec(task: _Task) -> dict[str, Any]:
    miter = miter_of(task.spec, task.unrolled, task.any_nan)
    if miter.differs == 0:
        return {"equivalent": True}
    verdict = check_equivalence(miter, task.timeout, task.abc)
    if verdict.equivalent is None:
        raise _Undecided(task.limit)
    if verdict.equivalent:
        return {"equivalent": True}
    operands, place = [], 0
    for column in task.spec.input_columns:
        operands.append(sum(bit << i for i, bit in enumerate(verdict.inputs[place : place + column.width])))
        place += column.width
    others = {i: bit for i, bit in enumerate(verdict.inputs) if i >= task.unrolled.operand_bits}
    return _shown(task, tuple(operands), others)


def _by_smt(task: _Task, name: str) -> dict[str, Any]:
    text, constants = query_of(task.spec, task.unrolled, task.any_nan)
    answer = solve(name, text, constants, task.timeout)
    if answer.verdict not in ("sat", "unsat"):
        raise _Undecided(task.limit if answer.verdict is None else "the solver does not know")
    if answer.verdict == "unsat":
        return {"equivalent": True}
    others = {i: answer.values[f"other{i}"] for i in task.unrolled.others if f"other{i}" in answer.values}
    return _shown(task, tuple(answer.values[c.name] for c in task.spec.input_columns), others)


def _shown(task: _Task, operands: tuple[int, ...], others: dict[int, int]) -> dict[str, Any]:
    """The counterexample, computed again."""
    spec = task.spec
    arrays = tuple(
        np.array([code], c.dtype if c.count == 1 else object)
        for code, c in zip(operands, spec.input_columns, strict=True)
    )
    want = right_block(spec, arrays)
    result, flags = answer_of(spec, task.unrolled, operands, others)
    raised = want.flags if flags is None else np.array([flags], np.uint8)
    got = Block(want.operands, want.random_bits, np.array([result], want.result.dtype), raised)
    same = result == int(want.result[0]) or (task.any_nan and all(
        evaluate(is_nan(spec), {"code": [code]})["nan"][0] for code in (result, int(want.result[0]))
    ))  # fmt: skip
    if same and (flags is None or flags == int(want.flags[0])):
        raise RuntimeError(f"the counterexample {TextLayout(spec).format(got)!r} is none by softnum's core: a defect")
    return {
        "equivalent": False,
        "counterexample": got,
        "want": want,
        "depends": _named(task.unrolled, others),
    }


def _named(unrolled: Unrolled, others: dict[int, int]) -> tuple[str, ...]:
    """Other inputs than operands, bits of one word together: "stage_1 before = 0x1A"."""
    words: dict[str, int] = {}
    for place in unrolled.others:
        if place in others:
            name, bit, when = re.fullmatch(r"(.*)\[(\d+)\](.*)", unrolled.graph.inputs[place]).groups()
            words[name + when] = words.get(name + when, 0) | others[place] << int(bit)
    return tuple(f"{name} = {value:#x}" for name, value in words.items())
