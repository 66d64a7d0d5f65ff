/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/checkpoint_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/pending_set.h"
#include "base/shown_size.h"
#include "base/thread.h"
#include "formats/archive_builder.h"
#include "formats/checkpoint_recovery.h"
#include "formats/shard_name.h"
#include "formats/standing_files.h"
#include "formats/write_inputs.h"
#include "formats/write_request.h"
#include "formats/write_target_path.h"

typedef enum writer_state { PLANNED, BEGUN, FINISHED } writer_state;

struct tm_checkpoint_writer {
  tm_memory             *memory;
  tm_write_layout        layout;
  const tm_write_format *format;
  tm_write_target_path   target;
  const char            *folder;        /* of the files: that of the target, or where its link leads */
  tm_standing_files      standing;
  const char           **old_names;     /* of files that go before the new ones come */
  uint64_t               old_count;
  const char           **removals;      /* those of them whose names no new file has */
  const char           **removal_paths;
  uint64_t               removal_count;
  tm_write_inputs        inputs;
  uint64_t               tensor_bytes, file_bytes, free_bytes;
  tm_pending_set        *pending;
  writer_state           state;
  atomic_bool            is_cancelled;
  tm_mutex               lock;          /* of what follows, and of the tensors' pieces */
  bool                   has_lock;
  bool                   has_failed;
  tm_error               failure;       /* the first one */
};

static const tm_write_format *const formats[] = {
  [TM_WRITE_SAFETENSORS] = &tm_safetensors_write_format,
  [TM_WRITE_GGUF] = &tm_gguf_write_format,
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

/* ------------------------------------------------------------------------------------------------ what is there now ---- */

static bool is_set(const tm_checkpoint_writer *writer) { return writer->layout.file_count > 1; }

static bool is_new_name(const tm_checkpoint_writer *writer, const char *name) {
  for (uint64_t i = 0; i < writer->layout.file_count; i++)
    if (strcmp(writer->layout.files[i].name, name) == 0) return true;
  return false;
}

/* All that an earlier checkpoint of the name has and the new one has not. */
static tm_status list_removals(tm_checkpoint_writer *writer, tm_error *error) {
  tm_arena *arena = &writer->layout.arena;
  writer->old_count = writer->removal_count = 0;
  if (writer->target.is_link) return TM_OK;
  writer->old_names = tm_standing_files_list(arena, &writer->standing, is_set(writer), &writer->old_count);
  writer->removals = tm_arena_calloc(arena, writer->old_count, sizeof *writer->removals);
  if (writer->old_names == NULL || writer->removals == NULL) return tm_write_layout_fail_memory(&writer->layout, error);
  for (uint64_t i = 0; i < writer->old_count; i++)
    if (!is_new_name(writer, writer->old_names[i])) writer->removals[writer->removal_count++] = writer->old_names[i];
  return TM_OK;
}

static tm_status check_inputs(tm_checkpoint_writer *writer, tm_error *error) {
  tm_arena *arena = &writer->layout.arena;
  for (uint64_t i = 0; i < writer->layout.file_count; i++)
    TM_TRY(tm_write_inputs_check(&writer->inputs, arena, writer->folder, writer->layout.files[i].name, error));
  for (uint64_t i = 0; i < writer->removal_count; i++)
    TM_TRY(tm_write_inputs_check(&writer->inputs, arena, writer->target.folder, writer->removals[i], error));
  return TM_OK;
}

static tm_status plan_files(tm_checkpoint_writer *writer, tm_pending_plan *out_plan, tm_error *error) {
  const tm_write_layout *layout = &writer->layout;
  tm_pending_file *files = tm_arena_calloc(&writer->layout.arena, layout->file_count, sizeof *files);
  if (files == NULL) return tm_write_layout_fail_memory(layout, error);
  for (uint64_t i = 0; i < layout->file_count; i++)
    files[i] = (tm_pending_file){ layout->files[i].name, layout->files[i].bytes, !layout->files[i].replaces };
  *out_plan = (tm_pending_plan){ .folder = writer->folder, .files = files, .file_count = layout->file_count,
                                 .old_names = writer->old_names, .old_count = writer->old_count };
  return TM_OK;
}

static tm_status check_files(tm_checkpoint_writer *writer, tm_error *error) {
  tm_pending_plan pending;
  TM_TRY(plan_files(writer, &pending, error));
  return tm_pending_set_check(&pending, error);
}

/* For people. */
static tm_status name_paths(tm_checkpoint_writer *writer, tm_error *error) {
  tm_write_layout *layout = &writer->layout;
  writer->removal_paths = tm_arena_calloc(&layout->arena, writer->removal_count, sizeof *writer->removal_paths);
  if (writer->removal_paths == NULL) return tm_write_layout_fail_memory(layout, error);
  for (uint64_t i = 0; i < writer->removal_count; i++) {
    writer->removal_paths[i] = tm_standing_path(&layout->arena, writer->target.folder, writer->removals[i]);
    if (writer->removal_paths[i] == NULL) return tm_write_layout_fail_memory(layout, error);
  }
  for (uint64_t i = 0; i < layout->file_count; i++) {
    tm_written_file *file = &layout->files[i];
    file->path = tm_standing_path(&layout->arena, writer->folder, file->name);
    if (file->path == NULL) return tm_write_layout_fail_memory(layout, error);
    file->replaces = tm_path_has_entry(file->path);
  }
  return TM_OK;
}

static tm_status look_at_names(tm_checkpoint_writer *writer, tm_error *error) {
  const tm_write_target_path *target = &writer->target;
  TM_TRY(tm_standing_files_find(&writer->layout.arena, target->folder, target->name, target->index, &writer->standing, error));
  TM_TRY(list_removals(writer, error));
  TM_TRY(check_inputs(writer, error));
  return name_paths(writer, error);
}

static tm_status look_around(tm_checkpoint_writer *writer, tm_error *error) {
  TM_TRY(look_at_names(writer, error));
  if (!tm_folder_free_bytes(writer->folder[0] == '\0' ? "." : writer->folder, &writer->free_bytes)) writer->free_bytes = UINT64_MAX;
  return TM_OK;
}

/* A link is followed where one file takes the place of another; a set has many names, and all of them in one folder. */
static tm_status choose_folder(tm_checkpoint_writer *writer, tm_error *error) {
  const tm_write_target_path *target = &writer->target;
  writer->folder = target->folder;
  if (!target->is_link) return TM_OK;
  if (is_set(writer))
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "%s: is a link, and a set of files is not written through links; name the place itself",
                   writer->layout.label);
  writer->folder = target->linked_folder;
  writer->layout.files[0].name = target->linked_name;
  return TM_OK;
}

/* A whole checkpoint under the name of a part would be taken for one of which the rest is missing; and parts of a part would have
   two numbers. */
static tm_status check_part_name(const tm_checkpoint_writer *writer, tm_error *error) {
  tm_shard_name name;
  if (is_set(writer) && tm_shard_name_take_apart(writer->target.name, &name))
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "%s: by its name part %" PRIu64 " of %" PRIu64 ", but it would be a set, whose parts get such names; name it "
                   "without these numbers", writer->layout.label, name.number, name.count);
  if (is_set(writer) || !tm_shard_name_take_apart(writer->layout.files[0].name, &name)) return TM_OK;
  if (name.count == 1 && name.number <= 1) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT,
                 "%s: by its name part %" PRIu64 " of %" PRIu64 ", but it would be the whole checkpoint; name it without "
                 "these numbers",
                 writer->layout.files[0].name, name.number, name.count);
}

/* ---------------------------------------------------------------------------------------------------------- planning ---- */

static tm_status add_up(tm_checkpoint_writer *writer, tm_error *error) {
  const tm_write_layout *layout = &writer->layout;
  bool fits = true;
  for (uint64_t i = 0; i < layout->tensor_count; i++)
    fits = fits && tm_checked_add(writer->tensor_bytes, layout->tensors[i].bytes, &writer->tensor_bytes);
  for (uint64_t i = 0; i < layout->file_count; i++)
    fits = fits && tm_checked_add(writer->file_bytes, layout->files[i].bytes, &writer->file_bytes);
  return fits ? TM_OK : tm_fail(error, TM_ERROR_ARGUMENT, "%s: it needs more bytes than 64 bits can count", layout->label);
}

static tm_status arrange(tm_checkpoint_writer *writer, const tm_write_request *request, tm_error *error) {
  tm_status status = tm_write_layout_fill(&writer->layout, request, error);
  if (status == TM_OK) status = writer->format->arrange(&writer->layout, error);
  if (status == TM_ERROR_ARGUMENT && request->out_is_unholdable != NULL) *request->out_is_unholdable = true;
  return status;
}

static tm_status plan(tm_checkpoint_writer *writer, const tm_write_request *request, tm_error *error) {
  tm_write_layout *layout = &writer->layout;
  TM_TRY(tm_write_target_path_find(&layout->arena, request->path, writer->format->extension, &writer->target, error));
  layout->label = writer->target.label;
  layout->name = writer->target.name;
  layout->shard_bytes = request->shard_bytes;
  TM_TRY(tm_write_inputs_init(&writer->inputs, writer->memory, request->input_paths, request->input_count, error));
  TM_TRY(arrange(writer, request, error));
  TM_TRY(choose_folder(writer, error));
  TM_TRY(add_up(writer, error));
  TM_TRY(look_around(writer, error));
  TM_TRY(check_part_name(writer, error));
  for (uint64_t i = 0; i < layout->file_count; i++) layout->files[i].was_there = layout->files[i].replaces;
  return check_files(writer, error);
}

tm_status tm_checkpoint_writer_create(tm_memory *memory, const tm_write_request *request, tm_checkpoint_writer **out_writer,
                                      tm_error *error) {
  if (request->format >= FORMAT_COUNT || formats[request->format] == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "there is no format %" PRIu32 " to write", request->format);
  tm_checkpoint_writer *writer = tm_memory_calloc(memory, 1, sizeof *writer);
  if (writer == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a checkpoint");
  writer->memory = memory;
  writer->layout.memory = memory;
  writer->format = formats[request->format];
  writer->failure.struct_size = sizeof writer->failure;
  atomic_init(&writer->is_cancelled, false);
  tm_arena_init(&writer->layout.arena, memory);
  writer->has_lock = tm_mutex_init(&writer->lock) == TM_OK;
  tm_status status = writer->has_lock ? plan(writer, request, error)
                                      : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to write a checkpoint");
  tm_write_layout_forget(&writer->layout);
  if (status == TM_OK) *out_writer = writer;
  else tm_checkpoint_writer_destroy(writer);
  return status;
}

void tm_checkpoint_writer_destroy(tm_checkpoint_writer *writer) {
  if (writer == NULL) return;
  tm_write_layout *layout = &writer->layout;
  tm_pending_set_destroy(writer->pending);
  for (uint64_t i = 0; i < layout->file_count; i++) tm_byte_buffer_deinit(&layout->files[i].header);
  for (uint64_t i = 0; i < layout->tensor_count; i++) tm_piece_list_deinit(&layout->tensors[i].pieces, writer->memory);
  tm_memory_free(writer->memory, layout->files, layout->file_capacity * sizeof *layout->files);
  tm_memory_free(writer->memory, layout->tensors, layout->tensor_count * sizeof *layout->tensors);
  tm_write_inputs_deinit(&writer->inputs);
  tm_arena_deinit(&layout->arena);
  if (writer->has_lock) tm_mutex_deinit(&writer->lock);
  tm_memory_free(writer->memory, writer, sizeof *writer);
}

/* ------------------------------------------------------------------------------------------------------------ telling ---- */

void tm_checkpoint_writer_summarize(const tm_checkpoint_writer *writer, tm_write_summary *out_summary) {
  *out_summary = (tm_write_summary){
    .format_name = writer->format->name,
    .file_count = writer->layout.file_count,
    .tensor_count = writer->layout.tensor_count,
    .tensor_bytes = writer->tensor_bytes,
    .file_bytes = writer->file_bytes,
    .free_bytes = writer->free_bytes,
  };
}

bool tm_checkpoint_writer_place(const tm_checkpoint_writer *writer, uint64_t tensor, uint64_t *out_file, uint64_t *out_offset,
                                uint64_t *out_bytes) {
  if (tensor >= writer->layout.tensor_count) return false;
  *out_file = writer->layout.tensors[tensor].file;
  *out_offset = writer->layout.tensors[tensor].offset;
  *out_bytes = writer->layout.tensors[tensor].bytes;
  return true;
}

const char *tm_checkpoint_writer_note_at(const tm_checkpoint_writer *writer, uint64_t index) {
  return index < writer->layout.note_count ? writer->layout.notes[index] : NULL;
}

bool tm_checkpoint_writer_file_at(const tm_checkpoint_writer *writer, uint64_t index, tm_write_file *out_file) {
  if (index >= writer->layout.file_count) return false;
  const tm_written_file *file = &writer->layout.files[index];
  *out_file = (tm_write_file){ file->path, file->bytes, file->replaces };
  return true;
}

const char *tm_checkpoint_writer_removal_at(const tm_checkpoint_writer *writer, uint64_t index) {
  return index < writer->removal_count ? writer->removal_paths[index] : NULL;
}

bool tm_checkpoint_writer_replaces(const tm_checkpoint_writer *writer) {
  bool replaces = writer->removal_count != 0;
  for (uint64_t i = 0; i < writer->layout.file_count; i++) replaces = replaces || writer->layout.files[i].replaces;
  return replaces;
}

/* -------------------------------------------------------------------------------------------------------- beginning ---- */

static tm_status check_room(const tm_checkpoint_writer *writer, tm_error *error) {
  if (writer->file_bytes <= writer->free_bytes) return TM_OK;
  return tm_fail(error, TM_ERROR_IO,
                 "%s: %s are to be written, but the file system has only %s free%s", writer->layout.label,
                 tm_show_needed(writer->file_bytes).text, tm_show_available(writer->free_bytes).text,
                 tm_checkpoint_writer_replaces(writer) ? "; what is replaced goes last, and does not count" : "");
}

/* What was not there when it was planned, and so told to nobody, is not replaced, and nothing goes for it. */
static tm_status refuse_newcomers(const tm_checkpoint_writer *writer, uint64_t known_removal_count, tm_error *error) {
  for (uint64_t i = 0; i < writer->layout.file_count; i++) {
    const tm_written_file *file = &writer->layout.files[i];
    if (file->replaces && !file->was_there)
      return tm_fail_native(error, TM_ERROR_IO, EEXIST, "%s: was not there when writing it was planned, and now is; it stays as it is",
                            tm_show_name((tm_string){ file->path, strlen(file->path) }).text);
  }
  if (writer->removal_count <= known_removal_count) return TM_OK;
  return tm_fail_native(error, TM_ERROR_IO, EEXIST, "%s: files of that name would be removed that were not there when writing it was "
                        "planned; they stay as they are", writer->layout.label);
}

/* Before anything is touched, and after it may have been.  What a killed writer left is no newcomer when it is completed here. */
static tm_status clear_the_place(tm_checkpoint_writer *writer, tm_error *error) {
  const uint64_t planned = writer->removal_count;
  uint64_t completed = 0;
  TM_TRY(look_around(writer, error));
  TM_TRY(refuse_newcomers(writer, planned, error));
  TM_TRY(tm_checkpoint_clean_up(writer->memory, &writer->target, &writer->standing, NULL, &completed, error));
  TM_TRY(look_around(writer, error));
  if (completed == 0) TM_TRY(refuse_newcomers(writer, planned, error));
  for (uint64_t i = 0; i < writer->layout.file_count; i++) writer->layout.files[i].was_there = writer->layout.files[i].replaces;
  TM_TRY(check_files(writer, error));
  return check_room(writer, error);
}

/* Made first and looked around afterwards: of two that begin at once, at least one sees the other, and what one that was faster
   has finished in that moment stays, whatever its names. */
static tm_status make_files(tm_checkpoint_writer *writer, tm_error *error) {
  const uint64_t known = writer->removal_count;
  uint64_t completed = 0;
  tm_pending_plan pending;
  TM_TRY(plan_files(writer, &pending, error));
  TM_TRY(tm_pending_set_create(writer->memory, &pending, &writer->pending, error));
  const char *id = tm_pending_set_id(writer->pending);
  TM_TRY(tm_checkpoint_clean_up(writer->memory, &writer->target, &writer->standing, id, &completed, error));
  TM_TRY(look_at_names(writer, error));
  TM_TRY(refuse_newcomers(writer, known, error));
  return check_files(writer, error);
}

static tm_status write_headers(tm_checkpoint_writer *writer, tm_error *error) {
  for (uint64_t i = 0; i < writer->layout.file_count; i++) {
    tm_byte_buffer *header = &writer->layout.files[i].header;
    TM_TRY(tm_pending_set_write(writer->pending, i, 0, header->bytes, header->length, error));
    tm_byte_buffer_deinit(header);
  }
  return TM_OK;
}

tm_status tm_checkpoint_writer_begin(tm_checkpoint_writer *writer, tm_error *error) {
  if (writer->state != PLANNED || writer->has_failed)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: writing it was begun before", writer->layout.label);
  TM_TRY(clear_the_place(writer, error));
  tm_status status = make_files(writer, error);
  if (status == TM_OK) {
    writer->state = BEGUN;
    status = write_headers(writer, error);
    writer->has_failed = status != TM_OK;
  }
  if (status == TM_OK) return TM_OK;
  tm_pending_set_destroy(writer->pending);
  writer->pending = NULL;
  return status;
}

/* ---------------------------------------------------------------------------------------------------------- filling ---- */

static tm_status keep_failure(tm_checkpoint_writer *writer, tm_status status, const tm_error *failure, tm_error *error) {
  tm_mutex_lock(&writer->lock);
  if (!writer->has_failed) {
    writer->failure = *failure;
    writer->failure.code = status;
  }
  writer->has_failed = true;
  tm_mutex_unlock(&writer->lock);
  return tm_fail_native(error, status, failure->native_code, "%s", failure->text);
}

/* Under the lock. */
static tm_status check_running(const tm_checkpoint_writer *writer, tm_error *error) {
  const char *label = writer->layout.label;
  if (writer->has_failed && writer->failure.code != TM_OK)
    return tm_fail_native(error, writer->failure.code, writer->failure.native_code, "%s", writer->failure.text);
  if (writer->state != BEGUN || writer->has_failed)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %s", label,
                   writer->state == FINISHED ? "it is finished" : "writing it was not begun");
  if (atomic_load(&writer->is_cancelled)) return tm_fail(error, TM_ERROR_CANCELLED, "%s: writing it was cancelled", label);
  return TM_OK;
}

/* A list is kept only while a tensor is written in pieces: there may be a million tensors. */
static tm_status add_piece(tm_checkpoint_writer *writer, tm_written_tensor *tensor, uint64_t begin, uint64_t end) {
  const bool is_all = begin == 0 && end == tensor->bytes && tensor->pieces.count == 0;
  if (tensor->is_whole) return begin == end ? TM_OK : TM_ERROR_ARGUMENT;
  if (!is_all) TM_TRY(tm_piece_list_add(&tensor->pieces, writer->memory, begin, end));
  tensor->is_whole = is_all || tensor->pieces.total_bytes == tensor->bytes;
  if (tensor->is_whole) tm_piece_list_deinit(&tensor->pieces, writer->memory);
  return TM_OK;
}

static tm_status claim(tm_checkpoint_writer *writer, tm_written_tensor *tensor, uint64_t begin, uint64_t end, tm_error *error) {
  TM_TRY(check_running(writer, error));
  const tm_status status = add_piece(writer, tensor, begin, end);
  if (status == TM_ERROR_NO_MEMORY) return tm_fail(error, status, "%s: no memory to know what was written", writer->layout.label);
  if (status != TM_OK)
    return tm_fail(error, status, "%s: tensor \"%s\": of the bytes %" PRIu64 " to %" PRIu64 " some were written before",
                   writer->layout.label, tm_show_name(tensor->name).text, begin, end);
  return TM_OK;
}

tm_status tm_checkpoint_writer_write(tm_checkpoint_writer *writer, uint64_t index, uint64_t offset, const void *data,
                                     uint64_t bytes, tm_error *error) {
  tm_error failure = TM_ERROR_INIT;
  uint64_t end;
  if (index >= writer->layout.tensor_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: there is no tensor %" PRIu64, writer->layout.label, index);
  tm_written_tensor *tensor = &writer->layout.tensors[index];
  if (!tm_checked_add(offset, bytes, &end) || end > tensor->bytes)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" has %" PRIu64 " bytes; %" PRIu64 " at offset %" PRIu64
                   " were to be written", writer->layout.label, tm_show_name(tensor->name).text, tensor->bytes, bytes, offset);
  tm_mutex_lock(&writer->lock);
  tm_status status = claim(writer, tensor, offset, end, error);
  tm_mutex_unlock(&writer->lock);
  if (status != TM_OK || bytes == 0) return status;
  status = tm_pending_set_write(writer->pending, tensor->file, tensor->offset + offset, data, bytes, &failure);
  return status == TM_OK ? TM_OK : keep_failure(writer, status, &failure, error);
}

static tm_status encode_late(const tm_checkpoint_writer *writer, tm_string text, tm_byte_buffer *buffer, tm_error *error) {
  const tm_write_layout *layout = &writer->layout;
  if (layout->late_is_json) tm_byte_buffer_add_json(buffer, text);
  else tm_byte_buffer_add(buffer, text.data, text.length);
  if (buffer->failed) return tm_write_layout_fail_memory(layout, error);
  if (buffer->length == layout->late_bytes) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %" PRIu64 " bytes of text for the place of %" PRIu64, layout->label, buffer->length,
                 layout->late_bytes);
}

tm_status tm_checkpoint_writer_replace_late(tm_checkpoint_writer *writer, tm_string text, tm_error *error) {
  tm_error failure = TM_ERROR_INIT;
  tm_byte_buffer buffer;
  tm_mutex_lock(&writer->lock);
  tm_status status = check_running(writer, error);
  tm_mutex_unlock(&writer->lock);
  if (status != TM_OK) return status;
  tm_byte_buffer_init(&buffer, writer->memory);
  status = encode_late(writer, text, &buffer, error);
  for (uint64_t i = 0; i < writer->layout.file_count && status == TM_OK; i++) {
    const uint64_t offset = writer->layout.files[i].late_offset;
    if (offset == 0) continue;
    status = tm_pending_set_write(writer->pending, i, offset, buffer.bytes, buffer.length, &failure);
    if (status != TM_OK) status = keep_failure(writer, status, &failure, error);
  }
  tm_byte_buffer_deinit(&buffer);
  return status;
}

/* -------------------------------------------------------------------------------------------------------- finishing ---- */

static tm_status check_complete(const tm_checkpoint_writer *writer, tm_error *error) {
  const tm_written_tensor *first = NULL;
  uint64_t count = 0;
  for (uint64_t i = 0; i < writer->layout.tensor_count; i++) {
    const tm_written_tensor *tensor = &writer->layout.tensors[i];
    if (tensor->is_whole || tensor->bytes == 0) continue;
    if (count++ == 0) first = tensor;
  }
  if (first == NULL) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %" PRIu64 " tensors are not written whole; of the first, \"%s\", %" PRIu64 " of %"
                 PRIu64 " bytes were", writer->layout.label, count, tm_show_name(first->name).text,
                 first->pieces.total_bytes, first->bytes);
}

static tm_status check_finishable(tm_checkpoint_writer *writer, tm_error *error) {
  tm_mutex_lock(&writer->lock);
  tm_status status = check_running(writer, error);
  if (status == TM_OK) status = check_complete(writer, error);
  tm_mutex_unlock(&writer->lock);
  return status;
}

static tm_status sync_files(tm_checkpoint_writer *writer, tm_error *error) {
  for (uint64_t i = 0; i < writer->layout.file_count; i++)
    TM_TRY(tm_pending_set_sync(writer->pending, i, &writer->is_cancelled, error));
  return TM_OK;
}

/* The last of the old files that still stand, which is what a reader finds; NULL: all are gone. */
static const char *still_there(const tm_checkpoint_writer *writer) {
  for (uint64_t i = writer->removal_count; i-- > 0;)
    if (tm_path_has_entry(writer->removal_paths[i])) return writer->removal_paths[i];
  return NULL;
}

static void tell_what_is_there(const tm_checkpoint_writer *writer, tm_error *error) {
  const char *old = still_there(writer);
  if (!is_set(writer) && writer->old_count == 0) {
    tm_error_prefix(error, "it is in its place, but may not be there any more when the machine stops now");
    return;
  }
  tm_error_prefix(error, "all of it is written, but not all in its place%s%s; once the cause is gone, writing it again or asking "
                  "for its recovery completes it", old == NULL ? "" : ", where there still is ",
                  old == NULL ? "" : tm_show_name((tm_string){ old, strlen(old) }).text);
}

static tm_status commit(tm_checkpoint_writer *writer, tm_error *error) {
  bool is_decided = false;
  TM_TRY(sync_files(writer, error));
  const tm_status status = tm_pending_set_commit(writer->pending, writer->old_names, writer->old_count, &is_decided, error);
  if (status != TM_OK && is_decided) tell_what_is_there(writer, error);
  return status;
}

tm_status tm_checkpoint_writer_finish(tm_checkpoint_writer *writer, tm_error *error) {
  tm_error failure = TM_ERROR_INIT;
  TM_TRY(check_finishable(writer, error));
  const tm_status status = commit(writer, &failure);
  if (status != TM_OK) return keep_failure(writer, status, &failure, error);
  tm_mutex_lock(&writer->lock);
  writer->state = FINISHED;
  tm_mutex_unlock(&writer->lock);
  return TM_OK;
}

void tm_checkpoint_writer_abandon(tm_checkpoint_writer *writer) {
  tm_pending_set_destroy(writer->pending);
  writer->pending = NULL;
  if (writer->state == BEGUN) writer->has_failed = true;
}

void tm_checkpoint_writer_cancel(tm_checkpoint_writer *writer) { atomic_store(&writer->is_cancelled, true); }
