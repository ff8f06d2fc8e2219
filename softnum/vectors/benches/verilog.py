"""The text of a bench in SystemVerilog that answers a file of vectors, for Icarus Verilog, Verilator and others.

All that is random is drawn by a shift register of the bench's own, so that every simulator stalls alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from softnum.runtime.config import __version__
from softnum.vectors.benches.wiring import FLAG_NAMES, Wiring

__all__ = ["bench_of", "instance_of", "signals_of"]

_HEAD = """\
// {head}
// Made by softnum {version}: softnum rtl bench.
//
{roles}
//
// +in=FILE   vectors, as softnum writes them         +out=FILE  the same with the design's answers
{options}
`timescale 1ns / 1ps
module tb_{top};
    localparam FIELDS = {fields};  // of a line of vectors
"""

_CLOCKED = """\
    localparam RESET_CLOCKS = 4, DRAINED_CLOCKS = 20;  // before the first operands, after the last result
    integer timeout, seed, stalls;
    reg clock, resetting, ended, offering;
    integer got, reset_left, idle, drained;
    // set here: Verilator 5.006 takes what is set before a loop with delays for what it is behind it
    reg [31:0] clocks = 0, sent = 0, received = 0;
"""

_COVERED = """\
`ifdef SOFTNUM_COVERGROUPS
    coverage_{top}_pkg::softnum_coverage covered = new;
`endif
"""

_READ = """\
    task read_next;
        begin
            got = $fscanf(in_file, "{pattern}", {targets});
            if (got != FIELDS && (got > 0 || $feof(in_file) == 0))
                fail("a line of the vectors is not{pattern_words}; is the file of this operation?");
            ended = got != FIELDS;
        end
    endtask
"""

_FAIL = """\
    task fail(input [8*{longest}-1:0] why);
        begin
            $fclose(out_file);
            $fatal(1, "{where}%0s", {values}why);
        end
    endtask
"""

_RANDOM = """\
    // Xorshift (Marsaglia 2003), a state for each signal that stalls; the first draws are thrown away.
    reg [31:0] chance [0:{last}];
    function [31:0] stepped(input [31:0] state);
        begin
            stepped = state ^ (state << 13);
            stepped = stepped ^ (stepped >> 17);
            stepped = stepped ^ (stepped << 5);
        end
    endfunction
    reg stalled;
    task draw(input integer which);
        begin
            chance[which] = stepped(chance[which]);
            stalled = (chance[which] >> 8) % 100 < stalls;
        end
    endtask
    integer i;
    task begin_draws;
        for (i = 0; i <= {last}; i = i + 1) begin
            chance[i] = 32'h9E3779B9 * (seed + 1) + 32'h85EBCA6B * i;
            if (chance[i] == 0) chance[i] = 1;
            repeat (8) chance[i] = stepped(chance[i]);
        end
    endtask
"""

_START = """\
    initial begin
        timeout = 1000;
        stalls = {stalls};
        seed = 0;
        if ($value$plusargs("timeout=%d", got)) timeout = got;
        if ($value$plusargs("stalls=%d", got)) stalls = got;
        if ($value$plusargs("seed=%d", got)) seed = got;
        open_files;
        if (stalls < 0 || stalls > 99) fail("+stalls= lies in 0..99");
        begin_draws;
        clock = 0;
        resetting = 1;
        ended = 0;
        offering = 0;
        reset_left = RESET_CLOCKS;
        idle = 0;
        drained = 0;
{zero}
        while (drained < DRAINED_CLOCKS) begin
            #5 clock = 1;
            #5 clock = 0;
        end
        close_files;
    end
"""

# In the clocked process: Verilator 5.006 takes counters for the 0 that the initial block assigned before its delays.
_DRAIN = """\
            if ({when}) begin
                drained = drained + 1;
                if (drained == DRAINED_CLOCKS) $display("%0d vectors answered in %0d clocks", received, clocks);
            end
"""


def _range(width: int) -> str:
    return "" if width == 1 else f"[{width - 1}:0] "


def signals_of(wiring: Wiring) -> str:
    """The instance of the design and the wires to it."""
    columns = {c.name: c.width for c in wiring.spec.columns}
    parts: dict[str, list[tuple[int, int, str]]] = {}
    for role, wire in wiring.wires.items():
        parts.setdefault(wire.port, []).append((wire.high, wire.low, role))
    connected, lines = [], []
    for port in wiring.design.ports:
        here = sorted(parts.get(port.name, []), reverse=True)
        if port.direction == "out":
            if here:
                lines.append(f"    wire {_range(port.width)}from_{port.name};")
                connected.append(f".{port.name}(from_{port.name})")
            else:
                connected.append(f".{port.name}()")
            continue
        if port.name in wiring.encoded:
            lines.append(f"    reg {_range(port.width)}encoded_{port.name};")
            connected.append(f".{port.name}(encoded_{port.name})")
            continue
        pieces, at = [], port.width
        tied = wiring.tied.get(port.name, 0)
        for high, low, role in [*here, (-1, -1, "")]:
            if at - 1 > high:
                gap = at - 1 - high
                pieces.append(f"{gap}'h{tied >> (high + 1) & ((1 << gap) - 1):x}")
            if role:
                inverted = role == "reset" and wiring.reset_low
                name = {"clock": "clock", "reset": "resetting"}.get(role, f"to_{role}")
                pieces.append(f"{'~' if inverted else ''}{name}")
            at = low
        connected.append(f".{port.name}({pieces[0] if len(pieces) == 1 else '{' + ', '.join(pieces) + '}'})")
    for role, wire in wiring.wires.items():
        if wire.port in {p.name for p in wiring.design.ports if p.direction == "out"}:
            chosen = "" if wire.whole else str(wire)[len(wire.port) :]
            lines.append(f"    wire {_range(columns.get(role, 1))}from_role_{role} = from_{wire.port}{chosen};")
    lines += _encoding(wiring)
    return "\n".join(lines) + "\n    PARAMETERS dut (\n        " + ",\n        ".join(connected) + "\n    );\n"


def _encoding(wiring: Wiring) -> list[str]:
    """The inputs that say what is computed, by the columns that say what a line is of; later ones are stronger."""
    if not wiring.opcodes:
        return []
    columns = {c.name: c.width for c in wiring.spec.columns}
    lines = ["    always @* begin"]
    widths = {p.name: p.width for p in wiring.design.ports}
    given = lambda port, value: f"encoded_{port} = {widths[port]}'h{value:x};"  # noqa: E731
    lines += [f"        {given(port, wiring.tied[port])}" for port in wiring.encoded]
    for opcode in wiring.opcodes:
        values = " ".join(given(port, value) for port, value in opcode.values.items())
        number = f"{columns[opcode.column]}'d{opcode.number}"
        lines.append(f"        if (to_{opcode.column} == {number}) begin {values} end")
    return [*lines, "    end"]


def _flags_of(wiring: Wiring, expected: str) -> str:
    """The five flags that are written: the design's, and the expected ones that it does not give."""
    if "flags" in wiring.wires:
        return "from_role_flags"
    bits = [
        f"from_role_{name}" if name in wiring.wires else f"{expected}[{4 - i}]" for i, name in enumerate(FLAG_NAMES)
    ]
    return "{" + ", ".join(bits) + "}"


def bench_of(wiring: Wiring, parameters: dict[str, int], stalls: int = 25, outstanding: int = 0) -> str:
    """The bench.

    Parameters
    ----------
    wiring : Wiring
    parameters : dict of str to int
        Of the design.
    stalls : int
        Percent of the clocks in which a signal that may stall does.
    outstanding : int
        How many vectors are on their way at most; 0: any number. Of handshakes with valid signals.

    Returns
    -------
    str
        A module ``tb_TOP``; it includes ``vectors.vh``.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> from softnum.vectors.benches.roles import wiring_of
    >>> design = stated_design("mul", "a:in:8,b:in:8,result:out:8")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e4m3"), handshake_named("combinational"))
    >>> bench = bench_of(wiring, {"STAGES": 0})
    >>> [line.strip() for line in bench.splitlines() if line.startswith("module") or " dut " in line]
    ['module tb_mul;', 'mul #(.STAGES(0)) dut (']
    """
    columns = wiring.spec.columns
    fields = [c.name for c in columns]
    clocked = wiring.handshake.kind != "combinational"
    options = []
    if clocked:
        options = ["// +seed=N    of the stalls (0)                      +stalls=N   percent of clocks that stall"]
        options[0] += f" ({stalls})"
        if wiring.handshake.flows:
            options.append("// +timeout=N clocks without progress that end it (1000)")
            options.append("// +idle_x    operands are x while they are not valid")
    roles = "\n".join(f"// {line}".rstrip() for line in wiring.lines())
    text = _HEAD.format(
        head=f"Answers vectors of {wiring.design.top}: {' '.join(fields)}.", version=__version__, roles=roles,
        options="\n".join(options), top=wiring.design.top, fields=len(fields),
    )  # fmt: skip
    text = text.replace("\n\n`timescale", "\n`timescale")
    text += _CLOCKED if clocked else "    integer got, line;\n    reg ended;\n"
    for column in columns:
        width = _range(column.width)
        driven = column.name in wiring.operands
        text += f"    reg {width}next_{column.name}{f', to_{column.name}' if driven else ''};\n"
    text += _COVERED.format(top=wiring.design.top)
    body = {"combinational": _combinational, "latency": _latency}.get(wiring.handshake.kind, _flowing)
    text += '    `include "vectors.vh"\n\n' + body(wiring, stalls, outstanding) + "endmodule\n"
    return instance_of(text, wiring, parameters)


def instance_of(text: str, wiring: Wiring, parameters: Mapping[str, int]) -> str:
    """A text that holds `signals_of`, with the design's name and parameters."""
    stated = "" if not parameters else " #(" + ", ".join(f".{k}({v})" for k, v in parameters.items()) + ")"
    return text.replace("PARAMETERS dut", f"{wiring.design.top}{stated} dut")


def _common(wiring: Wiring, where: str, values: str) -> str:
    names = [c.name for c in wiring.spec.columns]
    read = _READ.format(pattern=" ".join(["%h"] * len(names)), pattern_words="".join(f" {n}" for n in names),
                        targets=", ".join(f"next_{n}" for n in names))  # fmt: skip
    return signals_of(wiring) + "\n" + _FAIL.format(longest=200, where=where, values=values) + read


def _line(wiring: Wiring, source: str, expected: str) -> str:
    """The statement that writes a line of answers."""
    values = [f"{source}_{name}" for name in wiring.operands] + ["from_role_result"]
    values += [_flags_of(wiring, expected)] if wiring.spec.has_flags else []
    sampled = ", ".join(value for value, name in zip(values, _columns(wiring), strict=True) if name != "random")
    return (f'$fwrite(out_file, "{" ".join(["%h"] * len(values))}\\n", {", ".join(values)});'
            f"\n`ifdef SOFTNUM_COVERGROUPS\n            covered.sample({sampled});\n`endif")  # fmt: skip


def _columns(wiring: Wiring) -> list[str]:
    """Names of a line's columns."""
    return [*wiring.operands, "result", *(["flags"] if wiring.spec.has_flags else [])]


def _combinational(wiring: Wiring, stalls: int, outstanding: int) -> str:
    given = "\n".join(f"            to_{name} = next_{name};" for name in wiring.operands)
    return (
        _common(wiring, "vector %0d: ", "line, ") + "\n"
        "    initial begin\n        open_files;\n        line = 1;\n        read_next;\n        while (!ended) begin\n"
        f"{given}\n            #1 {_line(wiring, 'to', 'next_flags')}\n"
        "            line = line + 1;\n            read_next;\n        end\n"
        '        $display("%0d vectors answered", line - 1);\n        close_files;\n    end\n'
    )


def _ring(wiring: Wiring) -> tuple[str, str]:
    """(all columns of a vector side by side, their widths' sum)."""
    return ", ".join(c.name for c in wiring.spec.columns), str(sum(c.width for c in wiring.spec.columns))


def _latency(wiring: Wiring, stalls: int, outstanding: int) -> str:
    names = [c.name for c in wiring.spec.columns if c.name != "result"]
    width = sum(c.width for c in wiring.spec.columns if c.name != "result")
    enable, valid = "enable" in wiring.wires, "valid_in" in wiring.wires
    checked = "valid_out" in wiring.wires
    declared = "".join(f"    reg {_range(c.width)}due_{c.name};\n" for c in wiring.spec.columns if c.name != "result")
    declared += "    reg to_enable;\n" if enable else ""
    declared += "    reg to_valid_in;\n" if valid else ""
    check = ""
    if checked:
        check = (
            "if (due_valid ? from_role_valid_out !== 1\n"
            "                    : from_role_valid_out === 1 || (received != 0 && from_role_valid_out !== 0))\n"
            '                    fail(due_valid ? "valid_out is not 1 where a result is due"\n'
            '                        : "valid_out is not 0 where no result is due; is the latency right?");\n'
            "                "
        )
    zero = ["        to_enable = 0;"] if enable else []
    zero += ["        to_valid_in = 0;"] if valid else []
    zero += ["        offered = 0;", "        for (i = 0; i <= LATENCY; i = i + 1) on_the_way[i] = 0;"]
    give = "\n".join(f"                    to_{name} <= next_{name};" for name in wiring.operands)
    stall = (
        "draw(0);\n                if (stalled) ended_now = 1;\n                else read_next;\n"
        if valid
        else "read_next;\n"
    )
    offered = "ended_now" if valid else "ended"
    text = declared + (
        f"    localparam LATENCY = {wiring.handshake.latency}, WIDTH = {width};\n"
        "    reg [WIDTH:0] on_the_way [0:LATENCY];  // of the last clocks; on top whether there were any\n"
        "    reg offered, due_valid, ended_now;\n"
    )
    text += _common(wiring, "after vector %0d, clock %0d: ", "received, clocks, ") + _RANDOM.format(last=1)
    text += _START.format(stalls=stalls, zero="\n".join(zero))
    held = ", ".join(f"{'to' if n in wiring.operands else 'held'}_{n}" for n in names)
    text = ("    reg [4:0] held_flags;\n" if wiring.spec.has_flags else "") + text
    keep = "                    held_flags = next_flags;\n" if wiring.spec.has_flags else ""
    body = f"""
    // What stands at the design's ports before an edge counts; what is assigned here comes after it.
    always @(posedge clock) begin
        clocks = clocks + 1;
        if (reset_left != 0) begin
            reset_left = reset_left - 1;
            resetting <= reset_left != 0;
        end else begin
            {"if (to_enable) begin" if enable else "begin"}
                on_the_way[0] = {{offered, {held}}};
                {{due_valid, {", ".join(f"due_{n}" for n in names)}}} = on_the_way[LATENCY];
                {check}if (due_valid) begin
                    received = received + 1;
                    {_line(wiring, "due", "due_flags")}
                end
                for (i = LATENCY; i > 0; i = i - 1) on_the_way[i] = on_the_way[i - 1];
                sent = sent + offered;
            end
            if ({"(to_enable || !offered) && " if enable else ""}!ended) begin
                ended_now = 0;
                {stall}                ended_now = ended_now || ended;
                offered = !{offered};
                if (offered) begin
{give}
{keep}                end
            end else if ({"to_enable" if enable else "1"}) offered = 0;
            {"to_valid_in <= offered;" if valid else ""}
            {ENABLE if enable else ""}
{_DRAIN.format(when="ended && sent == received && !offered")}        end
    end
"""
    return text + "\n".join(line for line in body.split("\n") if line.strip() or not line).replace("\n\n\n", "\n\n")


ENABLE = """draw(1);
            to_enable <= !stalled;"""


def _flowing(wiring: Wiring, stalls: int, outstanding: int) -> str:
    channels, widths = wiring.channels, {c.name: c.width for c in wiring.spec.columns}
    names = [c.name for c in wiring.spec.columns if c.name != "result"]
    width = sum(c.width for c in wiring.spec.columns if c.name != "result")
    ready_out, last = "ready_out" in wiring.wires, len(channels)
    text = "".join(f"    reg {_range(c.width)}due_{c.name};\n" for c in wiring.spec.columns if c.name != "result")
    text += (
        f"    localparam DEPTH = 1024, WIDTH = {width}, OUTSTANDING = {outstanding};  // 0: any number\n"
        "    reg [WIDTH-1:0] on_the_way [0:DEPTH-1];\n    reg idle_x, moved;\n"
    )
    text += "    reg to_ready_out;\n" if ready_out else "    wire to_ready_out = 1'b1;\n"
    zero = ['        idle_x = $test$plusargs("idle_x");'] + (["        to_ready_out = 0;"] if ready_out else [])
    valid_names = []
    for k, channel in enumerate(channels):
        name = channel.valid and next(r for r, w in wiring.wires.items() if w == channel.valid)
        valid_names.append(name)
        text += f"    reg to_{name}, pending_{k}, raised_{k}, took_{k};\n"
        zero += [f"        to_{name} = 0;", f"        pending_{k} = 0;", f"        raised_{k} = 0;"]
    text += _common(wiring, "after vector %0d, clock %0d: ", "received, clocks, ") + _RANDOM.format(last=last)
    text += _START.format(stalls=stalls, zero="\n".join(zero))
    taken = []
    for k, (channel, name) in enumerate(zip(channels, valid_names, strict=True)):
        ready = "1'b1" if channel.ready is None else f"from_role_{name.replace('valid', 'ready')}"
        if channel.ready is not None:
            taken.append(f'            if (^{ready} === 1\'bx) fail("{channel.ready} is x or z");')
        taken.append(f"            took_{k} = to_{name} && {ready};")
        taken.append(f"            if (took_{k}) pending_{k} = 0;")
    pending = " && ".join(f"!pending_{k}" for k in range(len(channels)))
    any_taken = " || ".join(f"took_{k}" for k in range(len(channels)))
    given = []
    for k, (channel, name) in enumerate(zip(channels, valid_names, strict=True)):
        put = "\n".join(f"                to_{n} <= next_{n};" for n in channel.columns)
        away = "\n".join(f"                    to_{n} <= {{{widths[n]}{{1'bx}}}};" for n in channel.columns)
        given.append(f"""\
            if (took_{k}) raised_{k} = 0;
            draw({k});
            if (pending_{k} && (raised_{k} || !stalled)) begin
                raised_{k} = 1;
                to_{name} <= 1;
{put}
            end else begin
                to_{name} <= 0;
                if (idle_x) begin
{away}
                end
            end""")
    raise_ready = f"            draw({last});\n            to_ready_out <= !stalled;\n" if ready_out else ""
    begin_pending = " ".join(f"pending_{k} = 1;" for k in range(len(channels)))
    nl = "\n"
    return (
        text
        + f"""
    // What stands at the design's ports before an edge counts; what is assigned here comes after it.
    always @(posedge clock) begin
        clocks = clocks + 1;
        if (reset_left != 0) begin
            reset_left = reset_left - 1;
            resetting <= reset_left != 0;
        end else begin
{nl.join(taken)}
            moved = {any_taken};
            if (offering && {pending}) begin
                on_the_way[sent % DEPTH] = {{{", ".join(f"next_{n}" for n in names)}}};
                sent = sent + 1;
                offering = 0;
            end
            if (^from_role_valid_out === 1'bx) fail("{wiring.wires["valid_out"]} is x or z");
            if (from_role_valid_out && to_ready_out) begin
                if (sent == received) fail("a result came that no operands were sent for");
                {{{", ".join(f"due_{n}" for n in names)}}} = on_the_way[received % DEPTH];
                received = received + 1;
                moved = 1;
                {_line(wiring, "due", "due_flags")}
            end
            idle = moved ? 0 : idle + 1;
            if (idle >= timeout && (offering || sent != received))
                fail(sent != received ? "no result came for as many clocks as +timeout= says"
                    : "operands were not taken for as many clocks as +timeout= says");
            if (!offering && !ended && (OUTSTANDING == 0 || sent - received < OUTSTANDING)) begin
                if (sent - received == DEPTH) fail("1024 vectors are on their way and none has come out");
                read_next;
                offering = !ended;
                if (offering) begin {begin_pending} end
            end
{nl.join(given)}
{raise_ready}{_DRAIN.format(when="ended && !offering && sent == received")}        end
    end
"""
    )
