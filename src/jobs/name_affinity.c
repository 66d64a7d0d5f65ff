/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/name_affinity.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/content_hash.h"

/* Level 0 is the numbers, level n the nth component from the end. */
#define MOST_LEVELS 16u
#define CLOSE_LEVELS 3u
#define NO_NUMBERS 0u                   /* the hash of none */
/* Sorting more names than these would take longer than whoever cancels waits; they are taken in their order. */
#define MOST_SORTED 10000u

/* ---- names ---- */

static bool is_separator(char c) { return c == '.' || c == '/'; }

static bool is_number(const char *text, uint64_t length) {
  uint64_t i = 0;
  while (i < length && text[i] >= '0' && text[i] <= '9') i++;
  return i == length && length != 0;
}

/* Cuts the last component off; false: there is none. */
static bool cut_component(tm_string *name, tm_string *out_component) {
  if (name->length == 0) return false;
  uint64_t begin = name->length;
  while (begin != 0 && !is_separator(name->data[begin - 1])) begin--;
  *out_component = (tm_string){ name->data + begin, name->length - begin };
  name->length = begin == 0 ? 0 : begin - 1;
  return true;
}

static uint64_t hash_numbers(tm_string name) {
  tm_content_hash hash = { 0, 0 };
  tm_string component;
  for (uint64_t place = 0; cut_component(&name, &component);)
    if (is_number(component.data, component.length)) tm_content_hash_add(&hash, place++, component.data, component.length);
  return hash.low;
}

static int compare_numbers(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int compare_components(tm_string a, tm_string b) {
  const uint64_t common = tm_min_u64(a.length, b.length);
  const int order = common == 0 ? 0 : memcmp(a.data, b.data, (size_t)common);
  return order != 0 ? order : compare_numbers(a.length, b.length);
}

/* Compares up to `levels` of them; out_shared: how many are equal, all of equal names. */
static int compare_levels(const tm_named_item *a, const tm_named_item *b, uint32_t levels, uint32_t *out_shared) {
  tm_string left = a->name, right = b->name;
  *out_shared = 0;
  if (a->numbers != b->numbers) return compare_numbers(a->numbers, b->numbers);
  for (*out_shared = 1; *out_shared < levels; (*out_shared)++) {
    tm_string x = { NULL, 0 }, y = { NULL, 0 };
    const bool has_x = cut_component(&left, &x), has_y = cut_component(&right, &y);
    if (has_x != has_y) return has_x ? 1 : -1;
    const int order = compare_components(x, y);
    if (order != 0) return order;
    if (has_x) continue;
    *out_shared = levels;
    return 0;
  }
  return 0;
}

static int by_name(const void *left, const void *right) {
  const tm_named_item *a = left, *b = right;
  uint32_t shared;
  const int order = compare_levels(a, b, MOST_LEVELS, &shared);
  if (order != 0) return order;
  return a->side != b->side ? compare_numbers(a->side, b->side) : compare_numbers(a->item, b->item);
}

/* ---- pairs ---- */

typedef struct matcher {
  tm_named_item  *items;
  tm_named_item **waiting[2];           /* room for those of a range that have no partner yet */
  bool            only_close;
} matcher;

static int by_item(const void *left, const void *right) {
  const tm_named_item *const *a = left, *const *b = right;
  return compare_numbers((*a)->item, (*b)->item);
}

/* What is close: one each of names that end alike; or, of one layer, as many on either side. */
static void pair_waiting(matcher *m, uint64_t begin, uint64_t end, uint32_t level) {
  uint64_t counts[2] = { 0, 0 };
  for (uint64_t i = begin; i < end; i++)
    if (m->items[i].partner == TM_NO_PARTNER) m->waiting[m->items[i].side][counts[m->items[i].side]++] = &m->items[i];
  const bool is_one_each = level >= CLOSE_LEVELS && counts[0] == 1 && counts[1] == 1;
  const bool is_layer = level != 0 && m->items[begin].numbers != NO_NUMBERS && counts[0] == counts[1];
  if (m->only_close && !is_one_each && !is_layer) return;
  const uint64_t pairs = tm_min_u64(counts[0], counts[1]);
  if (pairs == 0) return;
  for (uint32_t side = 0; side < 2; side++) qsort(m->waiting[side], (size_t)counts[side], sizeof *m->waiting[side], by_item);
  for (uint64_t i = 0; i < pairs; i++) {
    m->waiting[0][i]->partner = m->waiting[1][i]->item;
    m->waiting[1][i]->partner = m->waiting[0][i]->item;
  }
}

/* Items of a range share `level` levels: first those that share more are matched. */
static void match_range(matcher *m, uint64_t begin, uint64_t end, uint32_t level) {
  for (uint64_t first = begin; first < end && level < MOST_LEVELS;) {
    uint64_t next = first + 1;
    uint32_t shared = level + 1;
    while (next < end && shared > level) {
      (void)compare_levels(&m->items[first], &m->items[next], level + 1, &shared);
      next += shared > level;
    }
    if (next - first > 1) match_range(m, first, next, level + 1);
    first = next;
  }
  pair_waiting(m, begin, end, level);
}

tm_status tm_name_affinity_match(tm_memory *memory, tm_named_item *items, uint64_t count, bool only_close) {
  matcher m = { .items = items, .only_close = only_close };
  tm_named_item **waiting = tm_memory_calloc(memory, count, 2 * sizeof *waiting);
  if (waiting == NULL) return TM_ERROR_NO_MEMORY;
  m.waiting[0] = waiting;
  m.waiting[1] = waiting + count;
  for (uint64_t i = 0; i < count; i++) {
    items[i].numbers = hash_numbers(items[i].name);
    items[i].partner = TM_NO_PARTNER;
  }
  if (count <= MOST_SORTED) {
    qsort(items, (size_t)count, sizeof *items, by_name);
    match_range(&m, 0, count, 0);
  } else {
    pair_waiting(&m, 0, count, 0);
  }
  tm_memory_free(memory, waiting, count * 2 * sizeof *waiting);
  return TM_OK;
}
