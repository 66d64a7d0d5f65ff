/* SPDX-License-Identifier: Apache-2.0 */
/* launcher.h - one launch of a prepared kernel, wherever its operands lie: in place, or copied to the device and back. */
#ifndef TM_EXECUTE_LAUNCHER_H
#define TM_EXECUTE_LAUNCHER_H

#include "execute/scratch.h"
#include "plugin/device.h"

/* An operand that lies in the device's memory and stays there. */
typedef struct tm_resident {
  tm_buffer *buffer;            /* NULL: it lies in host memory, at its pointer */
  uint64_t   bytes;
} tm_resident;

typedef struct tm_launch_site {
  tm_device_slot     *device;
  tm_kernel          *kernel;
  const tm_operation *operation;
  uint64_t            workspace_bytes;
  void *const        *pointers; /* host addresses of the operands' first elements */
  const tm_resident  *residents;/* one an operand; NULL: none is */
  uint64_t            alias_mask;/* of the device's answer */
} tm_launch_site;

/* The input in whose memory the kernel expects that output, which it was prepared for (TM_OPERAND_IN_PLACE); TM_NO_OPERAND: it
   expects them apart. */
uint32_t tm_launch_place_of(const tm_launch_site *site, uint32_t output);

/* What of the time went into copies. */
typedef struct tm_copy_times {
  uint64_t in_ns;               /* to the device's memory */
  uint64_t in_bytes;
  uint64_t out_ns;
  uint64_t out_bytes;
} tm_copy_times;

/* `use` is one of the device's.  Returns when the outputs are there; what is read stays as it is, whatever the kernel expects.
   As tm_device_run, TM_ERROR_NO_MEMORY */
tm_status tm_launcher_run(tm_scratch *scratch, const tm_launch_site *site, tm_device_use *use, tm_copy_times *out_copies, tm_error *error);

#endif
