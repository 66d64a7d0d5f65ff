/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/write_layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growth.h"
#include "base/text.h"
#include "formats/archive_builder.h"

tm_status tm_write_layout_fail_memory(const tm_write_layout *layout, tm_error *error) {
  return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory for its header", layout->label);
}

tm_written_file *tm_write_layout_add_file(tm_write_layout *layout, const char *name) {
  tm_written_file *files = tm_make_room(layout->memory, layout->files, layout->file_count, &layout->file_capacity, sizeof *files);
  if (files == NULL || name == NULL) return NULL;
  layout->files = files;
  tm_written_file *file = &files[layout->file_count++];
  *file = (tm_written_file){ .name = name };
  tm_byte_buffer_init(&file->header, layout->memory);
  return file;
}

tm_status tm_write_layout_note(tm_write_layout *layout, tm_error *error, const char *format, ...) {
  char text[400];
  va_list arguments;
  if (layout->note_count == TM_WRITE_MAX_NOTES) return TM_OK;
  va_start(arguments, format);
  if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = '\0';
  va_end(arguments);
  const char *copy = tm_arena_string(&layout->arena, text, strlen(text));
  if (copy == NULL) return tm_write_layout_fail_memory(layout, error);
  layout->notes[layout->note_count++] = copy;
  return TM_OK;
}

tm_status tm_write_layout_check(const tm_write_layout *layout, tm_write_refusal_fn why, tm_error *error) {
  const tm_written_tensor *first = NULL;
  uint64_t count = 0;
  for (uint64_t i = 0; i < layout->tensor_count; i++) {
    if (why(&layout->tensors[i]) == NULL) continue;
    if (count++ == 0) first = &layout->tensors[i];
  }
  if (first == NULL) return TM_OK;
  const char *type = first->info != NULL ? first->info->name : first->type_name;
  char others[64] = "";
  if (count > 1) (void)snprintf(others, sizeof others, " (and %" PRIu64 " more cannot be written)", count - 1);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" (%.60s): %s%s", layout->label, tm_show_name(first->name).text, type,
                 why(first), others);
}

const char *tm_write_layout_stem(tm_write_layout *layout, const char *extension) {
  const size_t tail = tm_text_has_ending(layout->name, extension) ? strlen(extension) : 0;
  return tm_arena_string(&layout->arena, layout->name, strlen(layout->name) - tail);
}
