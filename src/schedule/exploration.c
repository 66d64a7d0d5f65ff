/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/exploration.h"

#include "base/checked.h"

#define EXPLORE_ONE_IN 100u
#define LONGEST_EXPLORATION_NS UINT64_C(20000000)
#define TRUSTED_SAMPLES 3u

/* A tile takes about so long at the rate of the next best; on a device that is eighty times slower two take 50 ms. */
#define TILE_NS UINT64_C(300000)
#define FEWEST_TILES 4u
#define LONGEST_TILE_SETUP_NS UINT64_C(50000000)

/* A try pays for a set-up that was not paid before, in full. */
static uint64_t try_cost_ns(const tm_plan_candidate *candidate) { return tm_cost_add(candidate->total_ns, candidate->due.cost_ns); }

static bool may_be_cheaper(const tm_plan_candidate *candidate, const tm_plan_candidate *best) {
  return tm_candidate_can_run(candidate) && !atomic_load(&candidate->is_starved) && candidate->estimate.bucket_samples < TRUSTED_SAMPLES &&
         try_cost_ns(candidate) <= LONGEST_EXPLORATION_NS && tm_candidate_hoped_ns(candidate) < best->total_ns;
}

/* Under the placement's lock, prices fresh: the cheapest that is worth a try, or TM_EXPLORE_NONE. */
static uint32_t find_promising(const tm_placement *placement, uint32_t chosen) {
  uint32_t found = TM_EXPLORE_NONE;
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    if (i == chosen || !may_be_cheaper(candidate, &placement->candidates[chosen])) continue;
    if (found == TM_EXPLORE_NONE || candidate->total_ns < placement->candidates[found].total_ns) found = i;
  }
  return found;
}

/* One whose last try taught nothing yet has had its time set aside. */
static bool set_aside(tm_placement_table *table, tm_plan_candidate *candidate) {
  const int64_t cost = (int64_t)try_cost_ns(candidate), already = (int64_t)atomic_load(&candidate->tried_ns);
  const int64_t budget = (int64_t)tm_min_u64(atomic_load(&table->spent_ns) / EXPLORE_ONE_IN, INT64_MAX);
  if (atomic_fetch_add(&table->explored_ns, cost) + cost > budget) {
    atomic_fetch_sub(&table->explored_ns, cost);
    return false;
  }
  atomic_store(&candidate->tried_ns, (uint64_t)(already + cost));
  return true;
}

void tm_exploration_consider(tm_placement_table *table, tm_placement *placement) {
  const uint64_t learned = atomic_load(&table->market.correction->generation);
  const bool is_frozen = atomic_load_explicit(&table->market.correction->is_frozen, memory_order_relaxed);
  if (placement->candidate_count < 2 || is_frozen || atomic_load(&placement->settled) == learned) return;
  if (!tm_mutex_try_lock(&placement->lock)) return;
  tm_placement_reprice(table, placement);
  const uint32_t chosen = tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0);
  const uint32_t found = chosen == placement->candidate_count ? TM_EXPLORE_NONE : find_promising(placement, chosen);
  atomic_store(&placement->chosen, chosen);
  if (found == TM_EXPLORE_NONE) atomic_store(&placement->settled, learned);
  else if (set_aside(table, &placement->candidates[found])) atomic_store(&placement->explore, found);
  tm_mutex_unlock(&placement->lock);
}

void tm_exploration_settle(tm_placement_table *table, tm_plan_candidate *candidate, uint64_t measured_ns) {
  if (atomic_load_explicit(&candidate->tried_ns, memory_order_relaxed) == 0) return;
  const uint64_t planned = atomic_exchange(&candidate->tried_ns, 0);
  atomic_fetch_add(&table->explored_ns, (int64_t)tm_min_u64(measured_ns, INT64_MAX) - (int64_t)planned);
}

/* ---- before real work is placed on a device of which nothing is known ---- */

/* Under the placement's lock: what the work takes elsewhere; 0 if nobody else can do it. */
static uint64_t elsewhere_ns(const tm_placement *placement, const tm_device_slot *device) {
  uint64_t best = 0;
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *other = &placement->candidates[i];
    if (other->device == device || !tm_candidate_can_run(other)) continue;
    if (best == 0 || other->total_ns < best) best = other->total_ns;
  }
  return best;
}

bool tm_exploration_wants_tile(tm_placement_table *table, tm_placement *placement, uint32_t index, uint64_t *out_tiles) {
  const tm_plan_candidate *candidate = &placement->candidates[index];
  const uint32_t unwanted = TM_REQUEST_RUN_TO_RUN | TM_REQUEST_AS_IS;
  if (candidate->estimate.device_samples != 0 || candidate->lowering != NULL || (placement->request.flags & unwanted) != 0) return false;
  if (placement->request.only_device != TM_ANY_DEVICE || atomic_load(&table->market.correction->is_frozen)) return false;
  tm_mutex_lock(&placement->lock);
  const uint64_t other_ns = elsewhere_ns(placement, candidate->device);
  const bool is_cheap_to_try = candidate->answer.setup_key != 0 || candidate->answer.setup_ns <= LONGEST_TILE_SETUP_NS;
  tm_mutex_unlock(&placement->lock);
  *out_tiles = other_ns / TILE_NS;
  return *out_tiles >= FEWEST_TILES && is_cheap_to_try;
}
