/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_parked.h"

#include "plugin/device_call.h"
#include "plugin/table.h"

const _Atomic uint32_t tm_at_once = 1;

bool tm_device_has_host_buffers(const tm_device_slot *device) {
  return (device->memories[0].flags & TM_MEMORY_HOST_POINTER) != 0 && !tm_plugin_table_has_buffers(&device->backend->table);
}

/* False: the caller had to go before. */
static bool destroy(tm_device_slot *device, const tm_parked *what) {
  tm_device_call call = { .device = device, .kind = what->buffer == NULL ? TM_CALL_RELEASE : TM_CALL_BUFFER_DESTROY,
                          .kernel = what->kernel, .buffer = what->buffer, .bytes = what->bytes, .cancelled = what->cancelled };
  tm_memory *memory = device->backend->inventory->memory;
  if (what->memory != NULL) {
    tm_memory_free(memory, what->memory, what->bytes);
  } else if (what->buffer != NULL && tm_device_has_host_buffers(device)) {
    tm_memory_free(memory, what->buffer, what->bytes);
  } else {
    (void)tm_device_call_make(&call);
    return !call.is_unmade;
  }
  return true;
}

static bool is_busy(const tm_device_slot *device) { return atomic_load(&device->unfinished_count) != 0; }

/* Without memory for the note it is lost, which is better than freed too early.  Whoever frees it has a look only. */
static void park(tm_device_slot *device, const tm_parked *what) {
  tm_parked *one = tm_memory_alloc(device->backend->inventory->memory, sizeof *one, 0);
  if (one == NULL) return;
  tm_mutex_lock(&device->lock);
  *one = *what;
  one->cancelled = &tm_at_once;
  one->next = device->parked;
  device->parked = one;
  tm_mutex_unlock(&device->lock);
}

void tm_device_discard(tm_device_slot *device, const tm_parked *what) {
  if (atomic_load(&device->is_stuck)) return;
  if (!is_busy(device) && destroy(device, what)) return;
  park(device, what);
  tm_device_free_parked(device);
}

void tm_device_free_parked(tm_device_slot *device) {
  tm_parked *list = NULL;
  tm_mutex_lock(&device->lock);
  if (!is_busy(device) && !atomic_load(&device->is_stuck)) {
    list = device->parked;
    device->parked = NULL;
  }
  tm_mutex_unlock(&device->lock);
  while (list != NULL) {
    tm_parked *one = list;
    list = one->next;
    if (is_busy(device) || !destroy(device, one)) park(device, one);
    tm_memory_free(device->backend->inventory->memory, one, sizeof *one);
  }
}
