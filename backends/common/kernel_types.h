/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_types.h - kernel_parameters.h as the host sees it. */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t  i64;

#include "kernel_parameters.h"

#endif
