// Answers vectors of fp8_mac, a line a clock: first a b result.
module tb_fp8_mac;
    parameter CHUNK = 8, BUG = 0;
    localparam WIDTH_A = 8, WIDTH_B = 8, WIDTH = 16;
    `include "mac_steps.vh"
    fp8_mac #(.CHUNK(CHUNK), .BUG(BUG)) dut (
        .clk(clk), .reset(reset), .enable(enable), .first(first), .a(a), .b(b), .sum(answer)
    );
endmodule
