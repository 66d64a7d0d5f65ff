/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/check_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* Of an axis that is longer nobody wants a list. */
#define MOST_SLICES UINT64_C(65536)
#define SLICES_IN_WORDS 16u

/* Which slices of the outermost axis hold something, in an array of their indices. */
typedef struct slice_list {
  uint64_t *indices;
  uint64_t  count;
  uint64_t  capacity;           /* extent of the axis; 0: the tensor has too few axes, or too many slices */
} slice_list;

typedef struct examined {
  const tm_checked_tensor *checked;
  const tm_archive_tensor *tensor;
  const tm_format_info    *info;
  tm_value_scan            values;
  slice_list               nan;
  slice_list               inf;
} examined;

/* ---- looking ---- */

static tm_status scan_range(const examined *e, uint64_t begin, uint64_t end, tm_value_scan *out_values, tm_error *error) {
  tm_host_scan scan;
  uint64_t bytes;
  tm_host_scan_init(&scan, e->checked->archive, e->checked->tensor, false);
  scan.next = begin;
  scan.end = end;
  while (!tm_host_scan_is_done(&scan)) {
    if (tm_job_is_cancelled(e->checked->job)) return TM_ERROR_CANCELLED;
    TM_TRY(tm_host_scan_step(e->checked->scanner, &scan, &bytes, error));
  }
  *out_values = scan.values;
  return TM_OK;
}

static tm_status scan_slices(examined *e, uint64_t units, tm_error *error) {
  const uint64_t slices = e->nan.capacity, slice_units = units / slices;
  for (uint64_t s = 0; s < slices; s++) {
    tm_value_scan values;
    TM_TRY(scan_range(e, s * slice_units, (s + 1) * slice_units, &values, error));
    const bool has_inf = values.pos_inf_count + values.neg_inf_count != 0;
    if (values.nan_count != 0) e->nan.indices[e->nan.count++] = s;
    if (has_inf) e->inf.indices[e->inf.count++] = s;
    tm_value_scan_merge(&e->values, &values);
  }
  return TM_OK;
}

static tm_status scan_all(examined *e, tm_error *error) {
  const uint64_t units = e->tensor->element_count / e->info->block_elements;
  tm_value_scan_init(&e->values);
  return e->nan.capacity == 0 ? scan_range(e, 0, units, &e->values, error) : scan_slices(e, units, error);
}

/* ---- words ---- */

static const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

static void append(char *text, size_t capacity, const char *more) {
  const size_t used = strlen(text);
  (void)snprintf(text + used, capacity - used, "%s", more);
}

static void append_number(char *text, size_t capacity, const char *before, uint64_t number) {
  const size_t used = strlen(text);
  (void)snprintf(text + used, capacity - used, "%s%" PRIu64, before, number);
}

/* "[3, 17, 2]" */
static void append_index(char *text, size_t capacity, const uint64_t *index, uint32_t rank) {
  append(text, capacity, "[");
  for (uint32_t i = 0; i < rank; i++) append_number(text, capacity, i == 0 ? "" : ", ", index[i]);
  append(text, capacity, "]");
}

/* Tensors of many experts say so in their names: "ffn_up_exps", "mlp.experts.down_proj". */
static bool has_experts(tm_string name) {
  static const char *const words[] = { "exps", "experts" };
  for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
    const size_t length = strlen(words[w]);
    for (uint64_t i = 0; i + length <= name.length; i++)
      if (memcmp(name.data + i, words[w], length) == 0) return true;
  }
  return false;
}

/* "; in expert 3 of 8", "; in slices 0, 2, 5 and 9 more of 64" */
static void append_slices(char *text, size_t capacity, const slice_list *slices, tm_string name) {
  if (slices->capacity == 0 || slices->count == 0) return;
  append(text, capacity, has_experts(name) ? "; in expert" : "; in slice");
  append(text, capacity, plural(slices->count));
  for (uint64_t i = 0; i < slices->count && i < SLICES_IN_WORDS; i++)
    append_number(text, capacity, i == 0 ? " " : ", ", slices->indices[i]);
  if (slices->count > SLICES_IN_WORDS) {
    append_number(text, capacity, " and ", slices->count - SLICES_IN_WORDS);
    append(text, capacity, " more");
  }
  append_number(text, capacity, " of ", slices->capacity);
}

/* ---- rows ---- */

/* The index of a unit; of blocks the last number counts blocks in a row.  Of a tensor without axes none is left. */
static uint32_t index_of(const examined *e, uint64_t unit, uint64_t *out_index) {
  const uint32_t rank = e->tensor->rank;
  for (uint32_t axis = rank; axis-- > 0;) {
    const uint64_t extent = axis + 1 == rank ? e->tensor->dims[axis] / e->info->block_elements : e->tensor->dims[axis];
    out_index[axis] = unit % extent;
    unit /= extent;
  }
  return rank;
}

static tm_status add_row(const examined *e, tm_check_row *row, uint64_t count, uint64_t first, const slice_list *slices,
                         tm_error *error) {
  uint64_t index[TM_ARCHIVE_MAX_RANK];
  row->has_counts = true;
  row->count = count;
  row->total = e->tensor->element_count / e->info->block_elements;
  row->first = index;
  row->first_rank = index_of(e, first, index);
  if (row->first_rank != 0) {
    append(row->message, sizeof row->message, e->info->kind == TM_KIND_BLOCK ? ", the first is block " : ", the first at ");
    append_index(row->message, sizeof row->message, index, row->first_rank);
  }
  if (slices->capacity != 0) {
    row->slices = slices->indices;
    row->slice_count = slices->count;
    append_slices(row->message, sizeof row->message, slices, e->tensor->name);
  }
  return tm_check_row_add(e->checked->job, row, error);
}

static void begin_row(const examined *e, const char *kind, tm_check_row *out_row) {
  tm_check_row_init(out_row, TM_CHECK_FINDING, kind, e->checked->file, e->tensor);
}

static tm_status report_nan(const examined *e, tm_error *error) {
  tm_check_row row;
  begin_row(e, "nan", &row);
  (void)snprintf(row.message, sizeof row.message, "%" PRIu64 " NaN of %" PRIu64 " element%s", e->values.nan_count,
                 e->tensor->element_count, plural(e->tensor->element_count));
  return add_row(e, &row, e->values.nan_count, e->values.first_nan, &e->nan, error);
}

static tm_status report_inf(const examined *e, tm_error *error) {
  const uint64_t plus = e->values.pos_inf_count, minus = e->values.neg_inf_count, total = e->tensor->element_count;
  tm_check_row row;
  begin_row(e, "inf", &row);
  if (plus != 0 && minus != 0)
    (void)snprintf(row.message, sizeof row.message, "%" PRIu64 " +Inf and %" PRIu64 " -Inf of %" PRIu64 " elements", plus, minus, total);
  else
    (void)snprintf(row.message, sizeof row.message, "%" PRIu64 " %cInf of %" PRIu64 " element%s", plus + minus, plus != 0 ? '+' : '-',
                   total, plural(total));
  return add_row(e, &row, plus + minus, e->values.first_inf, &e->inf, error);
}

/* Both lists are in order; so is the result, in the first one's place. */
static void unite(slice_list *list, const slice_list *other, uint64_t *room) {
  uint64_t a = 0, b = 0, count = 0;
  while (a < list->count || b < other->count) {
    const uint64_t left = a < list->count ? list->indices[a] : UINT64_MAX,
                   right = b < other->count ? other->indices[b] : UINT64_MAX;
    room[count++] = tm_min_u64(left, right);
    a += left <= right;
    b += right <= left;
  }
  list->indices = room;
  list->count = count;
}

static tm_status report_blocks(examined *e, uint64_t *room, tm_error *error) {
  const uint64_t inf_count = e->values.pos_inf_count + e->values.neg_inf_count, count = e->values.nan_count + inf_count;
  const uint64_t blocks = e->tensor->element_count / e->info->block_elements;
  tm_check_row row;
  begin_row(e, "block_scale", &row);
  (void)snprintf(row.message, sizeof row.message, "%" PRIu64 " of %" PRIu64 " block%s have a scale that is not finite (%" PRIu64
                 " NaN, %" PRIu64 " infinite)", count, blocks, plural(blocks), e->values.nan_count, inf_count);
  if (e->nan.capacity != 0) unite(&e->nan, &e->inf, room);
  return add_row(e, &row, count, tm_min_u64(e->values.first_nan, e->values.first_inf), &e->nan, error);
}

static tm_status report_found(examined *e, uint64_t *room, tm_error *error) {
  TM_TRY(scan_all(e, error));
  if (e->values.nan_count + e->values.pos_inf_count + e->values.neg_inf_count == 0) {
    tm_job_add_note(e->checked->job, "a device counted values that are not finite where there are none; its count was dropped");
    return TM_OK;
  }
  if (e->info->kind == TM_KIND_BLOCK) return report_blocks(e, room, error);
  if (e->values.nan_count != 0) TM_TRY(report_nan(e, error));
  return e->values.pos_inf_count + e->values.neg_inf_count == 0 ? TM_OK : report_inf(e, error);
}

tm_status tm_check_values_report_nonfinite(const tm_checked_tensor *checked, tm_error *error) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(checked->archive, checked->tensor);
  const bool has_slices = tensor->rank >= 3 && tensor->dims[0] <= MOST_SLICES;
  const uint64_t capacity = has_slices ? tensor->dims[0] : 0;
  examined e = { .checked = checked, .tensor = tensor, .info = tm_format_find(tensor->format) };
  uint64_t *room = NULL;
  if (has_slices) {
    room = tm_memory_calloc(checked->scanner->memory, 3 * capacity, sizeof *room);
    if (room == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a list of slices");
    e.nan = (slice_list){ room, 0, capacity };
    e.inf = (slice_list){ room + capacity, 0, capacity };
  }
  const tm_status status = report_found(&e, has_slices ? room + 2 * capacity : NULL, error);
  tm_memory_free(checked->scanner->memory, room, 3 * capacity * sizeof *room);
  return status;
}

tm_status tm_check_values_report_zero(const tm_checked_tensor *checked, tm_error *error) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(checked->archive, checked->tensor);
  const uint64_t block_elements = tm_format_find(tensor->format)->block_elements;
  tm_check_row row;
  tm_check_row_init(&row, TM_CHECK_NOTE, "zero", checked->file, tensor);
  row.has_counts = true;
  row.count = tensor->element_count / block_elements;
  row.total = row.count;
  (void)snprintf(row.message, sizeof row.message, "all of its %" PRIu64 " elements are zero", tensor->element_count);
  return tm_check_row_add(checked->job, &row, error);
}
