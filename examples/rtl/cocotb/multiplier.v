// A pipelined multiplier of OCP E4M3 (e4m3fn): nearest even, saturating, with flags. Three registers: operands, the exact
// product in units of 2**-18, the rounded result.
//
// BUG plants a fault: 1 the sticky bits are lost, so that all above a half counts as a tie; 2 NaN is left to chance.
module multiplier #(
    parameter BUG = 0
) (
    input clk,
    input reset,
    input valid_in,
    input [7:0] a,
    input [7:0] b,
    output reg valid_out,
    output reg [7:0] result,
    output reg [4:0] flags
);
  reg valid1, valid2;
  reg [7:0] a1, b1;
  reg sign2, nan2;
  reg [35:0] exact2;

  // exponent fields 0 and 1 stand for the same binade
  wire [3:0] sig_a = {|a1[6:3], a1[2:0]}, sig_b = {|b1[6:3], b1[2:0]};
  wire [4:0] exp_a = a1[6:3] == 0 ? 5'd0 : a1[6:3] - 5'd1, exp_b = b1[6:3] == 0 ? 5'd0 : b1[6:3] - 5'd1;
  wire [7:0] product = sig_a * sig_b;

  integer i;
  reg [5:0] top, last;
  reg [35:0] above;
  reg [4:0] kept;
  reg guard, sticky, up, inexact, tiny, overflow;
  reg [8:0] code;
  always @* begin
    top = 0;
    for (i = 0; i < 36; i = i + 1) if (exact2[i]) top = i;
    last = top < 12 ? 9 : top - 3;  // the place of the last bit: not below that of subnormal numbers
    above = exact2 >> last;
    kept = above[4:0];
    guard = exact2[last-1];
    sticky = (exact2 & ((36'd1 << (last - 1)) - 36'd1)) != 0;
    up = guard && ((BUG != 1 && sticky) || kept[0]);
    inexact = guard || sticky;
    code = ((last - 9) << 3) + kept + up;
    overflow = code > 9'h7E;
    // tiny after rounding: four bits of an unbounded exponent would not reach 2**-6
    tiny = top < 12 && !(exact2[11:7] == 5'b11111);
  end

  always @(posedge clk) begin
    {valid1, valid2, valid_out} <= reset ? 3'b000 : {valid_in, valid1, valid2};
    a1 <= a;
    b1 <= b;
    exact2 <= {28'd0, product} << (exp_a + exp_b);
    sign2 <= a1[7] ^ b1[7];
    nan2 <= &a1[6:0] || &b1[6:0];
    if (nan2) begin
      result <= BUG == 2 ? 8'h7x : 8'h7F;
      flags  <= 5'd0;
    end else begin
      result <= {sign2, overflow ? 7'h7E : code[6:0]};
      flags  <= overflow ? 5'b00101 : {3'b000, inexact && tiny, inexact};
    end
  end
endmodule
