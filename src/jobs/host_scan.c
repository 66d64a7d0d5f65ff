/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/host_scan.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "jobs/tensor_tiles.h"

/* A piece fits into a core's own cache, so that looking at it and hashing it read memory once.  Its size depends on the format
   alone: contents of one format are cut, and so hashed, alike. */
#define PIECE_BYTES (UINT64_C(1) << 18)
#define MOST_PIECES_IN_ROOM 32u

/* Steps grow and shrink with the time that one takes: large enough that sharing one out costs nothing, small enough that whoever
   cancels does not wait. */
#define LEAST_PIECES 4u
#define FIRST_PIECES 16u
#define MOST_PIECES 128u
#define SHORT_STEP_NS UINT64_C(2500000)
#define LONG_STEP_NS UINT64_C(10000000)

/* Apart from each other in the caches. */
struct tm_host_part {
  _Alignas(64) tm_value_scan values;
  tm_content_hash hash;
};

typedef struct host_step {
  const tm_host_scan  *scan;
  const unsigned char *data;            /* of the unit at scan->next */
  uint64_t             units;
  uint64_t             piece_units;
  tm_host_part        *parts;
} host_step;

tm_status tm_host_scanner_init(tm_host_scanner *scanner, tm_memory *memory, tm_pool *pool, tm_scratch *scratch, tm_error *error) {
  const uint64_t bytes = tm_pool_lane_count(pool) * sizeof *scanner->parts;
  *scanner = (tm_host_scanner){ .memory = memory, .pool = pool, .scratch = scratch, .step_pieces = FIRST_PIECES };
  const uint64_t room_bytes = tm_tensor_tile_share(memory, PIECE_BYTES, MOST_PIECES_IN_ROOM * PIECE_BYTES);
  scanner->room_pieces = (uint32_t)(room_bytes / PIECE_BYTES);
  scanner->parts = tm_memory_alloc(memory, bytes, _Alignof(tm_host_part));
  return scanner->parts == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job") : TM_OK;
}

void tm_host_scanner_deinit(tm_host_scanner *scanner) {
  if (scanner->pool == NULL) return;
  tm_scratch_give(scanner->scratch, scanner->room);
  tm_memory_free(scanner->memory, scanner->parts, tm_pool_lane_count(scanner->pool) * sizeof *scanner->parts);
}

void tm_host_scan_init(tm_host_scan *scan, const tm_archive *archive, uint64_t tensor, bool is_hashed) {
  const tm_archive_tensor *found = tm_archive_tensor_at(archive, tensor);
  *scan = (tm_host_scan){ .archive = archive, .tensor = tensor, .info = tm_format_find(found->format), .is_hashed = is_hashed };
  scan->end = found->element_count / scan->info->block_elements;
  tm_value_scan_init(&scan->values);
}

static uint64_t piece_units(const tm_format_info *info) { return tm_max_u64(1, PIECE_BYTES / info->block_bytes); }

static void scan_pieces(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const host_step *step = argument;
  const tm_format_info *info = step->scan->info;
  tm_host_part part = { .hash = { 0, 0 } };
  tm_value_scan_init(&part.values);
  for (uint64_t piece = begin; piece < end; piece++) {
    const uint64_t first = piece * step->piece_units, units = tm_min_u64(step->piece_units, step->units - first);
    const unsigned char *data = step->data + first * info->block_bytes;
    const uint64_t place = step->scan->next + first;
    tm_value_scan_add(&part.values, info, data, place, units);
    if (step->scan->is_hashed) tm_content_hash_add(&part.hash, place / step->piece_units, data, units * info->block_bytes);
  }
  tm_value_scan_merge(&step->parts[lane].values, &part.values);
  tm_content_hash_merge(&step->parts[lane].hash, &part.hash);
}

static tm_status load(tm_host_scanner *scanner, const tm_host_scan *scan, uint64_t bytes, const unsigned char **out_data,
                      tm_error *error) {
  const uint64_t offset = scan->next * scan->info->block_bytes;
  const unsigned char *mapped = tm_archive_mapped(scan->archive, scan->tensor);
  if (mapped != NULL) {
    *out_data = mapped + offset;
    return TM_OK;
  }
  if (scanner->room.memory == NULL) scanner->room = tm_scratch_take(scanner->scratch, scanner->room_pieces * PIECE_BYTES);
  if (scanner->room.memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a piece of a tensor");
  *out_data = scanner->room.memory;
  return tm_archive_read(scan->archive, scan->tensor, offset, scanner->room.memory, bytes, error);
}

static uint64_t step_units(const tm_host_scanner *scanner, const tm_host_scan *scan) {
  const bool is_mapped = tm_archive_mapped(scan->archive, scan->tensor) != NULL;
  const uint64_t pieces = is_mapped ? scanner->step_pieces : tm_min_u64(scanner->step_pieces, scanner->room_pieces);
  return tm_min_u64(scan->end - scan->next, pieces * piece_units(scan->info));
}

static void adapt_step(tm_host_scanner *scanner, uint64_t pieces, uint64_t taken_ns) {
  if (pieces < scanner->step_pieces / 2) return;
  if (taken_ns < SHORT_STEP_NS && scanner->step_pieces < MOST_PIECES) scanner->step_pieces *= 2;
  if (taken_ns > LONG_STEP_NS && scanner->step_pieces > LEAST_PIECES) scanner->step_pieces /= 2;
}

tm_status tm_host_scan_step(tm_host_scanner *scanner, tm_host_scan *scan, uint64_t *out_bytes, tm_error *error) {
  const uint64_t begin_ns = tm_now_ns(), units = step_units(scanner, scan);
  const uint64_t bytes = units * scan->info->block_bytes;
  host_step step = { .scan = scan, .units = units, .piece_units = piece_units(scan->info), .parts = scanner->parts };
  TM_TRY(load(scanner, scan, bytes, &step.data, error));
  const uint32_t lanes = tm_pool_lane_count(scanner->pool);
  for (uint32_t i = 0; i < lanes; i++) {
    tm_value_scan_init(&scanner->parts[i].values);
    scanner->parts[i].hash = (tm_content_hash){ 0, 0 };
  }
  tm_pool_run(scanner->pool, tm_divide_up(units, step.piece_units), 1, scan_pieces, &step);
  for (uint32_t i = 0; i < lanes; i++) {
    tm_value_scan_merge(&scan->values, &scanner->parts[i].values);
    tm_content_hash_merge(&scan->hash, &scanner->parts[i].hash);
  }
  scan->next += units;
  *out_bytes = bytes;
  adapt_step(scanner, tm_divide_up(units, step.piece_units), tm_now_ns() - begin_ns);
  return TM_OK;
}
