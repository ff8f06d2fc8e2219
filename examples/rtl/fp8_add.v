// Adds two floats of one format, correctly rounded to nearest even, with IEEE 754's flags. Combinational, or with
// STAGES=1 and 2 in as many clock cycles: registers after the alignment and after the sum.
//   default: e4m3fn (OCP 8-bit floats; no infinities, one NaN).  EXP=5 MAN=10 IEEE=1: binary16.
//   overflow: to infinity, where there is none to NaN.  NaN: the canonical one.
//   The smaller term keeps a guard, a round and a sticky bit.  Sums that are tiny are exact: no underflow.
//   BUG plants a fault: 1 the sticky bit is lost, 2 -0 + -0 is +0, 3 ties go away from zero, 4 the alignment shifts by
//   one place less where the exponents differ by MAN + 2, 5 overflow ends at the largest value.
// Reference: softnum.add(a, b, "e4m3fn").
module fp8_add #(
    parameter EXP = 4,
    parameter MAN = 3,
    parameter IEEE = 0,
    parameter STAGES = 0,
    parameter BUG = 0
) (
    input  wire             clk,
    input  wire [EXP+MAN:0] a,
    input  wire [EXP+MAN:0] b,
    output reg  [EXP+MAN:0] result,
    output reg  [4:0]       flags  // invalid 10, divide by zero 08, overflow 04, underflow 02, inexact 01
);
    localparam W = MAN + 5;  // a carry, the significand, guard, round and sticky bit
    localparam [EXP+MAN-1:0] INFINITY = {{EXP{1'b1}}, {MAN{1'b0}}};
    localparam [EXP+MAN-1:0] QUIET = IEEE ? INFINITY | (1 << (MAN - 1)) : {(EXP+MAN){1'b1}};
    localparam [EXP+MAN-1:0] LARGEST = (IEEE ? INFINITY : QUIET) - 1'b1;

    // the larger term by magnitude, and the smaller one shifted to its exponent
    wire swap = b[EXP+MAN-1:0] > a[EXP+MAN-1:0];
    wire [EXP+MAN:0] more = swap ? b : a;
    wire [EXP+MAN:0] less = swap ? a : b;
    wire [EXP-1:0] field_more = more[EXP+MAN-1:MAN] | ~|more[EXP+MAN-1:MAN];
    wire [EXP-1:0] field_less = less[EXP+MAN-1:MAN] | ~|less[EXP+MAN-1:MAN];
    wire [EXP-1:0] gap = field_more - field_less;
    wire [EXP-1:0] shift = BUG == 4 && gap == MAN + 2 ? MAN + 1 : gap;
    wire [2*MAN+5:0] wide = {|less[EXP+MAN-1:MAN], less[MAN-1:0], {(MAN+5){1'b0}}};
    wire [2*MAN+5:0] placed = shift > MAN + 3 ? {{(2*MAN+5){1'b0}}, |less[EXP+MAN-1:0]} : wide >> shift;
    wire [W-1:0] higher = {1'b0, |more[EXP+MAN-1:MAN], more[MAN-1:0], 3'b000};
    wire [W-1:0] lower = {1'b0, placed[2*MAN+5:MAN+3], BUG != 1 && |placed[MAN+2:0]};

    wire top_a = &a[EXP+MAN-1:MAN];
    wire top_b = &b[EXP+MAN-1:MAN];
    wire inf_a = IEEE && top_a && ~|a[MAN-1:0];
    wire inf_b = IEEE && top_b && ~|b[MAN-1:0];
    wire nan_a = top_a && (IEEE ? |a[MAN-1:0] : &a[MAN-1:0]);
    wire nan_b = top_b && (IEEE ? |b[MAN-1:0] : &b[MAN-1:0]);
    wire invalid = IEEE && ((nan_a && !a[MAN-1]) || (nan_b && !b[MAN-1])
                            || (inf_a && inf_b && a[EXP+MAN] != b[EXP+MAN]));
    wire nan = nan_a || nan_b || invalid;
    wire infinite = inf_a || inf_b;
    wire both_negative = a[EXP+MAN] && b[EXP+MAN] && BUG != 2;

    localparam S1 = 2 * W + EXP + 6, S2 = W + EXP + 5;
    wire [S1-1:0] aligned = {higher, lower, field_more, a[EXP+MAN] ^ b[EXP+MAN], more[EXP+MAN], both_negative, nan,
                             invalid, infinite};
    wire [S1-1:0] first;
    wire [W-1:0] higher_1, lower_1;
    wire [EXP-1:0] field_1;
    wire subtract_1, sign_1, both_1, nan_1, invalid_1, infinite_1;
    assign {higher_1, lower_1, field_1, subtract_1, sign_1, both_1, nan_1, invalid_1, infinite_1} = first;

    wire [W-1:0] total = subtract_1 ? higher_1 - lower_1 : higher_1 + lower_1;
    wire [S2-1:0] summed = {total, field_1, sign_1, both_1, nan_1, invalid_1, infinite_1};
    wire [S2-1:0] second;
    generate
        if (STAGES == 0) begin
            assign first = aligned;
            assign second = summed;
        end else begin
            reg [S1-1:0] stage_1;
            reg [S2-1:0] stage_2;
            always @(posedge clk) begin
                stage_1 <= aligned;
                stage_2 <= summed;
            end
            assign first = stage_1;
            assign second = STAGES == 1 ? summed : stage_2;
        end
    endgenerate

    reg [W-1:0] normed;
    reg [EXP:0] field;
    reg sign, both_negative_2, nan_2, invalid_2, infinite_2, up;
    reg [EXP+MAN+1:0] magnitude;
    integer i;

    always @* begin
        {normed, field[EXP-1:0], sign, both_negative_2, nan_2, invalid_2, infinite_2} = second;
        field[EXP] = 1'b0;
        if (normed[W-1]) begin
            normed = {1'b0, normed[W-1:2], normed[1] | normed[0]};
            field = field + 1'b1;
        end
        for (i = 0; i < MAN + 3; i = i + 1)
            if (!normed[W-2] && field > 1) begin
                normed = normed << 1;
                field = field - 1'b1;
            end
        up = normed[2] && (normed[3] || |normed[1:0] || BUG == 3);
        // the leading bit counts one in the exponent field
        magnitude = {field - 1'b1, {MAN{1'b0}}} + normed[W-1:3] + up;

        flags = {invalid_2, 4'h0};
        if (nan_2) result = {1'b0, QUIET};
        else if (infinite_2) result = {sign, INFINITY};
        else if (normed == 0) result = {both_negative_2, {(EXP+MAN){1'b0}}};
        else if (magnitude > LARGEST) begin
            result = BUG == 5 ? {sign, LARGEST} : IEEE ? {sign, INFINITY} : {1'b0, QUIET};
            flags = 5'h05;
        end else begin
            result = {sign, magnitude[EXP+MAN-1:0]};
            flags[0] = |normed[2:0];
        end
    end
endmodule
