/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: backends, their options, devices, memories, formats, operations. */
#include <math.h>
#include <string.h>

#include "api/context.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/log2_fixed.h"
#include "plugin/record_store.h"
#include "tensor/format.h"

static const char *or_empty(const char *text) { return text == NULL ? "" : text; }

/* One that hung while it was used has its reason beside the one from the start. */
static const char *backend_reason(const tm_backend_slot *slot) {
  return atomic_load(&slot->state) == TM_BACKEND_QUARANTINED ? slot->stuck_reason : or_empty(atomic_load(&slot->reason));
}

tm_status tm_backend_describe(tm_context *context, uint32_t backend, tm_backend_description *out_description) {
  if (backend >= context->inventory->backend_count) return TM_END;
  const tm_backend_slot *slot = context->inventory->backends[backend];
  const tm_backend_description description = {
    .struct_size = out_description->struct_size,
    .state = atomic_load(&slot->state),
    .name = slot->name,
    .version = slot->version,
    .vendor = slot->vendor,
    .build_id = slot->build_id,
    .origin = slot->origin,
    .reason = backend_reason(slot),
    .device_count = slot->device_count,
    .option_count = slot->option_count,
    .note = slot->note,
    .is_untried = slot->is_untried,
    .trial_ms = (uint32_t)tm_min_u64(slot->trial_ns / 1000000, UINT32_MAX),
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_backend_option_describe(tm_context *context, uint32_t backend, uint32_t option, tm_option_description *out_description) {
  if (backend >= context->inventory->backend_count) return TM_END;
  const tm_backend_slot *slot = context->inventory->backends[backend];
  if (option >= slot->option_count) return TM_END;
  const tm_backend_option *one = &slot->options[option];
  const tm_option_description description = {
    .struct_size = out_description->struct_size,
    .type = one->type,
    .name = one->name,
    .default_value = one->default_value,
    .value = one->value,
    .help = one->help,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

static const char *quarantine_reason(tm_context *context, const tm_device_slot *slot) {
  if (atomic_load(&slot->is_stuck)) return slot->stuck_reason;
  const char *recorded = tm_health_device_reason(&context->health, slot);
  return recorded != NULL ? recorded : "it broke too many promises";
}

static const char *device_reason(tm_context *context, uint32_t device, uint32_t state) {
  switch (state) {
    case TM_DEVICE_LOST: return "it was lost while it was used";
    case TM_DEVICE_QUARANTINED: return quarantine_reason(context, context->inventory->devices[device]);
    case TM_DEVICE_EXCLUDED: return or_empty(context->exclusions[device]);
    default: return "";
  }
}

tm_status tm_device_describe(tm_context *context, uint32_t device, tm_device_description *out_description) {
  if (device >= context->inventory->device_count) return TM_END;
  const tm_device_slot *slot = context->inventory->devices[device];
  const uint32_t state = atomic_load(&slot->state);
  const tm_correction_honesty honesty = tm_correction_honesty_of(&context->correction, device);
  const tm_device_description description = {
    .struct_size = out_description->struct_size,
    .state = state,
    .backend = slot->backend->index,
    .memory_count = slot->info.memory_count,
    .name = slot->name,
    .description = slot->description,
    .driver_version = slot->driver_version,
    .reason = device_reason(context, device, state),
    .uuid = slot->uuid_text,
    .resource = slot->resource_text,
    .queue_count = slot->info.queue_count,
    .opened = atomic_load(&slot->is_open),
    .epoch = atomic_load(&slot->epoch),
    .launch_count = atomic_load(&slot->launch_count),
    .violation_count = tm_health_count_of(&context->health, slot),
    .cost_factor = exp2((double)honesty.mean / (double)TM_LOG2_ONE),
    .cost_spread = exp2((double)honesty.spread / (double)TM_LOG2_ONE),
    .cost_samples = honesty.samples,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_device_memory_describe(tm_context *context, uint32_t device, uint32_t memory, tm_memory_description *out_description) {
  if (device >= context->inventory->device_count) return TM_END;
  const tm_device_slot *slot = context->inventory->devices[device];
  if (memory >= slot->info.memory_count) return TM_END;
  const tm_memory_space *space = &slot->memories[memory];
  static const tm_identity host = TM_HOST_MEMORY;
  const tm_memory_description description = {
    .struct_size = out_description->struct_size,
    .is_host = memcmp(&space->identity, &host, sizeof host) == 0,
    .name = space->name.data,
    .total_bytes = space->total_bytes,
    .largest_buffer_bytes = space->largest_buffer_bytes,
    .largest_binding_bytes = space->largest_binding_bytes,
    .alignment = space->alignment,
    .offset_granule = space->offset_granule,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_plugin_folder_describe(tm_context *context, uint32_t folder, const char **out_path) {
  if (folder >= context->inventory->search_path.count) return TM_END;
  *out_path = context->inventory->search_path.folders[folder];
  return TM_OK;
}

tm_status tm_violation_describe(tm_context *context, uint32_t violation, tm_violation_description *out_description) {
  const tm_health_record *record = tm_health_at(&context->health, violation);
  if (record == NULL) return TM_END;
  const tm_op_row *row = tm_op_find(record->kind.op);
  const tm_violation_description description = {
    .struct_size = out_description->struct_size,
    .device = record->device->index,
    .device_name = record->device->name,
    .op = row == NULL ? TM_OP_NONE : record->kind.op,
    .remembered = record->is_remembered,
    .op_name = row == NULL ? "" : row->name,
    .formats = record->formats,
    .reason = record->reason,
    .count = atomic_load(&record->count),
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

static bool is_known(const tm_inventory *inventory, const char *name) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (strcmp(inventory->backends[i]->name, name) == 0) return true;
  for (uint32_t i = 0; i < inventory->device_count; i++)
    if (strcmp(inventory->devices[i]->name, name) == 0) return true;
  return false;
}

/* What a trial held against a backend is in its record, which may also say that it is refused. */
static uint32_t forget_trials(tm_inventory *inventory, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < inventory->backend_count; i++) {
    const tm_backend_slot *slot = inventory->backends[i];
    if (strcmp(slot->name, name) != 0 || !tm_record_store_forget(inventory, slot->record)) continue;
    const bool is_refused = atomic_load(&slot->state) == TM_BACKEND_REFUSED;
    count += slot->fault_count + is_refused;
    tm_log_write(&inventory->log, TM_LOG_INFO, "%s is tried anew at the next start", slot->name);
  }
  return count;
}

tm_status tm_context_forgive(tm_context *context, const char *name, uint32_t *out_count, tm_error *error) {
  if (name == NULL || name[0] == '\0') return tm_fail(error, TM_ERROR_ARGUMENT, "forgive: no name is given");
  const uint32_t count = tm_health_forgive(&context->health, name) + forget_trials(context->inventory, name);
  if (count == 0 && !is_known(context->inventory, name))
    return tm_fail(error, TM_ERROR_NOT_FOUND, "there is no backend or device '%.64s', and nothing is held against one", name);
  if (out_count != NULL) *out_count = count;
  return TM_OK;
}

tm_status tm_format_describe(uint32_t index, tm_format_description *out_description) {
  const tm_format_info *info = tm_format_at(index);
  if (info == NULL) return TM_END;
  const tm_format_description description = {
    .struct_size = out_description->struct_size,
    .format = info->format,
    .name = info->name,
    .block_elements = info->block_elements,
    .block_bytes = info->block_bytes,
    .gguf_type = info->gguf_type,
    .has_arithmetic = info->has_arithmetic,
    .has_values = info->has_values,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

uint32_t tm_format_lookup(const char *name) {
  const tm_format_info *info = tm_format_by_name(name, strlen(name));
  return info == NULL ? TM_FORMAT_NONE : info->format;
}

const char *tm_format_name(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  return info == NULL ? "unknown" : info->name;
}

tm_status tm_op_describe(uint32_t index, tm_op_description *out_description) {
  const tm_op_row *row = tm_op_at(index);
  if (row == NULL) return TM_END;
  const tm_op_description description = {
    .struct_size = out_description->struct_size,
    .op = row->op,
    .version = row->version,
    .default_numerics = row->default_numerics,
    .name = row->name,
    .summary = row->summary,
    .input_min = row->input_min,
    .input_max = row->input_max,
    .output_count = row->output_count,
    .attribute_bytes = row->attribute_bytes,
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

uint32_t tm_op_lookup(const char *name) {
  const tm_op_row *row = tm_op_by_name(name, strlen(name));
  return row == NULL ? TM_OP_NONE : row->op;
}
