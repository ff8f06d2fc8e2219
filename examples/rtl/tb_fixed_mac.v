// Answers vectors of a multiply-accumulate unit, a line a clock: first a b result.
module tb_fixed_mac;
    parameter BUG = 0;
    reg clk, reset, enable, first, next_first;
    reg [7:0] next_a, next_b, a, b;
    reg [13:0] expected;
    wire [13:0] acc;
    fixed_mac #(.BUG(BUG)) dut (.clk(clk), .reset(reset), .enable(enable), .first(first), .a(a), .b(b), .acc(acc));
    `include "vectors.vh"
    initial begin
        open_files;
        clk = 0;
        enable = 0;
        first = 0;
        a = 0;
        b = 0;
        reset = 1;
        #1 clk = 1;
        #1 clk = 0;
        reset = 0;
        enable = 1;
        while ($fscanf(in_file, "%h %h %h %h", next_first, next_a, next_b, expected) == 4) begin
            first = next_first;
            a = next_a;
            b = next_b;
            #1 clk = 1;
            #1 clk = 0;
            $fwrite(out_file, "%h %h %h %h\n", first, a, b, acc);
        end
        close_files;
    end
endmodule
