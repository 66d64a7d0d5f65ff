/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/label_price.h"

#include "base/checked.h"

/* Packed constants are a node's own. */
static uint64_t constants_ns(const tm_plan_candidate *candidate, uint64_t repeats) {
  return tm_min_u64(candidate->due.cost_ns - candidate->due.earned_ns, candidate->constant_ns) / repeats;
}

tm_label_price tm_label_price_of(const tm_plan_candidate *candidate, bool is_direct, uint64_t repeats, uint64_t shared_ns) {
  const uint64_t staging_ns = tm_min_u64(candidate->copy_ns, candidate->total_ns);
  const uint64_t lowering_ns = tm_min_u64(candidate->lowering_ns, candidate->total_ns - staging_ns);
  return (tm_label_price){
    .run_ns = candidate->total_ns - staging_ns - lowering_ns,
    .lowering_ns = lowering_ns,
    .staging_ns = is_direct ? 0 : staging_ns,
    .setup_ns = tm_cost_add(constants_ns(candidate, repeats), shared_ns),
  };
}

/* Each part is TM_LARGEST_COST_NS at most, so this is exact. */
uint64_t tm_label_price_sum(const tm_label_price *price) {
  return price->run_ns + price->lowering_ns + price->staging_ns + price->setup_ns;
}
