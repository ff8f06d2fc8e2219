"""The text of a UVM bench in SystemVerilog: an agent for the design's handshake, a scoreboard, coverage, and a test."""

from __future__ import annotations

from collections.abc import Mapping

from softnum.runtime.config import __version__
from softnum.vectors.benches.uvm_package import PACKAGE
from softnum.vectors.benches.verilog import instance_of, signals_of
from softnum.vectors.benches.wiring import FLAG_NAMES, Wiring

__all__ = ["uvm_package_of", "uvm_top_of"]

_FLOWS = """
        {top}_item channel[CHANNELS][$];
        {top}_item on_the_way[$];

        task run_phase(uvm_phase phase);
            forever begin
                @(posedge bus.clock);
                if (bus.resetting) continue;
                for (int k = 0; k < CHANNELS; k++)
                    if (bus.offered[k] && bus.ready[k]) channel[k].push_back(seen());
                while ({all_taken}) begin
                    {top}_item item;
{gather}
                    on_the_way.push_back(item);
                end
                if (bus.valid_out !== 1'b0 && bus.valid_out !== 1'b1) `uvm_error("X", "valid_out is x or z")
                if (bus.valid_out && bus.taking) begin
                    if (on_the_way.size() == 0) `uvm_error("ORDER", "a result came that no operands were taken for")
                    else give(on_the_way.pop_front());
                end
            end
        endtask
"""
_LATENCY = """
        {top}_item pipeline[$];

        task run_phase(uvm_phase phase);
            {top}_item item;
            bit begun;
            forever begin
                @(posedge bus.clock);
                if (bus.resetting || !bus.ready[0]) continue;
                item = seen();
                item.last = !bus.offered[0];  // nothing was offered
                pipeline.push_back(item);
                if (pipeline.size() <= LATENCY) continue;
                item = pipeline.pop_front();
                begun |= !item.last;
{checked}
                if (!item.last) give(item);
            end
        endtask
"""
_CHECKED = """\
                if (!item.last && bus.valid_out !== 1'b1)
                    `uvm_error("LATENCY", "valid_out is not 1 where a result is due")
                if (item.last && begun && bus.valid_out !== 1'b0)
                    `uvm_error("LATENCY", "valid_out is not 0 where no result is due; is the latency right?")"""
_SEEN = """
        function {top}_item seen();
            {top}_item item = {top}_item::type_id::create("item");
{saw}
            return item;
        endfunction
"""


def _range(width: int) -> str:
    return f"[{width - 1}:0]"


def _rows(indent: int, rows) -> str:
    return "\n".join(" " * indent + row for row in rows)


def uvm_package_of(wiring: Wiring, stalls: int = 25, outstanding: int = 0) -> str:
    """The package ``uvm_TOP_pkg``: item, sequence, driver, monitor, scoreboard, coverage, agent, environment and test.

    Parameters
    ----------
    wiring : Wiring
    stalls : int
        Percent of the clocks in which what may pause does.
    outstanding : int
        How many vectors are on their way at most; 0: any number.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> from softnum.vectors.benches.roles import wiring_of
    >>> design = stated_design("mul", "a:in:8,b:in:8,result:out:8")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e4m3"), handshake_named("combinational"))
    >>> [line.split()[1] for line in uvm_package_of(wiring).splitlines() if line.startswith("    class")][:3]
    ['mul_item', 'mul_sequence', 'mul_driver']
    """
    top, spec, handshake = wiring.design.top, wiring.spec, wiring.handshake
    columns = {c.name: c.width for c in spec.columns}
    names, operands = list(columns), wiring.operands
    has_flags = spec.has_flags
    given = "11111" if "flags" in wiring.wires else "".join(str(int(n in wiring.wires)) for n in FLAG_NAMES)
    pauses = handshake.flows or "valid_in" in wiring.wires
    channels = [channel.columns for channel in wiring.channels] if handshake.flows else [operands]
    put = [f"{k}: begin {' '.join(f'bus.{n} <= item.{n};' for n in columns)} end" for k, columns in enumerate(channels)]
    seen = _SEEN.format(top=top, saw=_rows(12, [f"item.{name} = bus.{name};" for name in operands]))
    if handshake.flows:
        gather = [f"item = channel[{k}].pop_front();" for k in (0,)]
        for k, own in enumerate(channels[1:], 1):
            gather += [f"item.{name} = channel[{k}][0].{name};" for name in own] + [f"void'(channel[{k}].pop_front());"]
        taken = " && ".join(f"channel[{k}].size() != 0" for k in range(len(channels)))
        watch = _FLOWS.format(top=top, all_taken=taken, gather=_rows(20, gather))
    else:
        checked = _CHECKED if "valid_out" in wiring.wires else ""
        watch = _LATENCY.format(top=top, checked=checked).replace("\n\n                if (!item.last) give",
                                                                  "\n                if (!item.last) give")  # fmt: skip
    unlike = "item.result !== want.result" + (" || item.flags !== want.flags" if has_flags else "")
    complete = ["item.flags = (item.flags & GIVEN) | (want.flags & ~GIVEN);"] if has_flags else []
    return PACKAGE.format(
        top=top, what=f"{spec.op}, {handshake}", version=__version__, stalls=stalls, channels=len(channels),
        latency=handshake.latency or 0, outstanding=outstanding, given=given if has_flags else "00000",
        members=_rows(8, [f"logic {_range(width)} {name};" for name, width in columns.items()]),
        shown=" ".join(f"{name}=%h" for name in names), all=", ".join(names),
        locals=_rows(12, [f"logic {_range(width)} read_{name};" for name, width in columns.items()]),
        pattern=" ".join(["%h"] * len(names)), targets=", ".join(f"read_{name}" for name in names), fields=len(names),
        words="".join(f" {name}" for name in names),
        fill=_rows(16, [f"item.{name} = read_{name};" for name in names]),
        pauses="1" if pauses else "0", put=_rows(28, put), watch=seen + watch,
        take_flags=_rows(12, ["item.flags = bus.flags;"] if has_flags else []), complete=_rows(12, complete),
        answers=", ".join(f"item.{name}" for name in names), unlike=unlike,
        sampled=", ".join(f"t.{name}" for name in names if name != "random"),
    )  # fmt: skip


_TOP = """\
// The design {top} and the interface of its UVM bench, uvm_{top}_pkg.sv.
// Made by softnum {version}: softnum rtl bench --uvm.
`timescale 1ns / 1ps
interface {top}_if;
    logic clock = 0, resetting = 1;
    logic [{last_channel}:0] offered = 0, ready;
    logic going = 0, taking, valid_out;
    int sent = 0, received = 0;
{signals}
endinterface

module uvm_{top};
    import uvm_pkg::*;

    {top}_if bus ();
    wire clock = bus.clock, resetting = bus.resetting;
{drives}
{instance}
{answers}
    always #5 bus.clock = !bus.clock;
    initial begin
        repeat (4) @(posedge bus.clock);
        bus.resetting <= 0;
    end
    initial begin
        uvm_config_db #(virtual {top}_if)::set(null, "*", "bus", bus);
        run_test("{top}_test");
    end
endmodule
"""


def uvm_top_of(wiring: Wiring, parameters: Mapping[str, int]) -> str:
    """The module ``uvm_TOP``, with the design, the interface and ``run_test``.

    Parameters
    ----------
    wiring : Wiring
    parameters : mapping of str to int
        Of the design.

    Examples
    --------
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.benches.handshakes import handshake_named
    >>> from softnum.vectors.benches.ports import stated_design
    >>> from softnum.vectors.benches.roles import wiring_of
    >>> design = stated_design("mul", "a:in:8,b:in:8,result:out:8")
    >>> wiring = wiring_of(design, VectorSpec.make("multiply", "e4m3"), handshake_named("combinational"))
    >>> [line for line in uvm_top_of(wiring, {}).splitlines() if line.startswith("module")]
    ['module uvm_mul;']
    """
    wires, columns = wiring.wires, {c.name: c.width for c in wiring.spec.columns}
    drives = [f"wire {_range(columns[name])} to_{name} = bus.{name};" for name in wiring.operands]
    channels, answers = wiring.channels, []
    flows = wiring.handshake.flows
    if flows:
        for k, channel in enumerate(channels):
            name = next(role for role, wire in wires.items() if wire == channel.valid)
            drives.append(f"wire to_{name} = bus.offered[{k}];")
            ready = "1'b1" if channel.ready is None else f"from_role_{name.replace('valid', 'ready')}"
            answers.append(f"assign bus.ready[{k}] = {ready};")
        drives += ["wire to_ready_out = bus.going;"] if "ready_out" in wires else []
        answers.append(f"assign bus.taking = {'bus.going' if 'ready_out' in wires else 1};")
    else:
        drives += ["wire to_valid_in = bus.offered[0];"] if "valid_in" in wires else []
        drives += ["wire to_enable = bus.going;"] if "enable" in wires else []
        answers.append(f"assign bus.ready[0] = {'bus.going' if 'enable' in wires else 1};")
        answers.append("assign bus.taking = 1;")
    answers.append(f"assign bus.valid_out = {'from_role_valid_out' if 'valid_out' in wires else 1};")
    answers.append("assign bus.result = from_role_result;")
    if wiring.spec.has_flags:
        single = ", ".join(f"from_role_{n}" if n in wires else "1'b0" for n in FLAG_NAMES)
        answers.append(f"assign bus.flags = {'from_role_flags' if 'flags' in wires else '{' + single + '}'};")
    return _TOP.format(
        top=wiring.design.top, version=__version__, last_channel=(len(channels) if flows else 1) - 1,
        signals=_rows(4, [f"logic {_range(width)} {name};" for name, width in columns.items()]),
        drives=_rows(4, drives), instance=instance_of(signals_of(wiring), wiring, parameters),
        answers=_rows(4, answers),
    )  # fmt: skip
