// Answers vectors of float_mac, a line a clock: first a b result.
module tb_float_mac;
    parameter EXP_A = 4, MAN_A = 3, IEEE_A = 0, EXP_B = 4, MAN_B = 3, IEEE_B = 0, ACC_EXP = 6, ACC_MAN = 9, BUG = 0;
    localparam WIDTH_A = EXP_A + MAN_A + 1, WIDTH_B = EXP_B + MAN_B + 1, WIDTH = ACC_EXP + ACC_MAN + 1;
    `include "mac_steps.vh"
    float_mac #(
        .EXP_A(EXP_A), .MAN_A(MAN_A), .IEEE_A(IEEE_A), .EXP_B(EXP_B), .MAN_B(MAN_B), .IEEE_B(IEEE_B),
        .ACC_EXP(ACC_EXP), .ACC_MAN(ACC_MAN), .BUG(BUG)
    ) dut (
        .clk(clk), .reset(reset), .enable(enable), .first(first), .a(a), .b(b), .sum(answer)
    );
endmodule
