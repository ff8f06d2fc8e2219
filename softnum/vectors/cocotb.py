"""A reference model and a scoreboard for cocotb test benches (cocotb 2), and a driver that feeds them vectors.

cocotb is imported where a simulation runs, so the rest works without it. A whole bench::

    import cocotb
    from cocotb.clock import Clock
    from softnum.vectors import VectorSpec, plan
    from softnum.vectors.cocotb import Scoreboard, drive

    @cocotb.test
    async def vectors(dut):
        Clock(dut.clk, 10, unit="ns").start()
        spec = VectorSpec.make("multiply", "e4m3fn", overflow="saturate")
        board = Scoreboard(spec, latency=3, file="dut.txt")
        board.watch(dut.clk, [dut.a, dut.b], dut.result, dut.flags)
        await drive(dut.clk, plan(spec, count=5000), [dut.a, dut.b])
        await board.done(dut.clk)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softnum.runtime.atomic import atomic_file
from softnum.runtime.config import __version__
from softnum.vectors.driving import PlannedFile, bits, combinational, drive, joined, one_by_one, pause, planned_file
from softnum.vectors.files.text import TextLayout
from softnum.vectors.model import Expected, ReferenceModel, array_of, evaluated, known, transaction, word_of
from softnum.vectors.plans.codes import is_nan, value_text
from softnum.vectors.plans.spec import Block, Spec

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = [
    "Expected", "PlannedFile", "ReferenceModel", "Scoreboard", "ScoreboardError", "bits", "combinational", "drive",
    "joined", "one_by_one", "pause", "planned_file",
]  # fmt: skip

_BATCH = 1024


class ScoreboardError(AssertionError):
    """Results differ, are unknown, or never came; the message is the report. ``scoreboard``: the one that found it."""

    def __init__(self, text: str, scoreboard: Scoreboard) -> None:
        self.scoreboard = scoreboard
        super().__init__(text)


class _Sent(NamedTuple):
    words: tuple[int, ...]
    random: int | None
    at: str


class _Got(NamedTuple):
    result: int | None
    flags: int | None
    shown: str  # the bits as the simulator has them, if any is unknown
    unknown_flags: bool


class Scoreboard:
    """Compares the results that a design gives, in order, with softnum's, and keeps all for `softnum vectors check`.

    Parameters
    ----------
    spec : VectorSpec or UnitSpec
        What the design computes.
    latency : int, optional
        Clocks from operands to their result, as `watch` sees both at rising edges: the number of registers between
        them. None: the design has a valid signal for each (see `watch`).
    any_nan : bool
        Whether any NaN equals any other; else a NaN result must be the canonical one.
    ignore_flags : bool
        Whether to compare results only. A design without flags needs no mention of it.
    max_failures : int
        How many failures the report shows; all are counted.
    file : str or path, optional
        Where `finish` writes all transactions, with the design's results: ``softnum vectors check FILE`` says of each
        that differs what it is and why.
    answered : callable, optional
        Called with each vector's words, random bits, result and flags, as they are given, in place of comparing it: for
        a monitor, whose transactions something else judges.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.cocotb import Scoreboard
    >>> board = Scoreboard(VectorSpec.make("multiply", "e4m3fn"))
    >>> board.send(0x3C, 0x43)
    >>> board.receive(0x47, 1)
    >>> try:
    ...     board.finish()
    ... except AssertionError as error:
    ...     print(error)
    multiply e4m3fn -> e4m3fn, nearest_even: 1 of 1 results differ (1 in the result)
    vector 1: a=3C (1.5) b=43 (2.75)  got 47 (3.75) flags 01  want 48 (4.0) flags 01
    """

    def __init__(
        self,
        spec: Spec,
        *,
        latency: int | None = None,
        any_nan: bool = False,
        ignore_flags: bool = False,
        max_failures: int = 10,
        file: PathLike | None = None,
        answered: Callable[..., object] | None = None,
    ) -> None:
        if latency is not None and (isinstance(latency, bool) or not isinstance(latency, int) or latency < 0):
            raise ValueError(f"latency must be a number of clocks of at least 0, or None, got {latency!r}")
        self.spec, self.latency, self.file, self.answered = spec, latency, file, answered
        self.any_nan, self.ignore_flags, self.max_failures = bool(any_nan), bool(ignore_flags), max_failures
        #: how many results were compared; how many of them differ, in the result, the flags, or by unknown bits
        self.compared = self.failures = self.result_failures = self.flag_failures = self.unknown = 0
        #: lines on the first failures
        self.shown: list[str] = []
        #: how many results have come
        self.received = 0
        self._waiting: deque[_Sent] = deque()
        self._pairs: list[tuple[_Sent, _Got]] = []
        self._other: list[str] = []  # what is wrong with the order of events
        self._pipeline: deque[_Sent | None] = deque()
        self._edges = 0  # that counted, with a latency
        self._lines: list[bytes] = []
        self._layout = TextLayout(spec)
        self._no_flags = not spec.has_flags

    # -- transactions --------------------------------------------------------------------------------------------------
    @property
    def waiting(self) -> int:
        """How many results have not come yet."""
        return len(self._waiting) + sum(sent is not None for sent in self._pipeline)

    def send(self, *operands: Any, random_bits: Any = None, at: str = "") -> None:
        """Say that the design took operands; their result is expected after those of all sent before.

        Parameters
        ----------
        *operands, random_bits
            As of `softnum.vectors.ReferenceModel`.
        at : str
            When, for the report.

        Raises
        ------
        ValueError
            If a bit is unknown or a number does not fit: a fault of the bench, not of the design.
        """
        self._waiting.append(_Sent(*transaction(self.spec, operands, random_bits), at))

    def receive(self, result: Any, flags: Any = None, at: str = "") -> None:
        """Say that the design gave a result (int, LogicArray or Logic), and flags if it has any."""
        if not self._waiting:
            self._other.append(f"a result {result} came that no operands were sent for{f', at {at}' if at else ''}")
            return
        self.received += 1
        if self.answered is not None:
            sent = self._waiting.popleft()
            self.compared += 1
            self.answered(sent.words, sent.random, result, flags)
            return
        self._pairs.append((self._waiting.popleft(), self._got(result, flags)))
        if len(self._pairs) >= _BATCH:
            self._judge(final=False)

    def _got(self, result, flags) -> _Got:
        column = next(c for c in self.spec.columns if c.name == "result")
        code, raised = known(result), None if flags is None else known(flags)
        for what, number, width in (("result", code, column.width), ("flags", raised, 5)):
            if number is not None and number >> width:
                raise ValueError(f"{what} = {number:#x} does not fit {width} bits: is the right signal compared?")
        unknown_flags = flags is not None and raised is None and self.spec.has_flags
        return _Got(code, raised, str(result) if code is None else "", unknown_flags)

    # -- judging -------------------------------------------------------------------------------------------------------
    def _judge(self, final: bool) -> None:
        pairs = self._pairs
        if self.spec.op == "mac" and not final:  # whole sequences
            cut = max((i for i, (sent, _) in enumerate(pairs) if sent.words[0]), default=0)
            if cut == 0:
                return
            pairs, self._pairs = pairs[:cut], pairs[cut:]
        else:
            self._pairs = []
        if not pairs:
            return
        want = evaluated(self.spec, [(sent.words, sent.random) for sent, _ in pairs])
        bits = self.spec.out_fmt.bits
        nan = is_nan(want.result, self.spec.out_fmt) if self.any_nan and want.result.ndim == 1 else None
        for i, (sent, got) in enumerate(pairs):
            right = word_of(want.result[i], bits)
            right_flags = None if want.flags is None else int(want.flags[i])
            self._compare(sent, got, right, right_flags, nan is not None and bool(nan[i]))
        self._keep(pairs, want)

    def _compare(self, sent: _Sent, got: _Got, right: int, right_flags: int | None, right_is_nan: bool) -> None:
        self.compared += 1
        wrong = got.result is not None and got.result != right
        if wrong and right_is_nan:
            code = self.spec.out_fmt.stored([got.result])
            wrong = not is_nan(code, self.spec.out_fmt)[0]
        unknown = got.result is None or (got.unknown_flags and not self.ignore_flags)
        compares_flags = right_flags is not None and got.flags is not None and not self.ignore_flags
        wrong_flags = compares_flags and got.flags != right_flags
        self.result_failures += wrong
        self.flag_failures += wrong_flags
        self.unknown += unknown
        if not (wrong or wrong_flags or unknown):
            return
        self.failures += 1
        if len(self.shown) < self.max_failures:
            self.shown.append(self._text(sent, got, right, right_flags))

    def _value(self, word: int, column) -> str:
        plain = f"{word:0{column.digits}X}"
        return plain if column.format is None or column.count > 1 else f"{plain} ({value_text(word, column.format)})"

    def _text(self, sent: _Sent, got: _Got, right: int, right_flags: int | None) -> str:
        columns = {c.name: c for c in self.spec.columns}
        parts = [f"vector {self.compared}{f', {sent.at}' if sent.at else ''}:"]
        parts += [f"{c.name}={self._value(w, c)}" for c, w in zip(self.spec.operand_columns, sent.words, strict=True)]
        if sent.random is not None:
            parts.append(f"random={sent.random:0{columns['random'].digits}X}")
        result = columns["result"]
        shown = f"{got.shown} (unknown bits)" if got.result is None else self._value(got.result, result)
        flags = "" if got.flags is None else f" flags {got.flags:02X}"
        flags = " flags unknown" if got.unknown_flags else flags
        parts.append(f" got {shown}{flags}")
        parts.append(f" want {self._value(right, result)}{'' if right_flags is None else f' flags {right_flags:02X}'}")
        return " ".join(parts)

    def _keep(self, pairs, want: Block) -> None:
        """The lines of a vector file; unknown results as x, flags that the design does not give as they should be."""
        if self.file is None:
            return
        columns = {c.name: c for c in self.spec.columns}
        result = array_of([0 if got.result is None else got.result for _, got in pairs], columns["result"])
        flags = want.flags
        if flags is not None:
            own = [f if got.flags is None else got.flags for (_, got), f in zip(pairs, flags, strict=True)]
            flags = np.array(own, np.uint8)
        text = self._layout.format(Block(want.operands, want.random_bits, result, flags))
        lines = text.splitlines()
        names = [c.name for c in self.spec.columns]
        for i, (_, got) in enumerate(pairs):
            entries = lines[i].split()
            for name, unknown in (("result", got.result is None), ("flags", got.unknown_flags)):
                if unknown:
                    entries[names.index(name)] = b"X" * columns[name].digits
                    lines[i] = b" ".join(entries)
        self._lines.append(b"".join(line + b"\n" for line in lines))

    # -- the end -------------------------------------------------------------------------------------------------------
    def finish(self) -> None:
        """Write the file, if one was asked for, and raise ScoreboardError if anything is wrong.

        Also if a result never came, one came unasked, or there was none at all.
        """
        self._judge(final=True)
        if self.file is not None:
            self._write()
        if self.failures or self._other or self.waiting or not self.compared:
            raise ScoreboardError(self.report(), self)

    def report(self) -> str:
        """What was found, in words."""
        facts = self.spec.facts()
        if "unit" in facts:
            what = f"{self.spec.op} {facts['unit']}"
        else:
            what = f"{self.spec.op} {facts['format']} -> {facts['result_format']}, {facts['rounding']}"
        kinds = [(self.result_failures, "in the result"), (self.flag_failures, "in the flags")]
        kinds.append((self.unknown, "with unknown bits"))
        found = ", ".join(f"{n} {text}" for n, text in kinds if n)
        count = f"{self.failures} of {self.compared} results differ" if self.failures else f"{self.compared} results"
        lines = [f"{what}: {count}{f' ({found})' if found else ', all equal' if self.compared else ''}"]
        lines += self.shown
        if self.failures > len(self.shown):
            lines.append(f"... and {self.failures - len(self.shown)} more")
        lines += self._other[: self.max_failures]
        if self.waiting:
            lines.append(f"{self.waiting} results never came")
        if not self.compared and not self.waiting:
            lines.append("nothing was compared: no operands were sent")
        if self.file is not None and self.failures:
            lines.append(f"why: softnum vectors check {self.file}")
        return "\n".join(lines)

    def _write(self) -> None:
        facts = {
            **self.spec.facts(),
            "columns": " ".join(f"{c.name}:{c.width}" for c in self.spec.columns),
            "method": "simulation: the results are the design's",
            "vectors": str(self.compared),
            "version": __version__,
        }
        with atomic_file(self.file) as file:
            file.write(self._layout.header_lines(facts))
            file.writelines(self._lines)

    # -- in a simulation -----------------------------------------------------------------------------------------------
    def clock(
        self, operands: Any = None, random_bits: Any = None, result: Any = None, flags: Any = None, at: str = ""
    ) -> None:
        """One rising edge of a design with a fixed latency.

        Parameters
        ----------
        operands : sequence, optional
            What the design takes at this edge; None: nothing.
        random_bits, result, flags
            The random bits that go with them; what the design's outputs hold at this edge.
        at : str
            When, for the report.
        """
        if self.latency is None:
            raise ValueError("this scoreboard was made without a latency: it goes by valid signals (send, receive)")
        sent = None
        if operands is not None:
            sent = _Sent(*transaction(self.spec, operands, random_bits), at)
        self._pipeline.append(sent)
        if len(self._pipeline) > self.latency and (due := self._pipeline.popleft()) is not None:
            self._waiting.append(due)
            self.receive(result, flags, at)

    def watch(
        self,
        clock: Any,
        operands: Sequence[Any],
        result: Any,
        flags: Any = None,
        *,
        random_bits: Any = None,
        valid_in: Any = None,
        ready: Any = None,
        valid_out: Any = None,
        ready_out: Any = None,
        enable: Any = None,
        reset: Any = None,
        reset_active: int = 1,
    ) -> Any:
        """Start to watch a design's signals at every rising edge; what they hold before the edge counts.

        Parameters
        ----------
        clock : handle
        operands : sequence of handles
            In the order of ``spec.operand_columns``.
        result, flags, random_bits : handle
            `flags` is None for a design without.
        valid_in, ready, valid_out, ready_out : handle, optional
            Operands are taken where `valid_in` is 1, and `ready` if there is one; a result is given where `valid_out`
            is, and `ready_out` if there is one. With a latency, `valid_out` is not looked at, and without `valid_in`
            every edge counts from the first at which all operands are known. Lists of `valid_in` and `ready`: one for
            each of the operands (and random bits, the last), which are taken one by one.
        enable : handle, optional
            With a latency: a clock enable; edges at which it is 0 do not count.
        reset : handle, optional
            While it is `reset_active`, nothing counts, and what is on its way is forgotten.

        Returns
        -------
        cocotb.task.Task
        """
        import cocotb

        if self.latency is None and (valid_in is None or valid_out is None):
            raise ValueError("without a latency the scoreboard needs valid_in= and valid_out=")
        if enable is not None and self.latency is None:
            raise ValueError("enable= is of designs with a latency; others say by valid_out when a result is there")
        if isinstance(valid_in, (list, tuple)):
            handles = [*operands, *([] if random_bits is None else [random_bits])]
            if self.latency is not None or len(valid_in) != len(handles):
                raise ValueError(f"a list of valid_in= is one for each of {len(handles)} operands, without a latency")
            taking = _OneByOne(self, handles, list(valid_in), list(ready or [None] * len(handles)))
        else:
            taking = {"valid_in": valid_in, "ready": ready}
        giving = {"valid_out": valid_out, "ready_out": ready_out}
        signals = (clock, list(operands), result, flags, random_bits, taking, giving, enable, reset, reset_active)
        return cocotb.start_soon(self._watch(*signals))

    async def _watch(self, clock, operands, result, flags, random_bits, taking, giving, enable, reset, reset_active):
        from cocotb.simtime import get_sim_time
        from cocotb.triggers import RisingEdge

        edge, begun = RisingEdge(clock), False
        while True:
            await edge
            if reset is not None and known(reset.value) != 1 - reset_active:
                self._pipeline.clear()
                self._waiting.clear()
                if isinstance(taking, _OneByOne):
                    taking.forget()
                continue
            at = f"{get_sim_time('ns'):g} ns"
            if enable is not None and not self._is_one(enable, "enable", at):
                continue
            self._edges += 1
            given, taken = [signal.value for signal in operands], False
            if isinstance(taking, dict):
                begun = begun or taking["valid_in"] is not None or all(known(value) is not None for value in given)
                taken = begun and all(self._is_one(signal, name, at) for name, signal in taking.items())
            drawn = None if random_bits is None else random_bits.value
            raised = None if flags is None else flags.value
            try:
                if self.latency is not None:
                    self.clock(given if taken else None, drawn, result.value, raised, at)
                    continue
                if taken:
                    self.send(*given, random_bits=drawn, at=at)
                elif isinstance(taking, _OneByOne):
                    taking.take(at, random_bits is not None)
                given_now = [self._is_one(signal, name, at) for name, signal in giving.items()]  # each is looked at
                if all(given_now):
                    self.receive(result.value, raised, at)
            except ValueError as error:
                raise ValueError(f"at {at}: {error}") from None

    def _is_one(self, signal, name: str, at: str) -> bool:
        if signal is None:
            return True
        value = known(signal.value)
        if value is None and len(self._other) < self.max_failures:
            self._other.append(f"{name} is unknown at {at}")
        return value == 1

    async def done(self, clock: Any, timeout: int = 1000) -> None:
        """Wait for the results of all that was taken until now, then `finish`.

        With a latency these are so many clocks that count; at most `timeout`, and those of the latency.
        """
        from cocotb.triggers import RisingEdge

        latency = self.latency or 0
        last = self._edges + latency + 1
        if self.latency is None:
            await RisingEdge(clock)  # what was taken at the last edge is not yet counted
        for _ in range(timeout + latency + 1):
            if not self.waiting if self.latency is None else self._edges >= last:
                break
            await RisingEdge(clock)
        self._pipeline.clear()  # without valid_in the inputs went on counting
        self.finish()


class _OneByOne:
    """Operands that are taken one by one, each by a valid and a ready of its own."""

    def __init__(self, board: Scoreboard, handles: list[Any], valid: list[Any], ready: list[Any]) -> None:
        self.board, self.signals = board, list(zip(handles, valid, ready, strict=True))
        self.taken: list[deque[Any]] = [deque() for _ in handles]

    def forget(self) -> None:
        for queue in self.taken:
            queue.clear()

    def take(self, at: str, random: bool) -> None:
        """Look at the signals before an edge; a vector is sent when the last of its operands is taken."""
        for queue, (handle, valid, ready) in zip(self.taken, self.signals, strict=True):
            if self.board._is_one(valid, "valid_in", at) and self.board._is_one(ready, "ready", at):
                queue.append(handle.value)
        while all(self.taken):
            words = [queue.popleft() for queue in self.taken]
            self.board.send(*(words[:-1] if random else words), random_bits=words[-1] if random else None, at=at)
