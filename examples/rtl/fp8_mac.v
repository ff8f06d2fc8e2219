// Multiplies e5m2 floats and accumulates the products in e6m9, a step a clock, in chunks (Wang et al. 2018): CHUNK
// products are summed from +0, then their sum is added to that of the chunks before. Both sums round to nearest even;
// products are exact in e6m9.
//   first starts a sum. After each clock, sum holds the dot product of all steps since then: the chunks' sum and the
//   unfinished chunk, added.
//   Overflow goes to infinity.  NaN: the canonical one.
//   BUG plants a fault: 1 sums are cut off instead of rounded, 2 chunks are one longer, 3 first does not
//   clear, 4 products are rounded to e5m2, 5 subnormal operands are read as zero.
// Reference: softnum.MadUnit("e6m9", operand="e5m2", chunk=8).
module fp8_mac #(
    parameter CHUNK = 8,
    parameter BUG = 0
) (
    input  wire        clk,
    input  wire        reset,
    input  wire        enable,
    input  wire        first,
    input  wire [7:0]  a,
    input  wire [7:0]  b,
    output reg  [15:0] sum
);
    localparam [31:0] LAST = BUG == 2 ? CHUNK : CHUNK - 1;
    localparam [14:0] INFINITY = 15'h7E00, QUIET = 15'h7F00, LARGEST = 15'h7DFF;

    // The exact product of two e5m2 floats.
    function [15:0] multiply(input [7:0] x, input [7:0] y);
        reg zero_x, zero_y, top_x, top_y;
        reg [5:0] normed;  // of the significands; the leading bit, which counts two, on the left
        reg signed [7:0] field;
        begin
            zero_x = BUG == 5 ? ~|x[6:2] : ~|x[6:0];
            zero_y = BUG == 5 ? ~|y[6:2] : ~|y[6:0];
            top_x = &x[6:2];
            top_y = &y[6:2];
            normed = {3'b000, |x[6:2], x[1:0]} * {3'b000, |y[6:2], y[1:0]};
            // biases: 15 and 15 go, 31 comes, and one for the leading bit
            field = {3'b000, x[6:2]} + {7'd0, ~|x[6:2]} + {3'b000, y[6:2]} + {7'd0, ~|y[6:2]} + 8'd2;
            if (normed[5:2] == 0) begin
                normed = normed << 4;
                field = field - 8'sd4;
            end
            if (normed[5:4] == 0) begin
                normed = normed << 2;
                field = field - 8'sd2;
            end
            if (!normed[5]) begin
                normed = normed << 1;
                field = field - 8'sd1;
            end
            multiply[15] = x[7] ^ y[7];
            if ((top_x && |x[1:0]) || (top_y && |y[1:0]) || (top_x && zero_y) || (top_y && zero_x))
                multiply = {1'b0, QUIET};
            else if (top_x || top_y) multiply[14:0] = INFINITY;
            else if (zero_x || zero_y) multiply[14:0] = 15'd0;
            else if (field == -8'sd1) multiply[14:0] = {6'd0, 1'b0, normed, 2'b00};  // subnormal in e6m9
            else if (field == 8'sd0) multiply[14:0] = {6'd0, normed, 3'b000};
            else multiply[14:0] = {field[5:0], normed[4:0], 4'b0000};
        end
    endfunction

    // The sum of two e6m9 floats, rounded.
    function [15:0] add(input [15:0] x, input [15:0] y);
        reg [15:0] more, less;  // by magnitude
        reg        subtract, up;
        reg [5:0]  gap;
        reg [6:0]  field;
        reg [25:0] shifted;
        reg [13:0] wide;  // a carry, ten bits, guard and round bit, and a bit for all that follows
        reg [15:0] magnitude;
        begin
            if (y[14:0] > x[14:0]) begin
                more = y;
                less = x;
            end else begin
                more = x;
                less = y;
            end
            subtract = x[15] ^ y[15];
            gap = (more[14:9] | {5'd0, ~|more[14:9]}) - (less[14:9] | {5'd0, ~|less[14:9]});
            shifted = {|less[14:9], less[8:0], 16'd0} >> (gap > 6'd15 ? 6'd15 : gap);
            wide = {1'b0, |more[14:9], more[8:0], 3'b000};
            if (subtract) wide = wide - {1'b0, shifted[25:14], |shifted[13:0]};
            else wide = wide + {1'b0, shifted[25:14], |shifted[13:0]};
            field = {1'b0, more[14:9] | {5'd0, ~|more[14:9]}};
            if (wide[13]) begin
                wide = {1'b0, wide[13:2], wide[1] | wide[0]};
                field = field + 7'd1;
            end else if (!wide[12]) begin  // to the left, as far as the exponent allows
                if (wide[12:5] == 0 && field > 7'd8) begin
                    wide = wide << 8;
                    field = field - 7'd8;
                end
                if (wide[12:9] == 0 && field > 7'd4) begin
                    wide = wide << 4;
                    field = field - 7'd4;
                end
                if (wide[12:11] == 0 && field > 7'd2) begin
                    wide = wide << 2;
                    field = field - 7'd2;
                end
                if (!wide[12] && field > 7'd1) begin
                    wide = wide << 1;
                    field = field - 7'd1;
                end
            end
            up = BUG != 1 && wide[2] && (wide[3] || wide[1:0] != 0);
            // the leading bit counts one in the exponent field
            magnitude = {field - 7'd1, 9'd0} + {6'd0, wide[12:3]} + {15'd0, up};

            if (more[14:0] > INFINITY || (less[14:0] == INFINITY && subtract)) add = {1'b0, QUIET};
            else if (more[14:0] == INFINITY) add = more;
            else if (wide == 0) add = {x[15] & y[15], 15'd0};
            else if (magnitude >= {1'b0, INFINITY}) add = {more[15], BUG == 1 ? LARGEST : INFINITY};
            else add = {more[15], magnitude[14:0]};
        end
    endfunction

    // For BUG 4: an e6m9 float rounded to e5m2.
    function [15:0] shortened(input [15:0] x);
        reg [14:0] rounded;
        begin
            case (x[14:9])  // from 17 on normal in e5m2
                6'd16: rounded = (x[14:0] + 15'h007F + {14'd0, x[8]}) & 15'h7F00;
                6'd15: rounded = (x[14:0] + 15'h00FF + {14'd0, x[9]}) & 15'h7E00;
                default: rounded = (x[14:0] + 15'h003F + {14'd0, x[7]}) & 15'h7F80;
            endcase
            if (x[14:0] < 15'h1E00) rounded = x[14:0] > 15'h1C00 ? 15'h1E00 : 15'd0;
            if (x[14:0] >= INFINITY) rounded = x[14:0];
            else if (rounded >= 15'h5E00) rounded = INFINITY;
            shortened = {x[15], rounded};
        end
    endfunction

    reg  [15:0] inner;  // of the chunk
    reg  [15:0] outer;  // of the finished chunks
    reg  [31:0] count;  // steps of the chunk
    reg  [31:0] step;
    reg  [15:0] product, outer_start, inner_next, sum_next;

    always @* begin
        step = first && BUG != 3 ? 32'd0 : count;
        outer_start = first && BUG != 3 ? 16'd0 : outer;
        product = multiply(a, b);
        if (BUG == 4) product = shortened(product);
        inner_next = add(step == 0 ? 16'd0 : inner, product);
        sum_next = add(outer_start, inner_next);
    end

    always @(posedge clk)
        if (reset) begin
            inner <= 16'd0;
            outer <= 16'd0;
            count <= 32'd0;
            sum <= 16'd0;
        end else if (enable) begin
            inner <= inner_next;
            outer <= step == LAST ? sum_next : outer_start;
            count <= step == LAST ? 32'd0 : step + 32'd1;
            sum <= sum_next;
        end
endmodule
