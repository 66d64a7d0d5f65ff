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
#define LINES_BETWEEN_LOOKS 1024u

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
  return info != NULL && info->has_values && tensor->element_count != 0 && (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0;
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

/* Steps of that size visit each of `count` once, and are all over them soon. */
static uint64_t step_over(uint64_t count) {
  uint64_t step = tm_max_u64(1, (uint64_t)((double)count * GOLDEN_RATIO));
  while (tm_common_divisor(step, count) != 1) step++;
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
  const char       *mapped;             /* NULL: it is read through the window */
  const _Atomic uint32_t *cancelled;
  tm_squeezed_dims  places;             /* all axes but the last, in reverse order: from a place in a row to the line's number */
  uint64_t          place_strides[TM_ARCHIVE_MAX_RANK];         /* by axis of `places` */
  uint64_t          line_strides[TM_ARCHIVE_MAX_RANK];
  uint64_t          line_elements;
  uint64_t          lines;
  uint64_t          element_bytes;
  uint64_t          begin, end;         /* elements of the transpose */
  uint64_t          first_row, rows;    /* which it touches */
  char             *out;
  uint64_t          window_begin, window_end;   /* bytes of the tensor */
  char              window[WINDOW_BYTES];
} gathering;

/* Places of a row that differ in `axis`, from where `place` and `line` are, and in all axes after it, from 0. */
typedef struct place_box {
  uint64_t place, line;                 /* the first */
  uint32_t axis;
  uint64_t count;                       /* along it */
} place_box;

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

/* `useful`: bytes from there on that are worth reading along if some have to be read. */
static tm_status put_read(gathering *g, uint64_t line, uint64_t place, uint64_t useful, tm_error *error) {
  const uint64_t begin = (line * g->line_elements + g->first_row) * g->element_bytes, bytes = g->rows * g->element_bytes;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t part = tm_min_u64(bytes - done, WINDOW_BYTES / g->element_bytes * g->element_bytes), at = begin + done;
    if (at < g->window_begin || at + part > g->window_end) {
      g->window_begin = at;
      g->window_end = at + tm_max_u64(part, tm_min_u64(WINDOW_BYTES, useful));
      TM_TRY(tm_archive_read(g->archive, g->tensor, at, g->window, g->window_end - at, error));
    }
    put_run(g, place, g->first_row + done / g->element_bytes, part / g->element_bytes, g->window + (at - g->window_begin));
    done += part;
  }
  return TM_OK;
}

/* Lines that lie near each other are read together, as far as the next of them is certain to follow. */
static uint64_t useful_bytes(const gathering *g, const place_box *box, uint64_t line, uint64_t left) {
  const uint64_t stride_bytes = g->line_strides[box->axis] * g->line_elements * g->element_bytes;
  if (stride_bytes > WINDOW_BYTES / 4) return 0;
  const bool is_whole_axis = box->count == g->places.dims[box->axis];
  const uint64_t end = is_whole_axis ? g->lines : line + (left - 1) * g->line_strides[box->axis] + 1;
  return ((end - line - 1) * g->line_elements + (g->line_elements - g->first_row)) * g->element_bytes;
}

static tm_status put_line(gathering *g, const place_box *box, uint64_t line, uint64_t place, uint64_t left, tm_error *error) {
  if (g->mapped == NULL) return put_read(g, line, place, useful_bytes(g, box, line, left), error);
  put_run(g, place, g->first_row, g->rows, g->mapped + (line * g->line_elements + g->first_row) * g->element_bytes);
  return TM_OK;
}

/* In the order in which the lines are stored: `axis` is the fastest. */
static tm_status put_box(gathering *g, const place_box *box, tm_error *error) {
  uint64_t index[TM_ARCHIVE_MAX_RANK] = { 0 }, line = box->line, place = box->place;
  const uint64_t lines = box->count * g->place_strides[box->axis];
  for (uint64_t i = 0; i < lines; i++) {
    if (i % LINES_BETWEEN_LOOKS == 0 && g->cancelled != NULL && atomic_load_explicit(g->cancelled, memory_order_relaxed) != 0)
      return tm_fail(error, TM_ERROR_CANCELLED, "cancelled");
    TM_TRY(put_line(g, box, line, place, box->count - index[box->axis], error));
    for (uint32_t axis = box->axis; axis < g->places.rank; axis++) {
      const uint64_t count = axis == box->axis ? box->count : g->places.dims[axis];
      line += g->line_strides[axis];
      place += g->place_strides[axis];
      if (++index[axis] < count) break;
      index[axis] = 0;
      line -= count * g->line_strides[axis];
      place -= count * g->place_strides[axis];
    }
  }
  return TM_OK;
}

/* The largest box that begins at a place and ends at `end` or before. */
static place_box box_at(const gathering *g, uint64_t place, uint64_t end) {
  place_box box = { .place = place, .axis = g->places.rank - 1 };
  while (box.axis > 0) {
    const uint64_t whole = g->place_strides[box.axis - 1];
    if (place % whole != 0 || end - place < whole) break;
    box.axis--;
  }
  const uint64_t stride = g->place_strides[box.axis], dim = g->places.dims[box.axis];
  box.count = tm_min_u64(dim - place / stride % dim, (end - place) / stride);
  while (box.count == 1 && box.axis + 1 < g->places.rank) box.count = g->places.dims[++box.axis];
  for (uint32_t axis = 0; axis < g->places.rank; axis++)
    box.line += place / g->place_strides[axis] % g->places.dims[axis] * g->line_strides[axis];
  return box;
}

static void begin_gathering(gathering *g, uint64_t begin, uint64_t elements) {
  tm_squeezed_dims dims;
  const tm_archive_tensor *found = tm_archive_tensor_at(g->archive, g->tensor);
  tm_squeezed_dims_take(found, &dims);
  g->mapped = tm_archive_mapped(g->archive, g->tensor);
  g->line_elements = dims.dims[dims.rank - 1];
  g->lines = found->element_count / g->line_elements;
  g->element_bytes = tm_format_find(found->format)->block_bytes;
  g->places.rank = dims.rank - 1;
  uint64_t stride = 1;
  for (uint32_t i = 0; i < g->places.rank; i++) {
    g->places.dims[i] = dims.dims[dims.rank - 2 - i];
    g->line_strides[i] = stride;
    stride *= g->places.dims[i];
    g->place_strides[i] = g->lines / stride;
  }
  g->begin = begin;
  g->end = begin + elements;
  g->first_row = begin / g->lines;
  g->rows = (g->end - 1) / g->lines - g->first_row + 1;
}

/* Of one row only the lines that it takes; of several all, of which each has something for them. */
tm_status tm_transposed_read(const tm_archive *archive, uint64_t tensor, uint64_t begin, uint64_t elements, const _Atomic uint32_t *cancelled,
                             void *out_data, tm_error *error) {
  gathering g;
  if (elements == 0) return TM_OK;
  g.archive = archive;
  g.tensor = tensor;
  g.cancelled = cancelled;
  g.out = out_data;
  g.window_begin = g.window_end = 0;
  begin_gathering(&g, begin, elements);
  const uint64_t first = g.rows == 1 ? begin % g.lines : 0, end = g.rows == 1 ? (g.end - 1) % g.lines + 1 : g.lines;
  for (uint64_t place = first; place < end;) {
    const place_box box = box_at(&g, place, end);
    TM_TRY(put_box(&g, &box, error));
    place += box.count * g.place_strides[box.axis];
  }
  return TM_OK;
}
