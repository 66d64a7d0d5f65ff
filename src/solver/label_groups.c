/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/label_groups.h"

#include <stdlib.h>

#include "base/error.h"

static int compare(const void *left, const void *right) {
  const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return (a > b) - (a < b);
}

static uint32_t find(const tm_label_groups *groups, uint32_t rank) {
  uint32_t low = 0, high = groups->count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (groups->ranks[middle] <= rank) low = middle; else high = middle;
  }
  return low;
}

tm_status tm_label_groups_make(const tm_solver_problem *problem, tm_arena *arena, tm_label_groups *out_groups, tm_error *error) {
  const uint32_t label_count = problem->label_count;
  tm_label_groups groups = { 0, tm_arena_alloc(arena, (uint64_t)label_count * sizeof *groups.ranks),
                             tm_arena_alloc(arena, (uint64_t)label_count * sizeof *groups.of_label) };
  if (groups.ranks == NULL || groups.of_label == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for labels");
  /* Neighbours mostly alternate between few ranks, so most are dropped before there is anything to sort. */
  uint32_t kept = 0;
  for (uint32_t l = 0; l < label_count; l++) {
    const uint32_t rank = problem->labels[l].rank;
    bool is_known = false;
    for (uint32_t back = 1; back <= kept && back <= 16 && !is_known; back++) is_known = groups.ranks[kept - back] == rank;
    if (!is_known) groups.ranks[kept++] = rank;
  }
  if (kept != 0) qsort(groups.ranks, kept, sizeof *groups.ranks, compare);
  for (uint32_t i = 0; i < kept; i++) {
    if (i == 0 || groups.ranks[i] != groups.ranks[i - 1]) groups.ranks[groups.count++] = groups.ranks[i];
  }
  for (uint32_t l = 0; l < label_count; l++) groups.of_label[l] = find(&groups, problem->labels[l].rank);
  *out_groups = groups;
  return TM_OK;
}

bool tm_label_goes_first(const tm_solver_problem *problem, uint32_t a, uint32_t b) {
  const tm_solver_label *x = &problem->labels[a], *y = &problem->labels[b];
  if (x->rank != y->rank) return x->rank < y->rank;
  if (x->cost_ns != y->cost_ns) return x->cost_ns < y->cost_ns;
  if (x->workspace_bytes != y->workspace_bytes) return x->workspace_bytes < y->workspace_bytes;
  if (x->input_memory != y->input_memory) return x->input_memory < y->input_memory;
  if (x->output_memory != y->output_memory) return x->output_memory < y->output_memory;
  if (x->resource != y->resource) return x->resource < y->resource;
  return a < b;
}
