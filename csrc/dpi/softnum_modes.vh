// Numbers of modes and flags, for the functions of softnum_pkg and of softnum's VPI module. A mode is one rounding mode,
// and options OR-ed to it; alone it means the defaults: overflow to infinity (floats) or saturating (fixed point),
// underflow judged after rounding, 32 random bits, the canonical NaN. Verilog-2001: include it inside a module.
localparam [63:0] SOFTNUM_NEAREST_EVEN = 0;
localparam [63:0] SOFTNUM_NEAREST_AWAY = 1;
localparam [63:0] SOFTNUM_NEAREST_ZERO = 2;
localparam [63:0] SOFTNUM_NEAREST_UP = 3;
localparam [63:0] SOFTNUM_NEAREST_DOWN = 4;
localparam [63:0] SOFTNUM_TOWARD_ZERO = 5;
localparam [63:0] SOFTNUM_AWAY_FROM_ZERO = 6;
localparam [63:0] SOFTNUM_UP = 7;
localparam [63:0] SOFTNUM_DOWN = 8;
localparam [63:0] SOFTNUM_TO_ODD = 9;
localparam [63:0] SOFTNUM_STOCHASTIC = 10;
localparam [63:0] SOFTNUM_STOCHASTIC_FLOOR = 11;
localparam [63:0] SOFTNUM_STOCHASTIC_FAST = 12;
localparam [63:0] SOFTNUM_STOCHASTIC_EVEN = 13;
localparam [63:0] SOFTNUM_STOCHASTIC_ODD = 14;
localparam [63:0] SOFTNUM_STOCHASTIC_EQUAL = 15;
// options; r random bits: r * SOFTNUM_STOCHASTIC_BITS
localparam [63:0] SOFTNUM_STOCHASTIC_BITS = 64'h1000000;
localparam [63:0] SOFTNUM_OVERFLOW_INFINITY = 64'h100;
localparam [63:0] SOFTNUM_OVERFLOW_SATURATE = 64'h200;
localparam [63:0] SOFTNUM_OVERFLOW_SATURATE_FINITE = 64'h300;
localparam [63:0] SOFTNUM_OVERFLOW_WRAP = 64'h400;
localparam [63:0] SOFTNUM_OVERFLOW_ALWAYS_INFINITY = 64'h500; // of softnum_fused_dot
localparam [63:0] SOFTNUM_OVERFLOW_P3109_V3_2_1 = 64'h600; // of P3109's formats with infinities, an older draft's
localparam [63:0] SOFTNUM_TININESS_BEFORE = 64'h1000;
localparam [63:0] SOFTNUM_FLUSH_INPUTS = 64'h2000;
localparam [63:0] SOFTNUM_FLUSH_BEFORE = 64'h4000;
localparam [63:0] SOFTNUM_FLUSH_AFTER = 64'h8000;
localparam [63:0] SOFTNUM_NAN_X86 = 64'h10000;
localparam [63:0] SOFTNUM_NAN_ARM = 64'h20000;
// flags
localparam [4:0] SOFTNUM_INEXACT = 1;
localparam [4:0] SOFTNUM_UNDERFLOW = 2;
localparam [4:0] SOFTNUM_OVERFLOW = 4;
localparam [4:0] SOFTNUM_DIVIDE_BY_ZERO = 8;
localparam [4:0] SOFTNUM_INVALID = 16;
// what softnum_compare returns
localparam [63:0] SOFTNUM_LESS = 0;
localparam [63:0] SOFTNUM_EQUAL = 1;
localparam [63:0] SOFTNUM_GREATER = 2;
localparam [63:0] SOFTNUM_UNORDERED = 3;
// min_exponent of softnum_fused_dot: none
localparam signed [63:0] SOFTNUM_NO_FLOOR = -64'sd1073741824;
