/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/worthwhile_repeats.h"

/* The first number of runs for which it is otherwise than for one: with more runs the share of a set-up shrinks, so of two
   candidates the order changes once at most. */
static uint32_t find_turn(const tm_plan_candidate *a, const tm_plan_candidate *b, bool at_first) {
  uint32_t same = 1, other = TM_MOST_REPEATS;
  while (other - same > 1) {
    const uint32_t middle = same + (other - same) / 2;
    if (tm_candidate_is_before(a, b, middle) == at_first) same = middle;
    else other = middle;
  }
  return other;
}

/* With which `one` goes before `other`. */
static tm_repeat_range range_of_two(const tm_plan_candidate *one, const tm_plan_candidate *other) {
  const bool at_first = tm_candidate_is_before(one, other, 1), at_last = tm_candidate_is_before(one, other, TM_MOST_REPEATS);
  if (at_first && at_last) return (tm_repeat_range){ 1, TM_MOST_REPEATS };
  if (!at_first && !at_last) return (tm_repeat_range){ 0, 0 };
  const uint32_t turn = find_turn(one, other, at_first);
  return at_first ? (tm_repeat_range){ 1, turn - 1 } : (tm_repeat_range){ turn, TM_MOST_REPEATS };
}

tm_repeat_range tm_worthwhile_repeats(const tm_plan_candidate *candidates, uint32_t count, const tm_plan_candidate *one) {
  tm_repeat_range range = { 1, TM_MOST_REPEATS };
  if (!tm_candidate_can_run(one)) return (tm_repeat_range){ 0, 0 };
  for (uint32_t i = 0; i < count; i++) {
    if (&candidates[i] == one || !tm_candidate_can_run(&candidates[i])) continue;
    const tm_repeat_range two = range_of_two(one, &candidates[i]);
    range.from = two.from > range.from ? two.from : range.from;
    range.to = two.to < range.to ? two.to : range.to;
  }
  return range.from <= range.to ? range : (tm_repeat_range){ 0, 0 };
}
