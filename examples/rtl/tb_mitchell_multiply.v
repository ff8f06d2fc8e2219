// Answers vectors of a multiplication by logarithms: a b product.
module tb_mitchell_multiply;
    parameter BUG = 0;
    reg  [7:0] next_a, next_b, a, b;
    reg  [9:0] expected;
    wire [9:0] product;
    mitchell_multiply #(.BUG(BUG)) dut (.a(a), .b(b), .product(product));
    `include "vectors.vh"
    initial begin
        open_files;
        while ($fscanf(in_file, "%h %h %h", next_a, next_b, expected) == 3) begin
            a = next_a;
            b = next_b;
            #1 $fwrite(out_file, "%h %h %h\n", a, b, product);
        end
        close_files;
    end
endmodule
