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
localparam [63:0] SOFTNUM_FLUSH_SUBNORMAL = 64'hC000;
localparam [63:0] SOFTNUM_NAN_X86 = 64'h10000;
localparam [63:0] SOFTNUM_NAN_ARM = 64'h20000;
localparam [63:0] SOFTNUM_NAN_CUDA = 64'h30000;
// whose rule minimum and maximum follow; what invalid conversions to integers give (without one: Arm's)
localparam [63:0] SOFTNUM_MINMAX_IEEE2008 = 64'h1_00000000;
localparam [63:0] SOFTNUM_MINMAX_RISCV = 64'h2_00000000;
localparam [63:0] SOFTNUM_MINMAX_ARM = 64'h3_00000000;
localparam [63:0] SOFTNUM_MINMAX_X86 = 64'h4_00000000;
localparam [63:0] SOFTNUM_MINMAX_CUDA = 64'h5_00000000;
localparam [63:0] SOFTNUM_INTEGER_RISCV = 64'h8_00000000;
localparam [63:0] SOFTNUM_INTEGER_ARM = 64'h10_00000000;
localparam [63:0] SOFTNUM_INTEGER_X86 = 64'h18_00000000;
localparam [63:0] SOFTNUM_INTEGER_CUDA = 64'h20_00000000;
localparam [63:0] SOFTNUM_CLASS_MASK = 64'h40_00000000; // classify gives RISC-V's mask of ten bits
localparam [63:0] SOFTNUM_SILENT = 64'h80_00000000; // to_integer and round_to_integral raise no inexact
// all that a machine's manual decides, as `softnum vectors --profile` has it; flushing is none of it
localparam [63:0] SOFTNUM_PROFILE_RISCV = SOFTNUM_MINMAX_RISCV | SOFTNUM_INTEGER_RISCV | SOFTNUM_CLASS_MASK;
localparam [63:0] SOFTNUM_PROFILE_ARM =
    SOFTNUM_NAN_ARM | SOFTNUM_TININESS_BEFORE | SOFTNUM_MINMAX_ARM | SOFTNUM_INTEGER_ARM;
localparam [63:0] SOFTNUM_PROFILE_X86 = SOFTNUM_NAN_X86 | SOFTNUM_MINMAX_X86 | SOFTNUM_INTEGER_X86;
localparam [63:0] SOFTNUM_PROFILE_CUDA = SOFTNUM_NAN_CUDA | SOFTNUM_MINMAX_CUDA | SOFTNUM_INTEGER_CUDA;
localparam [63:0] SOFTNUM_PROFILE_IEEE = SOFTNUM_INTEGER_RISCV;
// facts of softnum_define
localparam [63:0] SOFTNUM_NANS_ALL_ONES = 1;
localparam [63:0] SOFTNUM_NANS_NEGATIVE_ZERO = 2;
localparam [63:0] SOFTNUM_NANS_NONE = 3;
localparam [63:0] SOFTNUM_NO_INFINITIES = 4;
localparam [63:0] SOFTNUM_NO_NEGATIVE_ZERO = 8;
localparam [63:0] SOFTNUM_UNSIGNED = 16;
localparam [63:0] SOFTNUM_NO_ZERO = 32;
localparam [63:0] SOFTNUM_LOWEST_NORMAL = 64;
localparam [63:0] SOFTNUM_LOWEST_ZERO = 128;
localparam [63:0] SOFTNUM_SATURATING = 256;
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
