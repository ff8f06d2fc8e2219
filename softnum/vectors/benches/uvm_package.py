"""The package of a UVM bench in SystemVerilog, with places for what depends on the design.

>>> [line.split()[1] for line in PACKAGE.splitlines() if line.startswith("    class")][:3]
['{top}_item', '{top}_sequence', '{top}_driver']
"""

__all__ = ["PACKAGE"]

PACKAGE = """\
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
