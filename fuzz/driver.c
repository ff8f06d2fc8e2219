/* The fuzz target without a fuzzer: files named on the command line, or that many pseudo-random inputs.
 *
 *   driver FILE ...        each file once (a find to be replayed, a corpus)
 *   driver -n COUNT [SEED] COUNT inputs, from Philox, so that a run can be repeated
 *
 * An input that is a find is written to the file "find" of the working folder. */
#include <signal.h>

#include "fuzz.h"

enum { LONGEST = 512 };

static size_t make(sn_u64 number, sn_u64 seed, sn_u8 *data) {
    sn_philox_words w = sn_philox((sn_u32)number, (sn_u32)(number >> 32), ~0u, 0, (sn_u32)seed, (sn_u32)(seed >> 32));
    const size_t size = w.w[0] % (LONGEST + 1);
    for (size_t i = 0; i < size; i += 4) {
        if (i % 16 == 0) w = sn_philox((sn_u32)number, (sn_u32)(number >> 32), (sn_u32)i, 1, (sn_u32)seed, 0);
        memcpy(data + i, &w.w[i / 4 % 4], 4);
    }
    return size;
}

static sn_u8 *running;
static size_t running_size;

static void write_find(int number) {
    FILE *file = fopen("find", "wb");
    (void)number;
    if (file) {
        fwrite(running, 1, running_size, file);
        fclose(file);
        fprintf(stderr, "the input (%zu bytes) is in the file \"find\"\n", running_size);
    }
}

/* So that what a sanitizer finds ends in SIGABRT too. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__asan_default_options(void) { return "abort_on_error=1"; }
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

/* In a buffer of just its size, so that a sanitizer sees what reads beyond it. */
static void run(const sn_u8 *data, size_t size) {
    sn_u8 *copy = fuzz_buffer(size, 1);
    memcpy(copy, data, size);
    running = copy;
    running_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run_file(const char *name) {
    static sn_u8 data[1 << 20];
    FILE *file = fopen(name, "rb");
    if (!file) {
        perror(name);
        return 2;
    }
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    run(data, size);
    return 0;
}

int main(int argc, char **argv) {
    sn_u8 data[LONGEST + 16];
    signal(SIGABRT, write_find);
    if (argc >= 3 && strcmp(argv[1], "-n") == 0) {
        const sn_u64 count = strtoull(argv[2], NULL, 10), seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
        for (sn_u64 number = 0; number < count; number++)
            run(data, make(number, seed, data));
        printf("%llu inputs, no finds\n", (unsigned long long)count);
        return 0;
    }
    for (int i = 1; i < argc; i++)
        if (run_file(argv[i])) return 2;
    printf("%d files, no finds\n", argc - 1);
    return 0;
}
