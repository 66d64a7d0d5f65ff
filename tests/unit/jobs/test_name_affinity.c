/* SPDX-License-Identifier: Apache-2.0 */
/* Which of equal tensors belong together by their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/name_affinity.h"

#define MOST 64

typedef struct names {
  tm_named_item items[MOST];
  uint64_t      count;
  uint64_t      counts[2];
} names;

static void add(names *all, uint32_t side, const char *name) {
  all->items[all->count++] = (tm_named_item){ .name = { name, strlen(name) }, .item = all->counts[side]++, .side = side };
}

static void add_all(names *all, uint32_t side, const char *const *list) {
  for (; *list != NULL; list++) add(all, side, *list);
}

/* "a=b a=b ...", in the order of side 0, "-" for nobody. */
static void match(const char *const *left, const char *const *right, bool only_close, const char *expected) {
  names all = { .count = 0 };
  char found[4096] = "";
  tm_memory memory;
  tm_memory_init(&memory, 0);
  add_all(&all, 0, left);
  add_all(&all, 1, right);
  assert_int_equal(tm_name_affinity_match(&memory, all.items, all.count, only_close), TM_OK);
  for (uint64_t want = 0; want < all.counts[0]; want++) {
    for (uint64_t i = 0; i < all.count; i++) {
      const tm_named_item *item = &all.items[i];
      if (item->side != 0 || item->item != want) continue;
      const size_t used = strlen(found);
      snprintf(found + used, sizeof found - used, "%s%s=%s", want == 0 ? "" : " ", left[want],
               item->partner == TM_NO_PARTNER ? "-" : right[item->partner]);
    }
  }
  assert_string_equal(found, expected);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void the_longest_common_end_wins(void **state) {
  (void)state;
  match((const char *const[]){ "m.0.q.w", "m.0.k.w", "m.1.q.w", NULL }, (const char *const[]){ "x.1.q.w", "x.0.k.w", "x.0.q.w", NULL }, false,
        "m.0.q.w=x.0.q.w m.0.k.w=x.0.k.w m.1.q.w=x.1.q.w");
  match((const char *const[]){ "a/b/c", "b/c", NULL }, (const char *const[]){ "z.b.c", "y.a.b.c", NULL }, false, "a/b/c=y.a.b.c b/c=z.b.c");
}

/* The layer says more than what the part is called. */
static void numbers_come_first(void **state) {
  (void)state;
  match((const char *const[]){ "layers.0.attn.w", "layers.1.mlp.w", NULL }, (const char *const[]){ "blk.1.attn.w", "blk.0.up", NULL }, false,
        "layers.0.attn.w=blk.0.up layers.1.mlp.w=blk.1.attn.w");
}

static void all_of_the_smaller_side_get_one(void **state) {
  (void)state;
  match((const char *const[]){ "a", "b", "c", NULL }, (const char *const[]){ "z", "y", NULL }, false, "a=z b=y c=-");
  match((const char *const[]){ "a", NULL }, (const char *const[]){ "z", "x.a", NULL }, false, "a=x.a");
  match((const char *const[]){ "", "..", "0", NULL }, (const char *const[]){ ".", "00", "1.0", NULL }, false, "=00 ..=. 0=1.0");
}

static void only_close_ones(void **state) {
  (void)state;
  match((const char *const[]){ "m.0.n.bias", "m.1.n.bias", "q.scale", NULL },
        (const char *const[]){ "1.n.bias", "0.n.bias", "r.scale", "scale", NULL }, true, "m.0.n.bias=0.n.bias m.1.n.bias=1.n.bias q.scale=-");
  match((const char *const[]){ "a.n.bias", "b.n.bias", NULL }, (const char *const[]){ "c.n.bias", NULL }, true, "a.n.bias=- b.n.bias=-");
}

/* More than are sorted by name: in their order, at once. */
static void very_many(void **state) {
  (void)state;
  const uint64_t count = 200000;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  tm_named_item *items = calloc((size_t)count, sizeof *items);
  assert_non_null(items);
  for (uint64_t i = 0; i < count; i++) items[i] = (tm_named_item){ .name = { "a.b.c.d", 7 }, .item = i / 2, .side = (uint32_t)(i % 2) };
  assert_int_equal(tm_name_affinity_match(&memory, items, count, false), TM_OK);
  for (uint64_t i = 0; i < count; i++) assert_true(items[i].partner == items[i].item);
  free(items);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_longest_common_end_wins), cmocka_unit_test(numbers_come_first), cmocka_unit_test(all_of_the_smaller_side_get_one),
    cmocka_unit_test(only_close_ones),             cmocka_unit_test(very_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
