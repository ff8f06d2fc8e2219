"""The text of a UVM bench in SystemVerilog: an agent for the design's handshake, a scoreboard, coverage, and a test."""

from __future__ import annotations

from collections.abc import Mapping

from softnum.runtime.config import __version__
from softnum.vectors.benches.verilog import instance_of, signals_of
from softnum.vectors.benches.wiring import FLAG_NAMES, Wiring

__all__ = ["uvm_package_of", "uvm_top_of"]

_PACKAGE = """\
// A UVM bench of {top}: {what}. The module that holds the design and the interface is uvm_{top}.sv.
// Made by softnum {version}: softnum rtl bench --uvm.
//
// +in=FILE vectors, as softnum writes them   +out=FILE the same with the design's answers   +timeout=N clocks (1000)
// +stalls=N percent of clocks that stall ({stalls})
//
// The text with valid and ready was run under Verilator 5.48 with UVM 1800.2-2017 1.0 (chipsalliance/uvm-verilator, its
// branch uvm-2017-1.0-vlt). Other handshakes, and what stands behind SOFTNUM_COVERGROUPS, were elaborated by pyslang
// beside that and Accellera's UVM, and never run: Verilator has no covergroups.
`timescale 1ns / 1ps
package uvm_{top}_pkg;
    import uvm_pkg::*;
`include "uvm_macros.svh"

    localparam int CHANNELS = {channels}, LATENCY = {latency}, OUTSTANDING = {outstanding};  // 0: any number
    localparam bit [4:0] GIVEN = 5'b{given};  // flags that the design gives; others are written as they should be
    int out_file, timeout = 1000, stalls = {stalls};

    class {top}_item extends uvm_sequence_item;
{members}
        bit last;
        `uvm_object_utils({top}_item)

        function new(string name = "{top}_item");
            super.new(name);
        endfunction

        function string convert2string();
            return $sformatf("{shown}", {all});
        endfunction
    endclass

    // The vectors of a file, in order.
    class {top}_sequence extends uvm_sequence #({top}_item);
        int in_file, line_number;
        `uvm_object_utils({top}_sequence)

        function new(string name = "{top}_sequence");
            super.new(name);
        endfunction

        task body();
            string name, line;
            {top}_item item;
{locals}
            int got;
            if (!$value$plusargs("in=%s", name)) `uvm_fatal("FILES", "state +in=FILE, vectors as softnum writes them")
            in_file = $fopen(name, "r");
            if (in_file == 0) `uvm_fatal("FILES", {{"no file ", name}})
            while ($fgets(line, in_file) != 0) begin
                line_number++;
                if (line.getc(0) == "#") begin
                    if (out_file != 0) $fwrite(out_file, "%s", line);
                    continue;
                end
                got = $sscanf(line, "{pattern}", {targets});
                if (got != {fields})
                    `uvm_fatal("FILES", $sformatf("line %0d is not{words}; is it of this operation?", line_number))
                item = {top}_item::type_id::create("item");
{fill}
                start_item(item);
                finish_item(item);
            end
            $fclose(in_file);
        endtask
    endclass

    // Offers operands until they are taken, channel by channel, and lets what may pause do so.
    class {top}_driver extends uvm_driver #({top}_item);
        virtual {top}_if bus;
        uvm_analysis_port #({top}_item) sent;
        `uvm_component_utils({top}_driver)

        function new(string name, uvm_component parent);
            super.new(name, parent);
            sent = new("sent", this);
        endfunction

        function bit stalled();
            return $urandom_range(99) < stalls;
        endfunction

        task run_phase(uvm_phase phase);
            bus.offered <= 0;
            bus.going <= 0;
            do @(posedge bus.clock); while (bus.resetting);
            fork
                forever begin
                    bus.going <= !stalled();
                    @(posedge bus.clock);
                end
            join_none
            forever begin
                seq_item_port.get_next_item(req);
                while (OUTSTANDING != 0 && bus.sent - bus.received >= OUTSTANDING) @(posedge bus.clock);
                bus.sent++;
                sent.write(req);
                drive(req);
                seq_item_port.item_done();
            end
        endtask

        task drive({top}_item item);
            bit [CHANNELS-1:0] pending, raised;
            pending = '1;
            raised = '0;
            while (pending != 0) begin
                for (int k = 0; k < CHANNELS; k++)
                    if (pending[k] && !raised[k] && !({pauses} && stalled())) begin
                        raised[k] = 1;
                        bus.offered[k] <= 1;
                        case (k)
{put}
                            default: ;
                        endcase
                    end
                @(posedge bus.clock);
                for (int k = 0; k < CHANNELS; k++)
                    if (raised[k] && pending[k] && bus.ready[k]) begin
                        pending[k] = 0;
                        bus.offered[k] <= 0;
                    end
            end
        endtask
    endclass

    // Sees what the design takes and gives, and puts operands and answer together.
    class {top}_monitor extends uvm_monitor;
        virtual {top}_if bus;
        uvm_analysis_port #({top}_item) answered;
        `uvm_component_utils({top}_monitor)

        function new(string name, uvm_component parent);
            super.new(name, parent);
            answered = new("answered", this);
        endfunction
{watch}
        function void give({top}_item item);
            item.result = bus.result;
{take_flags}
            bus.received++;
            answered.write(item);
        endfunction
    endclass

    // Compares answers with the file's, in order, and writes them for softnum vectors check.
    `uvm_analysis_imp_decl(_sent)
    `uvm_analysis_imp_decl(_answered)
    class {top}_scoreboard extends uvm_scoreboard;
        uvm_analysis_imp_sent #({top}_item, {top}_scoreboard) sent;
        uvm_analysis_imp_answered #({top}_item, {top}_scoreboard) answered;
        {top}_item expected[$];
        int compared, differ;
        `uvm_component_utils({top}_scoreboard)

        function new(string name, uvm_component parent);
            super.new(name, parent);
            sent = new("sent", this);
            answered = new("answered", this);
        endfunction

        function void write_sent({top}_item item);
            expected.push_back(item);
        endfunction

        function void write_answered({top}_item item);
            {top}_item want;
            if (expected.size() == 0) begin
                `uvm_error("ORDER", "a result came that no operands were sent for")
                return;
            end
            want = expected.pop_front();
            compared++;
{complete}
            if (out_file != 0) $fwrite(out_file, "{pattern}\\n", {answers});
            if ({unlike}) begin
                differ++;
                if (differ <= 10)
                    `uvm_error("DIFFERS", {{item.convert2string(), " should be ", want.convert2string()}})
            end
        endfunction

        function void report_phase(uvm_phase phase);
            if (expected.size() != 0) `uvm_error("ORDER", $sformatf("%0d results did not come", expected.size()))
            `uvm_info("ANSWERED", $sformatf("%0d vectors answered, %0d differ", compared, differ), UVM_NONE)
        endfunction
    endclass

    // Counts softnum's bins, in simulators that have covergroups.
    class {top}_coverage extends uvm_subscriber #({top}_item);
`ifdef SOFTNUM_COVERGROUPS
        coverage_{top}_pkg::softnum_coverage covered = new;
`endif
        `uvm_component_utils({top}_coverage)

        function new(string name, uvm_component parent);
            super.new(name, parent);
        endfunction

        function void write({top}_item t);
`ifdef SOFTNUM_COVERGROUPS
            covered.sample({sampled});
`endif
        endfunction
    endclass

    class {top}_agent extends uvm_agent;
        {top}_driver driver;
        {top}_monitor monitor;
        uvm_sequencer #({top}_item) sequencer;
        virtual {top}_if bus;
        `uvm_component_utils({top}_agent)

        function new(string name, uvm_component parent);
            super.new(name, parent);
        endfunction

        function void build_phase(uvm_phase phase);
            if (!uvm_config_db #(virtual {top}_if)::get(this, "", "bus", bus)) `uvm_fatal("BUS", "no interface bus")
            monitor = {top}_monitor::type_id::create("monitor", this);
            driver = {top}_driver::type_id::create("driver", this);
            sequencer = new("sequencer", this);
        endfunction

        function void connect_phase(uvm_phase phase);
            monitor.bus = bus;
            driver.bus = bus;
            driver.seq_item_port.connect(sequencer.seq_item_export);
        endfunction
    endclass

    class {top}_env extends uvm_env;
        {top}_agent agent;
        {top}_scoreboard scoreboard;
        {top}_coverage coverage;
        `uvm_component_utils({top}_env)

        function new(string name, uvm_component parent);
            super.new(name, parent);
        endfunction

        function void build_phase(uvm_phase phase);
            agent = {top}_agent::type_id::create("agent", this);
            scoreboard = {top}_scoreboard::type_id::create("scoreboard", this);
            coverage = {top}_coverage::type_id::create("coverage", this);
        endfunction

        function void connect_phase(uvm_phase phase);
            agent.driver.sent.connect(scoreboard.sent);
            agent.monitor.answered.connect(scoreboard.answered);
            agent.monitor.answered.connect(coverage.analysis_export);
        endfunction
    endclass

    class {top}_test extends uvm_test;
        {top}_env env;
        `uvm_component_utils({top}_test)

        function new(string name, uvm_component parent);
            super.new(name, parent);
        endfunction

        function void build_phase(uvm_phase phase);
            string name;
            env = {top}_env::type_id::create("env", this);
            void'($value$plusargs("timeout=%d", timeout));
            void'($value$plusargs("stalls=%d", stalls));
            if (stalls < 0 || stalls > 99) `uvm_fatal("STALLS", "+stalls= lies in 0..99")
            if ($value$plusargs("out=%s", name)) begin
                out_file = $fopen(name, "w");
                if (out_file == 0) `uvm_fatal("FILES", {{"cannot write ", name}})
            end
        endfunction

        task run_phase(uvm_phase phase);
            {top}_sequence vectors = {top}_sequence::type_id::create("vectors");
            phase.raise_objection(this);
            fork
                watch();
            join_none
            vectors.start(env.agent.sequencer);
            while (env.scoreboard.expected.size() != 0) @(posedge env.agent.bus.clock);
            repeat (20) @(posedge env.agent.bus.clock);
            phase.drop_objection(this);
        endtask

        // A design that stands still ends the simulation.
        task watch();
            int idle, then_seen, seen;
            forever begin
                @(posedge env.agent.bus.clock);
                seen = env.agent.bus.sent + env.agent.bus.received;
                idle = seen == then_seen ? idle + 1 : 0;
                then_seen = seen;
                if (idle >= timeout)
                    `uvm_fatal("STILL", $sformatf("nothing was taken or answered for %0d clocks, after %0d results",
                                                  timeout, env.agent.bus.received))
            end
        endtask

        function void final_phase(uvm_phase phase);
            if (out_file != 0) $fclose(out_file);
        endfunction
    endclass
endpackage
"""

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
    return _PACKAGE.format(
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
