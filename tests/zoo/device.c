/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage where a device should be described: each build another (ZOO_GARBAGE). */
#include <string.h>

#include "zoo.h"

/* Everything that is no pointer is set; the pointer would be followed, so it is left to `no_list`. */
static tm_status all_ones(uint32_t index, tm_device_info *out_info) {
  if (index != 0) return TM_END;
  memset(out_info, 0xff, sizeof *out_info);
  return TM_OK;
}

static tm_status no_list(uint32_t index, tm_device_info *out_info) {
  if (index == 0) out_info->memories = NULL;
  return index == 0 ? TM_OK : TM_END;
}

static tm_status null_memory(uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space *const none[] = { NULL };
  if (index == 0) out_info->memories = none;
  return index == 0 ? TM_OK : TM_END;
}

static tm_status no_memory(uint32_t index, tm_device_info *out_info) {
  out_info->memory_count = 0;
  return index == 0 ? TM_OK : TM_END;
}

static tm_status endless_names(uint32_t index, tm_device_info *out_info) {
  static const char text[] = { 'n', 'o', ' ', 'e', 'n', 'd' };
  out_info->name = (tm_string){ text, UINT64_MAX };
  out_info->driver_version = (tm_string){ NULL, 12 };
  return index == 0 ? TM_OK : TM_END;
}

static tm_status endless_devices(uint32_t index, tm_device_info *out_info) {
  (void)index, (void)out_info;
  return TM_OK;
}

static tm_status strange_status(uint32_t index, tm_device_info *out_info) {
  (void)index, (void)out_info;
  return TM_ERROR_IO;
}

/* Limits of nothing and granules of everything. */
static tm_status absurd_memory(uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space absurd = {
    .struct_size = sizeof absurd, .flags = 0xffffffffu, .identity = TM_HOST_MEMORY, .name = { NULL, UINT64_MAX },
    .total_bytes = UINT64_MAX, .alignment = 64, .offset_granule = 0xffffffffu, .store_granule = 0xffffffffu,
  };
  static const tm_memory_space *const list[] = { &absurd };
  out_info->memories = list;
  out_info->queue_count = 0xffffffffu;
  out_info->epoch = UINT64_MAX;
  out_info->open_ns = UINT64_MAX;
  return index == 0 ? TM_OK : TM_END;
}

static tm_status only_memory(uint32_t index, tm_device_info *out_info, const tm_memory_space *const *list) {
  out_info->memories = list;
  return index == 0 ? TM_OK : TM_END;
}

static tm_status short_memory(uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space space = {
    .struct_size = offsetof(tm_memory_space, reserved), .flags = TM_MEMORY_HOST_POINTER, .identity = TM_HOST_MEMORY,
    .name = TM_STRING("host memory"), .alignment = 1, .offset_granule = 1, .store_granule = 1,
  };
  static const tm_memory_space *const list[] = { &space };
  return only_memory(index, out_info, list);
}

static tm_status huge_alignment(uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space space = {
    .struct_size = sizeof space, .flags = TM_MEMORY_HOST_POINTER, .identity = TM_HOST_MEMORY,
    .name = TM_STRING("host memory"), .alignment = 1u << 22, .offset_granule = 1, .store_granule = 1,
  };
  static const tm_memory_space *const list[] = { &space };
  return only_memory(index, out_info, list);
}

static tm_status odd_alignment(uint32_t index, tm_device_info *out_info) {
  static const tm_memory_space space = {
    .struct_size = sizeof space, .flags = TM_MEMORY_HOST_POINTER, .identity = TM_HOST_MEMORY,
    .name = TM_STRING("host memory"), .alignment = 48, .offset_granule = 1, .store_granule = 1,
  };
  static const tm_memory_space *const list[] = { &space };
  return only_memory(index, out_info, list);
}

static tm_status garbage_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)zoo_device_info(backend, 0, out_info);
  static tm_status (*const all[])(uint32_t, tm_device_info *) = {
    all_ones, no_list, null_memory, no_memory, endless_names, endless_devices, strange_status, absurd_memory,
    short_memory, huge_alignment, odd_alignment,
  };
  return all[ZOO_GARBAGE](index, out_info);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(garbage_info, zoo_query, zoo_prepare, zoo_launch) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
