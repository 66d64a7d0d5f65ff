/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/walk.h"

#include "base/checked.h"

/* Strides of `operand` in the space's axes: 0 where it repeats. */
static void align_strides(tm_walk *walk, uint32_t slot, const tm_operand *operand) {
  const uint32_t added = walk->rank - operand->rank;
  for (uint32_t axis = 0; axis < walk->rank; axis++) {
    const bool repeats = axis < added || operand->dims[axis - added] != walk->dims[axis];
    walk->strides[slot][axis] = repeats ? 0 : operand->strides_bytes[axis - added];
  }
  walk->streams[slot] = tm_stream_along(operand, operand->rank - 1);
  walk->streams[slot].step_bytes = walk->strides[slot][walk->rank - 1];
}

/* Moves every address by `steps` on an axis; on the last one a step is an element. */
static void move(tm_walk *walk, uint32_t axis, uint64_t steps) {
  for (uint32_t i = 0; i < walk->operand_count; i++) {
    const uint64_t blocks = axis + 1 == walk->rank ? steps / walk->streams[i].block_elements : steps;
    walk->addresses[i] += (int64_t)blocks * walk->strides[i][axis];
  }
}

static void move_back(tm_walk *walk, uint32_t axis, uint64_t steps) {
  for (uint32_t i = 0; i < walk->operand_count; i++) {
    const uint64_t blocks = axis + 1 == walk->rank ? steps / walk->streams[i].block_elements : steps;
    walk->addresses[i] -= (int64_t)blocks * walk->strides[i][axis];
  }
}

tm_walk tm_walk_begin(const tm_operand *space, const tm_operand *operands, void *const *pointers,
                      uint32_t operand_count, uint64_t element) {
  tm_walk walk = { .rank = space->rank, .operand_count = operand_count };
  for (uint32_t axis = 0; axis < space->rank; axis++) walk.dims[axis] = space->dims[axis];
  if (walk.rank == 0) walk.dims[walk.rank++] = 1;
  for (uint32_t i = 0; i < operand_count; i++) {
    align_strides(&walk, i, &operands[i]);
    walk.addresses[i] = pointers[i];
  }
  for (uint32_t axis = walk.rank; axis-- > 0 && element != 0;) {
    walk.index[axis] = element % walk.dims[axis];
    element /= walk.dims[axis];
    move(&walk, axis, walk.index[axis]);
  }
  return walk;
}

uint64_t tm_walk_line(const tm_walk *walk, uint64_t limit) {
  const uint32_t last = walk->rank - 1;
  return tm_min_u64(limit, walk->dims[last] - walk->index[last]);
}

void tm_walk_advance(tm_walk *walk, uint64_t elements) {
  uint32_t axis = walk->rank - 1;
  walk->index[axis] += elements;
  move(walk, axis, elements);
  while (walk->index[axis] == walk->dims[axis] && axis > 0) {
    move_back(walk, axis, walk->dims[axis]);
    walk->index[axis] = 0;
    axis--;
    walk->index[axis]++;
    move(walk, axis, 1);
  }
}

void tm_walk_restart(tm_walk *walk, void *pointer) {
  for (uint32_t axis = 0; axis < walk->rank; axis++) walk->index[axis] = 0;
  walk->addresses[0] = pointer;
}

void tm_walk_copy(tm_walk *walk, uint64_t elements) {
  for (uint64_t n; elements > 0; elements -= n) {
    n = tm_walk_line(walk, elements);
    tm_stream_move(&walk->streams[0], walk->addresses[0], &walk->streams[1], walk->addresses[1], n);
    tm_walk_advance(walk, n);
  }
}
