/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the only place from which a backend's table is called.  Opens devices when first needed, makes answers sound,
 * keeps one thread a queue, and waits: to its callers every device is synchronous.
 */
#ifndef TM_PLUGIN_DEVICE_H
#define TM_PLUGIN_DEVICE_H

#include "plugin/inventory.h"

/* Whether it may be used now: its backend is ready and it is neither lost nor excluded. */
bool tm_device_is_usable(const tm_device_slot *device);

/* Judges operations; never fails: a device that cannot answer refuses them all. */
void tm_device_query(tm_device_slot *device, const tm_operation *const *operations, uint32_t count, tm_answer *out_answers);

/* Opens the device if it is not, and prepares.   TM_STALE, TM_BUSY, TM_ERROR_* as the backend says */
tm_status tm_device_prepare(tm_device_slot *device, const tm_operation *operation, const tm_answer *answer,
                            tm_kernel **out_kernel, tm_error *error);
void tm_device_release(tm_device_slot *device, tm_kernel *kernel);

/* Closes it if it is open; nothing of it is in use. */
void tm_device_close(tm_device_slot *device);

/* Memory in space 0 of a device that is not host memory. */
tm_status tm_device_buffer_create(tm_device_slot *device, uint64_t bytes, tm_buffer **out_buffer, tm_error *error);
/* What a device that is stuck may still write is kept until tm_device_free_parked. */
void tm_device_buffer_destroy(tm_device_slot *device, tm_buffer *buffer, uint64_t bytes);
/* After the backend was shut down. */
void tm_device_free_parked(tm_device_slot *device);

/* One use of a queue: everything between acquire and release runs in order on it. */
uint32_t tm_device_queue_acquire(tm_device_slot *device);
void     tm_device_queue_release(tm_device_slot *device, uint32_t queue);

/* Move bytes and return when they are there. */
tm_status tm_device_upload(tm_device_slot *device, uint32_t queue, tm_buffer *destination, uint64_t offset, const void *host,
                           uint64_t bytes, tm_error *error);
tm_status tm_device_download(tm_device_slot *device, uint32_t queue, tm_buffer *source, uint64_t offset, void *host,
                             uint64_t bytes, tm_error *error);
/* Runs a prepared kernel and returns when it is done. */
tm_status tm_device_run(tm_device_slot *device, uint32_t queue, tm_kernel *kernel, const tm_binding *bindings,
                        uint32_t binding_count, tm_error *error);

#endif
