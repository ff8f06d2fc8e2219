// Answers vectors of fma by float_mac, a step each: a b c result flags. c is put into the register of the sum beforehand;
// float_mac has no flags, they are copied.
module tb_float_mac_fma;
    parameter EXP_A = 4, MAN_A = 3, IEEE_A = 0, EXP_B = 4, MAN_B = 3, IEEE_B = 0, ACC_EXP = 6, ACC_MAN = 9, BUG = 0;
    reg  [EXP_A+MAN_A:0]     next_a, a;
    reg  [EXP_B+MAN_B:0]     next_b, b;
    reg  [ACC_EXP+ACC_MAN:0] next_c, expected;
    wire [ACC_EXP+ACC_MAN:0] answer;
    reg  [4:0] flags;
    reg  clk;
    float_mac #(
        .EXP_A(EXP_A), .MAN_A(MAN_A), .IEEE_A(IEEE_A), .EXP_B(EXP_B), .MAN_B(MAN_B), .IEEE_B(IEEE_B),
        .ACC_EXP(ACC_EXP), .ACC_MAN(ACC_MAN), .BUG(BUG)
    ) dut (
        .clk(clk), .reset(1'b0), .enable(1'b1), .first(1'b0), .a(a), .b(b), .sum(answer)
    );
    `include "vectors.vh"
    initial begin
        open_files;
        clk = 0;
        while ($fscanf(in_file, "%h %h %h %h %h", next_a, next_b, next_c, expected, flags) == 5) begin
            a = next_a;
            b = next_b;
            dut.sum = next_c;
            #1 clk = 1;
            #1 $fwrite(out_file, "%h %h %h %h %h\n", a, b, next_c, answer, flags);
            clk = 0;
        end
        close_files;
    end
endmodule
