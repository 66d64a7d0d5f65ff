/* SPDX-License-Identifier: Apache-2.0 */
/* Which of equal tensors belong together by their names; also against a slow form of the rule, on made-up names. */
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
  assert_int_equal(tm_name_affinity_match(&memory, all.items, all.count, only_close, NULL), TM_OK);
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

/* Every expert of every layer finds its own, however many there are, and in linear time. */
static void very_many(void **state) {
  (void)state;
  enum { LAYERS = 96, EXPERTS = 128, PARTS = 3, COUNT = 2 * LAYERS * EXPERTS * PARTS, LONGEST = 64 };
  static const char *const parts[] = { "gate_proj", "up_proj", "down_proj" };
  tm_memory memory;
  tm_memory_init(&memory, 0);
  tm_named_item *items = calloc(COUNT, sizeof *items);
  char (*texts)[LONGEST] = calloc(COUNT, sizeof *texts);
  assert_true(items != NULL && texts != NULL);
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint32_t side = i % 2, at = i / 2, order = side == 0 ? at : COUNT / 2 - 1 - at;
    const int length = snprintf(texts[i], LONGEST, "%s.%u.mlp.experts.%u.%s.input_scale", side == 0 ? "model.layers" : "layers",
                                order / (EXPERTS * PARTS), order / PARTS % EXPERTS, parts[order % PARTS]);
    items[i] = (tm_named_item){ .name = { texts[i], (uint64_t)length }, .item = at, .side = side };
  }
  assert_int_equal(tm_name_affinity_match(&memory, items, COUNT, true, NULL), TM_OK);
  for (uint32_t i = 0; i < COUNT; i++) assert_true(items[i].partner == COUNT / 2 - 1 - items[i].item);
  const _Atomic uint32_t cancelled = 1;
  assert_int_equal(tm_name_affinity_match(&memory, items, COUNT, true, &cancelled), TM_ERROR_CANCELLED);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
  free(texts);
  free(items);
}

/* ---- against what the header says, tried pair by pair ---- */

static const char *end_of(const char *name, uint32_t components, const char **out_begin) {
  const char *end = name + strlen(name);
  for (;;) {
    const char *begin = end;
    while (begin != name && begin[-1] != '.' && begin[-1] != '/') begin--;
    *out_begin = begin;
    if (end == name || components-- == 0) return end == name ? NULL : end;
    end = begin == name ? name : begin - 1;
  }
}

static void numbers_of(const char *name, char *out_text) {
  const char *begin, *end;
  *out_text = '\0';
  for (uint32_t i = 0; (end = end_of(name, i, &begin)) != NULL; i++)
    if (begin != end && strspn(begin, "0123456789") >= (size_t)(end - begin))
      strcat(strncat(out_text, begin, (size_t)(end - begin)), " ");
}

static uint32_t shared_levels(const char *a, const char *b) {
  char left[128], right[128];
  numbers_of(a, left);
  numbers_of(b, right);
  if (strcmp(left, right) != 0) return 0;
  for (uint32_t i = 0;; i++) {
    const char *x, *y, *x_end = end_of(a, i, &x), *y_end = end_of(b, i, &y);
    if (x_end == NULL && y_end == NULL) return UINT32_MAX;
    if (x_end == NULL || y_end == NULL || x_end - x != y_end - y || memcmp(x, y, (size_t)(x_end - x)) != 0) return 1 + i;
  }
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

static void make_name(uint64_t *random, char *out_name) {
  static const char *const words[] = { "a", "b", "0", "1", "", "ab" };
  *out_name = '\0';
  for (uint32_t i = next_random(random) % 5; i != 0; i--) {
    strcat(out_name, words[next_random(random) % 6]);
    if (i != 1 || next_random(random) % 8 == 0) strcat(out_name, next_random(random) % 4 == 0 ? "/" : ".");
  }
}

static void pair_alike(tm_named_item *items, uint64_t count, uint64_t with, uint32_t level, bool only_close) {
  tm_named_item *groups[2][MOST];
  uint64_t counts[2] = { 0, 0 };
  char numbers[128];
  for (uint64_t i = 0; i < count; i++) {
    if (items[i].partner != TM_NO_PARTNER || shared_levels(items[with].name.data, items[i].name.data) < level) continue;
    groups[items[i].side][counts[items[i].side]++] = &items[i];
  }
  numbers_of(items[with].name.data, numbers);
  const bool is_layer = level != 0 && numbers[0] != '\0' && counts[0] == counts[1];
  const bool is_close = is_layer || (level >= 3 && counts[0] == 1 && counts[1] == 1);
  for (uint64_t i = 0; i < counts[0] && i < counts[1] && (is_close || !only_close); i++) {
    groups[0][i]->partner = groups[1][i]->item;
    groups[1][i]->partner = groups[0][i]->item;
  }
}

static void as_the_rule_says(void **state) {
  (void)state;
  uint64_t random = 7;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (uint32_t round = 0; round < 3000; round++) {
    char texts[MOST][32];
    names all = { .count = 0 }, expected;
    const uint32_t count = 1 + next_random(&random) % 16;
    for (uint32_t i = 0; i < count; i++) {
      make_name(&random, texts[i]);
      add(&all, next_random(&random) % 2, texts[i]);
    }
    expected = all;
    const bool only_close = round % 2 == 0;
    for (uint32_t i = 0; i < count; i++) expected.items[i].partner = TM_NO_PARTNER;
    for (uint32_t level = 12; level-- > 0;)
      for (uint32_t i = 0; i < count; i++)
        if (expected.items[i].partner == TM_NO_PARTNER) pair_alike(expected.items, count, i, level, only_close);
    assert_int_equal(tm_name_affinity_match(&memory, all.items, count, only_close, NULL), TM_OK);
    for (uint32_t i = 0; i < count; i++) {
      if (all.items[i].partner != expected.items[i].partner) print_message("round %u: \"%s\"\n", round, texts[i]);
      assert_true(all.items[i].partner == expected.items[i].partner);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_longest_common_end_wins), cmocka_unit_test(numbers_come_first), cmocka_unit_test(all_of_the_smaller_side_get_one),
    cmocka_unit_test(only_close_ones),             cmocka_unit_test(very_many),
    cmocka_unit_test(as_the_rule_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
