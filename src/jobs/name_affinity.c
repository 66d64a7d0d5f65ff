/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/name_affinity.h"

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/error.h"
#include "base/keyed_order.h"

/* Names that share a level have the same numbers, and level - 1 components from the end on; at level 0 they share nothing. */
#define MOST_LEVELS 16u
#define CLOSE_LEVELS 3u
#define NO_NUMBERS 0u                   /* the hash of none */
#define LOOKS_APART 4096u               /* names between two looks at whether to go on */

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

/* Each with what came before it: hashes of short texts under small seeds, added up, would be the same for "5.3" and "2.4". */
static uint64_t hash_numbers(tm_string name) {
  uint64_t hash = NO_NUMBERS;
  for (tm_string component; cut_component(&name, &component);)
    if (is_number(component.data, component.length)) hash = tm_hash_number(component.data, component.length, hash);
  return hash;
}

/* ---- keys ---- */

/* A key is a sum, so that a component can be taken out of it again.  Seeds far apart keep short components of two places apart. */
static uint64_t key_of_component(tm_string component, uint32_t place) {
  return tm_hash_number(component.data, component.length, (1 + (uint64_t)place) * UINT64_C(0x9e3779b97f4a7c15));
}

/* Says that there is no component at this place, which is another thing than an empty one. */
static uint64_t key_of_end(uint32_t place) { return key_of_component((tm_string){ NULL, 0 }, MOST_LEVELS + place); }

/* At `level`, with all that the level looks at. */
static void set_key(tm_named_item *item, uint32_t level) {
  tm_string rest = item->name, component;
  item->key = item->numbers;
  item->begin = rest.length;
  for (uint32_t place = 0; place + 1 < level; place++) {
    if (!cut_component(&rest, &component)) {
      item->key += key_of_end(place);
      return;
    }
    item->key += key_of_component(component, place);
    item->begin = (uint64_t)(component.data - item->name.data);
  }
}

/* From the level above to `level`: what only that one looked at is taken out. */
static void lower_key(tm_named_item *item, uint32_t level) {
  const uint32_t place = level - 1;
  if (item->component_count < place) return;
  if (item->component_count == place) {
    item->key -= key_of_end(place);
    return;
  }
  const tm_string name = item->name;
  uint64_t end = item->begin;
  while (end < name.length && !is_separator(name.data[end])) end++;
  item->key -= key_of_component((tm_string){ name.data + item->begin, end - item->begin }, place);
  item->begin = tm_min_u64(end + 1, name.length);
}

static uint32_t count_components(tm_string name) {
  uint32_t count = 0;
  tm_string component;
  while (count < MOST_LEVELS && cut_component(&name, &component)) count++;
  return count;
}

/* ---- pairs ---- */

typedef struct matcher {
  tm_named_item          *items;
  uint64_t               *waiting;      /* those that have no partner yet, in the order of a side */
  uint64_t                waiting_count;
  tm_keyed_item          *sorted;       /* the same by their keys; those of one key are in that order, too */
  tm_keyed_item          *spare;
  bool                    only_close;
  const _Atomic uint32_t *cancelled;
} matcher;

static bool shall_end(const matcher *m, uint64_t place) {
  return place % LOOKS_APART == 0 && m->cancelled != NULL && atomic_load_explicit(m->cancelled, memory_order_relaxed) != 0;
}

static tm_named_item *sorted_at(const matcher *m, uint64_t place) { return &m->items[m->sorted[place].item]; }

static uint64_t next_of_side(const matcher *m, uint64_t place, uint32_t side) {
  while (sorted_at(m, place)->side != side) place++;
  return place;
}

/* Those of [begin, end) share `level`.  Close are one each of names that end alike; or, of a layer, as many on either side. */
static void pair_group(const matcher *m, uint64_t begin, uint64_t end, uint32_t level) {
  uint64_t counts[2] = { 0, 0 };
  for (uint64_t i = begin; i < end; i++) counts[sorted_at(m, i)->side]++;
  const bool is_one_each = level >= CLOSE_LEVELS && counts[0] == 1 && counts[1] == 1;
  const bool is_layer = level != 0 && sorted_at(m, begin)->numbers != NO_NUMBERS && counts[0] == counts[1];
  if (m->only_close && !is_one_each && !is_layer) return;
  uint64_t left = begin, right = begin;
  for (uint64_t pairs = tm_min_u64(counts[0], counts[1]); pairs != 0; pairs--, left++, right++) {
    left = next_of_side(m, left, 0);
    right = next_of_side(m, right, 1);
    sorted_at(m, left)->partner = sorted_at(m, right)->item;
    sorted_at(m, right)->partner = sorted_at(m, left)->item;
  }
}

static void drop_paired(matcher *m) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < m->waiting_count; i++)
    if (m->items[m->waiting[i]].partner == TM_NO_PARTNER) m->waiting[kept++] = m->waiting[i];
  m->waiting_count = kept;
}

static void sort_waiting(matcher *m, uint32_t level) {
  for (uint64_t i = 0; i < m->waiting_count; i++) {
    const uint64_t item = m->waiting[i];
    m->sorted[i] = (tm_keyed_item){ level == 0 ? 0 : m->items[item].key, item };
  }
  tm_keyed_order_sort(m->sorted, m->spare, m->waiting_count, m->cancelled);
}

static void pair_level(matcher *m, uint32_t level) {
  sort_waiting(m, level);
  for (uint64_t begin = 0, end; begin < m->waiting_count; begin = end) {
    for (end = begin + 1; end < m->waiting_count && m->sorted[end].key == m->sorted[begin].key;) end++;
    pair_group(m, begin, end, level);
  }
  drop_paired(m);
}

/* ---- levels ---- */

/* In the order of a side, which the caller's numbers give. */
static void list_all(matcher *m, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) m->sorted[i] = (tm_keyed_item){ m->items[i].item, i };
  tm_keyed_order_sort(m->sorted, m->spare, count, m->cancelled);
  for (uint64_t i = 0; i < count; i++) m->waiting[i] = m->sorted[i].item;
  m->waiting_count = count;
}

/* The level at which only equal names are alike, and close. */
static tm_status look_at_names(matcher *m, uint64_t count, uint32_t *out_level) {
  uint32_t most = 0;
  for (uint64_t i = 0; i < count; i++) {
    tm_named_item *item = &m->items[i];
    if (shall_end(m, i)) return TM_ERROR_CANCELLED;
    item->partner = TM_NO_PARTNER;
    item->numbers = hash_numbers(item->name);
    item->component_count = count_components(item->name);
    most = item->component_count > most ? item->component_count : most;
  }
  *out_level = (uint32_t)tm_min_u64(most + CLOSE_LEVELS, MOST_LEVELS);
  for (uint64_t i = 0; i < count; i++) {
    if (shall_end(m, i)) return TM_ERROR_CANCELLED;
    set_key(&m->items[i], *out_level);
  }
  return TM_OK;
}

/* What shares more is paired first. */
static tm_status match(matcher *m, uint64_t count) {
  uint32_t level;
  TM_TRY(look_at_names(m, count, &level));
  list_all(m, count);
  for (;; level--) {
    if (shall_end(m, 0)) return TM_ERROR_CANCELLED;
    pair_level(m, level);
    if (level == 0 || m->waiting_count == 0) return shall_end(m, 0) ? TM_ERROR_CANCELLED : TM_OK;
    for (uint64_t i = 0; i < m->waiting_count && level > 1; i++) lower_key(&m->items[m->waiting[i]], level - 1);
  }
}

tm_status tm_name_affinity_match(tm_memory *memory, tm_named_item *items, uint64_t count, bool only_close,
                                 const _Atomic uint32_t *cancelled) {
  matcher m = { .items = items, .only_close = only_close, .cancelled = cancelled };
  m.waiting = tm_memory_calloc(memory, count, sizeof *m.waiting);
  m.sorted = tm_memory_calloc(memory, count, 2 * sizeof *m.sorted);
  m.spare = m.sorted == NULL ? NULL : m.sorted + count;
  const tm_status status = m.waiting == NULL || m.sorted == NULL ? TM_ERROR_NO_MEMORY : match(&m, count);
  tm_memory_free(memory, m.waiting, count * sizeof *m.waiting);
  tm_memory_free(memory, m.sorted, count * 2 * sizeof *m.sorted);
  return status;
}
