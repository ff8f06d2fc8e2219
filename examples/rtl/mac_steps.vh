// The bench of a multiply-accumulate unit that takes a step a clock: vectors of first, a, b, result. The design is
// between these: clk, reset, enable, first, a, b; and answer. The bench states their widths: WIDTH_A, WIDTH_B, WIDTH.
reg clk, reset, enable, first, last_first, next_first;
reg [WIDTH_A-1:0] a, last_a, next_a;
reg [WIDTH_B-1:0] b, last_b, next_b;
reg [WIDTH-1:0] expected;
wire [WIDTH-1:0] answer;
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
        if (enable) $fwrite(out_file, "%h %h %h %h\n", last_first, last_a, last_b, answer);
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
