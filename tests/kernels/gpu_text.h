/* The GPU's branch of the C text on a CPU: NVRTC's macro, its vectors and its intrinsics, made of the CPU's rounding
 * modes. NaNs are those that a GPU delivers. For tests/kernels/gpu_text.py, which compiles it with -frounding-math and
 * traps on addresses that are not aligned, shifts that are too long and indices out of bounds. */
#define __CUDACC_RTC__ 1
#define __device__
#define __forceinline__ inline
#define SN_FN static inline
#define SN_ENTRY extern __attribute__((visibility("default")))

#include <fenv.h>
#include <math.h>
#include <string.h>

#define GPU_VECTOR(type, name, members, bytes)                                                                         \
    typedef struct {                                                                                                   \
        type members;                                                                                                  \
    } __attribute__((aligned(bytes))) name;
#define GPU_FOUR x, y, z, w
#define GPU_TWO x, y
GPU_VECTOR(float, float4, GPU_FOUR, 16)
GPU_VECTOR(int, int4, GPU_FOUR, 16)
GPU_VECTOR(unsigned, uint4, GPU_FOUR, 16)
GPU_VECTOR(unsigned char, uchar4, GPU_FOUR, 4)
GPU_VECTOR(unsigned short, ushort4, GPU_FOUR, 8)
GPU_VECTOR(double, double2, GPU_TWO, 16)
GPU_VECTOR(long long, longlong2, GPU_TWO, 16)
GPU_VECTOR(unsigned long long, ulonglong2, GPU_TWO, 16)

#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))

#define GPU_CAST(name, from, to)                                                                                       \
    static inline to name(from x) {                                                                                    \
        to y;                                                                                                          \
        memcpy(&y, &x, sizeof y);                                                                                      \
        return y;                                                                                                      \
    }
GPU_CAST(__float_as_uint, float, unsigned)
GPU_CAST(__uint_as_float, unsigned, float)
GPU_CAST(__float_as_int, float, int)
GPU_CAST(__int_as_float, int, float)
GPU_CAST(__double_as_longlong, double, long long)
GPU_CAST(__longlong_as_double, long long, double)

static inline float gpu_nan32(float x) { return x != x ? __uint_as_float(0x7fffffffu) : x; }
static inline double gpu_nan64(double x) { return x != x ? __longlong_as_double((long long)0xfff8000000000000u) : x; }

#define GPU_ROUNDED(type, nan, name, mode, value, ...)                                                                 \
    static __attribute__((noinline)) type name(__VA_ARGS__) {                                                          \
        fesetround(mode);                                                                                              \
        volatile type result = (value);                                                                                \
        fesetround(FE_TONEAREST);                                                                                      \
        return nan(result);                                                                                            \
    }
#define GPU_ALL(suffix, mode)                                                                                          \
    GPU_ROUNDED(float, gpu_nan32, __fadd_##suffix, mode, x + y, volatile float x, volatile float y)                    \
    GPU_ROUNDED(float, gpu_nan32, __fmul_##suffix, mode, x *y, volatile float x, volatile float y)                     \
    GPU_ROUNDED(float, gpu_nan32, __fmaf_##suffix, mode, fmaf(x, y, z), volatile float x, volatile float y,            \
                volatile float z)                                                                                      \
    GPU_ROUNDED(double, gpu_nan64, __dadd_##suffix, mode, x + y, volatile double x, volatile double y)                 \
    GPU_ROUNDED(double, gpu_nan64, __dmul_##suffix, mode, x *y, volatile double x, volatile double y)                  \
    GPU_ROUNDED(double, gpu_nan64, __ddiv_##suffix, mode, x / y, volatile double x, volatile double y)                 \
    GPU_ROUNDED(double, gpu_nan64, __dsqrt_##suffix, mode, sqrt(x), volatile double x)                                 \
    GPU_ROUNDED(double, gpu_nan64, __fma_##suffix, mode, fma(x, y, z), volatile double x, volatile double y,           \
                volatile double z)                                                                                     \
    GPU_ROUNDED(float, gpu_nan32, __int2float_##suffix, mode, (float)x, volatile int x)                                \
    GPU_ROUNDED(float, gpu_nan32, __ll2float_##suffix, mode, (float)x, volatile long long x)                           \
    GPU_ROUNDED(float, gpu_nan32, __double2float_##suffix, mode, (float)x, volatile double x)
GPU_ALL(rn, FE_TONEAREST)
GPU_ALL(rd, FE_DOWNWARD)
GPU_ALL(ru, FE_UPWARD)
GPU_ALL(rz, FE_TOWARDZERO)

static inline float __fsub_rn(float x, float y) { return __fadd_rn(x, -y); }
static inline double __dsub_rn(double x, double y) { return __dadd_rn(x, -y); }

/* Saturating; 0 of a NaN. */
static inline int __float2int_rz(float x) {
    if (x != x) return 0;
    if (x >= 0x1p31f) return 0x7fffffff;
    return x < -0x1p31f ? (int)0x80000000 : (int)x;
}
