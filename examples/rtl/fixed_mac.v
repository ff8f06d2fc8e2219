// Multiplies and accumulates fixed-point numbers, a step a clock: acc = round(acc + a * b), to nearest even, saturating.
//   a, b: q4.4, two's complement; acc: q8.6.
//   first starts a sum: it clears what the accumulator holds. Every sum so far stands at acc after its clock.
//   BUG plants a fault: 1 wraps instead of saturating, 2 first does not clear, 3 cuts off instead of rounding,
//   4 ties go up.
// Reference: softnum.MadUnit("q8.6", operand="q4.4").
module fixed_mac #(
    parameter BUG = 0
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               enable,
    input  wire               first,
    input  wire signed [7:0]  a,
    input  wire signed [7:0]  b,
    output reg  signed [13:0] acc
);
    wire signed [15:0] product = {{8{a[7]}}, a} * {{8{b[7]}}, b};  // q8.8
    wire signed [13:0] start = first && BUG != 2 ? 14'd0 : acc;
    wire signed [16:0] sum = {start[13], start, 2'b00} + {product[15], product};  // q9.8
    // two bits are rounded away: up if they are above the middle, or at it with an odd bit above
    wire up = BUG == 3 ? 1'b0 : sum[1] && (BUG == 4 || sum[0] || sum[2]);
    wire signed [15:0] rounded = {sum[16], sum[16:2]} + {15'd0, up};
    wire too_large = rounded[15:13] != 3'b000 && rounded[15:13] != 3'b111;

    always @(posedge clk)
        if (reset) acc <= 14'd0;
        else if (enable) acc <= too_large && BUG != 1 ? {rounded[15], {13{~rounded[15]}}} : rounded[13:0];
endmodule
