// Answers vectors of a stochastic conversion: x random result flags. With +lfsr the random bits are those of a shift
// register, not the file's; the column says which.
module tb_stochastic_round;
    parameter IN_EXP = 6, IN_MAN = 9, OUT_EXP = 5, OUT_MAN = 2, BITS = 8, BUG = 0;
    reg  clk, reset, from_lfsr;
    reg  [IN_EXP+IN_MAN:0] next_x, x;
    reg  [BITS-1:0] next_random, given;
    wire [BITS-1:0] drawn;
    wire [BITS-1:0] random = from_lfsr ? drawn : given;
    reg  [OUT_EXP+OUT_MAN:0] expected;
    wire [OUT_EXP+OUT_MAN:0] result;
    reg  [4:0] expected_flags;
    wire [4:0] flags;
    lfsr #(.BITS(BITS), .SEED(32'h1D872B41)) source (.clk(clk), .reset(reset), .random(drawn));
    stochastic_round #(
        .IN_EXP(IN_EXP), .IN_MAN(IN_MAN), .OUT_EXP(OUT_EXP), .OUT_MAN(OUT_MAN), .BITS(BITS), .BUG(BUG)
    ) dut (
        .x(x), .random(random), .result(result), .flags(flags)
    );
    `include "vectors.vh"
    initial begin
        open_files;
        from_lfsr = $test$plusargs("lfsr") != 0;
        clk = 0;
        reset = 1;
        x = 0;
        given = 0;
        #1 clk = 1;
        #1 clk = 0;
        reset = 0;
        while ($fscanf(in_file, "%h %h %h %h", next_x, next_random, expected, expected_flags) == 4) begin
            x = next_x;
            given = next_random;
            clk = from_lfsr;
            #1 $fwrite(out_file, "%h %h %h %h\n", x, random, result, flags);
            clk = 0;
        end
        close_files;
    end
endmodule
