// A linear-feedback shift register of 32 bits (x^32 + x^22 + x^2 + x + 1, of period 2^32 - 1): BITS new ones a clock, in
// Galois form. It must not be all zeros: reset loads SEED.
module lfsr #(
    parameter BITS = 8,
    parameter [31:0] SEED = 32'h1
) (
    input  wire            clk,
    input  wire            reset,
    output wire [BITS-1:0] random
);
    reg [31:0] state, next;
    integer i;
    assign random = state[BITS-1:0];

    always @* begin
        next = state;
        for (i = 0; i < BITS; i = i + 1) next = {1'b0, next[31:1]} ^ (next[0] ? 32'h80200003 : 32'h0);
    end

    always @(posedge clk)
        if (reset) state <= SEED;
        else state <= next;
endmodule
