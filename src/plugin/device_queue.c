/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_queue.h"

#include "base/clock.h"
#include "plugin/device.h"

#define LOOK_NS UINT64_C(5000000)

/* Threads start looking at different queues, so that they rarely meet. */
static uint32_t preferred_queue(const tm_device_slot *device) {
  static _Thread_local char here;
  return (uint32_t)(((uintptr_t)&here >> 12) % device->info.queue_count);
}

static bool take(tm_device_slot *device, uint32_t queue, uint32_t state) {
  return atomic_compare_exchange_strong_explicit(&device->queues[queue], &state, TM_QUEUE_TAKEN, memory_order_acquire,
                                                 memory_order_relaxed);
}

static bool take_any(tm_device_slot *device, uint32_t *out_queue) {
  const uint32_t first = preferred_queue(device);
  for (uint32_t i = 0; i < device->info.queue_count; i++) {
    *out_queue = (first + i) % device->info.queue_count;
    if (take(device, *out_queue, TM_QUEUE_FREE)) return true;
  }
  return false;
}

/* Unfinished queues become free only when somebody looks, so waiting is done in short pieces. */
bool tm_device_queue_acquire(tm_device_slot *device, const _Atomic uint32_t *cancelled, uint32_t *out_queue) {
  uint32_t queue;
  bool is_taken = take_any(device, &queue);
  if (is_taken) *out_queue = queue;
  if (is_taken) return true;
  atomic_fetch_add(&device->queue_waiters, 1);
  tm_mutex_lock(&device->lock);
  while (!(is_taken = take_any(device, &queue)) && (cancelled == NULL || atomic_load(cancelled) == 0)) {
    (void)tm_condition_wait(&device->queue_freed, &device->lock, tm_now_ns() + LOOK_NS);
    if (atomic_load(&device->unfinished_count) == 0) continue;
    tm_mutex_unlock(&device->lock);
    tm_device_settle(device);
    tm_mutex_lock(&device->lock);
  }
  tm_mutex_unlock(&device->lock);
  atomic_fetch_sub(&device->queue_waiters, 1);
  if (is_taken) *out_queue = queue;
  return is_taken;
}

static void give(tm_device_slot *device, uint32_t queue, uint32_t state) {
  atomic_store(&device->queues[queue], state);
  if (atomic_load(&device->queue_waiters) == 0) return;
  tm_mutex_lock(&device->lock);
  tm_condition_wake_all(&device->queue_freed);
  tm_mutex_unlock(&device->lock);
}

void tm_device_queue_release(tm_device_slot *device, uint32_t queue) { give(device, queue, TM_QUEUE_FREE); }

bool tm_device_queue_take_unfinished(tm_device_slot *device, uint32_t queue) { return take(device, queue, TM_QUEUE_UNFINISHED); }

void tm_device_queue_put_back(tm_device_slot *device, uint32_t queue) { give(device, queue, TM_QUEUE_UNFINISHED); }

void tm_device_queue_finish(tm_device_slot *device, uint32_t queue) {
  atomic_fetch_sub(&device->unfinished_count, 1);
  give(device, queue, TM_QUEUE_FREE);
}

void tm_device_queue_leave(tm_device_slot *device, uint32_t queue) {
  atomic_fetch_add(&device->unfinished_count, 1);
  give(device, queue, TM_QUEUE_UNFINISHED);
}
