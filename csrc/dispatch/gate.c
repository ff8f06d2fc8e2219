#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "dispatch/gate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Which clock pthread_cond_timedwait goes by: one that nobody sets, where it can be chosen. */
#if defined(__APPLE__)
#define CLOCK CLOCK_REALTIME
#define ON_THE_CLOCK(attributes) (void)(attributes)
#else
#define CLOCK CLOCK_MONOTONIC
#define ON_THE_CLOCK(attributes) pthread_condattr_setclock(attributes, CLOCK)
#endif

struct sn_gate {
    atomic_ullong count;
    int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t raised;
};

sn_gate *sn_gate_new(void) {
    sn_gate *gate = malloc(sizeof *gate);
    if (!gate) return NULL;
    atomic_init(&gate->count, 0);
    gate->sleepers = 0;
    pthread_mutex_init(&gate->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    ON_THE_CLOCK(&clock);
    pthread_cond_init(&gate->raised, &clock);
    pthread_condattr_destroy(&clock);
    return gate;
}

sn_u64 sn_gate_count(const sn_gate *gate) { return atomic_load(&gate->count); }

void sn_gate_raise(sn_gate *gate) {
    atomic_fetch_add(&gate->count, 1);
    pthread_mutex_lock(&gate->lock); /* who is about to sleep has looked at the count under the lock */
    const int anyone = gate->sleepers > 0;
    pthread_mutex_unlock(&gate->lock);
    if (anyone) pthread_cond_broadcast(&gate->raised);
}

static sn_u64 now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (sn_u64)t.tv_sec * 1000000000u + (sn_u64)t.tv_nsec;
}

sn_u64 sn_gate_wait(sn_gate *gate, sn_u64 seen, sn_u64 spin, sn_u64 sleep) {
    sn_u64 count = atomic_load(&gate->count);
    const sn_u64 start = now(CLOCK_MONOTONIC);
    while (count == seen && now(CLOCK_MONOTONIC) - start < spin) {
        for (int i = 0; i < 32 && count == seen; i++) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
            count = atomic_load(&gate->count);
        }
        if (count == seen) sched_yield(); /* whoever is waited for may want this core */
    }
    if (count != seen) return count;
    const sn_u64 end = now(CLOCK) + sleep;
    const struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    pthread_mutex_lock(&gate->lock);
    gate->sleepers++;
    int late = 0;
    while ((count = atomic_load(&gate->count)) == seen && !late)
        late = pthread_cond_timedwait(&gate->raised, &gate->lock, &until) != 0;
    gate->sleepers--;
    pthread_mutex_unlock(&gate->lock);
    return count;
}
