/* Formats and environments prepared for softnum/device/patterns.h: what kernels of a device go by, told by the CPU. */
#ifndef SOFTNUM_DISPATCH_DEVICE_H
#define SOFTNUM_DISPATCH_DEVICE_H

#include "dispatch/kernels.h"
#include "softnum/device/patterns.h"

/* Both return 0 outside the domain that patterns.h states. */
int sn_pattern_prepare(const sn_format *f, const sn_env *env, int carrier_bits, sn_pattern *p);
int sn_reading_prepare(const sn_format *f, int carrier_bits, sn_reading *r);

#endif
