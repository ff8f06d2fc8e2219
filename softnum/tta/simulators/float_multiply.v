// Multiplies two floats of one format, correctly rounded to nearest even, with IEEE 754's flags. Combinational.
//   default: e4m3fn (OCP 8-bit floats; no infinities, one NaN).  EXP=5 MAN=2 IEEE=1: e5m2.
//   overflow: to infinity, where there is none to NaN; SATURATE=1: to the largest value, infinities too.
//   NaN: the canonical one.  Underflow: tininess after rounding.
//   BUG plants a fault: 1 bits shifted out of subnormals are lost, 2 ties go away from zero, 3 truncates,
//   4 flushes subnormal results to zero, 5 overflow ends at the largest value.
// Reference: softnum.multiply(a, b, "e4m3fn").
module fp8_multiply #(
    parameter EXP = 4,
    parameter MAN = 3,
    parameter IEEE = 0,
    parameter SATURATE = 0,
    parameter BUG = 0
) (
    input  wire [EXP+MAN:0] a,
    input  wire [EXP+MAN:0] b,
    output reg  [EXP+MAN:0] result,
    output reg  [4:0]       flags  // invalid 10, divide by zero 08, overflow 04, underflow 02, inexact 01
);
    localparam W = 2 * MAN + 2;  // bits of a product of significands
    localparam BIAS = (1 << (EXP - 1)) - 1;
    localparam [EXP+MAN-1:0] INFINITY = {{EXP{1'b1}}, {MAN{1'b0}}};
    localparam [EXP+MAN-1:0] QUIET = IEEE ? INFINITY | (1 << (MAN - 1)) : {(EXP+MAN){1'b1}};
    localparam [EXP+MAN-1:0] LARGEST = (IEEE ? INFINITY : QUIET) - 1'b1;
    localparam [EXP+MAN-1:0] TOO_LARGE = SATURATE || BUG == 5 ? LARGEST : IEEE ? INFINITY : QUIET;

    wire sign = a[EXP+MAN] ^ b[EXP+MAN];
    wire normal_a = |a[EXP+MAN-1:MAN];
    wire normal_b = |b[EXP+MAN-1:MAN];
    wire zero_a = ~|a[EXP+MAN-1:0];
    wire zero_b = ~|b[EXP+MAN-1:0];
    wire top_a = &a[EXP+MAN-1:MAN];
    wire top_b = &b[EXP+MAN-1:MAN];
    wire inf_a = IEEE && top_a && ~|a[MAN-1:0];
    wire inf_b = IEEE && top_b && ~|b[MAN-1:0];
    wire nan_a = top_a && (IEEE ? |a[MAN-1:0] : &a[MAN-1:0]);
    wire nan_b = top_b && (IEEE ? |b[MAN-1:0] : &b[MAN-1:0]);
    wire signaling = IEEE && ((nan_a && !a[MAN-1]) || (nan_b && !b[MAN-1]));

    wire [W-1:0] product = {{(MAN+1){1'b0}}, normal_a, a[MAN-1:0]} * {{(MAN+1){1'b0}}, normal_b, b[MAN-1:0]};
    wire signed [EXP+2:0] field_a = normal_a ? $signed({3'b0, a[EXP+MAN-1:MAN]}) : 1;
    wire signed [EXP+2:0] field_b = normal_b ? $signed({3'b0, b[EXP+MAN-1:MAN]}) : 1;

    reg [W-1:0]            normed;  // the product, its leading bit on the left
    reg signed [EXP+2:0]   field;   // and the exponent field that belongs to it
    reg [EXP+2:0]          shift;   // out of the normals' range
    reg [2*W:0]            shifted;
    reg [MAN:0]            kept;
    reg                    guard, sticky, up, tiny;
    reg [EXP+MAN+2:0]      magnitude;
    integer i;

    always @* begin
        normed = product;
        field = field_a + field_b - BIAS + 1;
        for (i = $clog2(W) - 1; i >= 0; i = i - 1)
            if (normed >> (W - (1 << i)) == 0) begin
                normed = normed << (1 << i);
                field = field - (1 << i);
            end

        shift = field < 1 ? 1 - field : 0;
        shifted = {normed, {(W + 1){1'b0}}} >> shift;
        if (shift > W) shifted[0] = 1'b1;  // nothing of it is kept, but it is not zero
        if (BUG == 1) shifted[W:0] = {(W + 1){1'b0}};
        kept = shifted[2*W:2*W-MAN];
        guard = shifted[2*W-MAN-1];
        sticky = |shifted[2*W-MAN-2:0];
        case (BUG)
            2: up = guard;
            3: up = 1'b0;
            default: up = guard && (sticky || kept[0]);
        endcase
        // the leading bit of kept counts one in the exponent field
        magnitude = {field < 1 ? {(EXP + 3){1'b0}} : field - 1'b1, {MAN{1'b0}}}
            + {{(EXP + 2){1'b0}}, kept} + {{(EXP + MAN + 2){1'b0}}, up};
        // tiny: below the smallest normal number once rounded with unbounded exponent
        tiny = field < 1 && !(field == 0 && &normed[W-1:MAN] && BUG != 3);

        flags = 5'h00;
        if (nan_a || nan_b) begin
            result = {1'b0, QUIET};
            flags[4] = signaling;
        end else if ((inf_a && zero_b) || (inf_b && zero_a)) begin
            result = {1'b0, QUIET};
            flags[4] = 1'b1;
        end else if (inf_a || inf_b) begin
            result = {sign, SATURATE ? LARGEST : INFINITY};
        end else if (zero_a || zero_b) begin
            result = {sign, {(EXP+MAN){1'b0}}};
        end else if (magnitude > {3'b0, LARGEST}) begin
            result = {sign && TOO_LARGE != QUIET, TOO_LARGE};
            flags = 5'h05;
        end else begin
            result = {sign, magnitude[EXP+MAN-1:0]};
            flags[0] = guard || sticky;
            flags[1] = flags[0] && tiny;
            if (BUG == 4 && tiny) begin
                result = {sign, {(EXP+MAN){1'b0}}};
                flags = 5'h03;
            end
        end
    end
endmodule
