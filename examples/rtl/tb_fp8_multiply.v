// Answers vectors of a multiplication: a b result flags.
module tb_fp8_multiply;
    parameter EXP = 4, MAN = 3, IEEE = 0, SATURATE = 0, BUG = 0;
    reg  [EXP+MAN:0] next_a, next_b, a, b, expected;
    wire [EXP+MAN:0] result;
    reg  [4:0] expected_flags;
    wire [4:0] flags;
    fp8_multiply #(.EXP(EXP), .MAN(MAN), .IEEE(IEEE), .SATURATE(SATURATE), .BUG(BUG)) dut (
        .a(a), .b(b), .result(result), .flags(flags)
    );
    `include "vectors.vh"
    initial begin
        open_files;
        while ($fscanf(in_file, "%h %h %h %h", next_a, next_b, expected, expected_flags) == 4) begin
            a = next_a;
            b = next_b;
            #1 $fwrite(out_file, "%h %h %h %h\n", a, b, result, flags);
        end
        close_files;
    end
endmodule
