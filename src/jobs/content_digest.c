/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/content_digest.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "jobs/tensor_tiles.h"
#include "jobs/transposed_view.h"
#include "tensor/codec.h"

#define SAMPLE_BYTES 1024u
#define SAMPLE_VALUES 256u
#define SAMPLE_ROOM_BYTES (SAMPLE_VALUES * 8u)          /* of either, in the widest format */

/* Pieces are cut by the format alone, so that equal contents are cut alike; steps are as long as a cancel may wait for. */
#define PIECE_BYTES (UINT64_C(1) << 17)
#define RUN_VALUES 1024u
#define PIECE_RUNS 32u
#define STEP_PIECES 32u

/* Of a type that nobody knows each byte is a block. */
static const tm_format_info *info_of(const tm_archive_tensor *tensor) {
  static const tm_format_info bytes = { .kind = TM_KIND_BLOCK, .name = "", .gguf_type = TM_NO_GGUF_TYPE, .block_elements = 1, .block_bytes = 1 };
  const tm_format_info *info = tm_format_find(tensor->format);
  return info == NULL ? &bytes : info;
}

/* Equal values get equal bits: of several formats one has no -0, and another no other NaN. */
static void decode(const tm_format_info *info, uint32_t rounded_to, const void *data, uint64_t count, double *out_values) {
  uint16_t rounded[RUN_VALUES];
  tm_codec_find(info->format)->decode(data, count, out_values);
  if (rounded_to != TM_FORMAT_NONE) {
    tm_codec_find(rounded_to)->encode(out_values, count, rounded);
    tm_codec_find(rounded_to)->decode(rounded, count, out_values);
  }
  for (uint64_t i = 0; i < count; i++) out_values[i] = tm_f64_unified(out_values[i]);
}

/* Whether it is its first `unit` bytes over and over. */
static bool repeats(const void *data, uint64_t bytes, uint64_t unit) {
  return bytes <= unit || memcmp(data, (const char *)data + unit, (size_t)(bytes - unit)) == 0;
}

/* ---- samples ---- */

static tm_status sample_bytes(const tm_archive *archive, uint64_t tensor, const tm_format_info *info, tm_content_digest *out_digest,
                              tm_error *error) {
  unsigned char data[SAMPLE_ROOM_BYTES];
  const uint64_t all = tm_archive_tensor_at(archive, tensor)->bytes, unit = info->block_bytes;
  const uint64_t bytes = tm_min_u64(all, SAMPLE_BYTES / unit * unit), offset = (all - bytes) / 2 / unit * unit;
  if (bytes != 0) TM_TRY(tm_archive_read(archive, tensor, offset, data, bytes, error));
  *out_digest = (tm_content_digest){ .is_constant = repeats(data, bytes, unit) };
  tm_content_hash_add(&out_digest->hash, 0, data, bytes);
  return TM_OK;
}

static tm_status sample_values(const tm_archive *archive, uint64_t tensor, const tm_format_info *info, uint32_t rounded_to,
                               tm_content_digest *out_digest, tm_error *error) {
  unsigned char data[SAMPLE_ROOM_BYTES];
  double values[SAMPLE_VALUES];
  const uint64_t all = tm_archive_tensor_at(archive, tensor)->element_count;
  const uint64_t count = tm_min_u64(all, SAMPLE_VALUES), first = (all - count) / 2 / SAMPLE_VALUES * SAMPLE_VALUES;
  TM_TRY(tm_archive_read(archive, tensor, tm_format_bytes_of(info, first), data, tm_format_bytes_of(info, count), error));
  decode(info, rounded_to, data, count, values);
  *out_digest = (tm_content_digest){ .is_constant = repeats(values, count * sizeof *values, sizeof *values) };
  tm_content_hash_add(&out_digest->hash, 0, values, count * sizeof *values);
  return TM_OK;
}

tm_status tm_content_sample(const tm_archive *archive, uint64_t tensor, tm_content_view view, uint32_t rounded_to,
                            tm_content_digest *out_digest, tm_error *error) {
  const tm_format_info *info = info_of(tm_archive_tensor_at(archive, tensor));
  return view == TM_CONTENT_VALUES ? sample_values(archive, tensor, info, rounded_to, out_digest, error)
                                   : sample_bytes(archive, tensor, info, out_digest, error);
}

/* ---- all of it ---- */

typedef struct digest_step {
  tm_content_view       view;
  uint32_t              rounded_to;
  const tm_format_info *info;
  const unsigned char  *data;
  uint64_t              bytes;
  uint64_t              piece_bytes;
  uint64_t              first_piece;
  const void           *first_unit;     /* of the tensor: a block, or a decoded value */
  _Atomic uint64_t      low, high;      /* sums do not depend on the order */
  _Atomic uint32_t      differs;
} digest_step;

static bool add_bytes(const digest_step *step, uint64_t piece, const unsigned char *data, uint64_t bytes, tm_content_hash *hash) {
  tm_content_hash_add(hash, piece, data, bytes);
  return memcmp(data, step->first_unit, step->info->block_bytes) == 0 && repeats(data, bytes, step->info->block_bytes);
}

static bool add_values(const digest_step *step, uint64_t piece, const unsigned char *data, uint64_t bytes, tm_content_hash *hash) {
  double values[RUN_VALUES];
  const uint64_t run_bytes = tm_format_bytes_of(step->info, RUN_VALUES);
  bool is_constant = true;
  for (uint64_t begin = 0, run = 0; begin < bytes; begin += run_bytes, run++) {
    const uint64_t count = tm_min_u64(run_bytes, bytes - begin) / step->info->block_bytes * step->info->block_elements;
    decode(step->info, step->rounded_to, data + begin, count, values);
    tm_content_hash_add(hash, piece * PIECE_RUNS + run, values, count * sizeof *values);
    is_constant = is_constant && memcmp(values, step->first_unit, sizeof *values) == 0 && repeats(values, count * sizeof *values, sizeof *values);
  }
  return is_constant;
}

static void add_pieces(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  digest_step *step = argument;
  tm_content_hash hash = { 0, 0 };
  (void)lane;
  for (uint64_t piece = begin; piece < end; piece++) {
    const uint64_t first = piece * step->piece_bytes, bytes = tm_min_u64(step->piece_bytes, step->bytes - first);
    const bool is_constant = step->view != TM_CONTENT_BYTES ? add_values(step, step->first_piece + piece, step->data + first, bytes, &hash)
                                                            : add_bytes(step, step->first_piece + piece, step->data + first, bytes, &hash);
    if (!is_constant) atomic_store_explicit(&step->differs, 1, memory_order_relaxed);
  }
  atomic_fetch_add_explicit(&step->low, hash.low, memory_order_relaxed);
  atomic_fetch_add_explicit(&step->high, hash.high, memory_order_relaxed);
}

static uint64_t piece_bytes_of(const tm_format_info *info, tm_content_view view) {
  if (view != TM_CONTENT_BYTES) return tm_format_bytes_of(info, (uint64_t)PIECE_RUNS * RUN_VALUES);
  return tm_divide_up(PIECE_BYTES, info->block_bytes) * info->block_bytes;
}

static const unsigned char *mapped_of(const tm_archive *archive, uint64_t tensor, tm_content_view view) {
  return view == TM_CONTENT_TURNED ? NULL : tm_archive_mapped(archive, tensor);
}

static tm_status load(tm_content_digester *digester, const tm_archive *archive, uint64_t tensor, uint64_t offset, digest_step *step,
                      tm_error *error) {
  const unsigned char *mapped = mapped_of(archive, tensor, step->view);
  const uint64_t bytes = step->bytes, unit = step->info->block_bytes;
  if (mapped != NULL) {
    step->data = mapped + offset;
    return TM_OK;
  }
  if (digester->room.bytes < bytes) {
    tm_scratch_give(digester->scratch, digester->room);
    digester->room = tm_scratch_take(digester->scratch, bytes);
  }
  if (digester->room.memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a piece of a tensor");
  step->data = digester->room.memory;
  if (step->view == TM_CONTENT_TURNED)
    return tm_transposed_read(archive, tensor, offset / unit, bytes / unit, digester->cancelled, digester->room.memory, error);
  return tm_archive_read(archive, tensor, offset, digester->room.memory, bytes, error);
}

void tm_content_digester_deinit(tm_content_digester *digester) {
  if (digester->scratch != NULL) tm_scratch_give(digester->scratch, digester->room);
}

static tm_status read_first_unit(const tm_archive *archive, uint64_t tensor, const digest_step *step, void *out_unit,
                                 tm_error *error) {
  const tm_format_info *info = step->info;
  unsigned char block[SAMPLE_ROOM_BYTES];
  double values[SAMPLE_VALUES];
  TM_TRY(tm_archive_read(archive, tensor, 0, block, info->block_bytes, error));
  const bool is_value = step->view != TM_CONTENT_BYTES;
  if (is_value) decode(info, step->rounded_to, block, info->block_elements, values);
  memcpy(out_unit, is_value ? (const void *)values : block, is_value ? sizeof *values : info->block_bytes);
  return TM_OK;
}

static uint64_t step_pieces(const tm_content_digester *digester, uint64_t piece_bytes, bool is_mapped) {
  const uint64_t bytes = is_mapped ? STEP_PIECES * piece_bytes : tm_tensor_tile_share(digester->memory, piece_bytes, STEP_PIECES * piece_bytes);
  return tm_max_u64(1, bytes / piece_bytes);
}

tm_status tm_content_digest_take(tm_content_digester *digester, const tm_archive *archive, uint64_t tensor, tm_content_view view,
                                 tm_content_digest *out_digest, tm_error *error) {
  unsigned char unit[SAMPLE_ROOM_BYTES];
  const tm_archive_tensor *found = tm_archive_tensor_at(archive, tensor);
  digest_step step = { .view = view, .rounded_to = digester->rounded_to, .info = info_of(found), .first_unit = unit };
  step.piece_bytes = piece_bytes_of(step.info, view);
  if (found->bytes != 0) TM_TRY(read_first_unit(archive, tensor, &step, unit, error));
  const uint64_t most = step_pieces(digester, step.piece_bytes, mapped_of(archive, tensor, view) != NULL) * step.piece_bytes;
  for (uint64_t offset = 0; offset < found->bytes; offset += step.bytes) {
    if (atomic_load_explicit(digester->cancelled, memory_order_relaxed) != 0) return TM_ERROR_CANCELLED;
    step.bytes = tm_min_u64(most, found->bytes - offset);
    step.first_piece = offset / step.piece_bytes;
    TM_TRY(load(digester, archive, tensor, offset, &step, error));
    tm_pool_run(digester->pool, tm_divide_up(step.bytes, step.piece_bytes), 1, add_pieces, &step);
    TM_TRY(tm_archive_check_tensor(archive, tensor, error));
    if (digester->advanced != NULL) digester->advanced(digester->advanced_context, step.bytes);
  }
  *out_digest = (tm_content_digest){ { atomic_load(&step.low), atomic_load(&step.high) }, atomic_load(&step.differs) == 0 };
  return TM_OK;
}
