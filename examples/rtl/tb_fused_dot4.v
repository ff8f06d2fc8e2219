// Answers vectors of dot products of four elements: a b c result.
module tb_fused_dot4;
    parameter EXP = 5, MAN = 10, F = 23, BUG = 0;
    reg  [4*(EXP+MAN+1)-1:0] next_a, next_b, a, b;
    reg  [31:0] next_c, c, expected;
    wire [31:0] result;
    fused_dot4 #(.EXP(EXP), .MAN(MAN), .F(F), .BUG(BUG)) dut (.a(a), .b(b), .c(c), .result(result));
    `include "vectors.vh"
    initial begin
        open_files;
        while ($fscanf(in_file, "%h %h %h %h", next_a, next_b, next_c, expected) == 4) begin
            a = next_a;
            b = next_b;
            c = next_c;
            #1 $fwrite(out_file, "%h %h %h %h\n", a, b, c, result);
        end
        close_files;
    end
endmodule
