/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_listing.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "plugin/backend_call.h"
#include "plugin/description.h"
#include "plugin/device_identity.h"
#include "plugin/device_queue.h"
#include "plugin/trial.h"
#include "plugin/settings.h"
#include "plugin/sized_struct.h"

#define MOST_QUEUES 256u
#define LARGEST_ALIGNMENT (1u << 21)
#define LONGEST_NAME 96
/* More memories, and larger units of bytes, are none at all. */
#define MOST_SOUND_MEMORIES 64u
#define LARGEST_SOUND_GRANULE (1u << 20)
#define KNOWN_FLAGS (TM_DEVICE_SYNCHRONOUS | TM_DEVICE_OPENING_THREAD | TM_DEVICE_EXCLUSIVE_PROCESS)

static const tm_identity host_memory = TM_HOST_MEMORY;

static bool same_identity(const tm_identity *a, const tm_identity *b) { return memcmp(a, b, sizeof *a) == 0; }

static const char *keep_string(tm_arena *arena, tm_string string, bool is_clean) {
  char text[LONGEST_NAME];
  const bool is_sound = string.data != NULL && tm_description_is_readable(string);
  if (is_clean && is_sound && string.length < LONGEST_NAME && tm_text_is_clean(string.data, string.length))
    return tm_arena_string(arena, string.data, string.length);
  const uint64_t length = tm_text_escape(is_sound ? string.data : "", is_sound ? string.length : 0, text, sizeof text);
  return tm_arena_string(arena, text, length);
}

/* What cannot be made sound by cutting. */
static tm_status check_claims(const tm_device_slot *device, tm_error *error) {
  const tm_device_info *info = &device->info;
  const uint32_t index = device->index_in_backend;
  if (info->memory_count == 0 || (info->memory_count <= MOST_SOUND_MEMORIES && info->memories == NULL))
    return tm_fail(error, TM_ERROR_CORRUPT, "device %u has no memory", index);
  if (info->memory_count > MOST_SOUND_MEMORIES)
    return tm_fail(error, TM_ERROR_CORRUPT, "device %u claims %u memories, expected 1 to %u", index, info->memory_count,
                   MOST_SOUND_MEMORIES);
  if ((info->flags & ~KNOWN_FLAGS) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "device %u asks for what this library does not know: flags 0x%x", index,
                   info->flags & ~KNOWN_FLAGS);
  return TM_OK;
}

/* 0 means that it needs none. */
static bool is_alignment(uint32_t claimed) { return (claimed & (claimed - 1)) == 0 && claimed <= LARGEST_ALIGNMENT; }

static tm_status check_memory(const tm_device_slot *device, uint32_t index, tm_error *error) {
  const tm_memory_space *space = device->info.memories[index];
  if (space == NULL || space->struct_size < TM_MEMORY_SPACE_BYTES_MINOR_1)
    return tm_fail(error, TM_ERROR_CORRUPT, "device %u: its memory %u is not sound", device->index_in_backend, index);
  if (!is_alignment(space->alignment))
    return tm_fail(error, TM_ERROR_CORRUPT, "device %u: its memory %u has an alignment of %u bytes, expected a power of two up to %u",
                   device->index_in_backend, index, space->alignment, LARGEST_ALIGNMENT);
  if (space->offset_granule <= LARGEST_SOUND_GRANULE && space->store_granule <= LARGEST_SOUND_GRANULE) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT, "device %u: its memory %u has granules of %u and %u bytes, expected at most %u",
                 device->index_in_backend, index, space->offset_granule, space->store_granule, LARGEST_SOUND_GRANULE);
}

static tm_status copy_memories(tm_device_slot *device, bool is_clean, tm_error *error) {
  const tm_device_info *info = &device->info;
  if (info->memory_count > TM_MOST_MEMORIES)
    tm_log_write(&device->backend->inventory->log, TM_LOG_WARNING, "%s: only %u of %u memories are used", device->name,
                 TM_MOST_MEMORIES, info->memory_count);
  device->info.memory_count = (uint32_t)tm_min_u64(info->memory_count, TM_MOST_MEMORIES);
  for (uint32_t i = 0; i < device->info.memory_count; i++) {
    TM_TRY(check_memory(device, i, error));
    const tm_memory_space *claimed = info->memories[i];
    tm_memory_space *space = &device->memories[i];
    tm_sized_struct_take(space, sizeof *space, claimed, claimed->struct_size);
    space->struct_size = sizeof *space;
    space->alignment = (uint32_t)tm_max_u64(1, claimed->alignment);
    space->offset_granule = (uint32_t)tm_max_u64(1, claimed->offset_granule);
    space->store_granule = (uint32_t)tm_max_u64(1, claimed->store_granule);
    if (!is_clean) tm_description_doubt(device->backend, claimed->name, "the name of memory %u of device %u", i, device->index_in_backend);
    const char *name = keep_string(&device->backend->inventory->arena, claimed->name, is_clean);
    if (name == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
    space->name = (tm_string){ name, strlen(name) };
  }
  device->is_host_memory = same_identity(&device->memories[0].identity, &host_memory) &&
                           (device->memories[0].flags & TM_MEMORY_HOST_POINTER) != 0;
  return TM_OK;
}

static tm_status take_names(tm_device_slot *device, bool is_clean, tm_error *error) {
  tm_arena *arena = &device->backend->inventory->arena;
  char name[128];
  snprintf(name, sizeof name, "%s:%u", device->backend->name, device->index_in_backend);
  if (!is_clean) tm_description_doubt(device->backend, device->info.name, "the name of device %u", device->index_in_backend);
  if (!is_clean) tm_description_doubt(device->backend, device->info.driver_version, "the driver version of device %u", device->index_in_backend);
  device->name = tm_arena_string(arena, name, strlen(name));
  device->description = keep_string(arena, device->info.name, is_clean);
  device->driver_version = keep_string(arena, device->info.driver_version, is_clean);
  if (device->name == NULL || device->description == NULL || device->driver_version == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
  return TM_OK;
}

static tm_status make_queues(tm_device_slot *device, tm_error *error) {
  device->info.queue_count = (uint32_t)tm_min_u64(tm_max_u64(1, device->info.queue_count), MOST_QUEUES);
  tm_arena *arena = &device->backend->inventory->arena;
  device->queues = tm_arena_calloc(arena, device->info.queue_count, sizeof *device->queues);
  if (device->queues == NULL || tm_mutex_init(&device->lock) != TM_OK)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
  for (uint32_t i = 0; i < device->info.queue_count; i++) atomic_init(&device->queues[i], TM_QUEUE_FREE);
  if (tm_condition_init(&device->queue_freed) == TM_OK) return TM_OK;
  tm_mutex_deinit(&device->lock);
  return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
}

/* It is what the reference is: compiled with it, tested with it, run by the same cores. */
static bool is_own_code(const tm_device_slot *device) {
  static const tm_identity cores = TM_HOST_CORES;
  return device->backend->entry != NULL && device->backend->path == NULL && memcmp(&device->info.resource, &cores, sizeof cores) == 0;
}

static tm_status take_down(tm_device_slot *device, const tm_context_options *options, const tm_identity *own, bool is_clean,
                           tm_error *error) {
  TM_TRY(check_claims(device, error));
  TM_TRY(take_names(device, is_clean, error));
  TM_TRY(copy_memories(device, is_clean, error));
  TM_TRY(make_queues(device, error));
  tm_device_identity_take(device, own);
  tm_device_identity_print(&device->info.resource, device->resource_text);
  atomic_init(&device->epoch, device->info.epoch);
  device->is_watched = tm_backend_is_watched(device->backend);
  device->is_checked = device->is_watched && !is_own_code(device);
  device->excluded_reason = tm_settings_exclude_device(options, device->backend->name, device->name);
  atomic_init(&device->state, device->excluded_reason != NULL ? TM_DEVICE_EXCLUDED : TM_DEVICE_READY);
  return TM_OK;
}

static tm_status append(tm_backend_slot *slot, tm_device_slot *device, tm_error *error) {
  tm_inventory *inventory = slot->inventory;
  tm_device_slot **grown = tm_memory_grow(inventory->memory, inventory->devices, inventory->device_count,
                                          inventory->device_count + 1, sizeof *grown);
  if (grown == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
  inventory->devices = grown;
  inventory->devices[inventory->device_count++] = device;
  slot->device_count++;
  return TM_OK;
}

/* TM_END past the last device. */
static tm_status ask(tm_backend_slot *slot, uint32_t index, tm_device_info *out_info, tm_error *error) {
  memset(out_info, 0, sizeof *out_info);
  out_info->struct_size = sizeof *out_info;
  const tm_status status = tm_backend_device_info(slot, index, out_info, error);
  if (status == TM_OK || status == TM_END || atomic_load(&slot->is_stuck)) return status;
  return tm_fail(error, TM_ERROR_CORRUPT, "device_info(%u) returned %d (%s), which it may not", index, status,
                 tm_status_name(status));
}

tm_status tm_device_listing_add(tm_backend_slot *slot, const tm_context_options *options, const tm_device_info *info,
                                const tm_identity *own, bool is_clean, tm_error *error) {
  tm_device_slot *device = tm_arena_calloc(&slot->inventory->arena, 1, sizeof *device);
  if (device == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
  if (slot->device_count == 0) slot->first_device = slot->inventory->device_count;
  device->backend = slot;
  device->index = slot->inventory->device_count;
  device->index_in_backend = slot->device_count;
  device->info = *info;
  TM_TRY(take_down(device, options, own, is_clean, error));
  device->info.memories = NULL;         /* the copies are in device->memories */
  return append(slot, device, error);
}

tm_status tm_device_listing_append(tm_backend_slot *slot, const tm_context_options *options, tm_error *error) {
  slot->first_device = slot->inventory->device_count;
  for (uint32_t index = 0; index < TM_MOST_DEVICES; index++) {
    tm_device_info info;
    const tm_status status = ask(slot, index, &info, error);
    if (status == TM_END) return TM_OK;
    TM_TRY(status);
    TM_TRY(tm_device_listing_add(slot, options, &info, NULL, false, error));
  }
  tm_log_write(&slot->inventory->log, TM_LOG_WARNING, "%s: only its first %u devices are used", slot->name, TM_MOST_DEVICES);
  return TM_OK;
}

void tm_device_listing_free(tm_device_slot *device) {
  tm_trial_free_all(device);
  tm_condition_deinit(&device->queue_freed);
  tm_mutex_deinit(&device->lock);
}
