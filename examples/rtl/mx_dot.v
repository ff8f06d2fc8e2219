// A dot product of MX blocks: c + 2^(scale_a + scale_b - 254) * (a0 * b0 + ... + a(K-1) * b(K-1)), rounded once, to
// nearest even, into binary32. Combinational. Elements are floats without infinities, scales powers of two (e8m0).
//   default: K = 8 elements of e2m1 (MXFP4).  EXP, MAN: other elements.  NAN: all ones is NaN (e4m3fn, EXP=4 MAN=3 NAN=1).
//   Element 0 lies in the lowest bits.
//   A sum of zero is +0.  A NaN among elements, scales (all ones) and c: the canonical NaN; else c = inf wins.
//   BUG plants a fault: 1 scale_b is not looked at, 2 its bias is 128, 3 all ones is no NaN of scales but 2^128, 4 the
//   elements of b are taken from the last to the first, 5 the sum is cut off, 6 c is not added, 7 subnormal elements
//   are read as zeros, 8 NaN among scales counts as 1, 9 both scales are a's.
// Reference: softnum.BlockDotUnit("binary32", operand=softnum.BlockFormat("e2m1fn", "e8m0fnu", 8)).
module mx_dot #(
    parameter EXP = 2,
    parameter MAN = 1,
    parameter NAN = 0,
    parameter K = 8,
    parameter BUG = 0
) (
    input  wire [K*(EXP+MAN+1)-1:0] a,
    input  wire [K*(EXP+MAN+1)-1:0] b,
    input  wire [7:0]               scale_a,
    input  wire [7:0]               scale_b,
    input  wire [31:0]              c,
    output reg  [31:0]              result
);
    localparam N = EXP + MAN + 1;
    localparam BIAS = (1 << (EXP - 1)) - 1;
    localparam V = MAN + (1 << EXP);         // bits of an element's magnitude, in units of its smallest
    localparam S = 2 * V + 8;                // bits of a sum, its sign among them; K is at most 128
    localparam SHIFT_S = 26;                 // how far a sum that lies above c moves up, c being exact or cut off then
    localparam SHIFT_C = S + 2;              // how far c moves up above a sum
    localparam W = S + 24 + 32;              // bits of the whole

    function [V-1:0] magnitude(input [N-1:0] x);
        if (BUG == 7 && ~|x[N-2:MAN]) magnitude = 0;
        else magnitude = {{(V-MAN-1){1'b0}}, |x[N-2:MAN], x[MAN-1:0]} << (x[N-2:MAN] - |x[N-2:MAN]);
    endfunction

    reg signed [S-1:0] sum, product;
    reg [S-1:0]        size;
    reg [N-1:0]        x, y;
    reg                nan, sticky;
    reg [7:0]          used_a, used_b, field_c;
    reg [23:0]         size_c;
    reg signed [W-1:0] first, second, total;
    reg [W-1:0]        left;
    reg [31:0]         rounded;
    integer i, low_s, low_c, low, above, top, cut;

    always @* begin
        nan = 0;
        sum = 0;
        for (i = 0; i < K; i = i + 1) begin
            x = a[i*N +: N];
            y = b[(BUG == 4 ? K - 1 - i : i)*N +: N];
            product = $signed({1'b0, magnitude(x)}) * $signed({1'b0, magnitude(y)});
            sum = x[N-1] ^ y[N-1] ? sum - product : sum + product;
            nan = nan || (NAN && (&x[N-2:0] || &y[N-2:0]));
        end
        used_a = BUG == 8 && &scale_a ? 8'd127 : scale_a;
        used_b = BUG == 1 || (BUG == 8 && &scale_b) ? 8'd127 : BUG == 9 ? scale_a : scale_b;
        if (BUG != 3 && (&used_a || &used_b)) nan = 1;
        if (BUG != 6 && &c[30:23] && |c[22:0]) nan = 1;

        // both terms in units of powers of two: sum * 2^low_s, size_c * 2^low_c
        size = sum < 0 ? -sum : sum;
        low_s = used_a + used_b - (BUG == 2 ? 255 : 254) - 2 * (BIAS + MAN - 1);
        field_c = c[30:23];
        size_c = BUG == 6 ? 0 : {|field_c, c[22:0]};
        low_c = field_c + !field_c - 150;

        // the higher one moves up; what of the other one falls below is or-ed into its last bit
        above = low_s - low_c;
        first = $signed({1'b0, size});
        second = $signed({1'b0, size_c});
        if (size == 0 || size_c == 0) low = size == 0 ? low_c : low_s;
        else if (above >= 0) begin
            first = first << (above < SHIFT_S ? above : SHIFT_S);
            cut = above < SHIFT_S ? 0 : above - SHIFT_S;
            if (cut > 24) cut = 25;
            sticky = (second & ((1 << cut) - 1)) != 0;
            second = (second >> cut) | sticky;
            low = above < SHIFT_S ? low_c : low_s - SHIFT_S;
        end else begin
            above = -above;
            second = second << (above < SHIFT_C ? above : SHIFT_C);
            cut = above < SHIFT_C ? 0 : above - SHIFT_C;
            if (cut > S) cut = S;
            left = {{(W-1){1'b0}}, 1'b1} << cut;
            left = left - 1'b1;
            sticky = (first & left) != 0;
            first = (first >> cut) | sticky;
            low = above < SHIFT_C ? low_s : low_c - SHIFT_C;
        end
        total = (sum < 0 ? -first : first) + (c[31] ? -second : second);

        // 24 bits are kept, fewer of subnormal results, whose last place is 2^-149
        left = total < 0 ? -total : total;
        top = 0;
        for (i = 0; i < W; i = i + 1) if (left[i]) top = i;
        cut = top - 23;
        if (low + cut < -149) cut = -149 - low;
        above = low + cut + 149;
        if (cut > W - 1) cut = W - 1;
        if (cut <= 0) rounded = left << -cut;
        else begin
            rounded = left >> cut;
            first = left >> (cut - 1);
            sticky = (left & (({{(W-1){1'b0}}, 1'b1} << (cut - 1)) - 1'b1)) != 0;
            if (BUG != 5 && first[0] && (sticky || rounded[0])) rounded = rounded + 1;
        end
        // the leading bit counts one in the exponent field
        top = above + rounded[31:23];
        rounded[31:23] = top;

        if (nan) result = 32'h7FC00000;
        else if (&field_c && BUG != 6) result = {c[31], 31'h7F800000};
        else if (total == 0) result = 32'd0;
        else if (top >= 255) result = {total[W-1], 31'h7F800000};
        else result = {total[W-1], rounded[30:0]};
    end
endmodule
