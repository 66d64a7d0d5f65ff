/* SPDX-License-Identifier: Apache-2.0 */
/* staging.h - running a kernel on a device with memory of its own: operands are copied there, results back. */
#ifndef TM_EXECUTE_STAGING_H
#define TM_EXECUTE_STAGING_H

#include "plugin/device.h"
#include "schedule/candidate.h"

/* pointers: host addresses of the operands' first elements.  Returns when the outputs are in host memory; *out_copy_ns is the
   part of the time that copies took.   As tm_device_run, TM_ERROR_NO_MEMORY */
tm_status tm_staging_run(const tm_plan_candidate *candidate, tm_kernel *kernel, void *const *pointers, tm_device_use *use,
                         uint64_t *out_copy_ns, tm_error *error);

#endif
