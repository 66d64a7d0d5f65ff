/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_program.h - compiled programs of a device: made once, kept until it is closed, remembered by the host. */
#ifndef OPENCL_PROGRAM_H
#define OPENCL_PROGRAM_H

#include "opencl_backend.h"

/*
 * [any] The program of that kind, for these parameters only if `special` is not NULL.  TM_STALE, with the build log, when
 * the device's compiler refuses it: from then on the device's answers know that.
 */
tm_status opencl_program_get(tm_device *device, kernel_program kind, const kernel_special *special,
                             opencl_program_handle *out_program);
void opencl_programs_release(tm_device *device);

#endif
