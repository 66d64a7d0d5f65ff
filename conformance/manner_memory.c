/* SPDX-License-Identifier: Apache-2.0 */
/* Manners of buffers and transfers, on devices with memory of their own. */
#include <stdlib.h>
#include <sys/mman.h>

#include "conformance/manner.h"

#define SMALL_SIZES 7u
#define AREA_BYTES 65536u
#define FENCE_BYTES 65536u
#define PIECES 40u
#define MOST_UNIT 4096u         /* offsets in larger granules would need larger areas */

/* ---- buffers ---- */

static void try_size(manner_run *run, subject *s, uint64_t bytes, bool must_fail) {
  tm_buffer *buffer = NULL;
  const tm_status status = SUBJECT_CALL(s, buffer_create)(s->device, 0, bytes, &buffer);
  if (status == TM_OK && must_fail) trial_fail(&run->t, "makes a buffer of %llu bytes", (unsigned long long)bytes);
  else if (status == TM_OK && buffer == NULL)
    trial_fail(&run->t, "makes a buffer of %llu bytes and gives no handle", (unsigned long long)bytes);
  else if (status != TM_OK && status != TM_ERROR_NO_MEMORY)
    trial_fail(&run->t, "a buffer of %llu bytes: status %d", (unsigned long long)bytes, status);
  else if (status != TM_OK && !must_fail) trial_fail(&run->t, "has no memory for %llu bytes", (unsigned long long)bytes);
  if (status == TM_OK) SUBJECT_CALL(s, buffer_destroy)(s->device, 0, buffer, bytes, 0);
}

void manner_check_buffers(manner_run *run) {
  static const uint64_t small[SMALL_SIZES] = { 0, 1, 3, 64, 4097, 65537, 1048576 };
  static const uint64_t absurd[] = { UINT64_C(1) << 62, UINT64_MAX, UINT64_MAX - 7 };
  subject s;
  if (!manner_open(run, &s, 0)) return;
  if (s.host_makes_buffers) {
    manner_skip(run, "it works in the host's memory");
  } else {
    for (uint32_t i = 0; i < SMALL_SIZES && !run->t.failed; i++) try_size(run, &s, small[i], false);
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0] && !run->t.failed; i++) try_size(run, &s, absurd[i], true);
    for (uint32_t i = 0; i < SMALL_SIZES && !run->t.failed; i++) try_size(run, &s, small[i], false);
  }
  subject_close(&s);
}

/* ---- transfers ---- */

typedef struct area {
  tm_buffer     *buffer;
  unsigned char *expected;
  unsigned char *seen;
  uint64_t       unit;          /* of offsets */
} area;

static uint64_t common_multiple(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b;
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

static bool move(manner_run *run, subject *s, const area *a, bool up, uint64_t offset, uint64_t bytes, void *host) {
  tm_transfer transfer = { .struct_size = sizeof transfer, .host = host, .bytes = bytes };
  tm_ticket ticket = { 0, 0, 0 };
  if (up) {
    transfer.destination = a->buffer;
    transfer.destination_offset = offset;
  } else {
    transfer.source = a->buffer;
    transfer.source_offset = offset;
  }
  const tm_status status = subject_transfer(s, up ? SUBJECT_CALL(s, upload) : SUBJECT_CALL(s, download), &transfer, &ticket);
  return status == TM_OK || trial_fail(&run->t, "%s of %llu bytes at offset %llu: status %d (%s)", up ? "upload" : "download",
                                       (unsigned long long)bytes, (unsigned long long)offset, status, s->text);
}

/* Bytes behind an upload, up to the end of its last store unit, may become anything. */
static bool check_area(manner_run *run, subject *s, const area *a, uint64_t end) {
  const uint64_t granule = s->space.store_granule;
  const uint64_t loose_end = (end + granule - 1) / granule * granule;
  memset(a->seen, 0, AREA_BYTES);
  if (!move(run, s, a, false, 0, AREA_BYTES, a->seen)) return false;
  for (uint64_t i = 0; i < AREA_BYTES; i++) {
    if (i >= end && i < loose_end) a->expected[i] = a->seen[i];
    if (a->seen[i] != a->expected[i])
      return trial_fail(&run->t, "byte %llu is 0x%02x after an upload that ends at %llu, expected 0x%02x", (unsigned long long)i,
                        a->seen[i], (unsigned long long)end, a->expected[i]);
  }
  return true;
}

/* With no memory behind it, as behind a mapped file: whoever reads more than is to be uploaded crashes. */
static unsigned char *make_fenced(void) {
  unsigned char *room = mmap(NULL, AREA_BYTES + FENCE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return NULL;
  if (mprotect(room, AREA_BYTES, PROT_READ | PROT_WRITE) == 0) return room;
  munmap(room, AREA_BYTES + FENCE_BYTES);
  return NULL;
}

static void move_pieces(manner_run *run, subject *s, const area *a) {
  uint64_t state = run->seed;
  unsigned char *room = make_fenced();
  bool good = room != NULL && move(run, s, a, true, 0, AREA_BYTES, a->expected) && check_area(run, s, a, AREA_BYTES);
  for (uint32_t i = 0; good && i < PIECES && !manner_ends_early(run, i, PIECES, "pieces"); i++) {
    const uint64_t offset = random_below(&state, AREA_BYTES / a->unit) * a->unit;
    uint64_t bytes = i % 8 == 7 ? 0 : random_extent(&state, AREA_BYTES);
    if (bytes > AREA_BYTES - offset) bytes = AREA_BYTES - offset;
    unsigned char *piece = room + AREA_BYTES - bytes;
    for (uint64_t k = 0; k < bytes; k++) piece[k] = a->expected[offset + k] = (unsigned char)random_u64(&state);
    good = move(run, s, a, true, offset, bytes, piece) && check_area(run, s, a, offset + bytes);
    if (!good) break;
    memset(a->seen, CASE_GUARD, AREA_BYTES);
    good = move(run, s, a, false, offset, bytes, a->seen);
    if (good && (memcmp(a->seen, a->expected + offset, bytes) != 0 || (bytes < AREA_BYTES && a->seen[bytes] != CASE_GUARD)))
      good = trial_fail(&run->t, "download of %llu bytes at offset %llu brings others, or more", (unsigned long long)bytes,
                        (unsigned long long)offset);
  }
  if (room != NULL) munmap(room, AREA_BYTES + FENCE_BYTES);
}

void manner_check_transfers(manner_run *run) {
  subject s;
  if (!manner_open(run, &s, 0)) return;
  area a = { .unit = common_multiple(s.space.offset_granule, s.space.store_granule) };
  if (s.host_makes_buffers) manner_skip(run, "it works in the host's memory");
  else if (a.unit > MOST_UNIT) manner_skip(run, "offsets are multiples of %llu bytes", (unsigned long long)a.unit);
  if (run->skipped[0] == '\0') {
    a.expected = malloc(AREA_BYTES);
    a.seen = malloc(AREA_BYTES);
    const tm_status status = SUBJECT_CALL(&s, buffer_create)(s.device, 0, AREA_BYTES, &a.buffer);
    if (status != TM_OK || a.expected == NULL || a.seen == NULL) trial_fail(&run->t, "has no memory for %u bytes", AREA_BYTES);
    uint64_t state = run->seed;
    for (uint32_t i = 0; a.expected != NULL && i < AREA_BYTES; i++) a.expected[i] = (unsigned char)random_u64(&state);
    if (!run->t.failed) move_pieces(run, &s, &a);
    if (status == TM_OK) SUBJECT_CALL(&s, buffer_destroy)(s.device, 0, a.buffer, AREA_BYTES, 0);
    free(a.expected);
    free(a.seen);
  }
  subject_close(&s);
}
