/* A counter that threads wait for: spinning for a while, since to wake a sleeping thread takes tens of microseconds,
 * then asleep. The only file of csrc that knows threads. */
#ifndef SOFTNUM_GATE_H
#define SOFTNUM_GATE_H

#include "softnum/word/base.h"

typedef struct sn_gate sn_gate;

/* A gate with count 0, or null without memory. It lasts as long as the process: in a forked child nobody can tell
 * whether threads that are no more still hold it. */
sn_gate *sn_gate_new(void);

/* How often it was raised. */
sn_u64 sn_gate_count(const sn_gate *gate);

/* Add one to the count; who waits goes on. */
void sn_gate_raise(sn_gate *gate);

/* Wait until the count is not `seen`: `spin` nanoseconds awake, then asleep, `sleep` nanoseconds at most. Returns the
 * count, which is `seen` if the time is over. */
sn_u64 sn_gate_wait(sn_gate *gate, sn_u64 seen, sn_u64 spin, sn_u64 sleep);

#endif
