/* SPDX-License-Identifier: Apache-2.0 */
/* key_queue.h - numbered items by small integer keys, the least first; of equal keys the one that came last. */
#ifndef TM_SOLVER_KEY_QUEUE_H
#define TM_SOLVER_KEY_QUEUE_H

#include <stdbool.h>

#include "base/arena.h"
#include "solver/problem.h"

#define TM_KEY_QUEUE_KEYS 1025u
#define TM_KEY_QUEUE_GONE UINT32_MAX    /* the key of an item that is not in the queue */

/* A key for sizes that are products, which becomes a sum: log2 in eighths, linear between powers of two. */
static inline uint32_t tm_key_queue_log(uint32_t count) {
  uint32_t digits = 0;
  while (count >> digits > 1) digits++;
  return digits * 8 + (uint32_t)(((uint64_t)count * 8 >> digits) - 8);
}

typedef struct tm_key_queue_item {
  uint32_t key;
  uint32_t previous;            /* of the same key; TM_SOLVER_NONE at the ends */
  uint32_t next;
} tm_key_queue_item;

typedef struct tm_key_queue {
  tm_key_queue_item *items;
  uint32_t heads[TM_KEY_QUEUE_KEYS];
  uint32_t least_key;           /* after tm_key_queue_first: of what it returned */
} tm_key_queue;

/* No item is in it yet.  Lives in the arena; false: no memory. */
static inline bool tm_key_queue_init(tm_key_queue *queue, uint32_t count, tm_arena *arena) {
  queue->items = tm_arena_alloc(arena, count * sizeof *queue->items);
  if (queue->items == NULL) return false;
  for (uint32_t i = 0; i < count; i++) queue->items[i].key = TM_KEY_QUEUE_GONE;
  for (uint32_t i = 0; i < TM_KEY_QUEUE_KEYS; i++) queue->heads[i] = TM_SOLVER_NONE;
  queue->least_key = TM_KEY_QUEUE_KEYS;
  return true;
}

static inline void tm_key_queue_add(tm_key_queue *queue, uint32_t item, uint32_t key) {
  const uint32_t next = queue->heads[key];
  queue->items[item] = (tm_key_queue_item){ key, TM_SOLVER_NONE, next };
  if (next != TM_SOLVER_NONE) queue->items[next].previous = item;
  queue->heads[key] = item;
  if (key < queue->least_key) queue->least_key = key;
}

static inline void tm_key_queue_remove(tm_key_queue *queue, uint32_t item) {
  const tm_key_queue_item gone = queue->items[item];
  if (gone.previous != TM_SOLVER_NONE) queue->items[gone.previous].next = gone.next;
  else queue->heads[gone.key] = gone.next;
  if (gone.next != TM_SOLVER_NONE) queue->items[gone.next].previous = gone.previous;
  queue->items[item].key = TM_KEY_QUEUE_GONE;
}

/* TM_SOLVER_NONE when it is empty. */
static inline uint32_t tm_key_queue_first(tm_key_queue *queue) {
  while (queue->least_key < TM_KEY_QUEUE_KEYS && queue->heads[queue->least_key] == TM_SOLVER_NONE) queue->least_key++;
  return queue->least_key < TM_KEY_QUEUE_KEYS ? queue->heads[queue->least_key] : TM_SOLVER_NONE;
}

#endif
