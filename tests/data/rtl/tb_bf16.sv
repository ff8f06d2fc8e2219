// Answers vectors of bfloat16 by a combinational design whose ports are signs, exponents and fractions. DESIGN: its
// module.
module tb_bf16;
    reg  [15:0] a, b, next_a, next_b, expected;
    reg  [4:0] expected_flags;
    wire [15:0] z;
    `DESIGN dut (
        .sa_i(a[15]), .ea_i(a[14:7]), .ma_i(a[6:0]), .sb_i(b[15]), .eb_i(b[14:7]), .mb_i(b[6:0]), .s_o(z[15]),
        .e_o(z[14:7]), .m_o(z[6:0])
    );
    `include "vectors.vh"
    initial begin
        open_files;
        while ($fscanf(in_file, "%h %h %h %h", next_a, next_b, expected, expected_flags) == 4) begin
            a = next_a;
            b = next_b;
            #1 $fwrite(out_file, "%h %h %h 00\n", a, b, z);
        end
        close_files;
    end
endmodule
