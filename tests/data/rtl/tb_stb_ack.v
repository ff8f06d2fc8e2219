// Answers vectors of two operands by a design that takes each by a strobe and an acknowledgement. DESIGN: its module.
module tb_stb_ack;
    reg clk, rst, a_stb, b_stb, z_ack;
    reg  [31:0] a, b, expected;
    reg  [4:0] expected_flags;
    wire [31:0] z;
    wire a_ack, b_ack, z_stb;
    `DESIGN dut (
        .clk(clk), .rst(rst), .input_a(a), .input_a_stb(a_stb), .input_a_ack(a_ack), .input_b(b), .input_b_stb(b_stb),
        .input_b_ack(b_ack), .output_z(z), .output_z_stb(z_stb), .output_z_ack(z_ack)
    );
    `include "vectors.vh"
    initial begin
        open_files;
        {clk, rst, a_stb, b_stb, z_ack} = 5'b01000;
        #1 clk = 1;
        #1 clk = 0;
        rst = 0;
        while ($fscanf(in_file, "%h %h %h %h", a, b, expected, expected_flags) == 4) begin
            {a_stb, b_stb, z_ack} = 3'b111;
            while (!z_stb) begin
                #1 clk = 1;
                #1 clk = 0;
                if (z_stb) $fwrite(out_file, "%h %h %h 00\n", a, b, z);
            end
            while (z_stb) begin
                #1 clk = 1;
                #1 clk = 0;
            end
        end
        close_files;
    end
endmodule
