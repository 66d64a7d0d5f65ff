/* SPDX-License-Identifier: Apache-2.0 */
/* What was learned of costs, for people: one description an entry. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/context.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/log2_fixed.h"
#include "plugin/answer.h"

_Static_assert(TM_LEARNED_DEVICE == TM_CORRECTION_DEVICE && TM_LEARNED_WORK == TM_CORRECTION_WORK, "the same numbers");

static double number_of(int64_t log2) { return exp2((double)log2 / (double)TM_LOG2_ONE); }

static const char *class_name(uint64_t op_class) {
  static const char *const names[TM_CLASS_COUNT] = { "move", "cast", "elementwise", "transcendental", "reduce", "scan", "matmul",
                                                     "normalize" };
  return op_class < TM_CLASS_COUNT ? names[op_class] : "";
}

static void describe_operation(const tm_correction_entry *entry, char *text, size_t room) {
  char formats[96];
  const tm_op_row *row = tm_op_find(entry->work.op);
  tm_work_kind_formats(&entry->work, formats, sizeof formats);
  snprintf(text, room, "%s %s 2^%u", row == NULL ? "unknown" : row->name, formats, entry->size_log2);
}

/* The first device whose memory it is. */
static const char *memory_name(const tm_context *context, const tm_identity *identity) {
  static const tm_identity host = TM_HOST_MEMORY;
  if (memcmp(identity, &host, sizeof host) == 0) return "host";
  for (uint32_t i = 0; i < context->inventory->device_count; i++) {
    const tm_device_slot *device = context->inventory->devices[i];
    const bool is_its_own = memcmp(identity, &device->info.uuid, sizeof *identity) == 0;
    if (is_its_own || memcmp(identity, &device->memories[0].identity, sizeof *identity) == 0) return device->name;
  }
  return "elsewhere";
}

static void describe_copy(tm_context *context, const tm_correction_entry *entry, char *text, size_t room) {
  tm_correction_link link;
  if (!tm_correction_link_at(&context->correction, entry->owner, &link)) return;
  const int used = snprintf(text, room, "%s -> %s", memory_name(context, &link.from), memory_name(context, &link.to));
  if (entry->kind == TM_CORRECTION_COPY && used > 0 && (size_t)used < room)
    snprintf(text + used, room - (size_t)used, " 2^%u B", (unsigned)entry->key);
}

static bool is_of_copies(uint32_t kind) { return kind >= TM_CORRECTION_LATENCY && kind <= TM_CORRECTION_COPY; }

static void describe(tm_context *context, const tm_correction_entry *entry, tm_learned_description *out) {
  const tm_correction_state *state = &entry->node.live;
  const uint64_t unit_ns = entry->kind == TM_CORRECTION_SETUP ? TM_SETUP_UNIT_NS : TM_COPY_LATENCY_NS;
  const bool is_time = entry->kind == TM_CORRECTION_SETUP || entry->kind == TM_CORRECTION_LATENCY;
  out->kind = entry->kind;
  out->device = is_of_copies(entry->kind) ? TM_ANY_DEVICE : entry->owner;
  out->device_name = is_of_copies(entry->kind) ? "" : context->inventory->devices[entry->owner]->name;
  out->factor = number_of(state->mean);
  out->spread = number_of((int64_t)tm_square_root(state->variance) << 16);
  out->sample_count = state->samples;
  if (is_time) out->time_ns = tm_log2_multiply(unit_ns, state->mean, TM_LARGEST_COST_NS);
  if (entry->kind == TM_CORRECTION_BUCKET) describe_operation(entry, out->subject, sizeof out->subject);
  else if (is_of_copies(entry->kind)) describe_copy(context, entry, out->subject, sizeof out->subject);
  else if (entry->kind == TM_CORRECTION_CLASS || entry->kind == TM_CORRECTION_WORK)
    snprintf(out->subject, sizeof out->subject, "%s", class_name(entry->key));
  else if (entry->kind == TM_CORRECTION_SETUP)
    snprintf(out->subject, sizeof out->subject, "%016llx", (unsigned long long)entry->key);
}

tm_status tm_learned_describe(tm_context *context, uint32_t index, tm_learned_description *out_description) {
  tm_correction_entry entry;
  if (!tm_correction_at(&context->correction, index, &entry)) return TM_END;
  tm_learned_description description;
  memset(&description, 0, sizeof description);
  description.struct_size = out_description->struct_size;
  describe(context, &entry, &description);
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

const char *tm_context_profile_note(const tm_context *context) { return tm_profile_file_note(&context->profile.file); }

tm_status tm_context_save_profile(tm_context *context, tm_error *error) { return tm_profile_save(&context->profile, error); }

static tm_status check_path(const char *path, tm_error *error) {
  return path == NULL || path[0] == '\0' ? tm_fail(error, TM_ERROR_ARGUMENT, "no path is given") : TM_OK;
}

static void give_count(uint64_t count, uint32_t *out_count) {
  if (out_count != NULL) *out_count = (uint32_t)tm_min_u64(count, UINT32_MAX);
}

tm_status tm_context_reset_profile(tm_context *context, const char *name, uint32_t *out_count, tm_error *error) {
  uint64_t count = 0;
  TM_TRY(tm_profile_reset(&context->profile, name, &count, error));
  give_count(count, out_count);
  return TM_OK;
}

tm_status tm_context_export_profile(tm_context *context, const char *path, tm_error *error) {
  TM_TRY(check_path(path, error));
  return tm_profile_export(&context->profile, path, error);
}

tm_status tm_context_import_profile(tm_context *context, const char *path, uint32_t *out_count, tm_error *error) {
  uint64_t count = 0;
  TM_TRY(check_path(path, error));
  TM_TRY(tm_profile_import(&context->profile, path, &count, error));
  give_count(count, out_count);
  return TM_OK;
}
