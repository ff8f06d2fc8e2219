// A dot product of e2m1fn in chunks, as a MAC of four-bit operands has it: each pair of products is summed exactly from
// +0 and rounded to e3m2fn, and the pairs' sums are added to c in order, each addition rounded. Combinational; neither
// format has NaN or infinity, and what is too large ends at 28. Element 0 lies in the lowest bits.
//   CHUNKS: pairs of products.
//   BUG plants a fault: 1 a pair's sum is cut off, 2 ties go away from zero, 3 a pair's sum is added as it is.
// Reference: softnum.ChunkedDotUnit(softnum.ExactDotUnit("e3m2fn", operand="e2m1fn"), 2, accumulator="e3m2fn").
module chunk_dot #(
    parameter CHUNKS = 1,
    parameter BUG = 0
) (
    input  wire [8*CHUNKS-1:0] a,
    input  wire [8*CHUNKS-1:0] b,
    input  wire [5:0]          c,
    output reg  [5:0]          result
);
    // An operand in halves: -12 to 12.
    function signed [12:0] operand(input [3:0] x);
        reg [3:0] magnitude;
        begin
            magnitude = {2'b00, |x[2:1], x[0]} << (x[2] ? x[2:1] - 2'd1 : 2'd0);
            operand = x[3] ? -{9'd0, magnitude} : {9'd0, magnitude};
        end
    endfunction

    // What a code of e3m2fn stands for, in sixteenths: -448 to 448.
    function signed [12:0] value(input [5:0] x);
        reg [12:0] magnitude;
        begin
            magnitude = {10'd0, |x[4:2], x[1:0]} << (|x[4:2] ? x[4:2] - 3'd1 : 3'd0);
            value = x[5] ? -magnitude : magnitude;
        end
    endfunction

    // The code of e3m2fn that a number of sixteenths rounds to: to nearest, ties to even.
    function [5:0] rounded(input signed [12:0] x, input cut);
        reg [12:0] magnitude, kept, rest, half;
        reg [3:0]  shift;
        reg [6:0]  code;
        integer i;
        begin
            magnitude = x < 0 ? -x : x;
            shift = 4'd0;
            for (i = 1; i < 10; i = i + 1) if (magnitude >> (i + 2) != 0) shift = i[3:0];
            kept = magnitude >> shift;
            code = {1'b0, shift, 2'b00} + {4'd0, kept[2:0]};
            rest = magnitude - (kept << shift);
            half = (13'd1 << shift) >> 1;
            if (!cut && shift != 0 && (rest > half || (rest == half && (code[0] || BUG == 2)))) code = code + 7'd1;
            if (code > 7'd31) code = 7'd31;
            rounded = {x < 0, code[4:0]};
        end
    endfunction

    reg signed [12:0] sum;
    integer k;

    always @* begin
        result = c;
        for (k = 0; k < CHUNKS; k = k + 1) begin
            sum = (operand(a[8*k +: 4]) * operand(b[8*k +: 4]) + operand(a[8*k+4 +: 4]) * operand(b[8*k+4 +: 4])) * 4;
            if (BUG != 3) sum = value(rounded(sum, BUG == 1));
            result = rounded(value(result) + sum, 1'b0);
        end
    end
endmodule
