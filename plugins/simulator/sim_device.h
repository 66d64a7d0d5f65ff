/* SPDX-License-Identifier: Apache-2.0 */
/* sim_device.h - an opened device: its memory, its queues, the set-ups that it has paid. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include <stdatomic.h>

#include "sim_description.h"
#include "sim_lock.h"
#include "sim_queue.h"

/* What the clock shows, for whoever wants to know: the extension of this name, revision 1. */
#define SIM_CLOCK_EXTENSION "tensormorph.simulator.clock"
typedef struct sim_clock {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] Nanoseconds of work so far. */
  uint64_t (*now_ns)(tm_device *device);
  /* [any] When the last finished item of a queue ended; 0 for none. */
  uint64_t (*queue_ns)(tm_device *device, uint32_t queue);
} sim_clock;

extern const sim_clock sim_device_clock;

struct tm_backend {
  const tm_host         *host;
  uint32_t               is_real;
  char                   lock_folder[SIM_PATH_BYTES];
  sim_description        description;
  tm_memory_space        memory;
  const tm_memory_space *memories[1];
};

/* [host] */
tm_status sim_device_open(tm_backend *backend, uint32_t index, tm_device **out_device);
void      sim_device_close(tm_device *device);

/* [any] */
tm_status sim_device_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel);
void      sim_device_release(tm_device *device, tm_kernel *kernel);
tm_status sim_device_create_buffer(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer);
void      sim_device_destroy_buffer(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported);
tm_status sim_device_memory_stats(tm_device *device, uint32_t space, tm_memory_stats *out_stats);
tm_status sim_device_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns);
tm_status sim_device_cancel(tm_device *device, uint32_t queue);

/* [queue] */
tm_status sim_device_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status sim_device_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status sim_device_copy(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket);
tm_status sim_device_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket);

#endif
