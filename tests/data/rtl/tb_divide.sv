// Answers vectors of a division of binary32 by div_sqrt_top_mvp. +mode: its rounding mode.
module tb_divide;
    reg clk, rst, start;
    reg  [31:0] a, b, next_a, next_b, expected;
    reg  [4:0] expected_flags;
    integer mode;
    wire [63:0] z;
    wire [4:0] flags;
    wire ready, done;
    div_sqrt_top_mvp dut (
        .Clk_CI(clk), .Rst_RBI(rst), .Div_start_SI(start), .Sqrt_start_SI(1'b0), .Operand_a_DI({32'd0, a}),
        .Operand_b_DI({32'd0, b}), .RM_SI(mode[2:0]), .Precision_ctl_SI(6'd0), .Format_sel_SI(2'b00), .Kill_SI(1'b0),
        .Result_DO(z), .Fflags_SO(flags), .Ready_SO(ready), .Done_SO(done)
    );
    `include "vectors.vh"
    always #5 clk = ~clk;
    initial begin
        mode = 0;
        if ($value$plusargs("mode=%d", mode)) mode = mode;
        open_files;
        {clk, rst, start} = 3'b000;
        repeat (3) @(negedge clk);
        rst = 1;
        @(negedge clk);
        while ($fscanf(in_file, "%h %h %h %h", next_a, next_b, expected, expected_flags) == 4) begin
            a = next_a;  // not all that $fscanf changes is seen (Verilator 5.006)
            b = next_b;
            while (!ready) @(negedge clk);
            start = 1;
            @(negedge clk);
            start = 0;
            while (!done) @(negedge clk);
            $fwrite(out_file, "%h %h %h %h\n", a, b, z[31:0], {3'b000, flags});
        end
        close_files;
    end
endmodule
