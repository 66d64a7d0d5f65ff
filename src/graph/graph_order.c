/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_order.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/growth.h"

#define LABEL TM_GRAPH_LABEL_CAPACITY

typedef struct later_item {
  uint64_t offset;
  uint64_t first_read;
  uint32_t read_count;
  uint32_t is_seen;
} later_item;

typedef struct maker {
  uint32_t value;
  uint32_t reserved;
  uint64_t item;
} maker;

/* The item in question, which is number 0, and all that come after it. */
typedef struct rest {
  tm_memory  *memory;
  later_item *items;
  uint32_t   *reads;
  maker      *makers;
  uint64_t   *queue;
  uint64_t    item_count, item_capacity;
  uint64_t    read_count, read_capacity;
  uint64_t    maker_count, maker_capacity;
} rest;

const uint32_t *tm_graph_item_reads(const tm_graph_item *item, uint32_t *out_count) {
  switch (item->kind) {
    case TM_ITEM_NODE: *out_count = item->input_count; return item->inputs;
    case TM_ITEM_VIEW: *out_count = 1; return &item->of;
    case TM_ITEM_CARRY:
    case TM_ITEM_OUTPUT: *out_count = 1; return &item->value;
    default: *out_count = 0; return NULL;
  }
}

const uint32_t *tm_graph_item_makes(const tm_graph_item *item, uint32_t *out_count) {
  const bool makes_none = item->kind == TM_ITEM_CARRY || item->kind == TM_ITEM_OUTPUT;
  *out_count = makes_none ? 0 : item->kind == TM_ITEM_NODE ? item->value_count : 1;
  return item->kind == TM_ITEM_NODE ? item->values : &item->value;
}

/* ---- collecting ---- */

static bool add_read(rest *all, uint32_t value) {
  uint32_t *grown = tm_make_room(all->memory, all->reads, all->read_count, &all->read_capacity, sizeof *grown);
  if (grown == NULL) return false;
  all->reads = grown;
  all->reads[all->read_count++] = value;
  return true;
}

static bool add_maker(rest *all, uint32_t value, uint64_t item) {
  maker *grown = tm_make_room(all->memory, all->makers, all->maker_count, &all->maker_capacity, sizeof *grown);
  if (grown == NULL) return false;
  all->makers = grown;
  all->makers[all->maker_count++] = (maker){ .value = value, .item = item };
  return true;
}

static bool add_item(rest *all, const tm_graph_item *item) {
  later_item *grown = tm_make_room(all->memory, all->items, all->item_count, &all->item_capacity, sizeof *grown);
  if (grown == NULL) return false;
  all->items = grown;
  uint32_t read_count, make_count;
  const uint32_t *reads = tm_graph_item_reads(item, &read_count);
  const uint32_t *makes = tm_graph_item_makes(item, &make_count);
  later_item *added = &all->items[all->item_count];
  *added = (later_item){ .offset = item->offset, .first_read = all->read_count, .read_count = read_count };
  for (uint32_t i = 0; i < read_count; i++)
    if (!add_read(all, reads[i])) return false;
  for (uint32_t i = 0; i < make_count; i++)
    if (!add_maker(all, makes[i], all->item_count)) return false;
  all->item_count++;
  return true;
}

/* As far as the rest can be read. */
static bool collect(rest *all, const tm_json_pull *json, const tm_graph_item *item) {
  tm_json_pull ahead = *json;
  tm_json_token token;
  tm_graph_item next;
  if (!add_item(all, item)) return false;
  while (tm_json_next(&ahead, &token) == TM_JSON_OBJECT_BEGIN && tm_graph_item_read(&ahead, &token, &next, NULL) == TM_OK)
    if (!add_item(all, &next)) return false;
  return true;
}

/* ---- searching ---- */

static int by_value(const void *a, const void *b) {
  const maker *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

/* The first item that makes it, or item_count. */
static uint64_t maker_of(const rest *all, uint32_t value) {
  uint64_t low = 0, high = all->maker_count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (all->makers[middle].value < value) low = middle + 1;
    else high = middle;
  }
  return low < all->maker_count && all->makers[low].value == value ? all->makers[low].item : all->item_count;
}

/* Does what `from` reads lead back to item 0? */
static bool needs_first(rest *all, uint64_t from) {
  uint64_t count = 0;
  all->queue[count++] = from;
  all->items[from].is_seen = 1;
  for (uint64_t head = 0; head < count; head++) {
    const later_item *item = &all->items[all->queue[head]];
    if (all->queue[head] == 0) return true;
    for (uint32_t i = 0; i < item->read_count; i++) {
      const uint64_t next = maker_of(all, all->reads[item->first_read + i]);
      if (next == all->item_count || all->items[next].is_seen != 0) continue;
      all->items[next].is_seen = 1;
      all->queue[count++] = next;
    }
  }
  return false;
}

static void label_item(const tm_json_pull *json, uint64_t offset, char *label) {
  tm_json_pull again;
  tm_json_token token;
  tm_graph_item item;
  tm_json_init(&again, json->text + offset, json->length - offset);
  (void)tm_json_next(&again, &token);
  (void)tm_graph_item_read(&again, &token, &item, NULL);
  tm_graph_item_label(&item, label, LABEL);
}

static tm_status explain(rest *all, const tm_json_pull *json, const tm_graph_item *item, uint32_t value, tm_error *error) {
  char label[LABEL], other[LABEL];
  tm_graph_item_label(item, label, sizeof label);
  if (all->maker_count != 0) qsort(all->makers, (size_t)all->maker_count, sizeof *all->makers, by_value);
  const uint64_t made_by = maker_of(all, value);
  const unsigned long long line = tm_text_line(json->text, item->offset);
  if (made_by == all->item_count)
    return tm_fail(error, TM_ERROR_CORRUPT, "line %llu: %s uses value %u, which nothing in the file makes", line, label, value);
  label_item(json, all->items[made_by].offset, other);
  const unsigned long long other_line = tm_text_line(json->text, all->items[made_by].offset);
  if (made_by == 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "line %llu: a cycle: %s uses value %u, which it makes itself", line, label, value);
  if (needs_first(all, made_by))
    return tm_fail(error, TM_ERROR_CORRUPT,
                   "line %llu: a cycle: %s uses value %u of %s (line %llu), which in turn needs what it makes", line,
                   label, value, other, other_line);
  return tm_fail(error, TM_ERROR_CORRUPT, "line %llu: %s uses value %u before it is made, by %s (line %llu); move that one up",
                 line, label, value, other, other_line);
}

tm_status tm_graph_explain_order(tm_memory *memory, const tm_json_pull *json, const tm_graph_item *item, uint32_t value,
                                 tm_error *error) {
  rest all = { .memory = memory };
  const bool is_collected = collect(&all, json, item);
  const uint64_t queue_count = all.item_count;
  if (is_collected) all.queue = tm_memory_calloc(memory, queue_count, sizeof *all.queue);
  const tm_status status = all.queue == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to read a graph")
                                             : explain(&all, json, item, value, error);
  if (all.queue != NULL) tm_memory_free(memory, all.queue, queue_count * sizeof *all.queue);
  tm_memory_free(memory, all.items, all.item_capacity * sizeof *all.items);
  tm_memory_free(memory, all.reads, all.read_capacity * sizeof *all.reads);
  tm_memory_free(memory, all.makers, all.maker_capacity * sizeof *all.makers);
  return status;
}
