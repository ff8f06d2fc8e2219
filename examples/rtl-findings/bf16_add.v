// Essenceia's bfloat16 adder behind ports of whole numbers: theirs are of sign, exponent and fraction.
module bf16_add_whole (input [15:0] a, b, output [15:0] result);
    bf16_add unit (
        .sa_i(a[15]), .ea_i(a[14:7]), .ma_i(a[6:0]), .sb_i(b[15]), .eb_i(b[14:7]), .mb_i(b[6:0]),
        .s_o(result[15]), .e_o(result[14:7]), .m_o(result[6:0])
    );
endmodule
