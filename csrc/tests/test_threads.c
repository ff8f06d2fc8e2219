/* Loops over codes in some threads, while another adds contexts, tables and kernels: for ThreadSanitizer. */
#define _POSIX_C_SOURCE 200809L /* rand_r */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elementwise/elementwise.h"
#include "tests/formats.h"

enum { THREADS = 4, CONTEXTS = 40, N = 300 };

static sn_context *contexts[CONTEXTS];
static sn_context_table table = {contexts, 0, 0, NULL};
static sn_loop_data plain = {&table, 0}, flagged = {&table, 1};
static atomic_int all_added;

static void *compute(void *given) {
    unsigned seed = *(unsigned *)given;
    sn_u8 a[N], b[N], out[N], flags[N];
    while (!atomic_load(&all_added)) {
        for (int i = 0; i < N; i++) {
            a[i] = (sn_u8)rand_r(&seed);
            b[i] = (sn_u8)rand_r(&seed);
        }
        sn_u32 random = 0;
        sn_u64 handle = (sn_u64)rand_r(&seed) % (CONTEXTS + 2); /* some are not there yet, two never */
        char *args[] = {(char *)a, (char *)b, (char *)&random, (char *)&handle, (char *)out, (char *)flags};
        const ptrdiff_t n = N, steps[] = {1, 1, 0, 0, 1, 1};
        sn_loop_for(SN_OP_add, 1)(args, &n, steps, rand_r(&seed) & 1 ? &flagged : &plain);
    }
    return NULL;
}

static void add(int i) {
    sn_context *const context = calloc(1, sizeof *context);
    sn_lanes *const lanes = malloc(sizeof *lanes);
    sn_u8 *const entries = malloc(2 * 65536);
    if (!context || !lanes || !entries) exit(2);
    context->operand[0] = context->operand[1] = context->out = ieee(3 + i % 3, 4 - i % 3);
    sn_prepare_context(SN_OP_add, context);
    if (sn_operation_lanes(SN_OP_add, context, lanes)) context->lanes = lanes;
    if (i == 3) sn_give_kernels(&table, sn_kernels_for(sn_detect_isa()));
    sn_give_context(&table, context);
    if (i % 4 == 1) {
        sn_fill_table(SN_OP_add, context, 1, entries, entries + 65536);
        sn_give_table(context, entries, entries + 65536, 1);
    }
}

int main(void) {
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (unsigned)i;
        if (pthread_create(&threads[i], NULL, compute, &seeds[i])) return 2;
    }
    for (int i = 0; i < CONTEXTS; i++)
        add(i);
    atomic_store(&all_added, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (!sn_met_bad_handle(&table) || sn_met_bad_handle(&table)) return 1;
    puts("threads: contexts, tables and kernels were added while others computed");
    return 0;
}
