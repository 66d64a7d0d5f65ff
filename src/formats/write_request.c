/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/write_request.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/name_table.h"
#include "formats/archive_builder.h"

/* -------------------------------------------------------------------------------------------------------- tensors ---- */

/* Who gives the name of a known type in the place of its number means that type, and its bytes must be those of the shape. */
static tm_status resolve_type(const tm_write_layout *layout, const tm_write_tensor *wanted, tm_written_tensor *tensor,
                              tm_error *error) {
  if (tensor->info != NULL) return TM_OK;
  const tm_shown_name name = tm_show_name(wanted->name);
  if (wanted->format != TM_FORMAT_NONE || wanted->type_name == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" has an unknown format (%" PRIu32 ") and no name of a type",
                   layout->label, name.text, wanted->format);
  const tm_format_info *info = tm_format_by_safetensors(wanted->type_name, strlen(wanted->type_name));
  uint64_t needed;
  if (info == NULL) return TM_OK;
  if (!tm_format_bytes(info, tensor->element_count, &needed) || needed != wanted->bytes)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\": %" PRIu64 " elements of %s are not %" PRIu64 " bytes", layout->label,
                   name.text, tensor->element_count, info->safetensors, wanted->bytes);
  tensor->info = info;
  return TM_OK;
}

static tm_status fill_tensor(tm_write_layout *layout, const tm_write_tensor *wanted, tm_written_tensor *tensor, tm_error *error) {
  const tm_shown_name name = tm_show_name(wanted->name);
  *tensor = (tm_written_tensor){ .info = tm_format_find(wanted->format), .dims = wanted->dims, .rank = wanted->rank,
                                 .bytes = wanted->bytes, .type_name = wanted->type_name, .is_own_type = wanted->is_own_type };
  tensor->name = (tm_string){ tm_arena_string(&layout->arena, wanted->name.data, wanted->name.length), wanted->name.length };
  if (tensor->name.data == NULL) return tm_write_layout_fail_memory(layout, error);
  if (wanted->rank > TM_ARCHIVE_MAX_RANK || !tm_count_elements(wanted->dims, wanted->rank, &tensor->element_count))
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" has too many axes or elements", layout->label, name.text);
  TM_TRY(resolve_type(layout, wanted, tensor, error));
  if (tensor->info != NULL && !tm_format_bytes(tensor->info, tensor->element_count, &tensor->bytes))
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\": %" PRIu64 " elements of %s do not fill whole blocks of %" PRIu32
                   ", or need too many bytes", layout->label, name.text, tensor->element_count, tensor->info->name,
                   tensor->info->block_elements);
  if (tensor->bytes > INT64_MAX)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" needs more bytes than a file can have", layout->label, name.text);
  return TM_OK;
}

static tm_status fill_tensors(tm_write_layout *layout, const tm_write_request *request, tm_error *error) {
  tm_name_table names;
  tm_status status = TM_OK;
  if (request->tensor_count > TM_NAME_TABLE_LARGEST_INDEX)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: too many tensors", layout->label);
  layout->tensors = tm_memory_calloc(layout->memory, request->tensor_count, sizeof *layout->tensors);
  if (layout->tensors == NULL) return tm_write_layout_fail_memory(layout, error);
  layout->tensor_count = request->tensor_count;
  tm_name_table_init(&names, layout->memory);
  for (uint32_t i = 0; i < request->tensor_count && status == TM_OK; i++) {
    uint32_t existing = i;
    status = fill_tensor(layout, &request->tensors[i], &layout->tensors[i], error);
    if (status != TM_OK) break;
    if (!tm_name_table_add(&names, layout->tensors, sizeof *layout->tensors, i, &existing))
      status = tm_write_layout_fail_memory(layout, error);
    else if (existing != i)
      status = tm_fail(error, TM_ERROR_ARGUMENT, "%s: two tensors are called \"%s\"", layout->label,
                       tm_show_name(layout->tensors[i].name).text);
  }
  tm_name_table_deinit(&names);
  return status;
}

/* ------------------------------------------------------------------------------------------------------- metadata ---- */

/* Whether the value has the bytes that its type says. */
static bool is_sound(const tm_metadata *entry) {
  const tm_metadata_value *value = &entry->value;
  const bool has_text = entry->key.data != NULL || entry->key.length == 0;
  if (value->type == TM_METADATA_STRING) return has_text && (value->data != NULL || value->bytes == 0);
  if (value->type != TM_METADATA_ARRAY) return has_text && value->bytes != 0 && value->bytes == tm_metadata_type_bytes(value->type);
  tm_metadata_iterator iterator;
  tm_metadata_value element;
  tm_metadata_iterate(value, &iterator);
  while (tm_metadata_next(&iterator, &element)) continue;
  return has_text && iterator.remaining == 0 && iterator.next == iterator.end && tm_metadata_least_bytes(value->element_type) != 0;
}

/* Backwards, so that the later of two is found first. */
static tm_status keep_metadata(tm_write_layout *layout, const tm_write_request *request, tm_name_table *keys, tm_error *error) {
  uint64_t free_place = request->metadata_count;
  for (uint64_t i = request->metadata_count; i > 0; i--) {
    const tm_metadata *entry = &request->metadata[i - 1];
    uint32_t existing;
    if (!is_sound(entry))
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s: the value of the metadata key \"%s\" does not have the bytes of its type",
                     layout->label, tm_show_name(entry->key).text);
    if (!tm_name_table_add(keys, request->metadata, sizeof *request->metadata, (uint32_t)(i - 1), &existing))
      return tm_write_layout_fail_memory(layout, error);
    if (existing == i - 1) layout->metadata[--free_place] = entry;
    else if (!tm_metadata_is_same_value(&entry->value, &request->metadata[existing].value))
      TM_TRY(tm_write_layout_note(layout, error, "the metadata key \"%s\" was given more than once; the last value is written",
                                  tm_show_name(entry->key).text));
  }
  layout->metadata += free_place;
  layout->metadata_count = request->metadata_count - free_place;
  return TM_OK;
}

static tm_status fill_metadata(tm_write_layout *layout, const tm_write_request *request, tm_error *error) {
  tm_name_table keys;
  if (request->metadata_count > TM_NAME_TABLE_LARGEST_INDEX)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: too many metadata", layout->label);
  layout->late = request->late;
  layout->metadata = tm_arena_calloc(&layout->arena, request->metadata_count, sizeof *layout->metadata);
  if (layout->metadata == NULL) return tm_write_layout_fail_memory(layout, error);
  tm_name_table_init(&keys, layout->memory);
  const tm_status status = keep_metadata(layout, request, &keys, error);
  tm_name_table_deinit(&keys);
  return status;
}

tm_status tm_write_layout_fill(tm_write_layout *layout, const tm_write_request *request, tm_error *error) {
  TM_TRY(fill_tensors(layout, request, error));
  return fill_metadata(layout, request, error);
}

void tm_write_layout_forget(tm_write_layout *layout) {
  for (uint64_t i = 0; i < layout->tensor_count; i++) layout->tensors[i].dims = NULL;
  layout->metadata_count = 0;
  layout->late = NULL;
}
