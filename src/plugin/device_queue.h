/* SPDX-License-Identifier: Apache-2.0 */
/* device_queue.h - who has which queue of a device.  Taking a free one costs one atomic operation.  [any thread] */
#ifndef TM_PLUGIN_DEVICE_QUEUE_H
#define TM_PLUGIN_DEVICE_QUEUE_H

#include "plugin/inventory.h"

#define TM_QUEUE_FREE       0u
#define TM_QUEUE_TAKEN      1u
#define TM_QUEUE_UNFINISHED 2u  /* work that was left behind must end first */

/* Takes a queue, waiting for one if need be.  False: the caller was cancelled before. */
bool     tm_device_queue_acquire(tm_device_slot *device, const _Atomic uint32_t *cancelled, uint32_t *out_queue);
void     tm_device_queue_release(tm_device_slot *device, uint32_t queue);
/* Takes an unfinished queue, to look at it; false if it is none.  It counts as unfinished until it is finished. */
bool     tm_device_queue_take_unfinished(tm_device_slot *device, uint32_t queue);
void     tm_device_queue_put_back(tm_device_slot *device, uint32_t queue);
void     tm_device_queue_finish(tm_device_slot *device, uint32_t queue);
/* Gives back a taken queue on which work still runs. */
void     tm_device_queue_leave(tm_device_slot *device, uint32_t queue);

#endif
