// Multiplies two posits of N bits with ES bits of exponent (Standard for Posit Arithmetic, 2022: ES = 2), combinational.
// One rounding: to nearest on the bit string, a tie to the even code, never to zero or NaR.
// BUG: 0 none; 1 one bit behind the last place and its half counts, and no other; 2 the smallest value is rounded to zero.
module posit_multiply #(
    parameter integer N = 8,
    parameter integer ES = 2,
    parameter integer BUG = 0
) (
    input [N-1:0] a,
    input [N-1:0] b,
    output reg [N-1:0] result
);
    localparam integer L = N - 1;  // bits behind the sign
    localparam integer F = N;  // of a significand, the leading one with it
    localparam integer S = 16;  // of a scale, with its sign
    localparam integer W = 2 + ES + 2 * F - 1 + L;  // of a result's string before it is cut
    localparam [N-1:0] NAR = 1 << (N - 1);

    // the scale in the high bits, the significand in the low ones
    function [S+F-1:0] decoded(input [N-1:0] code);
        reg [L-1:0] body;
        reg [L+ES-1:0] rest;
        reg signed [S-1:0] regime;
        integer i, run;
        reg running;
        begin
            body = code[N-1] ? -code[L-1:0] : code[L-1:0];
            run = 0;
            running = 1;
            for (i = L - 1; i >= 0; i = i - 1) begin
                if (body[i] != body[L-1]) running = 0;
                if (running) run = run + 1;
            end
            regime = body[L-1] ? run - 1 : -run;
            rest = {body, {ES{1'b0}}} << run << 1;
            decoded[S+F-1:F] = regime * (1 << ES) + (rest >> L);
            decoded[F-1:0] = {1'b1, rest[L-1:0]};
        end
    endfunction

    wire [S+F-1:0] x = decoded(a), y = decoded(b);
    wire [2*F-1:0] product = x[F-1:0] * y[F-1:0];
    wire carry = product[2*F-1];
    wire signed [S-1:0] scale = $signed(x[S+F-1:F]) + $signed(y[S+F-1:F]) + $signed({1'b0, carry});
    wire signed [S-1:0] regime = scale >>> ES;
    wire [2*F-2:0] fraction = carry ? product[2*F-2:0] : {product[2*F-3:0], 1'b0};
    wire sign = a[N-1] ^ b[N-1];

    reg [W-1:0] text;
    reg [L-1:0] code;
    reg half, sticky;
    always @* begin
        text[W-1:W-2] = {regime >= 0, regime < 0};
        text[W-3:0] = {scale, fraction, {L{1'b0}}};  // of the scale, ES bits
        if (regime >= 0) text = ~(~text >> regime);
        else text = text >> (-regime - 1);
        code = text[W-1:W-L];
        half = text[W-L-1];
        sticky = BUG == 1 ? text[W-L-2] : |text[W-L-2:0];
        if (regime > L - 1) code = {L{1'b1}};
        else if (regime < -(L - 1)) code = BUG == 2 ? 0 : 1;
        else begin
            if (half && (sticky || code[0]) && code != {L{1'b1}}) code = code + 1;
            if (code == 0 && BUG != 2) code = 1;
        end
        result = sign ? -{1'b0, code} : {1'b0, code};
        if (a == 0 || b == 0) result = 0;
        if (a == NAR || b == NAR) result = NAR;
    end
endmodule
