// Rounds a float to a shorter one, stochastically: the bits of the fraction that do not fit, cut to BITS, are added to as
// many random bits, and a carry rounds up. Combinational; the random bits come in at a port (lfsr.v makes some).
//   default: e6m9 to e5m2, 8 random bits.  IN_EXP=5 IN_MAN=10: from binary16.  Formats as IEEE 754 has them,
//   the result's exponent no longer than the operand's.
//   Overflow goes to infinity.  NaN: the canonical one.  Underflow: tininess before rounding.
//   BUG plants a fault: 1 the random bits are reversed, 2 subnormal results become zero, 3 the random bits are not
//   used, 4 they are complemented.
// Reference: softnum.convert(x, "e6m9", "e5m2", rounding="stochastic", stochastic_bits=8, random_bits=...).
module stochastic_round #(
    parameter IN_EXP = 6,
    parameter IN_MAN = 9,
    parameter OUT_EXP = 5,
    parameter OUT_MAN = 2,
    parameter BITS = 8,
    parameter BUG = 0
) (
    input  wire [IN_EXP+IN_MAN:0]   x,
    input  wire [BITS-1:0]          random,
    output reg  [OUT_EXP+OUT_MAN:0] result,
    output reg  [4:0]               flags  // invalid 10, divide by zero 08, overflow 04, underflow 02, inexact 01
);
    localparam PAD = OUT_MAN + BITS + 1;  // a shift by more changes nothing
    localparam W = IN_MAN + 1 + PAD;
    localparam signed [IN_EXP+2:0] REBIAS = (1 << (IN_EXP - 1)) - (1 << (OUT_EXP - 1));
    localparam [OUT_EXP+OUT_MAN-1:0] INFINITY = {{OUT_EXP{1'b1}}, {OUT_MAN{1'b0}}};
    localparam [OUT_EXP+OUT_MAN-1:0] QUIET = INFINITY | (1 << (OUT_MAN - 1));

    wire sign = x[IN_EXP+IN_MAN];
    wire normal = |x[IN_EXP+IN_MAN-1:IN_MAN];
    wire zero = ~|x[IN_EXP+IN_MAN-1:0];
    wire top = &x[IN_EXP+IN_MAN-1:IN_MAN];
    wire nan = top && |x[IN_MAN-1:0];

    wire [IN_MAN:0] significand = {normal, x[IN_MAN-1:0]};
    // the exponent field in the result; below 1, out of its normals' range
    wire signed [IN_EXP+2:0] field = (normal ? $signed({3'b000, x[IN_EXP+IN_MAN-1:IN_MAN]}) : 1) - REBIAS;
    wire tiny = field < 1 || (field == 1 && !normal);

    wire [BITS-1:0] reversed;
    generate
        genvar k;
        for (k = 0; k < BITS; k = k + 1) begin : reverse
            assign reversed[k] = random[BITS-1-k];
        end
    endgenerate
    wire [BITS-1:0] word = BUG == 1 ? reversed : BUG == 3 ? {BITS{1'b0}} : BUG == 4 ? ~random : random;

    reg [IN_EXP+2:0]              shift;
    reg [W-1:0]                   shifted;
    reg [IN_EXP+OUT_MAN+BITS+2:0] sum;  // exponent field, fraction and the bits that meet random ones
    reg                           inexact;

    always @* begin
        shift = field < 1 ? 1 - field : 0;
        if (shift > PAD) shift = PAD;
        shifted = {significand, {PAD{1'b0}}} >> shift;
        inexact = |shifted[W-OUT_MAN-2:0];
        // the leading bit of shifted counts one in the exponent field
        sum = {field < 1 ? {(IN_EXP + 3){1'b0}} : field - 1'b1, {(OUT_MAN + BITS){1'b0}}}
            + {{(IN_EXP + 2){1'b0}}, shifted[W-1:W-OUT_MAN-BITS-1]} + {{(IN_EXP + OUT_MAN + 3){1'b0}}, word};

        flags = 5'h00;
        if (nan) begin
            result = {1'b0, QUIET};
            flags[4] = !x[IN_MAN-1];
        end else if (top) begin
            result = {sign, INFINITY};
        end else if (zero) begin
            result = {sign, {(OUT_EXP+OUT_MAN){1'b0}}};
        end else if (sum[IN_EXP+OUT_MAN+BITS+2:BITS] >= {{(IN_EXP-OUT_EXP+3){1'b0}}, INFINITY}) begin
            result = {sign, INFINITY};
            flags = 5'h05;
        end else begin
            result = {sign, sum[OUT_EXP+OUT_MAN+BITS-1:BITS]};
            flags[0] = inexact;
            flags[1] = inexact && tiny;
            if (BUG == 2 && tiny) begin
                result = {sign, {(OUT_EXP+OUT_MAN){1'b0}}};
                flags = 5'h03;
            end
        end
    end
endmodule
