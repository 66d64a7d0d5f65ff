/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_error.h - what went wrong, in words, through tm_host.fail. */
#ifndef OPENCL_ERROR_H
#define OPENCL_ERROR_H

#include "opencl_backend.h"

/* "CL_OUT_OF_RESOURCES", or "an unknown error". */
const char *opencl_error_name(int32_t error);

/* Reports "TEXT" and returns status. */
tm_status opencl_fail(const tm_host *host, tm_status status, int64_t native_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reports a call that failed on a device and returns what the contract has for it: lack of memory, or a lost device. */
tm_status opencl_fail_call(tm_device *device, const char *call, int32_t error);

/* What an event with this (negative) status means for its ticket. */
tm_status opencl_event_failure(tm_device *device, int32_t status);

#endif
