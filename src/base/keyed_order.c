/* SPDX-License-Identifier: Apache-2.0 */
#include "base/keyed_order.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 8u
#define DIGITS (64u / DIGIT_BITS)
#define VALUES (1u << DIGIT_BITS)

static uint32_t digit_of(uint64_t key, uint32_t digit) { return (uint32_t)(key >> (digit * DIGIT_BITS)) & (VALUES - 1); }

/* Where the items of each value begin; false: all have the same, so that nothing moves. */
static bool find_places(const tm_keyed_item *items, uint64_t count, uint32_t digit, uint64_t places[VALUES]) {
  memset(places, 0, VALUES * sizeof *places);
  for (uint64_t i = 0; i < count; i++) places[digit_of(items[i].key, digit)]++;
  if (places[digit_of(items[0].key, digit)] == count) return false;
  uint64_t next = 0;
  for (uint32_t value = 0; value < VALUES; value++) {
    const uint64_t begin = next;
    next += places[value];
    places[value] = begin;
  }
  return true;
}

static bool shall_end(const _Atomic uint32_t *cancelled) {
  return cancelled != NULL && atomic_load_explicit(cancelled, memory_order_relaxed) != 0;
}

void tm_keyed_order_sort(tm_keyed_item *items, tm_keyed_item *spare, uint64_t count, const _Atomic uint32_t *cancelled) {
  uint64_t places[VALUES];
  tm_keyed_item *from = items, *to = spare;
  for (uint32_t digit = 0; digit < DIGITS && count != 0 && !shall_end(cancelled); digit++) {
    if (!find_places(from, count, digit, places)) continue;
    for (uint64_t i = 0; i < count; i++) to[places[digit_of(from[i].key, digit)]++] = from[i];
    tm_keyed_item *other = from;
    from = to;
    to = other;
  }
  if (from != items) memcpy(items, from, (size_t)count * sizeof *items);
}
