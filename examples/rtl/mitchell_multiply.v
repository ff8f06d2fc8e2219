// Mitchell's multiplier: multiplies two e4m3 floats by adding logarithms. Combinational.
//   The logarithm of 2^e (1 + f) is taken as e + f, so exponent and fraction stand side by side and are added as one
//   number, and the sum is read as a float again: an adder where a multiplier was. The product is too small by up to a
//   ninth. Products have three bits of fraction and exponents from -18 to 15, and so are exact in e6m3.
//   NaN: the canonical one.  A zero has the sign of the other operand, if that is below zero: as in the function.
//   BUG plants a fault: 1 subnormal operands are read as zero, 2 the carry of the fractions is lost.
// Reference: mitchell of examples/custom/mitchell.py (J. N. Mitchell, IRE Transactions on Electronic Computers, 1962).
module mitchell_multiply #(
    parameter BUG = 0
) (
    input  wire [7:0] a,
    input  wire [7:0] b,
    output reg  [9:0] product
);
    localparam [8:0] INFINITY = 9'h1F8, QUIET = 9'h1FC;

    // Exponent, plus 9, and fraction of a finite number that is not zero: its logarithm, in eighths.
    function [7:0] logarithm(input [6:0] x);
        if (x[6:3] != 0) logarithm = {1'b0, x} + 8'd16;  // the field's bias is 7
        else if (x[2]) logarithm = {5'd2, x[1:0], 1'b0};
        else if (x[1]) logarithm = {5'd1, x[0], 2'b00};
        else logarithm = 8'd0;
    endfunction

    wire zero_a = BUG == 1 ? ~|a[6:3] : ~|a[6:0];
    wire zero_b = BUG == 1 ? ~|b[6:3] : ~|b[6:0];
    wire top_a = &a[6:3];
    wire top_b = &b[6:3];
    wire [7:0] log_a = logarithm(a[6:0]);
    wire [7:0] log_b = logarithm(b[6:0]);
    wire [8:0] sum = BUG == 2
        ? {{1'b0, log_a[7:3]} + {1'b0, log_b[7:3]}, log_a[2:0] + log_b[2:0]}
        : {1'b0, log_a} + {1'b0, log_b};

    always @* begin
        product[9] = (a[7] && !zero_a) ^ (b[7] && !zero_b);
        if ((top_a && |a[2:0]) || (top_b && |b[2:0]) || (top_a && zero_b) || (top_b && zero_a)) product = {1'b0, QUIET};
        else if (top_a || top_b) product[8:0] = INFINITY;
        else if (zero_a || zero_b) product[8:0] = 9'd0;
        else product[8:0] = sum + {6'd13, 3'd0};  // e6m3's bias of 31, less 9 and 9
    end
endmodule
