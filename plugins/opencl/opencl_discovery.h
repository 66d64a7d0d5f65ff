/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_discovery.h - every device of every platform that the kernels can run on, and what it says of itself. */
#ifndef OPENCL_DISCOVERY_H
#define OPENCL_DISCOVERY_H

#include "opencl_backend.h"

typedef struct opencl_filter {
  tm_string platform;                   /* part of the name, in any case; empty: all */
  tm_string device;
  uint64_t  max_allocation_bytes;       /* 0: the device's own limit */
  uint32_t  ignores_f64;
  uint32_t  specializes;
  uint32_t  owns_cores;                 /* of a processor: nobody else uses those it runs on */
} opencl_filter;

/* Fills backend->devices.  TM_ERROR_NO_DEVICE, with the reason, if there is none. */
tm_status opencl_discover(tm_backend *backend, const opencl_filter *filter);

#endif
