/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/stored_form.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/archive_builder.h"
#include "formats/bytes.h"
#include "formats/varint.h"
#include "tensor/byte_order.h"

uint64_t tm_stored_bytes(const tm_archive_tensor *tensor) {
  return tensor->form != NULL && tensor->form->runs != NULL ? tensor->form->run_bytes : tensor->bytes;
}

typedef struct form_reader {
  const tm_archive_tensor *tensor;
  const tm_stored_form    *form;
  const tm_file           *file;
  tm_error                *error;
} form_reader;

/* ------------------------------------------------------------------------------------------ numbers of any length ---- */

#define PIECE_BYTES 4096u

/* The run in which a number lies; the first run begins with number 0. */
static uint64_t find_run(const tm_stored_form *form, uint64_t number) {
  uint64_t low = 0, high = form->run_count;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (form->runs[middle].first <= number) low = middle;
    else high = middle;
  }
  return low;
}

static tm_status fail_numbers(const form_reader *reader) {
  return tm_fail(reader->error, TM_ERROR_CHANGED, "%s: changed while read: tensor \"%s\" has fewer numbers than when it was "
                 "opened", tm_file_label(reader->file), tm_show_name(reader->tensor->name).text);
}

/* Numbers [first, first + count) of one run of varints. */
static tm_status fetch_varints(const form_reader *reader, const tm_number_run *run, uint64_t first, uint64_t count,
                               unsigned char *out) {
  unsigned char piece[PIECE_BYTES];
  const uint32_t width = reader->form->unit_bytes;
  tm_varint varint = { 0 };
  uint64_t at = run->first;
  for (uint64_t offset = run->offset; offset < run->end && at < first + count;) {
    const uint64_t bytes = tm_min_u64(run->end - offset, sizeof piece);
    TM_TRY(tm_file_read(reader->file, offset, piece, bytes, reader->error));
    for (uint64_t i = 0; i < bytes && at < first + count; i++) {
      if (tm_varint_push(&varint, piece[i]) != TM_VARINT_WHOLE) continue;
      if (at >= first) tm_store_le(out + (at - first) * width, varint.value, width);
      varint = (tm_varint){ 0 };
      at++;
    }
    offset += bytes;
  }
  return at == first + count ? TM_OK : fail_numbers(reader);
}

static tm_status fetch_runs(const form_reader *reader, uint64_t first, uint64_t count, unsigned char *out) {
  const tm_stored_form *form = reader->form;
  const uint64_t width = form->unit_bytes;
  for (uint64_t r = find_run(form, first); count > 0; r++) {
    if (r == form->run_count) return fail_numbers(reader);
    const tm_number_run *run = &form->runs[r];
    const uint64_t next = r + 1 == form->run_count ? UINT64_MAX : form->runs[r + 1].first;
    const uint64_t here = tm_min_u64(count, next - first);
    if (form->is_varint) TM_TRY(fetch_varints(reader, run, first, here, out));
    else TM_TRY(tm_file_read(reader->file, run->offset + (first - run->first) * width, out, here * width, reader->error));
    out += here * width;
    first += here;
    count -= here;
  }
  return TM_OK;
}

/* --------------------------------------------------------------------------------------------- first axis fastest ---- */

/* Where the file has the element whose axes but the first make up `rest`, in units, with the first axis at 0. */
static uint64_t column_of(const tm_archive_tensor *tensor, uint64_t rest) {
  uint64_t place = 0, stride = 1;
  for (uint32_t axis = 0; axis < tensor->rank; axis++) stride *= tensor->dims[axis];
  for (uint32_t axis = tensor->rank; axis-- > 1;) {
    stride /= tensor->dims[axis];
    place += rest % tensor->dims[axis] * stride;
    rest /= tensor->dims[axis];
  }
  return place;
}

static tm_status copy_from(const form_reader *reader, uint64_t offset, void *out, uint64_t bytes) {
  const char *mapped = tm_file_bytes(reader->file);
  if (mapped == NULL) return tm_file_read(reader->file, offset, out, bytes, reader->error);
  memcpy(out, mapped + offset, (size_t)bytes);
  return TM_OK;
}

/* `count` units that lie one after another in the file and `stride` units apart in what is used. */
static tm_status scatter(const form_reader *reader, uint64_t place, uint64_t count, uint64_t stride, unsigned char *out) {
  unsigned char piece[PIECE_BYTES];
  const uint64_t width = reader->form->unit_bytes, most = sizeof piece / width;
  for (uint64_t done = 0; done < count;) {
    const uint64_t here = tm_min_u64(count - done, most);
    TM_TRY(copy_from(reader, reader->tensor->offset + (place + done) * width, piece, here * width));
    for (uint64_t i = 0; i < here; i++) memcpy(out + (done + i) * stride * width, piece + i * width, (size_t)width);
    done += here;
  }
  return TM_OK;
}

/* Column by column: what lies together in the file is read together. */
static tm_status fetch_columns(const form_reader *reader, uint64_t first, uint64_t count, unsigned char *out) {
  const tm_archive_tensor *tensor = reader->tensor;
  const uint64_t columns = tensor->element_count / tensor->dims[0];
  for (uint64_t k = 0; k < tm_min_u64(columns, count); k++) {
    const uint64_t row = (first + k) / columns, here = (count - k - 1) / columns + 1;
    TM_TRY(scatter(reader, column_of(tensor, (first + k) % columns) + row, here, columns, out + k * reader->form->unit_bytes));
  }
  return tm_file_bytes(reader->file) == NULL ? TM_OK : tm_file_check_unchanged(reader->file, reader->error);
}

/* --------------------------------------------------------------------------------------------------------- units ---- */

static tm_status fetch_units(const form_reader *reader, uint64_t first, uint64_t count, unsigned char *out) {
  const tm_stored_form *form = reader->form;
  const uint64_t width = form->unit_bytes;
  if (form->runs != NULL) return fetch_runs(reader, first, count, out);
  if (form->is_first_axis_fastest) TM_TRY(fetch_columns(reader, first, count, out));
  else TM_TRY(tm_file_read(reader->file, reader->tensor->offset + first * width, out, count * width, reader->error));
  if (form->is_big_endian) tm_byte_order_swap(tm_format_find(reader->tensor->format), out, count);
  return TM_OK;
}

/* A part of one unit. */
static tm_status fetch_part(const form_reader *reader, uint64_t offset, void *out, uint64_t bytes) {
  unsigned char unit[TM_STORED_UNIT_BYTES];
  const uint64_t width = reader->form->unit_bytes;
  TM_TRY(fetch_units(reader, offset / width, 1, unit));
  memcpy(out, unit + offset % width, (size_t)bytes);
  return TM_OK;
}

static tm_status fetch(const form_reader *reader, uint64_t offset, unsigned char *out, uint64_t bytes) {
  const uint64_t width = reader->form->unit_bytes;
  if (offset % width != 0) {
    const uint64_t part = tm_min_u64(bytes, width - offset % width);
    TM_TRY(fetch_part(reader, offset, out, part));
    offset += part;
    out += part;
    bytes -= part;
  }
  const uint64_t units = bytes / width;
  if (units > 0) TM_TRY(fetch_units(reader, offset / width, units, out));
  if (bytes % width == 0) return TM_OK;
  return fetch_part(reader, offset + units * width, out + units * width, bytes % width);
}

tm_status tm_stored_form_read(const tm_archive_tensor *tensor, const tm_file *file, uint64_t offset, void *out_data, uint64_t bytes,
                              tm_error *error) {
  const form_reader reader = { tensor, tensor->form, file, error };
  unsigned char *out = out_data;
  if (tensor->form->refusal != NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: tensor \"%s\" cannot be read: %s", tm_file_label(file),
                   tm_show_name(tensor->name).text, tensor->form->refusal);
  TM_TRY(fetch(&reader, offset, out, bytes));
  if (bytes != 0 && offset + bytes == tensor->bytes) out[bytes - 1] &= (unsigned char)~tensor->form->padding_mask;
  return TM_OK;
}
