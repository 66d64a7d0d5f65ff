/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/growth.h"
#include "base/shown_size.h"
#include "base/text.h"
#include "jobs/cancel_wish.h"
#include "jobs/merge_memory.h"
#include "jobs/merge_provenance.h"
#include "jobs/merge_tiles.h"

_Static_assert(TM_WRITER_SAFETENSORS == TM_WRITE_SAFETENSORS && TM_WRITER_GGUF == TM_WRITE_GGUF, "one numbering");

static tm_status fail_memory(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a merge"); }

static void add_sentence(tm_merge_plan *plan, const char **sentences, uint32_t *count, uint32_t most, const char *text) {
  for (uint32_t i = 0; i < *count; i++)
    if (strcmp(sentences[i], text) == 0) return;        /* of a file that is named twice, say */
  if (*count == most) return;
  const char *kept = tm_arena_string(&plan->arena, text, strlen(text));
  if (kept != NULL) sentences[(*count)++] = kept;
}

void tm_merge_plan_add_note(tm_merge_plan *plan, const char *text) {
  add_sentence(plan, plan->notes, &plan->note_count, TM_MERGE_MOST_NOTES, text);
}

void tm_merge_plan_add_problem(tm_merge_plan *plan, const char *text) {
  add_sentence(plan, plan->problems, &plan->problem_count, TM_MERGE_MOST_PROBLEMS, text);
}

/* ------------------------------------------------------------------------------------------------------------ items ---- */

static bool has_name(const tm_merge_settings *settings, uint32_t source, tm_string name) {
  uint64_t index;
  return tm_archive_find(settings->sources[source].archive, name.data, name.length, &index);
}

/* What comes first is told first: the leading source, then the others in their order. */
static bool is_told(const tm_merge_settings *settings, uint32_t source, tm_string name) {
  if (source == settings->lead) return false;
  bool told = has_name(settings, settings->lead, name);
  for (uint32_t i = 0; i < source && !told; i++) told = has_name(settings, i, name);
  return told;
}

static tm_status add_item(tm_merge_plan *plan, tm_string name, tm_error *error) {
  tm_merge_item *items = tm_make_room(plan->memory, plan->items, plan->item_count, &plan->item_capacity, sizeof *items);
  if (items == NULL) return fail_memory(error);
  plan->items = items;
  TM_TRY(tm_cancel_wish_check(plan->settings.cancelled, error));
  TM_TRY(tm_merge_item_make(&plan->settings, &plan->arena, name, &items[plan->item_count], error));
  plan->item_count++;
  return TM_OK;
}

static tm_status add_items_of(tm_merge_plan *plan, uint32_t source, tm_error *error) {
  const tm_archive *archive = plan->settings.sources[source].archive;
  for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) {
    const tm_string name = tm_archive_tensor_at(archive, i)->name;
    if (!is_told(&plan->settings, source, name)) TM_TRY(add_item(plan, name, error));
  }
  return TM_OK;
}

/* Those that are left out go behind all others. */
static tm_status put_skipped_last(tm_merge_plan *plan, tm_error *error) {
  uint64_t kept = 0, skipped = 0;
  tm_merge_item *moved = tm_memory_calloc(plan->memory, plan->item_capacity, sizeof *moved);
  if (moved == NULL) return fail_memory(error);
  for (uint64_t i = 0; i < plan->item_count; i++) skipped += plan->items[i].action == TM_MERGE_ACTION_SKIP;
  plan->totals.tensor_count = plan->item_count - skipped;
  skipped = plan->totals.tensor_count;
  for (uint64_t i = 0; i < plan->item_count; i++)
    moved[plan->items[i].action == TM_MERGE_ACTION_SKIP ? skipped++ : kept++] = plan->items[i];
  tm_memory_free(plan->memory, plan->items, plan->item_capacity * sizeof *plan->items);
  plan->items = moved;
  return TM_OK;
}

static bool have_common(const tm_merge_settings *settings, uint32_t source) {
  const tm_archive *first = settings->sources[0].archive;
  bool any = tm_archive_tensor_count(first) == 0 && tm_archive_tensor_count(settings->sources[source].archive) == 0;
  for (uint64_t i = 0; i < tm_archive_tensor_count(first) && !any; i++)
    any = has_name(settings, source, tm_archive_tensor_at(first, i)->name);
  return any;
}

/* Models without a single name in common are not what anybody means to merge, unless what is missing in one is to come from
   another: so parts of a model are joined.  What has no tensors is no part. */
static tm_status check_common(const tm_merge_plan *plan, tm_error *error) {
  const tm_merge_settings *settings = &plan->settings;
  const bool joins = settings->missing == TM_MERGE_MISSING_COPY || settings->missing == TM_MERGE_MISSING_AVAILABLE;
  const uint64_t first_count = tm_archive_tensor_count(settings->sources[0].archive);
  for (uint32_t source = 1; source < settings->source_count; source++) {
    const bool are_parts = first_count != 0 && tm_archive_tensor_count(settings->sources[source].archive) != 0;
    if ((joins && are_parts) || have_common(settings, source)) continue;
    return tm_fail(error, TM_ERROR_ARGUMENT, "%.150s and %.150s have no tensor of the same name%s", settings->sources[0].path,
                   settings->sources[source].path, !are_parts ? "; one of them has no tensors" :
                   ": are they of one architecture, with the same names? Parts of a model are joined with missing: copy");
  }
  return TM_OK;
}

static tm_status list_items(tm_merge_plan *plan, tm_error *error) {
  TM_TRY(check_common(plan, error));
  TM_TRY(add_items_of(plan, plan->settings.lead, error));
  for (uint32_t i = 0; i < plan->settings.source_count; i++)
    if (i != plan->settings.lead) TM_TRY(add_items_of(plan, i, error));
  return put_skipped_last(plan, error);
}

/* ----------------------------------------------------------------------------------------------------------- totals ---- */

static tm_status add_up(tm_merge_plan *plan, tm_error *error) {
  tm_merge_description *totals = &plan->totals;
  bool fits = true;
  for (uint64_t i = 0; i < plan->item_count; i++) {
    const tm_merge_item *item = &plan->items[i];
    totals->merged_count += item->action == TM_MERGE_ACTION_COMPUTE;
    totals->copied_count += item->action == TM_MERGE_ACTION_COPY;
    totals->skipped_count += item->action == TM_MERGE_ACTION_SKIP;
    totals->refused_count += item->action == TM_MERGE_ACTION_REFUSE;
    totals->mismatch_count += item->mismatch != TM_MERGE_MISMATCH_NONE;
    if (item->action != TM_MERGE_ACTION_COMPUTE && item->action != TM_MERGE_ACTION_COPY) continue;
    fits = fits && tm_checked_add(totals->written_bytes, item->bytes, &totals->written_bytes) &&
           tm_checked_add(totals->read_bytes, tm_merge_read_bytes(&plan->settings, item), &totals->read_bytes);
    const uint64_t unit_bytes = tm_merge_unit_bytes(&plan->settings, item);
    plan->unit_bytes = tm_max_u64(plan->unit_bytes, unit_bytes);
    plan->tile_bytes = tm_max_u64(plan->tile_bytes, unit_bytes * tm_merge_tile_units(item, UINT64_MAX));
    plan->copy_unit_bytes = tm_max_u64(plan->copy_unit_bytes, tm_merge_copy_unit(&plan->settings, item));
  }
  return fits ? TM_OK : tm_fail(error, TM_ERROR_ARGUMENT, "merge: more bytes than 64 bits can count");
}

/* -------------------------------------------------------------------------------------------------------- obstacles ---- */

static const char *const kinds[] = {
  [TM_MERGE_MISMATCH_MISSING] = "are not in all models",
  [TM_MERGE_MISMATCH_ROWS] = "have other numbers of rows",
  [TM_MERGE_MISMATCH_SHAPE] = "have other shapes",
  [TM_MERGE_MISMATCH_TYPE] = "are of types that do not go together",
  [TM_MERGE_MISMATCH_FORMAT] = "cannot be written",
};

/* One sentence for all of a kind, with the first as the example. */
static void tell_refused(tm_merge_plan *plan, tm_merge_mismatch mismatch) {
  const tm_merge_item *first = NULL;
  uint64_t count = 0;
  char name[160], text[700];
  for (uint64_t i = 0; i < plan->item_count; i++) {
    const tm_merge_item *item = &plan->items[i];
    if (item->action != TM_MERGE_ACTION_REFUSE || item->mismatch != mismatch) continue;
    if (count++ == 0) first = item;
  }
  if (first == NULL) return;
  (void)tm_text_escape(first->name.data, first->name.length, name, sizeof name);
  if (count == 1) (void)snprintf(text, sizeof text, "tensor '%s': %s", name, first->message);
  else (void)snprintf(text, sizeof text, "%" PRIu64 " tensors %s; the first is '%s': %s", count, kinds[mismatch], name,
                      first->message);
  tm_merge_plan_add_problem(plan, text);
}

static void tell_disk(tm_merge_plan *plan) {
  char text[200];
  if (plan->totals.file_bytes <= plan->totals.free_bytes) return;
  (void)snprintf(text, sizeof text, "disk: %s are to be written, and %s are free%s", tm_show_needed(plan->totals.file_bytes).text,
                 tm_show_available(plan->totals.free_bytes).text,
                 tm_checkpoint_writer_replaces(plan->writer) ? "; what is replaced goes last" : "");
  tm_merge_plan_add_problem(plan, text);
}

/* ----------------------------------------------------------------------------------------------------------- writer ---- */

/* What the writer is made of; needed while it is created. */
typedef struct writer_lists {
  tm_write_tensor *tensors;
  tm_metadata     *metadata;
  uint64_t         metadata_count;
  const char     **paths;
  uint64_t         path_count;
} writer_lists;

static tm_status list_tensors(tm_merge_plan *plan, tm_arena *arena, writer_lists *lists, tm_error *error) {
  lists->tensors = tm_arena_calloc(arena, plan->totals.tensor_count, sizeof *lists->tensors);
  if (lists->tensors == NULL) return fail_memory(error);
  for (uint64_t i = 0; i < plan->totals.tensor_count; i++) {
    const tm_merge_item *item = &plan->items[i];
    lists->tensors[i] = (tm_write_tensor){ .name = item->name, .dims = item->dims, .rank = item->rank, .format = item->format,
                                           .type_name = item->type_name, .bytes = item->bytes,
                                           .is_own_type = item->has_own_type != 0 };
  }
  return TM_OK;
}

static tm_status list_metadata(tm_merge_plan *plan, tm_arena *arena, writer_lists *lists, tm_error *error) {
  const tm_archive *lead = plan->settings.sources[plan->settings.lead].archive;
  const uint64_t kept = tm_archive_metadata_count(lead);
  const char *provenance = atomic_load(&plan->provenance);
  lists->metadata = tm_arena_calloc(arena, kept + 1, sizeof *lists->metadata);
  if (lists->metadata == NULL) return fail_memory(error);
  for (uint64_t i = 0; i < kept; i++) {
    const tm_metadata *entry = tm_archive_metadata_at(lead, i);
    const bool is_own = entry->key.length == strlen(TM_MERGE_RECORD_KEY) &&
                        memcmp(entry->key.data, TM_MERGE_RECORD_KEY, entry->key.length) == 0;
    if (!is_own) lists->metadata[lists->metadata_count++] = *entry;     /* how an input was made is told by its own file */
  }
  lists->metadata[lists->metadata_count++] = (tm_metadata){
    .key = { TM_MERGE_RECORD_KEY, strlen(TM_MERGE_RECORD_KEY) },
    .value = { .type = TM_METADATA_STRING, .count = 1, .data = provenance, .bytes = strlen(provenance) },
  };
  return TM_OK;
}

/* The path that was opened is one more: it may be that of an index. */
static tm_status list_paths(const tm_merge_plan *plan, tm_arena *arena, writer_lists *lists, tm_error *error) {
  const tm_merge_settings *settings = &plan->settings;
  tm_archive_file file;
  uint64_t count = settings->source_count;
  for (uint32_t i = 0; i < settings->source_count; i++) count += tm_archive_file_count(settings->sources[i].archive);
  lists->paths = tm_arena_calloc(arena, count, sizeof *lists->paths);
  if (lists->paths == NULL) return fail_memory(error);
  for (uint32_t i = 0; i < settings->source_count; i++) {
    lists->paths[lists->path_count++] = settings->sources[i].path;
    for (uint32_t f = 0; tm_archive_file_at(settings->sources[i].archive, f, &file); f++)
      lists->paths[lists->path_count++] = file.path;
  }
  return TM_OK;
}

/* What the format cannot hold is a problem of the plan. */
static tm_status create_writer(tm_merge_plan *plan, tm_arena *arena, tm_error *error) {
  writer_lists lists = { .tensors = NULL };
  tm_error refusal = TM_ERROR_INIT;
  bool is_unholdable = false;
  TM_TRY(list_tensors(plan, arena, &lists, error));
  TM_TRY(list_metadata(plan, arena, &lists, error));
  TM_TRY(list_paths(plan, arena, &lists, error));
  const tm_write_request request = {
    .format = plan->settings.writer_format, .path = plan->settings.path, .shard_bytes = plan->settings.shard_bytes,
    .tensors = lists.tensors, .tensor_count = plan->totals.tensor_count, .metadata = lists.metadata,
    .metadata_count = lists.metadata_count, .late = &lists.metadata[lists.metadata_count - 1], .input_paths = lists.paths,
    .input_count = lists.path_count, .out_is_unholdable = &is_unholdable,
  };
  const tm_status status = tm_checkpoint_writer_create(plan->memory, &request, &plan->writer, &refusal);
  if (status == TM_OK) return TM_OK;
  if (!is_unholdable) return tm_fail_native(error, status, refusal.native_code, "%s", refusal.text);
  tm_merge_plan_add_problem(plan, refusal.text);
  return TM_OK;
}

static tm_status arrange(tm_merge_plan *plan, tm_error *error) {
  tm_arena arena;
  tm_write_summary summary;
  plan->totals.free_bytes = UINT64_MAX;
  if (plan->totals.refused_count != 0) return TM_OK;
  tm_arena_init(&arena, plan->memory);
  const tm_status status = create_writer(plan, &arena, error);
  tm_arena_deinit(&arena);
  if (status != TM_OK || plan->writer == NULL) return status;
  tm_checkpoint_writer_summarize(plan->writer, &summary);
  plan->totals.file_bytes = summary.file_bytes;
  plan->totals.free_bytes = summary.free_bytes;
  plan->totals.file_count = (uint32_t)summary.file_count;
  for (uint64_t i = 0; tm_checkpoint_writer_note_at(plan->writer, i) != NULL; i++)
    tm_merge_plan_add_note(plan, tm_checkpoint_writer_note_at(plan->writer, i));
  tell_disk(plan);
  return TM_OK;
}

static tm_status make_provenance(tm_merge_plan *plan, tm_error *error) {
  tm_byte_buffer buffer;
  tm_byte_buffer_init(&buffer, plan->memory);
  tm_merge_provenance_print(&plan->settings, NULL, &buffer);
  const char *text = buffer.failed ? NULL : tm_arena_string(&plan->arena, (const char *)buffer.bytes, buffer.length);
  atomic_init(&plan->provenance, text);
  tm_byte_buffer_deinit(&buffer);
  return text == NULL ? fail_memory(error) : TM_OK;
}

/* ------------------------------------------------------------------------------------------------------------- life ---- */

/* What is odd about the files, such as that a part of a set was opened alone. */
static void note_sources(tm_merge_plan *plan) {
  for (uint32_t s = 0; s < plan->settings.source_count; s++)
    for (uint64_t i = 0; tm_archive_note_at(plan->settings.sources[s].archive, i) != NULL; i++)
      tm_merge_plan_add_note(plan, tm_archive_note_at(plan->settings.sources[s].archive, i));
}

/* A key of that format tells of what most tensors are; metadata are kept as they are. */
static void note_file_type(tm_merge_plan *plan) {
  const tm_archive *lead = plan->settings.sources[plan->settings.lead].archive;
  bool changes = false;
  for (uint32_t i = 0; i < plan->settings.rule_count; i++) changes = changes || plan->settings.rules[i].what == TM_MERGE_SET_FORMAT;
  if (changes && plan->settings.writer_format == TM_WRITER_GGUF && tm_archive_metadata_find(lead, "general.file_type") != NULL)
    tm_merge_plan_add_note(plan, "general.file_type among the metadata still says what the checkpoint that leads is made of");
}

static tm_status fill(tm_merge_plan *plan, const tm_merge_settings *given, tm_error *error) {
  TM_TRY(tm_merge_settings_make(given, &plan->arena, &plan->settings, error));
  note_sources(plan);
  note_file_type(plan);
  TM_TRY(list_items(plan, error));
  TM_TRY(add_up(plan, error));
  TM_TRY(make_provenance(plan, error));
  for (uint32_t mismatch = TM_MERGE_MISMATCH_MISSING; mismatch <= TM_MERGE_MISMATCH_FORMAT; mismatch++)
    tell_refused(plan, (tm_merge_mismatch)mismatch);
  TM_TRY(arrange(plan, error));
  plan->totals.method = plan->settings.method;
  plan->totals.writer_format = plan->settings.writer_format;
  plan->settings.cancelled = NULL;      /* the application's only while it waits */
  return TM_OK;
}

tm_status tm_merge_plan_make(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_merge_settings *given,
                             tm_merge_plan **out_plan, tm_error *error) {
  tm_merge_plan *plan = tm_memory_calloc(memory, 1, sizeof *plan);
  if (plan == NULL) return fail_memory(error);
  plan->memory = memory;
  plan->inventory = inventory;
  plan->runner = *runner;
  atomic_init(&plan->is_used, false);
  tm_arena_init(&plan->arena, memory);
  plan->has_lock = tm_mutex_init(&plan->lock) == TM_OK;
  const uint64_t used_before = atomic_load(&memory->used_bytes), peak_before = tm_memory_begin_peak(memory);
  const tm_status status = plan->has_lock ? fill(plan, given, error) : fail_memory(error);
  const uint64_t peak = tm_memory_end_peak(memory, peak_before);
  if (status == TM_OK) {
    tm_merge_plan_add_up_memory(plan, peak);
    plan->totals.problem_count = plan->problem_count;
    *out_plan = plan;
    return TM_OK;
  }
  tm_merge_plan_destroy(plan);
  return status == TM_ERROR_NO_MEMORY ? tm_merge_plan_fail_memory(memory, given, used_before, error) : status;
}

void tm_merge_plan_destroy(tm_merge_plan *plan) {
  if (plan == NULL) return;
  tm_checkpoint_writer_destroy(plan->writer);
  tm_memory_free(plan->memory, plan->items, plan->item_capacity * sizeof *plan->items);
  tm_arena_deinit(&plan->arena);
  if (plan->has_lock) tm_mutex_deinit(&plan->lock);
  tm_memory_free(plan->memory, plan, sizeof *plan);
}
