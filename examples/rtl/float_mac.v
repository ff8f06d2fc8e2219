// Multiplies two floats and adds the product to an accumulator of another format, a step a clock: sum = sum + a * b, the
// product exact, one rounding to nearest even. Formats are parameters.
//   default: e4m3fn x e4m3fn, summed in e6m9.  EXP_A, MAN_A, EXP_B, MAN_B: the operands' formats.  IEEE_A, IEEE_B: 1 as
//   IEEE 754 has them, with infinities (bfloat16, e5m2, e5m3); 0 as e4m3fn, where the top exponent holds finite values
//   and all ones is NaN.  ACC_EXP, ACC_MAN: the accumulator, as IEEE 754 has it.
//   first starts a sum from +0.  Subnormal operands and sums are not flushed.  Overflow goes to infinity.  NaN: the
//   canonical one.
//   Units that take e4m3fn and e5m2 side by side hold both in e5m3 (EXP 5, MAN 3, IEEE 1), which has every value of
//   either; what turns codes into e5m3 is before this unit and not in it. Sums in chunks are not here: see fp8_mac.
//   BUG plants a fault: 1 sums are cut off instead of rounded, 2 ties go away from zero, 3 first does not clear, 4 bits
//   that follow the one after the last are not looked at, 5 subnormal operands and sums are read as zero.
// Reference: softnum.MadUnit("e6m9", operand="e4m3fn").
module float_mac #(
    parameter EXP_A = 4,
    parameter MAN_A = 3,
    parameter IEEE_A = 0,
    parameter EXP_B = 4,
    parameter MAN_B = 3,
    parameter IEEE_B = 0,
    parameter ACC_EXP = 6,
    parameter ACC_MAN = 9,
    parameter BUG = 0
) (
    input  wire                     clk,
    input  wire                     reset,
    input  wire                     enable,
    input  wire                     first,
    input  wire [EXP_A+MAN_A:0]     a,
    input  wire [EXP_B+MAN_B:0]     b,
    output reg  [ACC_EXP+ACC_MAN:0] sum
);
    localparam N = ACC_EXP + ACC_MAN + 1;
    localparam P = MAN_A + MAN_B + 2;               // bits of a product
    localparam S = P > ACC_MAN + 1 ? P : ACC_MAN + 1;  // of either term's significand
    // Below it: what keeps the sum exact after a shift by one, two bits where all of the significand is kept; sticky.
    localparam W = S + (S > ACC_MAN + 1 ? 2 : 3);
    localparam STAGES = $clog2(W);                  // of a shifter
    localparam WIDEST = EXP_A > EXP_B ? EXP_A : EXP_B;
    localparam E = (WIDEST > ACC_EXP ? WIDEST : ACC_EXP) + 3;  // of an exponent, signed
    // Of a product whose leading bit counts two, as exponent field of the accumulator: less the operands' biases.
    localparam signed [E-1:0] BIAS = (1 << (ACC_EXP - 1)) - (1 << (EXP_A - 1)) - (1 << (EXP_B - 1)) + 2;
    localparam [N-2:0] INFINITY = {{ACC_EXP{1'b1}}, {ACC_MAN{1'b0}}};
    localparam [N-2:0] QUIET = INFINITY | (1 << (ACC_MAN - 1)), LARGEST = INFINITY - 1'b1;

    reg [N-1:0]          acc, next;
    reg                  normal_a, normal_b, normal_acc, zero_a, zero_b, top_a, top_b;
    reg                  inf_a, inf_b, inf_acc, nan, infinite, sign, subtract, acc_less, negative, up;
    reg [P-1:0]          product;
    reg signed [E-1:0]   field, field_acc, gap;
    reg [E-1:0]          distance;
    reg [W-1:0]          more, less;  // by exponent
    reg [W:0]            total;       // with a carry or sign
    reg [W-1:0]          normed;
    reg [E+ACC_MAN-1:0]  magnitude;
    integer i;

    always @* begin
        acc = first && BUG != 3 ? {N{1'b0}} : sum;

        // The product, its leading bit on the left; zero has the lowest exponent.
        normal_a = |a[EXP_A+MAN_A-1:MAN_A];
        normal_b = |b[EXP_B+MAN_B-1:MAN_B];
        zero_a = !normal_a && (BUG == 5 || ~|a[MAN_A-1:0]);
        zero_b = !normal_b && (BUG == 5 || ~|b[MAN_B-1:0]);
        product = {{(P-MAN_A-1){1'b0}}, normal_a, a[MAN_A-1:0]} * {{(P-MAN_B-1){1'b0}}, normal_b, b[MAN_B-1:0]};
        if (zero_a || zero_b) product = {P{1'b0}};
        field = $signed({{(E-EXP_A){1'b0}}, a[EXP_A+MAN_A-1:MAN_A+1], a[MAN_A] | !normal_a})
            + $signed({{(E-EXP_B){1'b0}}, b[EXP_B+MAN_B-1:MAN_B+1], b[MAN_B] | !normal_b}) + BIAS;
        for (i = $clog2(P) - 1; i >= 0; i = i - 1)
            if (product >> (P - (1 << i)) == 0) begin
                product = product << (1 << i);
                field = field - (1 << i);
            end

        // The term of the smaller exponent moves to the right.
        normal_acc = |acc[N-2:ACC_MAN];
        field_acc = $signed({{(E-ACC_EXP){1'b0}}, acc[N-2:ACC_MAN+1], acc[ACC_MAN] | !normal_acc});
        gap = field - field_acc;
        acc_less = !gap[E-1] && product[P-1];
        distance = acc_less ? gap : -gap;
        more = {product, {(W-P){1'b0}}};
        less = {normal_acc, acc[ACC_MAN-1:0] & {ACC_MAN{BUG != 5 || normal_acc}}, {(W-ACC_MAN-1){1'b0}}};
        if (!acc_less) {more, less} = {less, more};
        for (i = 0; i < STAGES; i = i + 1)
            if (distance[i]) less = (less >> (1 << i)) | {{(W-1){1'b0}}, |(less << (W - (1 << i)))};
        if (|(distance >> STAGES)) less = {{(W-1){1'b0}}, |less};

        // Negative: where exponents are equal, or the accumulator is subnormal and the product of lower exponent.
        sign = a[EXP_A+MAN_A] ^ b[EXP_B+MAN_B];
        subtract = sign ^ acc[N-1];
        total = {1'b0, more} + ({1'b0, less} ^ {(W+1){subtract}}) + {{W{1'b0}}, subtract};
        negative = subtract && total[W];
        if (negative) total = -total;

        // To the left, as far as the exponent allows; a carry to the right. The leading bit counts one in the exponent
        // field.
        field = (acc_less ? field : field_acc) - 1'b1;
        normed = total[W-1:0];
        if (total[W]) begin
            normed = {1'b1, total[W-1:2], total[1] | total[0]};
            field = field + 1'b1;
        end else
            for (i = STAGES - 1; i >= 0; i = i - 1)
                if (normed >> (W - (1 << i)) == 0 && |(field >> i)) begin
                    normed = normed << (1 << i);
                    field = field - (1 << i);
                end
        case (BUG)
            1: up = 1'b0;
            2: up = normed[W-ACC_MAN-2];
            4: up = normed[W-ACC_MAN-2] && normed[W-ACC_MAN-1];
            default: up = normed[W-ACC_MAN-2] && (normed[W-ACC_MAN-1] || |(normed << (ACC_MAN + 2)));
        endcase
        magnitude = {field, {ACC_MAN{1'b0}}} + {{(E-1){1'b0}}, normed[W-1 -: ACC_MAN+1]}
            + {{(E+ACC_MAN-1){1'b0}}, up};

        top_a = &a[EXP_A+MAN_A-1:MAN_A];
        top_b = &b[EXP_B+MAN_B-1:MAN_B];
        inf_a = IEEE_A != 0 && top_a && ~|a[MAN_A-1:0];
        inf_b = IEEE_B != 0 && top_b && ~|b[MAN_B-1:0];
        inf_acc = acc[N-2:0] == INFINITY;
        infinite = inf_a || inf_b;
        nan = (top_a && (IEEE_A != 0 ? |a[MAN_A-1:0] : &a[MAN_A-1:0])) || (inf_a && zero_b)
            || (top_b && (IEEE_B != 0 ? |b[MAN_B-1:0] : &b[MAN_B-1:0])) || (inf_b && zero_a)
            || acc[N-2:0] > INFINITY || (infinite && inf_acc && subtract);
        if (nan) next = {1'b0, QUIET};
        else if (inf_acc) next = acc;
        else if (infinite) next = {sign, INFINITY};
        else begin
            next[N-1] = total == 0 ? sign && acc[N-1] : acc_less ^ negative ? sign : acc[N-1];
            if (total == 0) next[N-2:0] = {(N-1){1'b0}};
            else if (magnitude < {{(E-ACC_EXP){1'b0}}, INFINITY}) next[N-2:0] = magnitude[N-2:0];
            else next[N-2:0] = BUG == 1 ? LARGEST : INFINITY;
        end
    end

    always @(posedge clk)
        if (reset) sum <= {N{1'b0}};
        else if (enable) sum <= next;
endmodule
