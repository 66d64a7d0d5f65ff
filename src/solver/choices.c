/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/choices.h"

#include "base/checked.h"

typedef struct label_order {
  const tm_solver_label *labels;
  const uint32_t        *memory_ranks;  /* [memory]: the lowest rank that touches it; NULL: alike labels side by side */
  uint32_t              *scratch;
} label_order;

static int compare(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

#define COMPARE_THEN(a, b)                       \
  do {                                           \
    const int order_ = compare((a), (b));        \
    if (order_ != 0) return order_;              \
  } while (0)

static int compare_alike(const tm_solver_label *a, const tm_solver_label *b) {
  COMPARE_THEN(a->input_memory, b->input_memory);
  COMPARE_THEN(a->output_memory, b->output_memory);
  COMPARE_THEN(a->cost_ns, b->cost_ns);
  COMPARE_THEN(a->rank, b->rank);
  COMPARE_THEN(a->workspace_bytes, b->workspace_bytes);
  COMPARE_THEN(a->resource, b->resource);
  return 0;
}

static int compare_ranked(const label_order *order, const tm_solver_label *a, const tm_solver_label *b) {
  COMPARE_THEN(a->rank, b->rank);
  COMPARE_THEN(order->memory_ranks[a->input_memory], order->memory_ranks[b->input_memory]);
  COMPARE_THEN(order->memory_ranks[a->output_memory], order->memory_ranks[b->output_memory]);
  COMPARE_THEN(a->input_memory, b->input_memory);
  COMPARE_THEN(a->output_memory, b->output_memory);
  return 0;
}

static bool comes_before(const label_order *order, uint32_t a, uint32_t b) {
  const tm_solver_label *x = &order->labels[a], *y = &order->labels[b];
  return (order->memory_ranks == NULL ? compare_alike(x, y) : compare_ranked(order, x, y)) < 0;
}

static void sort_few(const label_order *order, uint32_t *items, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t item = items[i];
    uint32_t at = i;
    for (; at > 0 && comes_before(order, item, items[at - 1]); at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

/* Stable merging; the scratch has `count` places. */
static void sort_labels(const label_order *order, uint32_t *items, uint32_t count) {
  for (uint32_t at = 0; at < count; at += 8) sort_few(order, items + at, count - at < 8 ? count - at : 8);
  for (uint64_t width = 8; width < count; width *= 2) {
    for (uint64_t from = 0; from < count; from += 2 * width) {
      const uint64_t middle = tm_min_u64(from + width, count), end = tm_min_u64(from + 2 * width, count);
      uint64_t left = from, right = middle;
      for (uint64_t at = from; at < end; at++) {
        const bool take_right = left == middle || (right < end && comes_before(order, items[right], items[left]));
        order->scratch[at] = take_right ? items[right++] : items[left++];
      }
    }
    for (uint32_t i = 0; i < count; i++) items[i] = order->scratch[i];
  }
}

/* Leaves in `items` the labels that stand for a choice, in order of rank, and returns their number.  `stands_for` becomes, for
   each label that can be, the one that stands for it. */
static uint32_t choose_labels(const tm_solver_op *op, const tm_solver_label *labels, const uint32_t *memory_ranks, uint32_t *items,
                              uint32_t *scratch, uint32_t *stands_for) {
  label_order order = { labels, NULL, scratch };
  uint32_t possible = 0, kept = 0;
  for (uint32_t i = op->first_label; i < op->first_label + op->label_count; i++) {
    if (labels[i].cost_ns != TM_SOLVER_NEVER) items[possible++] = i;
  }
  sort_labels(&order, items, possible);
  for (uint32_t i = 0; i < possible; i++) {
    const tm_solver_label *label = &labels[items[i]], *last = kept == 0 ? NULL : &labels[items[kept - 1]];
    if (last == NULL || last->input_memory != label->input_memory || last->output_memory != label->output_memory)
      items[kept++] = items[i];
    stands_for[items[i]] = items[kept - 1];
  }
  order.memory_ranks = memory_ranks;
  sort_labels(&order, items, kept);
  return kept;
}

typedef struct choice_scratch {
  uint32_t *memory_ranks;
  uint32_t *items;
  uint32_t *sorting;
  uint32_t *choice_of;          /* of the labels that stand for others */
} choice_scratch;

static tm_status fill(tm_choices *choices, const tm_solver_problem *p, const choice_scratch *scratch, tm_error *error) {
  for (uint32_t i = 0; i < p->label_count; i++) choices->of_label[i] = TM_SOLVER_NONE;
  for (uint32_t op = 0; op < p->op_count; op++) {
    const tm_solver_op *row = &p->ops[op];
    const uint32_t count =
        choose_labels(row, p->labels, scratch->memory_ranks, scratch->items, scratch->sorting, choices->of_label);
    if (count == 0) return tm_fail(error, TM_ERROR_NO_DEVICE, "operation %u can run nowhere", op);
    choices->first[op + 1] = choices->first[op] + count;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t choice = choices->first[op] + i;
      const tm_solver_label *label = &p->labels[scratch->items[i]];
      choices->items[choice] = (tm_choice){ label->cost_ns, label->input_memory, label->output_memory, scratch->items[i] };
      scratch->choice_of[scratch->items[i]] = choice;
    }
    for (uint32_t i = row->first_label; i < row->first_label + row->label_count; i++) {
      if (choices->of_label[i] != TM_SOLVER_NONE) choices->of_label[i] = scratch->choice_of[choices->of_label[i]];
    }
  }
  return TM_OK;
}

tm_status tm_choices_init(tm_choices *choices, const tm_solver_problem *p, tm_arena *arena, tm_error *error) {
  choices->items = tm_arena_alloc(arena, p->label_count * sizeof(tm_choice));
  choices->first = tm_arena_calloc(arena, (uint64_t)p->op_count + 1, sizeof(uint32_t));
  choices->of_label = tm_arena_alloc(arena, p->label_count * sizeof(uint32_t));
  choice_scratch scratch = { .memory_ranks = tm_arena_alloc(arena, p->memory_count * sizeof(uint32_t)),
                             .items = tm_arena_alloc(arena, 3 * (uint64_t)p->label_count * sizeof(uint32_t)) };
  if (choices->items == NULL || choices->first == NULL || choices->of_label == NULL || scratch.memory_ranks == NULL ||
      scratch.items == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the choices of %u operations", p->op_count);
  scratch.sorting = scratch.items + p->label_count;
  scratch.choice_of = scratch.sorting + p->label_count;
  uint32_t *memory_ranks = scratch.memory_ranks;
  for (uint32_t m = 0; m < p->memory_count; m++) memory_ranks[m] = UINT32_MAX;
  for (uint32_t i = 0; i < p->label_count; i++) {
    const tm_solver_label *label = &p->labels[i];
    if (label->rank < memory_ranks[label->input_memory]) memory_ranks[label->input_memory] = label->rank;
    if (label->rank < memory_ranks[label->output_memory]) memory_ranks[label->output_memory] = label->rank;
  }
  return fill(choices, p, &scratch, error);
}

void tm_choices_drop(tm_choices *choices, const tm_solver_problem *p, const bool *is_dropped, uint32_t *scratch) {
  uint32_t kept = 0;
  for (uint32_t op = 0; op < p->op_count; op++) {
    const uint32_t first = choices->first[op], end = choices->first[op + 1];
    choices->first[op] = kept;
    for (uint32_t c = first; c < end; c++) {
      scratch[c] = is_dropped[c] ? TM_SOLVER_NONE : kept;
      if (!is_dropped[c]) choices->items[kept++] = choices->items[c];
    }
  }
  choices->first[p->op_count] = kept;
  for (uint32_t i = 0; i < p->label_count; i++) {
    if (choices->of_label[i] != TM_SOLVER_NONE) choices->of_label[i] = scratch[choices->of_label[i]];
  }
}
