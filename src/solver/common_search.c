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

/* The dearest use that the plan at hand makes for nothing. */
static tm_common_use *find_unpaid(const tm_common_search *s) {
  tm_common_use *found = NULL;
  for (uint32_t i = 0; i < s->common->use_count; i++) {
    tm_common_use *use = &s->common->uses[i];
    if (use->state != TM_COMMON_FREE || !tm_common_values_is_used(s->common, use, s->plan)) continue;
    if (found == NULL || use->most_ns > found->most_ns) found = use;
  }
  return found;
}

/* Without one unpaid use after the other, each paid from then on: what is left at the end makes no use for nothing.  Each level
   decides one use more than the one above, or ends. */
static uint64_t search(tm_common_search *s) {
  uint64_t bound = solve(s);
  tm_common_use *use = is_beaten(s, bound) ? NULL : find_unpaid(s);
  if (use == NULL || s->nodes_left < 2) return bound;
  s->nodes_left -= 2;
  use->state = TM_COMMON_FORBIDDEN;
  const uint64_t without = search(s);
  use->state = TM_COMMON_PAID;
  const uint64_t with = search(s);
  use->state = TM_COMMON_FREE;
  return tm_max_u64(bound, tm_min_u64(with, without));
}

uint64_t tm_common_search_run(tm_common_search *s) {
  for (uint32_t i = 0; i < s->common->use_count; i++) s->common->uses[i].state = TM_COMMON_FREE;
  const uint64_t bound = search(s);
  return s->best_price.nevers == 0 ? tm_min_u64(bound, s->best_price.ns) : bound;
}
