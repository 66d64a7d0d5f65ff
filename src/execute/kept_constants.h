/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_constants.h - what was made of constant operands for later runs: packed in a device's own memory, or quantized in the
 * host's.  A copy is found by a hash of 128 bits over all bytes that it was made from, and how: two tensors with the same bytes
 * share one.  The bytes themselves are not compared; that two that differ meet in one hash takes 2^64 of them by chance, but
 * the hash is not made to resist who looks for such a pair.
 *
 * Reading all bytes at each run would cost more than many a run, so what was found is remembered by where the constant
 * comes from: its origin, a number that stands for these bytes as long as there is a context and is never given again
 * (runner.h).  Memory that is freed, or written by an application that did not promise otherwise, has no origin, and what
 * takes its place has another; then the bytes are read.
 *
 * Copies in use are pinned; others are dropped when memory runs short, when their device is lost, and when a checkpoint is
 * closed.  [any thread]
 */
#ifndef TM_EXECUTE_KEPT_CONSTANTS_H
#define TM_EXECUTE_KEPT_CONSTANTS_H

#include "plugin/inventory.h"
#include "schedule/setup_ledger.h"

#define TM_KEPT_BUCKETS 256u
#define TM_KEPT_NOTES 1024u

typedef struct tm_kept_key {
  uint64_t words[2];
} tm_kept_key;

typedef struct tm_kept {
  struct tm_kept *next;
  tm_kept_key     content;      /* of the bytes it was made from, and how */
  tm_device_slot *device;       /* NULL: it lies in the host's memory, as `buffer` */
  tm_buffer      *buffer;
  uint64_t        bytes;
  uint64_t        origin;       /* its own: it is a constant, too */
  uint64_t        last_use;
  uint32_t        references;
  uint32_t        padding;
} tm_kept;

typedef struct tm_kept_note {
  tm_kept_key source;           /* an origin, an address, a layout, a recipe */
  tm_kept_key content;
} tm_kept_note;

typedef struct tm_kept_constants {
  tm_memory       *memory;
  tm_setup_ledger *setups;      /* told when what was paid for is gone */
  tm_mutex         lock;
  uint64_t         clock;
  uint64_t         host_bytes;
  tm_kept         *buckets[TM_KEPT_BUCKETS];
  tm_kept_note     notes[TM_KEPT_NOTES];
  _Atomic uint64_t last_origin;
} tm_kept_constants;

tm_status tm_kept_init(tm_kept_constants *kept, tm_memory *memory, tm_setup_ledger *setups);
/* Nothing is pinned. */
void      tm_kept_deinit(tm_kept_constants *kept);

/* A number for bytes that do not change. */
uint64_t  tm_kept_new_origin(tm_kept_constants *kept);

tm_kept_key tm_kept_hash(const void *data, uint64_t bytes);

/* The copy that was last made of or found for this source, pinned; NULL if there is none any more. */
tm_kept *tm_kept_find(tm_kept_constants *kept, const tm_kept_key *source);
/* The copy of these bytes, pinned and remembered for the source (which may be NULL); NULL if there is none. */
tm_kept *tm_kept_find_content(tm_kept_constants *kept, const tm_kept_key *content, const tm_kept_key *source);
/* Takes over a copy, or destroys it for the sake of one that somebody else added meanwhile.  Pinned.  NULL without memory
   for the entry: then the copy is still the caller's. */
tm_kept *tm_kept_add(tm_kept_constants *kept, const tm_kept *copy, const tm_kept_key *source);
void     tm_kept_release(tm_kept_constants *kept, tm_kept *one);

/* Drops what is not pinned, of one device or (NULL) of all. */
void     tm_kept_drop(tm_kept_constants *kept, const tm_device_slot *device);

#endif
