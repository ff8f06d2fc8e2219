// Answers vectors of fixed_mac, a line a clock: first a b result.
module tb_fixed_mac;
    parameter BUG = 0;
    `include "mac_steps.vh"
    fixed_mac #(.BUG(BUG)) dut (
        .clk(clk), .reset(reset), .enable(enable), .first(first), .a(a), .b(b), .acc(answer[13:0])
    );
    assign answer[15:14] = 0;
endmodule
