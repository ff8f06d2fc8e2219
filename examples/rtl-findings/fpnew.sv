// cvfpu's fpnew_top behind ports without structs and enumerations, as `softnum rtl bench` drives them. Vectors are
// NaN-boxed (--nan-box), as RISC-V has narrow floats in wide registers.
//
// An addition takes a and b where fpnew has its second and third operand. An integer result stands in the register with
// its sign above it, that of the word of 32 bits also where it is unsigned (RISC-V ISA manual, volume I, "RV64I"); vectors
// have zeros there, so that right signs are taken away, and where they are wrong there are ones.
module fpnew #(
    parameter VECTORS = 0,  // whether there are lanes for packed words
    parameter REGISTERS = 0  // pipeline registers of each operation group
) (
    input  logic        clk_i, rst_ni,
    input  logic [63:0] a, b, c,
    input  logic [3:0]  op_i,
    input  logic        op_mod_i,
    input  logic [2:0]  rnd_mode_i, src_fmt_i, dst_fmt_i,
    input  logic [1:0]  int_fmt_i,
    input  logic        vectorial_op_i,
    input  logic        in_valid_i,
    output logic        in_ready_o,
    output logic [63:0] result_o,
    output logic [4:0]  status_o,
    output logic        out_valid_o,
    input  logic        out_ready_i
);
    localparam fpnew_pkg::fpu_features_t FEATURES = '{
        Width: 64, EnableVectors: VECTORS, EnableNanBox: 1'b1, FpFmtMask: 5'b11111, IntFmtMask: 4'b1111
    };
    localparam fpnew_pkg::fpu_implementation_t IMPLEMENTATION = '{
        PipeRegs: '{default: REGISTERS},
        UnitTypes: '{
            '{default: fpnew_pkg::PARALLEL}, '{default: fpnew_pkg::MERGED},
            '{default: fpnew_pkg::PARALLEL}, '{default: fpnew_pkg::MERGED}
        },
        PipeConfig: fpnew_pkg::BEFORE
    };

    wire adds = op_i == fpnew_pkg::ADD;
    // what a result is, kept for results that come later
    logic [1:0] int_fmt_q;
    logic is_int_q;
    always_ff @(posedge clk_i) if (in_valid_i && in_ready_o) begin
        int_fmt_q <= int_fmt_i;
        is_int_q <= op_i == fpnew_pkg::F2I;
    end
    // a result in the clock of its operands is not kept yet
    wire now = in_valid_i && REGISTERS == 0 && op_i != fpnew_pkg::DIV && op_i != fpnew_pkg::SQRT;
    wire is_int = now ? op_i == fpnew_pkg::F2I : is_int_q;
    wire [1:0] int_fmt = now ? int_fmt_i : int_fmt_q;

    logic [63:0] result;
    logic tag, busy;
    fpnew_top #(
        .Features(FEATURES), .Implementation(IMPLEMENTATION), .DivSqrtSel(fpnew_pkg::PULP)
    ) unit (
        .clk_i, .rst_ni,
        .operands_i(adds ? {b, a, 64'b0} : {c, b, a}),
        .rnd_mode_i(fpnew_pkg::roundmode_e'(rnd_mode_i)),
        .op_i(fpnew_pkg::operation_e'(op_i)),
        .op_mod_i,
        .src_fmt_i(fpnew_pkg::fp_format_e'(src_fmt_i)),
        .dst_fmt_i(fpnew_pkg::fp_format_e'(dst_fmt_i)),
        .int_fmt_i(fpnew_pkg::int_format_e'(int_fmt_i)),
        .vectorial_op_i, .tag_i(1'b0), .simd_mask_i('1),
        .in_valid_i, .in_ready_o, .flush_i(1'b0),
        .result_o(result), .status_o, .tag_o(tag), .out_valid_o, .out_ready_i, .busy_o(busy)
    );

    logic [63:0] above, sign;
    always_comb begin
        case (int_fmt)
            2'd0: {above, sign} = {{56{1'b1}}, 8'b0, {64{result[7]}}};
            2'd1: {above, sign} = {{48{1'b1}}, 16'b0, {64{result[15]}}};
            2'd2: {above, sign} = {{32{1'b1}}, 32'b0, {64{result[31]}}};
            default: {above, sign} = '0;
        endcase
        if (!is_int) result_o = result;
        else if ((result & above) == (sign & above)) result_o = result & ~above;
        else result_o = result | above;
    end
endmodule
