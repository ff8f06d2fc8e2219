// A tensor core's step: c + a0 * b0 + ... + a3 * b3, fused. Combinational. Products are exact and not normalised; all
// five terms are aligned to the largest exponent among those that are not zero and cut off, toward zero, F bits below it;
// what is left is added exactly, and the sum is cut off to binary32.
//   default: binary16 operands.  EXP, MAN: other formats as IEEE 754 has them.  Element 0 lies in the lowest bits.
//   A sum of zero is +0.  Too large a sum: the largest value.  NaN operands, inf * 0 and inf - inf: the canonical NaN;
//   else infinities win.
//   BUG plants a fault: 1 one bit fewer is kept in alignment, 2 c is not added, 3 the sum rounds to nearest even, 4 NaN is
//   7FFFFFFF, 5 subnormal operands are read as zero.
// Reference: softnum.FusedDotUnit(4, 23, "binary32", operand="binary16").
module fused_dot4 #(
    parameter EXP = 5,
    parameter MAN = 10,
    parameter F = 23,
    parameter BUG = 0
) (
    input  wire [4*(EXP+MAN+1)-1:0] a,
    input  wire [4*(EXP+MAN+1)-1:0] b,
    input  wire [31:0]              c,
    output reg  [31:0]              result
);
    localparam N = EXP + MAN + 1;
    localparam KEPT = BUG == 1 ? F - 1 : F;
    localparam P = 2 * MAN + 2;              // bits of a product
    localparam W = KEPT + 5;                 // bits of the sum of five terms, each below 4 * 2^KEPT
    localparam E = (EXP > 8 ? EXP : 8) + 3;  // bits of an exponent
    localparam signed [E-1:0] BIAS = (1 << (EXP - 1)) - 1;
    localparam signed [E-1:0] LOWEST = {1'b1, {(E-1){1'b0}}};
    localparam [30:0] INFINITY = 31'h7F800000, QUIET = 31'h7FC00000, LARGEST = 31'h7F7FFFFF;

    // The product of two operands: NaN, infinite, sign, exponent, significand.
    function [P+E+2:0] multiply(input [N-1:0] x, input [N-1:0] y);
        reg zero_x, zero_y, top_x, top_y, nan, infinite;
        reg [P-1:0] significand;
        reg signed [E-1:0] exponent;
        begin
            zero_x = BUG == 5 ? ~|x[N-2:MAN] : ~|x[N-2:0];
            zero_y = BUG == 5 ? ~|y[N-2:MAN] : ~|y[N-2:0];
            top_x = &x[N-2:MAN];
            top_y = &y[N-2:MAN];
            nan = (top_x && (|x[MAN-1:0] || zero_y)) || (top_y && (|y[MAN-1:0] || zero_x));
            infinite = top_x || top_y;
            if (zero_x || zero_y) begin
                exponent = LOWEST;
                significand = {P{1'b0}};
            end else begin
                exponent = {{(E-EXP){1'b0}}, x[N-2:MAN+1], x[MAN] | ~|x[N-2:MAN]}
                    + {{(E-EXP){1'b0}}, y[N-2:MAN+1], y[MAN] | ~|y[N-2:MAN]} - 2 * BIAS;
                significand = {{(MAN+1){1'b0}}, |x[N-2:MAN], x[MAN-1:0]} * {{(MAN+1){1'b0}}, |y[N-2:MAN], y[MAN-1:0]};
            end
            multiply = {nan, infinite, x[N-1] ^ y[N-1], exponent, significand};
        end
    endfunction

    // A product in units of 2^(largest - KEPT), cut off; in two's complement.
    function [W:0] align(input [P+E+2:0] term, input signed [E-1:0] largest);
        reg [E-1:0] shift;
        reg [P+KEPT-1:0] magnitude;
        begin
            shift = largest - term[P+E-1:P];
            magnitude = {term[P-1:0], {KEPT{1'b0}}} >> (2 * MAN);
            magnitude = magnitude >> shift;
            align = {{(W-KEPT-1){1'b0}}, magnitude[KEPT+1:0]};
            if (term[P+E]) align = -align;
        end
    endfunction

    reg [P+E+2:0]      term_0, term_1, term_2, term_3;
    reg signed [E-1:0] exponent_c, largest, field;
    reg [30:0]         magnitude_c;
    reg [E-1:0]        shift;
    reg [23+KEPT:0]    addend;
    reg                nan, plus, minus;  // specials among the terms
    reg [W:0]          sum;               // two's complement
    reg [W-1:0]        normed;
    reg [E+22:0]       rounded;
    integer i;

    always @* begin
        term_0 = multiply(a[0*N +: N], b[0*N +: N]);
        term_1 = multiply(a[1*N +: N], b[1*N +: N]);
        term_2 = multiply(a[2*N +: N], b[2*N +: N]);
        term_3 = multiply(a[3*N +: N], b[3*N +: N]);
        magnitude_c = BUG == 2 || (BUG == 5 && ~|c[30:23]) ? 31'd0 : c[30:0];
        exponent_c = {{(E-8){1'b0}}, magnitude_c[30:24], magnitude_c[23] | ~|magnitude_c[30:23]} - 127;

        largest = magnitude_c == 0 ? LOWEST : exponent_c;
        if ($signed(term_0[P+E-1:P]) > largest) largest = term_0[P+E-1:P];
        if ($signed(term_1[P+E-1:P]) > largest) largest = term_1[P+E-1:P];
        if ($signed(term_2[P+E-1:P]) > largest) largest = term_2[P+E-1:P];
        if ($signed(term_3[P+E-1:P]) > largest) largest = term_3[P+E-1:P];

        shift = largest - exponent_c;
        addend = {|magnitude_c[30:23], magnitude_c[22:0], {KEPT{1'b0}}} >> 23;
        addend = addend >> shift;
        sum = (c[31] ? -addend[W:0] : addend[W:0]) + align(term_0, largest) + align(term_1, largest)
            + align(term_2, largest) + align(term_3, largest);

        normed = sum[W] ? -sum[W-1:0] : sum[W-1:0];
        field = largest + (W - 1 - KEPT + 127);
        for (i = $clog2(W) - 1; i >= 0; i = i - 1)
            if (normed >> (W - (1 << i)) == 0) begin
                normed = normed << (1 << i);
                field = field - (1 << i);
            end
        if (field < 1) begin
            shift = 1 - field;
            normed = normed >> shift;
            field = 1;
        end
        // the leading bit counts one in the exponent field
        rounded = {field - 1'b1, 23'd0} + {{(E-1){1'b0}}, normed[W-1 -: 24]};
        if (BUG == 3 && normed[W-25] && (normed[W-24] || |(normed << 25))) rounded = rounded + 1'b1;

        nan = term_0[P+E+2] || term_1[P+E+2] || term_2[P+E+2] || term_3[P+E+2] || magnitude_c > INFINITY;
        {plus, minus} = {magnitude_c == INFINITY && !c[31], magnitude_c == INFINITY && c[31]};
        if (term_0[P+E+1]) {plus, minus} = {plus, minus} | {!term_0[P+E], term_0[P+E]};
        if (term_1[P+E+1]) {plus, minus} = {plus, minus} | {!term_1[P+E], term_1[P+E]};
        if (term_2[P+E+1]) {plus, minus} = {plus, minus} | {!term_2[P+E], term_2[P+E]};
        if (term_3[P+E+1]) {plus, minus} = {plus, minus} | {!term_3[P+E], term_3[P+E]};
        if (nan || (plus && minus)) result = {1'b0, BUG == 4 ? 31'h7FFFFFFF : QUIET};
        else if (plus || minus) result = {minus, INFINITY};
        else if (sum == 0) result = 32'd0;
        else if (rounded >= {{(E-8){1'b0}}, INFINITY}) result = {sum[W], BUG == 3 ? INFINITY : LARGEST};
        else result = {sum[W], rounded[30:0]};
    end
endmodule
