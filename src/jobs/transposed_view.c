/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/transposed_view.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/codec.h"

#define MOST_BLOCK_BYTES 1024u
#define MOST_BLOCK_ELEMENTS 256u
/* What is not mapped is read through this. */
#define WINDOW_BYTES 16384u

void tm_squeezed_dims_take(const tm_archive_tensor *tensor, tm_squeezed_dims *out_dims) {
  out_dims->rank = 0;
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (tensor->dims[i] != 1) out_dims->dims[out_dims->rank++] = tensor->dims[i];
}

bool tm_transposed_can_flip(const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  return info != NULL && info->has_arithmetic && info->block_elements == 1;
}

static bool has_values(const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  return info != NULL && info->has_arithmetic && tensor->element_count != 0 && (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0;
}

bool tm_transposed_is_possible(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  tm_squeezed_dims left, right;
  if (!has_values(a) || !has_values(b) || (!tm_transposed_can_flip(a) && !tm_transposed_can_flip(b))) return false;
  tm_squeezed_dims_take(a, &left);
  tm_squeezed_dims_take(b, &right);
  if (left.rank != right.rank || left.rank < 2) return false;
  for (uint32_t i = 0; i < left.rank; i++)
    if (left.dims[i] != right.dims[left.rank - 1 - i]) return false;
  return true;
}

bool tm_transposed_is_symmetric(const tm_archive_tensor *tensor) {
  tm_squeezed_dims dims;
  tm_squeezed_dims_take(tensor, &dims);
  for (uint32_t i = 0; i < dims.rank; i++)
    if (dims.dims[i] != dims.dims[dims.rank - 1 - i]) return false;
  return true;
}

/* A part of the flipped one is gathered from all over it, in the longer runs the more rows of the other one it covers. */
uint32_t tm_transposed_choose(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  tm_squeezed_dims left, right;
  if (!tm_transposed_can_flip(b)) return 0;
  if (!tm_transposed_can_flip(a)) return 1;
  tm_squeezed_dims_take(a, &left);
  tm_squeezed_dims_take(b, &right);
  return left.dims[0] >= right.dims[0] ? 1 : 0;
}

/* ---- samples ---- */

/* Where element `place` of the transpose is stored. */
static uint64_t stored_place(const tm_squeezed_dims *dims, uint64_t place) {
  uint64_t index[TM_ARCHIVE_MAX_RANK], stored = 0;
  for (uint32_t i = 0; i < dims->rank; i++) {
    index[i] = place % dims->dims[i];
    place /= dims->dims[i];
  }
  for (uint32_t i = 0; i < dims->rank; i++) stored = stored * dims->dims[i] + index[i];
  return stored;
}

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t scatter(uint64_t number) {
  uint64_t x = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

void tm_transposed_places(const tm_archive *archive, uint64_t tensor, uint32_t count, uint64_t *out_places) {
  const uint64_t elements = tm_archive_tensor_at(archive, tensor)->element_count;
  for (uint32_t i = 0; i < count; i++) out_places[i] = (elements <= count ? i : scatter(i)) % elements;
}

tm_status tm_transposed_sample(const tm_archive *archive, uint64_t tensor, bool is_flipped, const uint64_t *places, uint32_t count,
                               double *out_values, tm_error *error) {
  unsigned char block[MOST_BLOCK_BYTES];
  double values[MOST_BLOCK_ELEMENTS];
  tm_squeezed_dims dims;
  const tm_archive_tensor *found = tm_archive_tensor_at(archive, tensor);
  const tm_format_info *info = tm_format_find(found->format);
  tm_squeezed_dims_take(found, &dims);
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t at = is_flipped ? stored_place(&dims, places[i]) : places[i];
    TM_TRY(tm_archive_read(archive, tensor, at / info->block_elements * info->block_bytes, block, info->block_bytes, error));
    tm_codec_find(info->format)->decode(block, info->block_elements, values);
    out_values[i] = tm_f64_unified(values[at % info->block_elements]);
  }
  return TM_OK;
}

/* ---- others than the usual ---- */

#define CHUNK_ELEMENTS 4096u
#define GOLDEN_RATIO 0.6180339887498949

typedef struct other_places {
  uint32_t  count;
  uint64_t *places;
} other_places;

/* At most `most` of a chunk, from a place on that is another one in each. */
static void pick(const double *values, uint64_t count, uint64_t first, double usual, uint64_t most, other_places *found) {
  const uint64_t start = scatter(first) % count;
  for (uint64_t i = 0; i < count && most > 0 && found->count < TM_TRANSPOSED_SAMPLES; i++) {
    const uint64_t at = (start + i) % count;
    const double value = tm_f64_unified(values[at]);
    if (memcmp(&value, &usual, sizeof usual) == 0) continue;
    found->places[found->count++] = first + at;
    most--;
  }
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Steps of that size visit each of `count` once, and are all over them soon. */
static uint64_t step_over(uint64_t count) {
  uint64_t step = tm_max_u64(1, (uint64_t)((double)count * GOLDEN_RATIO));
  while (common_divisor(step, count) != 1) step++;
  return step;
}

tm_status tm_transposed_find_others(const tm_archive *archive, uint64_t tensor, const tm_transposed_search *search, uint32_t *out_count,
                                    uint64_t *out_places, tm_error *error) {
  unsigned char data[CHUNK_ELEMENTS * 8];
  double values[CHUNK_ELEMENTS];
  const tm_archive_tensor *one = tm_archive_tensor_at(archive, tensor);
  const tm_format_info *info = tm_format_find(one->format);
  const uint64_t chunks = tm_divide_up(one->element_count, CHUNK_ELEMENTS), step = step_over(chunks);
  const uint64_t most = tm_max_u64(2, tm_divide_up(TM_TRANSPOSED_SAMPLES, chunks));
  other_places found = { 0, out_places };
  for (uint64_t i = 0, chunk = 0; i < chunks && found.count < TM_TRANSPOSED_SAMPLES; i++, chunk = (chunk + step) % chunks) {
    const uint64_t first = chunk * CHUNK_ELEMENTS, count = tm_min_u64(CHUNK_ELEMENTS, one->element_count - first);
    const uint64_t bytes = count / info->block_elements * info->block_bytes;
    if (atomic_load_explicit(search->cancelled, memory_order_relaxed) != 0) return TM_ERROR_CANCELLED;
    TM_TRY(tm_archive_read(archive, tensor, first / info->block_elements * info->block_bytes, data, bytes, error));
    tm_codec_find(info->format)->decode(data, count, values);
    pick(values, count, first, search->usual, most, &found);
  }
  *out_count = found.count;
  return TM_OK;
}

/* ---- runs ---- */

/*
 * The stored tensor is a matrix of `lines`, each as long as its last axis, which is the first one of the transpose.  So an element
 * of a line belongs to a row of the transpose, and the line's number says where in each row.
 */
typedef struct gathering {
  const tm_archive *archive;
  uint64_t          tensor;
  tm_squeezed_dims  places;             /* all axes but the last, in reverse order: from a line's number to its place in a row */
  uint64_t          line_elements;
  uint64_t          lines;
  uint64_t          element_bytes;
  uint64_t          begin, end;         /* elements of the transpose */
  char             *out;
} gathering;

/* Elements [first, first + count) of a line, which go to the same place of as many rows. */
static void put_run(const gathering *g, uint64_t place, uint64_t first, uint64_t count, const char *data) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t at = (first + i) * g->lines + place;
    if (at < g->begin || at >= g->end) continue;
    char *out = g->out + (at - g->begin) * g->element_bytes;
    switch (g->element_bytes) {
      case 1: *out = data[i]; break;
      case 2: memcpy(out, data + 2 * i, 2); break;
      case 4: memcpy(out, data + 4 * i, 4); break;
      default: memcpy(out, data + g->element_bytes * i, (size_t)g->element_bytes); break;
    }
  }
}

static tm_status put_line(const gathering *g, uint64_t line, uint64_t place, uint64_t first_row, uint64_t rows, tm_error *error) {
  char window[WINDOW_BYTES];
  const char *mapped = tm_archive_mapped(g->archive, g->tensor);
  const uint64_t begin = line * g->line_elements + first_row;
  if (mapped != NULL) {
    put_run(g, place, first_row, rows, mapped + begin * g->element_bytes);
    return TM_OK;
  }
  for (uint64_t done = 0; done < rows;) {
    const uint64_t count = tm_min_u64(rows - done, WINDOW_BYTES / g->element_bytes);
    TM_TRY(tm_archive_read(g->archive, g->tensor, (begin + done) * g->element_bytes, window, count * g->element_bytes, error));
    put_run(g, place, first_row + done, count, window);
    done += count;
  }
  return TM_OK;
}

/* Short lines that are wanted whole lie side by side: many are read at once. */
static tm_status put_short_lines(const gathering *g, uint64_t first, uint64_t last, tm_error *error) {
  char window[WINDOW_BYTES];
  const uint64_t line_bytes = g->line_elements * g->element_bytes, most = WINDOW_BYTES / line_bytes;
  for (uint64_t line = first; line <= last;) {
    const uint64_t count = tm_min_u64(most, last - line + 1);
    TM_TRY(tm_archive_read(g->archive, g->tensor, line * line_bytes, window, count * line_bytes, error));
    for (uint64_t i = 0; i < count; i++) put_run(g, stored_place(&g->places, line + i), 0, g->line_elements, window + i * line_bytes);
    line += count;
  }
  return TM_OK;
}

static void begin_gathering(gathering *g) {
  tm_squeezed_dims dims;
  const tm_archive_tensor *found = tm_archive_tensor_at(g->archive, g->tensor);
  tm_squeezed_dims_take(found, &dims);
  g->line_elements = dims.dims[dims.rank - 1];
  g->lines = found->element_count / g->line_elements;
  g->element_bytes = tm_format_find(found->format)->block_bytes;
  g->places.rank = dims.rank - 1;
  for (uint32_t i = 0; i + 1 < dims.rank; i++) g->places.dims[i] = dims.dims[dims.rank - 2 - i];
}

tm_status tm_transposed_read(const tm_archive *archive, uint64_t tensor, uint64_t begin, uint64_t elements, void *out_data, tm_error *error) {
  gathering g = { .archive = archive, .tensor = tensor, .begin = begin, .end = begin + elements, .out = out_data };
  if (elements == 0) return TM_OK;
  begin_gathering(&g);
  const uint64_t first_row = begin / g.lines, rows = (g.end - 1) / g.lines - first_row + 1;
  const bool is_part_of_row = g.places.rank == 1 && rows == 1;
  const uint64_t first = is_part_of_row ? begin % g.lines : 0, last = is_part_of_row ? (g.end - 1) % g.lines : g.lines - 1;
  const bool is_short = g.line_elements * g.element_bytes <= WINDOW_BYTES;
  if (rows == g.line_elements && is_short && tm_archive_mapped(archive, tensor) == NULL) return put_short_lines(&g, first, last, error);
  for (uint64_t line = first; line <= last; line++) TM_TRY(put_line(&g, line, stored_place(&g.places, line), first_row, rows, error));
  return TM_OK;
}
