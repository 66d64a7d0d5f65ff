/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/common_search.h"

#include <string.h>

#include "base/checked.h"

tm_plan_price tm_common_search_take(tm_common_search *s) {
  const uint32_t ops = s->graph->problem->op_count;
  tm_elimination_decode(s->elimination, s->states);
  for (uint32_t op = 0; op < ops; op++) s->candidate[op] = s->graph->choices->first[op] + s->states[op];
  tm_plan_cost_set(s->plan, s->candidate);
  const tm_plan_price price = tm_plan_cost_total(s->plan);
  if (tm_plan_price_is_less(price, s->best_price)) {
    s->best_price = price;
    memcpy(s->best, s->candidate, ops * sizeof *s->best);
  }
  return price;
}

static bool is_beaten(const tm_common_search *s, uint64_t bound) {
  return bound == TM_SOLVER_NEVER || (s->best_price.nevers == 0 && bound >= s->best_price.ns);
}

/* What no plan costs less than that makes uses as their states say; the plan at hand is then the tables'. */
static uint64_t solve(tm_common_search *s) {
  tm_common_values_apply(s->common, s->unary, s->graph);
  tm_elimination_renew(s->elimination);
  if (s->elimination->total_ns != TM_SOLVER_NEVER) tm_common_search_take(s);
  return tm_solver_add(s->elimination->total_ns, tm_common_values_sums(s->common).constant_ns);
}

/* Lists the uses that the plan at hand makes for nothing, those of most readers first: what leaves them out is soon beaten. */
static uint32_t list_unpaid(const tm_common_search *s, uint32_t *list) {
  const tm_common_values *common = s->common;
  uint32_t count = 0;
  for (uint32_t i = 0; i < common->use_count; i++) {
    const tm_common_use *use = &common->uses[i];
    const uint32_t readings = tm_common_values_readings(common, use, s->plan);
    if (use->state != TM_COMMON_FREE || readings == 0) continue;
    uint32_t at = count++;
    for (; at > 0 && tm_common_values_readings(common, &common->uses[list[at - 1]], s->plan) < readings; at--)
      list[at] = list[at - 1];
    list[at] = i;
  }
  return count;
}

/* Without one unpaid use after the other, each paid from then on; with all of them paid at the end. */
static uint64_t search(tm_common_search *s, uint32_t depth) {
  const uint64_t bound = solve(s);
  if (is_beaten(s, bound) || depth == TM_COMMON_SEARCH_DEPTH) return bound;
  uint32_t *list = s->lists + (uint64_t)depth * s->common->use_count;
  const uint32_t count = list_unpaid(s, list);
  if (count == 0 || s->nodes_left < count + 1) return bound;
  s->nodes_left -= count + 1;
  uint64_t least = TM_SOLVER_NEVER;
  for (uint32_t i = 0; i < count; i++) {
    tm_common_use *use = &s->common->uses[list[i]];
    use->state = TM_COMMON_FORBIDDEN;
    least = tm_min_u64(least, search(s, depth + 1));
    use->state = TM_COMMON_PAID;
  }
  least = tm_min_u64(least, search(s, depth + 1));
  for (uint32_t i = 0; i < count; i++) s->common->uses[list[i]].state = TM_COMMON_FREE;
  return tm_max_u64(bound, least);
}

uint64_t tm_common_search_run(tm_common_search *s) {
  for (uint32_t i = 0; i < s->common->use_count; i++) s->common->uses[i].state = TM_COMMON_FREE;
  const uint64_t bound = search(s, 0);
  return s->best_price.nevers == 0 ? tm_min_u64(bound, s->best_price.ns) : bound;
}
