/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_item.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "jobs/merge_parts.h"
#include "jobs/merge_weights.h"

#define LONGEST_MESSAGE 1200u
#define LONGEST_SHAPES  700u
#define LONGEST_LIST 240u
#define LONGEST_PASSED (LONGEST_LIST + 32u)

/* One tensor while it is decided on. */
typedef struct decision {
  const tm_merge_settings *settings;
  tm_arena                *arena;
  tm_merge_item           *item;
  tm_merge_figures         figures;
  tm_merge_parts           parts;
  tm_merge_part            lead;        /* of the checkpoint that leads, whatever its weight; without its tensor, of the first that
                                           takes part */
  tm_merge_part            rest;        /* if has_rest */
  bool                     has_rest;
  tm_error                *error;
} decision;

static tm_status fail_memory(const decision *d) { return tm_fail(d->error, TM_ERROR_NO_MEMORY, "no memory to plan a merge"); }

static tm_status say(decision *d, tm_merge_mismatch mismatch, tm_merge_action action, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static tm_status say(decision *d, tm_merge_mismatch mismatch, tm_merge_action action, const char *format, ...) {
  char text[LONGEST_MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  d->item->mismatch = (uint8_t)mismatch;
  d->item->action = (uint8_t)action;
  d->item->message = tm_arena_string(d->arena, text, strlen(text));
  return d->item->message == NULL ? fail_memory(d) : TM_OK;
}

static const char *source_name(const decision *d, const tm_merge_part *part) {
  return tm_merge_is_base(d->settings, part) ? "the base" : d->settings->names[part->source];
}

static bool is_decided(const decision *d) {
  return d->item->action == TM_MERGE_ACTION_SKIP || d->item->action == TM_MERGE_ACTION_REFUSE;
}

/* ", and not from b, c": those besides this part that have the tensor, too. */
static void name_passed_over(const decision *d, const tm_merge_part *copied, char *out_text, size_t capacity) {
  const uint32_t *same_as = d->settings->same_as;
  tm_merge_parts passed = { .count = 0 };
  char names[LONGEST_LIST];
  for (uint32_t i = 0; i < d->parts.count; i++) {
    const tm_merge_part *part = &d->parts.items[i];
    if (same_as[part->source] != same_as[copied->source]) passed.items[passed.count++] = *part;
  }
  tm_merge_parts_name(d->settings, &passed, true, names, sizeof names);
  (void)snprintf(out_text, capacity, "%s%s", names[0] == '\0' ? "" : ", and not from ", names);
}

/* What the item is as large as. */
static void take_shape(decision *d, const tm_archive_tensor *tensor) {
  d->item->rank = tensor->rank;
  d->item->dims = tensor->dims;
  d->item->element_count = d->item->common_count = tensor->element_count;
}

/* Nothing but this part is left, as it is. */
static void copy_part(decision *d, tm_merge_part part) {
  d->parts.items[0] = part;
  d->parts.count = 1;
  tm_merge_parts_keep(&d->parts, 0);
  d->item->action = TM_MERGE_ACTION_COPY;
  d->has_rest = false;
}

/* ---------------------------------------------------------------------------------------------------------- missing ---- */

/* The base first, then models as they are named. */
static uint32_t first_source(const tm_merge_settings *settings, tm_string name, uint64_t *out_index) {
  if (tm_merge_has_base(settings) && tm_archive_find(settings->sources[settings->lead].archive, name.data, name.length, out_index))
    return settings->lead;
  uint32_t source = 0;
  while (source < settings->source_count &&
         !tm_archive_find(settings->sources[source].archive, name.data, name.length, out_index)) source++;
  return source;
}

static tm_status copy_first(decision *d, const char *lacking) {
  char passed[LONGEST_PASSED];
  uint32_t first = 0;
  while (d->parts.items[first].tensor == NULL) first++;
  name_passed_over(d, &d->parts.items[first], passed, sizeof passed);
  copy_part(d, d->parts.items[first]);
  return say(d, TM_MERGE_MISMATCH_MISSING, TM_MERGE_ACTION_COPY, "not in %s; copied from %.60s%s", lacking,
             source_name(d, &d->parts.items[0]), passed);
}

/* Whoever has it has no weight. */
static tm_status leave_out(decision *d) {
  tm_merge_parts having = { .count = 0 };
  char names[LONGEST_LIST];
  for (uint32_t i = 0; i < d->settings->source_count; i++) {
    tm_merge_part part = { .source = i };
    const tm_archive *archive = d->settings->sources[i].archive;
    if (d->settings->same_as[i] != i || !tm_archive_find(archive, d->item->name.data, d->item->name.length, &part.index)) continue;
    part.tensor = tm_archive_tensor_at(archive, part.index);
    having.items[having.count++] = part;
  }
  tm_merge_parts_name(d->settings, &having, true, names, sizeof names);
  return say(d, TM_MERGE_MISMATCH_NONE, TM_MERGE_ACTION_SKIP, "only in %s, which %s no part; left out", names,
             having.count == 1 ? "takes" : "take");
}

static tm_status use_available(decision *d, const char *lacking) {
  const bool has_base = tm_merge_has_base(d->settings);
  if (has_base && d->parts.items[0].tensor == NULL) return copy_first(d, lacking);
  for (uint32_t i = d->parts.count; i-- > 0;)
    if (d->parts.items[i].tensor == NULL) tm_merge_parts_drop(&d->parts, i);
  return say(d, TM_MERGE_MISMATCH_MISSING, TM_MERGE_ACTION_COMPUTE, "not in %s; %s", lacking,
             has_base ? "there the difference from the base counts as 0" : "made of those that have it");
}

static tm_status decide_missing(decision *d) {
  char lacking[LONGEST_LIST];
  uint32_t missing_count = 0;
  for (uint32_t i = 0; i < d->parts.count; i++) missing_count += d->parts.items[i].tensor == NULL;
  if (missing_count == 0) return TM_OK;
  if (missing_count == d->parts.count) return leave_out(d);
  tm_merge_parts_name(d->settings, &d->parts, false, lacking, sizeof lacking);
  switch (d->settings->missing) {
    case TM_MERGE_MISSING_AVAILABLE: return use_available(d, lacking);
    case TM_MERGE_MISSING_COPY: return copy_first(d, lacking);
    case TM_MERGE_MISSING_SKIP: return say(d, TM_MERGE_MISMATCH_MISSING, TM_MERGE_ACTION_SKIP, "not in %s; left out", lacking);
    default: return say(d, TM_MERGE_MISMATCH_MISSING, TM_MERGE_ACTION_REFUSE, "not in %s", lacking);
  }
}

/* ----------------------------------------------------------------------------------------------------------- shapes ---- */

static bool is_number(const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  return info != NULL && info->has_values && (info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_BLOCK);
}

static bool differ_from(const tm_archive_tensor *a, const tm_archive_tensor *b, uint32_t first_axis) {
  if (a->rank != b->rank) return true;
  for (uint32_t i = first_axis; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return true;
  return false;
}

static void print_shape(const tm_archive_tensor *tensor, char *out_text, size_t capacity) {
  size_t length = (size_t)snprintf(out_text, capacity, "[");
  for (uint32_t i = 0; i < tensor->rank && length + 24 < capacity; i++)
    length += (size_t)snprintf(out_text + length, capacity - length, "%s%" PRIu64, i == 0 ? "" : ",", tensor->dims[i]);
  (void)snprintf(out_text + length, capacity - length, "]");
}

/* Those of the shape that part `first` has; false: so has one before it. */
static bool find_alike(const tm_merge_parts *parts, uint32_t first, tm_merge_parts *out_alike) {
  out_alike->count = 0;
  for (uint32_t i = 0; i < parts->count; i++) {
    if (differ_from(parts->items[first].tensor, parts->items[i].tensor, 0)) continue;
    if (i < first) return false;
    out_alike->items[out_alike->count++] = parts->items[i];
  }
  return true;
}

/* "[10,4] in a, c; [12,4] in b": every shape that there is. */
static void print_shapes(const decision *d, const tm_merge_parts *parts, char *out_text, size_t capacity) {
  size_t length = 0;
  tm_merge_parts alike;
  char shape[100], names[LONGEST_LIST];
  for (uint32_t i = 0; i < parts->count && length < capacity; i++) {
    if (!find_alike(parts, i, &alike)) continue;
    print_shape(parts->items[i].tensor, shape, sizeof shape);
    tm_merge_parts_name(d->settings, &alike, true, names, sizeof names);
    length += (size_t)snprintf(out_text + length, capacity - length, "%s%s in %s", length == 0 ? "" : "; ", shape, names);
  }
}

/* Who has rows beyond those that all have in common, of which nothing comes into the result. */
static void name_dropped(const decision *d, const tm_merge_parts *shaped, uint64_t common, char *out_text, size_t capacity) {
  tm_merge_parts dropped = { .count = 0 };
  for (uint32_t i = 0; i < shaped->count; i++) {
    const tm_merge_part *part = &shaped->items[i];
    if (part->tensor->dims[0] <= common || (d->has_rest && part->source == d->rest.source)) continue;
    dropped.items[dropped.count++] = *part;
  }
  tm_merge_parts_name(d->settings, &dropped, true, out_text, capacity);
}

/* The part with the most rows, the first of those; and the fewest rows that any has. */
static uint32_t find_longest(const decision *d, uint64_t *out_fewest) {
  uint32_t longest = 0;
  *out_fewest = d->parts.items[0].tensor->dims[0];
  for (uint32_t i = 1; i < d->parts.count; i++) {
    const uint64_t rows = d->parts.items[i].tensor->dims[0];
    *out_fewest = tm_min_u64(*out_fewest, rows);
    if (rows > d->parts.items[longest].tensor->dims[0]) longest = i;
  }
  return longest;
}

/* like: one that has that many rows or more. */
static tm_status set_rows(decision *d, const tm_archive_tensor *like, uint64_t rows, uint64_t common) {
  tm_merge_item *item = d->item;
  uint64_t *dims = tm_arena_calloc(d->arena, like->rank, sizeof *dims);
  if (dims == NULL) return fail_memory(d);
  memcpy(dims, like->dims, like->rank * sizeof *dims);
  dims[0] = rows;
  const uint64_t row_elements = like->dims[0] == 0 ? 0 : like->element_count / like->dims[0];
  item->dims = dims;
  item->element_count = rows * row_elements;    /* at most those of a tensor that is there */
  item->common_count = common * row_elements;
  return TM_OK;
}

static bool are_numbers(const decision *d) {
  bool are = is_number(d->lead.tensor);
  for (uint32_t i = 0; i < d->parts.count; i++) are = are && is_number(d->parts.items[i].tensor);
  return are;
}

/* Those whose shapes are held against each other: where the result has the rows of the checkpoint that leads, also that one,
   though its values may count nothing. */
static void list_shaped(const decision *d, tm_merge_parts *out_parts) {
  bool has_lead = d->settings->rows != TM_MERGE_ROWS_LEAD || !are_numbers(d);
  *out_parts = d->parts;
  for (uint32_t i = 0; i < d->parts.count; i++) has_lead = has_lead || d->parts.items[i].source == d->lead.source;
  has_lead = has_lead || differ_from(d->lead.tensor, d->parts.items[0].tensor, d->lead.tensor->rank == 0 ? 0 : 1);
  if (!has_lead) out_parts->items[out_parts->count++] = d->lead;
}

static const tm_merge_part *lead_among(const decision *d, const tm_merge_parts *shaped) {
  uint32_t i = 0;
  while (i < shaped->count && shaped->items[i].source != d->lead.source) i++;
  return &shaped->items[i == shaped->count ? 0 : i];
}

static tm_status decide_rows(decision *d, const tm_merge_parts *shaped, const char *shapes) {
  uint64_t fewest;
  const uint32_t longest = find_longest(d, &fewest);
  const uint32_t policy = d->settings->rows;
  if (policy == TM_MERGE_ROWS_FAIL) return say(d, TM_MERGE_MISMATCH_ROWS, TM_MERGE_ACTION_REFUSE, "%s", shapes);
  const tm_merge_part *from = policy == TM_MERGE_ROWS_LONGEST ? &d->parts.items[longest] : lead_among(d, shaped);
  const uint64_t rows = policy == TM_MERGE_ROWS_COMMON ? fewest : from->tensor->dims[0];
  const uint64_t common = tm_min_u64(fewest, rows);
  d->has_rest = rows > common;
  d->rest = *from;
  TM_TRY(set_rows(d, from->tensor, rows, common));
  if (!d->has_rest)
    return say(d, TM_MERGE_MISMATCH_ROWS, TM_MERGE_ACTION_COMPUTE, "%s; rows from %" PRIu64 " on are left out", shapes, common);
  char dropped[LONGEST_LIST];
  name_dropped(d, shaped, common, dropped, sizeof dropped);
  return say(d, TM_MERGE_MISMATCH_ROWS, TM_MERGE_ACTION_COMPUTE, "%s; rows from %" PRIu64 " on are taken from %.60s%s%s", shapes,
             common, source_name(d, &d->rest), dropped[0] == '\0' ? "" : ", and not from ", dropped);
}

static tm_status decide_other(decision *d, tm_merge_mismatch mismatch, const tm_merge_part *copied, const char *what) {
  char passed[LONGEST_PASSED];
  switch (d->settings->other) {
    case TM_MERGE_OTHER_COPY:
      name_passed_over(d, copied, passed, sizeof passed);
      copy_part(d, *copied);
      return say(d, mismatch, TM_MERGE_ACTION_COPY, "%s; copied from %.60s%s", what, source_name(d, &d->parts.items[0]), passed);
    case TM_MERGE_OTHER_SKIP: return say(d, mismatch, TM_MERGE_ACTION_SKIP, "%s; left out", what);
    default: return say(d, mismatch, TM_MERGE_ACTION_REFUSE, "%s", what);
  }
}

static tm_status decide_shapes(decision *d) {
  bool differ = false, differ_inside = false;
  char shapes[LONGEST_SHAPES];
  tm_merge_parts shaped;
  const tm_archive_tensor *first = d->parts.items[0].tensor;
  list_shaped(d, &shaped);
  for (uint32_t i = 1; i < shaped.count; i++) {
    differ = differ || differ_from(first, shaped.items[i].tensor, 0);
    differ_inside = differ_inside || first->rank == 0 || differ_from(first, shaped.items[i].tensor, 1);
  }
  if (!differ) return TM_OK;
  print_shapes(d, &shaped, shapes, sizeof shapes);
  return differ_inside ? decide_other(d, TM_MERGE_MISMATCH_SHAPE, &d->lead, shapes) : decide_rows(d, &shaped, shapes);
}

/* ------------------------------------------------------------------------------------------------------------ types ---- */

/* Quantized and other weights in a form that this version cannot decode; as opposed to integers, which are no weights. */
static bool is_closed(const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  return info == NULL || (!info->has_values && info->kind != TM_KIND_COMPLEX);
}

static const char *type_of(const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  return info == NULL ? tensor->type_name : info->name;
}

/* Types that can be computed with need not be the same; that they are not is told. */
static tm_status tell_types(decision *d) {
  const tm_merge_part *first = &d->parts.items[0], *other = NULL;
  for (uint32_t i = d->parts.count; i-- > 1;)
    if (d->parts.items[i].tensor->format != first->tensor->format) other = &d->parts.items[i];
  if (other == NULL || d->item->message != NULL) return TM_OK;
  return say(d, TM_MERGE_MISMATCH_TYPE, TM_MERGE_ACTION_COMPUTE, "%.60s in %.60s, %.60s in %.60s; each is computed with as it is",
             type_of(first->tensor), source_name(d, first), type_of(other->tensor), source_name(d, other));
}

static tm_status decide_types(decision *d) {
  const tm_merge_part *odd = NULL;
  char what[200];
  bool are_equal = false;
  for (uint32_t i = d->parts.count; i-- > 0;)
    if (!is_number(d->parts.items[i].tensor)) odd = &d->parts.items[i];
  if (odd == NULL) return tell_types(d);
  TM_TRY(tm_merge_parts_compare(d->settings, d->arena->memory, &d->parts, &are_equal, d->error));
  if (are_equal) {
    copy_part(d, d->parts.items[0]);
    return TM_OK;
  }
  (void)snprintf(what, sizeof what, "%.60s is %.60s, which cannot be computed with, and not equal in all", source_name(d, odd),
                 type_of(odd->tensor));
  return decide_other(d, TM_MERGE_MISMATCH_TYPE, &d->lead, what);
}

/* ---------------------------------------------------------------------------------------------------------- factors ---- */

/* Those whose share of 1 is less than half of the grid that factors lie on.  What else is said of the tensor stays. */
static tm_status drop_weightless(decision *d) {
  tm_merge_parts dropped = { .count = 0 };
  char names[LONGEST_LIST];
  for (uint32_t i = 0; i < d->parts.count; i++)
    if (d->parts.items[i].weight == 0) dropped.items[dropped.count++] = d->parts.items[i];
  if (dropped.count == 0) return TM_OK;
  for (uint32_t i = d->parts.count; i-- > 0;)
    if (d->parts.items[i].weight == 0) tm_merge_parts_drop(&d->parts, i);
  tm_merge_parts_name(d->settings, &dropped, true, names, sizeof names);
  const char *before = d->item->message;
  return say(d, (tm_merge_mismatch)d->item->mismatch, TM_MERGE_ACTION_COMPUTE, "%s%sthe weight of %s is too small beside the "
             "others to count", before == NULL ? "" : before, before == NULL ? "" : "; ", names);
}

static tm_status find_linear_factors(decision *d) {
  double weights[TM_MERGE_MOST_SOURCES];
  tm_merge_parts *parts = &d->parts;
  const bool is_slerp = d->settings->method == TM_MERGE_SLERP;          /* of which one model is left, or there was one */
  if ((d->settings->flags & TM_MERGE_KEEP_WEIGHTS) != 0 && !is_slerp) return TM_OK;
  for (uint32_t i = 0; i < parts->count; i++) weights[i] = is_slerp ? 1 : parts->items[i].weight;
  if (!tm_merge_weights_normalize(weights, parts->count, d->item->is_wide == 0)) {
    char shown[160];
    (void)tm_text_escape(d->item->name.data, d->item->name.length, shown, sizeof shown);
    return tm_fail(d->error, TM_ERROR_ARGUMENT,
                   "tensor '%s': the weights sum to 0 (or nearly, beside the largest; or to infinity); keep them as "
                   "they are, or give others", shown);
  }
  for (uint32_t i = 0; i < parts->count; i++) parts->items[i].weight = weights[i];
  TM_TRY(drop_weightless(d));
  for (uint32_t i = 0; i < parts->count && parts->count > 1; i++)
    d->item->is_mean = d->item->is_mean != 0 || d->item->is_wide != 0 || parts->items[i].weight < 0;
  return TM_OK;
}

static bool are_wide(const tm_merge_parts *parts) {
  bool are = false;
  for (uint32_t i = 0; i < parts->count; i++) are = are || parts->items[i].tensor->format == TM_FORMAT_F64;
  return are;
}

static tm_status find_factors(decision *d) {
  const bool is_alone = d->parts.count == 1;
  tm_merge_item *item = d->item;
  item->method = d->settings->method;
  item->t = d->figures.t;
  item->scale = d->figures.scale;
  item->is_wide = are_wide(&d->parts);
  for (uint32_t i = 0; i < d->parts.count; i++)
    if (!isfinite(d->parts.items[i].weight * item->scale))
      return tm_fail(d->error, TM_ERROR_ARGUMENT, "merge: a weight of %g times a scale of %g is no finite number",
                     d->parts.items[i].weight, item->scale);
  if (item->method != TM_MERGE_SLERP) tm_merge_parts_sort(d->settings, &d->parts);
  if (tm_merge_has_base(d->settings) && (is_alone || item->scale == 0)) tm_merge_parts_keep(&d->parts, 0);
  else if (item->method == TM_MERGE_LINEAR || is_alone) TM_TRY(find_linear_factors(d));
  if (d->parts.count == 1) item->method = TM_MERGE_LINEAR;
  item->is_nothing = !tm_merge_has_base(d->settings);
  for (uint32_t i = 0; i < d->parts.count; i++) item->is_nothing = item->is_nothing && d->parts.items[i].weight == 0;
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------- the result ---- */

/* A format is asked for, but integers are no weights: rounding an index or a mask to a float is nobody's wish. */
static tm_status tell_kept(decision *d, const tm_archive_tensor *tensor, uint32_t wanted) {
  const char *before = d->item->message;
  if (wanted == TM_FORMAT_NONE || wanted == tensor->format) return TM_OK;
  return say(d, (tm_merge_mismatch)d->item->mismatch, TM_MERGE_ACTION_COPY, "%s%s%.60s stays what it is; a type for results is for "
             "floats and blocks only", before == NULL ? "" : before, before == NULL ? "" : "; ", type_of(tensor));
}

static bool can_be_written(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  return info != NULL && info->has_arithmetic;
}

/* The result would have a block format that can only be read.  Where all are equal it is what they are, whatever method. */
static tm_status decide_unwritable(decision *d) {
  tm_merge_item *item = d->item;
  char what[200];
  bool are_equal = false;
  const bool is_mean = item->method != TM_MERGE_LINEAR || (d->settings->flags & TM_MERGE_KEEP_WEIGHTS) == 0;
  if (d->parts.count > 1 && is_mean && !d->has_rest)
    TM_TRY(tm_merge_parts_compare(d->settings, d->arena->memory, &d->parts, &are_equal, d->error));
  (void)snprintf(what, sizeof what, "%.60s can be read, but not written by this version; give another dtype for it",
                 tm_format_find(item->format)->name);
  if (are_equal) copy_part(d, d->parts.items[0]);
  else TM_TRY(decide_other(d, TM_MERGE_MISMATCH_TYPE, &d->lead, what));
  if (item->action == TM_MERGE_ACTION_COPY) take_shape(d, d->parts.items[0].tensor);    /* all of it, whatever rows a result had had */
  item->format = d->parts.items[0].tensor->format;
  return TM_OK;
}

/* What is copied stays what it is, unless it is asked for in another form and can be. */
static tm_status choose_format(decision *d) {
  tm_merge_item *item = d->item;
  const tm_archive_tensor *first = d->parts.items[0].tensor;
  const bool is_whole = !d->has_rest && item->element_count == first->element_count;
  const bool is_single = d->parts.count == 1 && d->parts.items[0].weight == 1 && is_whole;
  const uint32_t wanted = d->figures.format;
  if (is_single && !is_number(first)) {
    item->action = TM_MERGE_ACTION_COPY;
    item->format = first->format;
    if (!is_closed(first)) return tell_kept(d, first, wanted);
    if (wanted == TM_FORMAT_NONE || wanted == first->format) return TM_OK;
    char what[160];
    (void)snprintf(what, sizeof what, "it is %.60s, which this version cannot change to %s", type_of(first),
                   tm_format_find(wanted)->name);
    return decide_other(d, TM_MERGE_MISMATCH_TYPE, &d->parts.items[0], what);
  }
  const bool leads = item->action != TM_MERGE_ACTION_COPY && is_number(d->lead.tensor);
  item->format = wanted != TM_FORMAT_NONE ? wanted : leads ? d->lead.tensor->format : first->format;
  item->action = is_single && item->format == first->format ? TM_MERGE_ACTION_COPY : TM_MERGE_ACTION_COMPUTE;
  if (d->parts.count == 1) item->method = TM_MERGE_LINEAR;
  return item->action == TM_MERGE_ACTION_COPY || can_be_written(item->format) ? TM_OK : decide_unwritable(d);
}

/* Why a file of that kind has no place for the type, and whether the other kind has; NULL: it has. */
static const char *why_not_type(bool is_gguf, const tm_format_info *info, bool has_own_type) {
  const bool in_gguf = info != NULL && info->gguf_type != TM_NO_GGUF_TYPE;
  const bool in_safetensors = info != NULL ? info->safetensors != NULL : has_own_type;
  if (is_gguf ? in_gguf : in_safetensors) return NULL;
  if (is_gguf) return in_safetensors ? "GGUF has no such type, but safetensors has" : "neither GGUF nor safetensors has such a type";
  return in_gguf ? "safetensors has no such type, but GGUF has" : "neither safetensors nor GGUF has such a type";
}

/* Why the file cannot hold it, "": it can. */
static void tell_why_not(const tm_merge_settings *settings, const tm_merge_item *item, char *out_text, size_t capacity) {
  const tm_format_info *info = tm_format_find(item->format);
  const bool is_gguf = settings->writer_format == TM_WRITER_GGUF;
  const uint64_t last = item->rank == 0 ? 1 : item->dims[item->rank - 1];
  const char *why = why_not_type(is_gguf, info, item->has_own_type != 0);
  if (why == NULL && is_gguf && item->rank > 4) why = "GGUF has at most 4 axes";
  (void)snprintf(out_text, capacity, "%s", why == NULL ? "" : why);
  if (why == NULL && info != NULL && last % info->block_elements != 0)
    (void)snprintf(out_text, capacity, "its last dimension, %" PRIu64 ", is no multiple of the %" PRIu32 " elements of a block; "
                   "another type for it, such as f32, has none", last, info->block_elements);
}

static bool is_whole_blocks(uint64_t elements, const tm_format_info *info) {
  return info == NULL || elements % info->block_elements == 0;
}

/* Where rows are scalars, what all have may end within a block of the result or of an input. */
static const char *why_not_cut(const decision *d) {
  const uint64_t common = d->item->common_count;
  bool fits = is_whole_blocks(common, tm_format_find(d->item->format));
  if (d->item->action != TM_MERGE_ACTION_COMPUTE) return NULL;
  for (uint32_t i = 0; i < d->parts.count; i++)
    fits = fits && is_whole_blocks(common, tm_format_find(d->parts.items[i].tensor->format));
  if (d->has_rest) fits = fits && is_whole_blocks(common, tm_format_find(d->rest.tensor->format));
  return fits ? NULL : "the rows that all have are no whole number of blocks";
}

static tm_status find_bytes(decision *d) {
  tm_merge_item *item = d->item;
  const tm_archive_tensor *first = d->parts.items[0].tensor;
  const tm_format_info *info = tm_format_find(item->format);
  const tm_archive *archive = d->settings->sources[d->parts.items[0].source].archive;
  item->type_name = info == NULL ? first->type_name : info->name;
  item->has_own_type = info == NULL && strcmp(tm_archive_format_name(archive), "safetensors") == 0;
  item->bytes = first->bytes;
  char text[160];
  tell_why_not(d->settings, item, text, sizeof text);
  const bool may_skip = text[0] != '\0' && d->settings->other == TM_MERGE_OTHER_SKIP;
  const char *why = text[0] == '\0' ? why_not_cut(d) : text;
  const bool fits = why != NULL || info == NULL || tm_format_bytes(info, item->element_count, &item->bytes);
  if (!fits) why = "it would need too many bytes";
  if (why == NULL) return TM_OK;
  if (may_skip)
    return say(d, TM_MERGE_MISMATCH_FORMAT, TM_MERGE_ACTION_SKIP, "%s: %s; left out", item->type_name, why);
  const bool has_rows = item->mismatch == TM_MERGE_MISMATCH_ROWS;       /* which may be why */
  return say(d, has_rows ? TM_MERGE_MISMATCH_ROWS : TM_MERGE_MISMATCH_FORMAT, TM_MERGE_ACTION_REFUSE, "%s: %s",
             item->type_name, why);
}

static tm_status refuse_incomplete(decision *d) {
  const tm_merge_part *cut = d->has_rest && (d->rest.tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0 ? &d->rest : NULL;
  for (uint32_t i = 0; i < d->parts.count && cut == NULL; i++)
    if ((d->parts.items[i].tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0) cut = &d->parts.items[i];
  if (cut == NULL) return TM_OK;
  return say(d, TM_MERGE_MISMATCH_MISSING, TM_MERGE_ACTION_REFUSE, "in %.60s the file ends before the tensor does",
             source_name(d, cut));
}

static tm_merge_input input_of(const tm_merge_part *part) {
  return (tm_merge_input){ .source = part->source, .tensor = part->index, .weight = part->weight, .density = part->density };
}

static tm_status keep_inputs(decision *d) {
  tm_merge_item *item = d->item;
  tm_merge_input *inputs = tm_arena_calloc(d->arena, d->parts.count + d->has_rest, sizeof *inputs);
  if (inputs == NULL) return fail_memory(d);
  for (uint32_t i = 0; i < d->parts.count; i++) inputs[i] = input_of(&d->parts.items[i]);
  item->inputs = inputs;
  item->input_count = d->parts.count;
  if (!d->has_rest) return TM_OK;
  inputs[d->parts.count] = input_of(&d->rest);
  inputs[d->parts.count].weight = 1;
  item->rest = &inputs[d->parts.count];
  return TM_OK;
}

/* Before parts are sorted or dropped. */
static void find_lead(decision *d) {
  const tm_merge_settings *settings = d->settings;
  const tm_archive *archive = settings->sources[settings->lead].archive;
  tm_merge_part lead = { .source = settings->lead, .weight = 1, .density = 1 };
  d->lead = d->parts.items[0];
  if (!tm_archive_find(archive, d->item->name.data, d->item->name.length, &lead.index)) return;
  lead.tensor = tm_archive_tensor_at(archive, lead.index);
  d->lead = lead;
}

/* Copying leaves nothing more to decide but the format. */
static tm_status decide_values(decision *d) {
  if (d->item->action == TM_MERGE_ACTION_COPY) return TM_OK;
  take_shape(d, d->parts.items[0].tensor);
  TM_TRY(decide_shapes(d));
  if (is_decided(d) || d->item->action == TM_MERGE_ACTION_COPY) return TM_OK;
  TM_TRY(decide_types(d));
  if (is_decided(d) || d->item->action == TM_MERGE_ACTION_COPY) return TM_OK;
  return find_factors(d);
}

static tm_status decide(decision *d) {
  tm_merge_item *item = d->item;
  TM_TRY(tm_merge_parts_gather(d->settings, item->name, &d->figures, &d->parts, d->error));
  uint64_t index = 0;
  const uint32_t source = first_source(d->settings, item->name, &index);
  const tm_archive_tensor *any = tm_archive_tensor_at(d->settings->sources[source].archive, index);
  take_shape(d, any);
  item->format = any->format;
  item->type_name = type_of(any);
  TM_TRY(decide_missing(d));
  if (!is_decided(d)) TM_TRY(refuse_incomplete(d));
  if (is_decided(d)) return TM_OK;
  find_lead(d);
  TM_TRY(decide_values(d));
  if (!is_decided(d)) TM_TRY(refuse_incomplete(d));
  if (is_decided(d)) return TM_OK;
  if (item->action == TM_MERGE_ACTION_COPY) take_shape(d, d->parts.items[0].tensor);
  TM_TRY(choose_format(d));
  if (is_decided(d)) return TM_OK;
  TM_TRY(find_bytes(d));
  return is_decided(d) ? TM_OK : keep_inputs(d);
}

tm_status tm_merge_item_make(const tm_merge_settings *settings, tm_arena *arena, tm_string name, tm_merge_item *out_item,
                             tm_error *error) {
  *out_item = (tm_merge_item){ .name = name, .action = TM_MERGE_ACTION_COMPUTE, .method = settings->method };
  decision d = { .settings = settings, .arena = arena, .item = out_item, .error = error };
  tm_merge_settings_apply(settings, name, &d.figures);
  return decide(&d);
}
