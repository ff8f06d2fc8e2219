// Answers vectors of a multiply-accumulate unit, a line a clock: first a b result.
module tb_fp8_mac;
    parameter CHUNK = 8, BUG = 0;
    reg clk, reset, enable, first, last_first, next_first;
    reg [7:0] a, last_a, next_a, b, last_b, next_b;
    reg [15:0] expected;
    wire [15:0] sum;
    fp8_mac #(.CHUNK(CHUNK), .BUG(BUG)) dut (
        .clk(clk), .reset(reset), .enable(enable), .first(first), .a(a), .b(b), .sum(sum)
    );
    `include "vectors.vh"

    // A clock takes the step whose operands stand there, and the next one's come with it.
    always @(posedge clk) begin
        first <= next_first;
        a <= next_a;
        b <= next_b;
    end

    task step;
        begin
            last_first = first;
            last_a = a;
            last_b = b;
            clk = 1;
            #1 clk = 0;
            if (enable) $fwrite(out_file, "%h %h %h %h\n", last_first, last_a, last_b, sum);
            #1 enable = 1;
            reset = 0;
        end
    endtask

    initial begin
        open_files;
        clk = 0;
        enable = 0;
        reset = 1;
        #1;
        while ($fscanf(in_file, "%h %h %h %h", next_first, next_a, next_b, expected) == 4) step;
        step;
        close_files;
    end
endmodule
