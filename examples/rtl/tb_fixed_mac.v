// Answers vectors of fixed_mac, a line a clock: first a b result.
module tb_fixed_mac;
    parameter BUG = 0;
    localparam WIDTH_A = 8, WIDTH_B = 8, WIDTH = 14;
    `include "mac_steps.vh"
    fixed_mac #(.BUG(BUG)) dut (
        .clk(clk), .reset(reset), .enable(enable), .first(first), .a(a), .b(b), .acc(answer)
    );
endmodule
