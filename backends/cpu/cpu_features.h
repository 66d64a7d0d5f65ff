/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_features.h - which instruction sets kernels may use on this machine. */
#ifndef CPU_FEATURES_H
#define CPU_FEATURES_H

#include <stdint.h>

/* CPU_ISA_* bits that the processor and the operating system support. */
uint32_t cpu_features_detect(void);

#endif
