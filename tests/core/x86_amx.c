/* Tile products of Intel AMX, for tests/core/test_x86_amx.py. The instructions are written as bytes, which assemblers
 * older than they are do not know. */
#include <cpuid.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

/* Whether this process may use tiles: the CPU has them, and the kernel grants them. */
static int has_tiles(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1)) return 0;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* 0: bf16, 1: fp16, 2: int8. */
int has_amx(int kind) {
    unsigned a, b, c, d;
    if (!has_tiles()) return 0;
    if (kind == 1) return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 21 & 1);
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> (kind == 0 ? 22 : 25) & 1);
}

/* c += a b, of tiles of 16 rows of 64 bytes: b as the instruction takes it, rows of pairs (or fours) along K. */
__attribute__((target("amx-tile"))) void amx_tile(int kind, const void *a, const void *b, void *c) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t colsb[16];
        uint8_t rows[16];
    } config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 3; i++) {
        config.colsb[i] = 64;
        config.rows[i] = 16;
    }
    const long stride = 64;
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm0" ::"r"(c), "r"(stride) : "memory");
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm1" ::"r"(a), "r"(stride) : "memory");
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm2" ::"r"(b), "r"(stride) : "memory");
    if (kind == 0)
        __asm__ volatile(".byte 0xc4, 0xe2, 0x6a, 0x5c, 0xc1"); /* tdpbf16ps %tmm2, %tmm1, %tmm0 */
    else if (kind == 1)
        __asm__ volatile(".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1"); /* tdpfp16ps */
    else
        __asm__ volatile(".byte 0xc4, 0xe2, 0x6b, 0x5e, 0xc1"); /* tdpbssd */
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" ::"r"(c), "r"(stride) : "memory");
    __asm__ volatile("tilerelease");
}
