// Answers vectors of a fused multiply-add of binary16 by fpnew_fma without registers. +mode: its rounding mode.
module tb_fma;
    reg  [15:0] a, b, c, next_a, next_b, next_c, expected;
    reg  [4:0] expected_flags;
    integer mode;
    wire [15:0] z;
    fpnew_pkg::status_t flags;
    fpnew_fma #(.FpFormat(fpnew_pkg::FP16)) dut (
        .clk_i(1'b0), .rst_ni(1'b1), .operands_i({c, b, a}), .is_boxed_i(3'b111),
        .rnd_mode_i(fpnew_pkg::roundmode_e'(mode[2:0])), .op_i(fpnew_pkg::FMADD), .op_mod_i(1'b0), .tag_i(1'b0),
        .mask_i(1'b1), .aux_i(1'b0), .in_valid_i(1'b1), .in_ready_o(), .flush_i(1'b0), .result_o(z), .status_o(flags),
        .extension_bit_o(), .tag_o(), .mask_o(), .aux_o(), .out_valid_o(), .out_ready_i(1'b1), .busy_o(),
        .reg_ena_i('0)
    );
    `include "vectors.vh"
    initial begin
        mode = 0;
        if ($value$plusargs("mode=%d", mode)) mode = mode;
        open_files;
        while ($fscanf(in_file, "%h %h %h %h %h", next_a, next_b, next_c, expected, expected_flags) == 5) begin
            a = next_a;
            b = next_b;
            c = next_c;
            #1 $fwrite(out_file, "%h %h %h %h %h\n", a, b, c, z, {3'b000, flags});
        end
        close_files;
    end
endmodule
