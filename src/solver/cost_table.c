/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/cost_table.h"

/* From the innermost dimension outwards; neighbours that are both in the small table, or both not, are one loop. */
void tm_table_walk_init(tm_table_walk *walk, const uint32_t *state_counts, uint32_t first, const uint32_t *scope,
                        uint32_t scope_count, const uint32_t *small, uint32_t small_count) {
  uint64_t counts[TM_ELIMINATION_MOST_DIMENSIONS + 1], strides[TM_ELIMINATION_MOST_DIMENSIONS + 1], stride = 1;
  uint32_t loops = 0;
  bool was_in = false;
  for (uint32_t i = scope_count + 1; i-- > 0;) {
    const uint32_t variable = i == 0 ? first : scope[i - 1];
    const bool is_in = small_count != 0 && small[small_count - 1] == variable;
    const uint32_t count = state_counts[variable];
    if (loops != 0 && is_in == was_in) {
      counts[loops - 1] *= count;
    } else {
      counts[loops] = count;
      strides[loops++] = is_in ? stride : 0;
    }
    was_in = is_in;
    if (!is_in) continue;
    stride *= count;
    small_count--;
  }
  walk->loop_count = loops;
  for (uint32_t i = 0; i < loops; i++) {
    walk->counts[i] = counts[loops - 1 - i];
    walk->strides[i] = strides[loops - 1 - i];
  }
}

/* The next place of the loops around the innermost; false when they are through. */
static bool advance(const tm_table_walk *walk, uint64_t *index, uint64_t *offset) {
  for (uint32_t k = walk->loop_count - 1; k-- > 0;) {
    *offset += walk->strides[k];
    if (++index[k] < walk->counts[k]) return true;
    *offset -= walk->strides[k] * walk->counts[k];
    index[k] = 0;
  }
  return false;
}

typedef uint64_t entry_pair __attribute__((vector_size(16), aligned(8), may_alias));

static void add_run(uint64_t *large, const uint64_t *from, uint64_t count) {
  uint64_t i = 0;
  for (; i + 2 <= count; i += 2) *(entry_pair *)(void *)(large + i) += *(const entry_pair *)(const void *)(from + i);
  if (i < count) large[i] += from[i];
}

static void add_one(uint64_t *large, uint64_t cost, uint64_t count) {
  const entry_pair pair = { cost, cost };
  uint64_t i = 0;
  for (; i + 2 <= count; i += 2) *(entry_pair *)(void *)(large + i) += pair;
  if (i < count) large[i] += cost;
}

static inline void add_loop(uint64_t *large, const uint64_t *small, uint64_t count, uint64_t stride) {
  if (stride != 0) add_run(large, small, count);
  else add_one(large, *small, count);
}

/* As most walks are: three loops at most. */
static void add_few_loops(uint64_t *large, const tm_table_walk *walk, const uint64_t *small) {
  const uint32_t last = walk->loop_count - 1;
  const uint64_t count = walk->counts[last], stride = walk->strides[last];
  const uint64_t inner = last == 0 ? 1 : walk->counts[last - 1], outer = last < 2 ? 1 : walk->counts[0];
  const uint64_t inner_stride = last == 0 ? 0 : walk->strides[last - 1], outer_stride = last < 2 ? 0 : walk->strides[0];
  for (uint64_t i = 0; i < outer; i++, small += outer_stride) {
    const uint64_t *from = small;
    for (uint64_t k = 0; k < inner; k++, from += inner_stride, large += count) add_loop(large, from, count, stride);
  }
}

void tm_table_add_to(uint64_t *large, const tm_table_walk *walk, const uint64_t *small) {
  if (walk->loop_count <= 3) {
    add_few_loops(large, walk, small);
    return;
  }
  uint64_t index[TM_ELIMINATION_MOST_DIMENSIONS + 1] = { 0 }, offset = 0;
  const uint64_t count = walk->counts[walk->loop_count - 1], stride = walk->strides[walk->loop_count - 1];
  do {
    add_loop(large, small + offset, count, stride);
    large += count;
  } while (advance(walk, index, &offset));
}

/* Few entries are too large: most rounds of eight have nothing to do. */
void tm_table_settle(uint64_t *table, uint64_t entries) {
  uint64_t i = 0;
  for (; i + 8 <= entries; i += 8) {
    uint64_t high = 0;
    for (uint64_t k = 0; k < 8; k++) high |= table[i + k];
    if (high <= TM_SOLVER_MOST_NS) continue;
    for (uint64_t k = 0; k < 8; k++) table[i + k] = tm_table_settled(table[i + k]);
  }
  for (; i < entries; i++) table[i] = tm_table_settled(table[i]);
}

void tm_table_lower(const uint64_t *large, const tm_table_walk *walk, uint64_t *small) {
  uint64_t index[TM_ELIMINATION_MOST_DIMENSIONS + 1] = { 0 }, offset = 0;
  const uint64_t count = walk->counts[walk->loop_count - 1];
  const bool is_run = walk->strides[walk->loop_count - 1] != 0;
  do {
    uint64_t *to = small + offset;
    if (is_run) {
      for (uint64_t i = 0; i < count; i++) to[i] = large[i] < to[i] ? large[i] : to[i];
    } else {
      uint64_t least = *to;
      for (uint64_t i = 0; i < count; i++) least = large[i] < least ? large[i] : least;
      *to = least;
    }
    large += count;
  } while (advance(walk, index, &offset));
}
