/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/exploration.h"

#include "base/checked.h"

#define EXPLORE_ONE_IN 100u
/* A try takes no longer than this, or than so many times what the best does. */
#define LONGEST_EXPLORATION_NS UINT64_C(20000000)
#define LONGEST_EXPLORATION_TIMES 8u
#define TRUSTED_SAMPLES 3u

/* Beyond this plus so many times the core's own count of the work a price is doubted. */
#define DOUBTFUL_NS UINT64_C(1000000000)
#define DOUBTFUL_TIMES 4096u
#define DOUBTFUL_TRY_NS UINT64_C(10000000)

/* A tile takes about so long at the rate of the next best; on a device that is eighty times slower two take 50 ms. */
#define TILE_NS UINT64_C(300000)
#define FEWEST_TILES 4u
#define LONGEST_TILE_SETUP_NS UINT64_C(50000000)

/* ---- tiles, on a device of which nothing is known ---- */

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

/* Under the placement's lock; 0: none. */
static uint64_t tiles_of(const tm_placement *placement, const tm_plan_candidate *candidate) {
  const uint32_t unwanted = TM_REQUEST_RUN_TO_RUN | TM_REQUEST_AS_IS;
  const tm_request *request = &placement->request;
  if (candidate->estimate.device_samples != 0 || candidate->lowering != NULL || candidate->has_tried_tile) return 0;
  if ((request->flags & unwanted) != 0 || request->only_device != TM_ANY_DEVICE) return 0;
  if (candidate->answer.setup_key == 0 && candidate->answer.setup_ns > LONGEST_TILE_SETUP_NS) return 0;
  const uint64_t tiles = elsewhere_ns(placement, candidate->device) / TILE_NS;
  return tiles < FEWEST_TILES ? 0 : tiles;
}

bool tm_exploration_wants_tile(tm_placement_table *table, tm_placement *placement, uint32_t index, uint64_t *out_tiles) {
  tm_plan_candidate *candidate = &placement->candidates[index];
  if (atomic_load(&candidate->is_device_known) || atomic_load(&table->market.correction->is_frozen)) return false;
  tm_mutex_lock(&placement->lock);
  *out_tiles = tiles_of(placement, candidate);
  if (*out_tiles != 0) candidate->has_tried_tile = true;
  tm_mutex_unlock(&placement->lock);
  return *out_tiles != 0;
}

/* ---- which candidate, and when ---- */

/* The word of a device that was never measured is far above the core's count of the work: as a price it stands, but whoever says
   such things may be no judge.  One try tells; it counts as long as it may well be. */
static bool is_doubtful(const tm_plan_candidate *candidate) {
  const uint64_t work_ns = tm_cost_scale(candidate->answer.cost_ns, candidate->basis.key.work_factor);
  const uint64_t doubtful_ns = tm_cost_add(DOUBTFUL_NS, tm_cost_times(work_ns, DOUBTFUL_TIMES));
  return candidate->estimate.device_samples == 0 && candidate->answer.cost_ns > doubtful_ns;
}

static uint64_t counted_ns(const tm_plan_candidate *candidate) {
  return tm_cost_add(tm_cost_scale(candidate->answer.cost_ns, candidate->basis.key.work_factor),
                     tm_cost_add(candidate->lowering_ns, candidate->copy_ns));
}

static uint64_t hoped_ns(const tm_plan_candidate *candidate) {
  return is_doubtful(candidate) ? counted_ns(candidate) : tm_candidate_hoped_ns(candidate);
}

static uint64_t whole_try_ns(const tm_plan_candidate *candidate) {
  if (is_doubtful(candidate)) return tm_max_u64(counted_ns(candidate), DOUBTFUL_TRY_NS);
  return tm_cost_add(tm_cost_scale(candidate->answer.cost_ns, candidate->estimate.try_factor),
                     tm_cost_add(candidate->lowering_ns, candidate->copy_ns));
}

/* A try pays for a set-up that was not paid before, in full. */
static uint64_t try_cost_ns(const tm_placement *placement, const tm_plan_candidate *candidate) {
  const uint64_t tiles = tiles_of(placement, candidate), whole_ns = whole_try_ns(candidate);
  const uint64_t run_ns = tiles == 0 ? whole_ns : tm_cost_times(whole_ns / tiles, TM_TILE_RUNS);
  return tm_cost_add(run_ns, candidate->due.cost_ns);
}

static bool may_be_cheaper(const tm_placement *placement, const tm_plan_candidate *candidate, const tm_plan_candidate *best) {
  const uint64_t longest_ns = tm_max_u64(LONGEST_EXPLORATION_NS, tm_cost_times(best->total_ns, LONGEST_EXPLORATION_TIMES));
  return tm_candidate_can_run(candidate) && !atomic_load(&candidate->is_starved) && candidate->estimate.bucket_samples < TRUSTED_SAMPLES &&
         try_cost_ns(placement, candidate) <= longest_ns && hoped_ns(candidate) < best->total_ns;
}

/* Under the placement's lock, prices fresh: the cheapest that is worth a try, or TM_EXPLORE_NONE. */
static uint32_t find_promising(const tm_placement *placement, uint32_t chosen) {
  uint32_t found = TM_EXPLORE_NONE;
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    if (i == chosen || !may_be_cheaper(placement, candidate, &placement->candidates[chosen])) continue;
    if (found == TM_EXPLORE_NONE || candidate->total_ns < placement->candidates[found].total_ns) found = i;
  }
  return found;
}

static bool set_aside(tm_placement_table *table, const tm_placement *placement, tm_plan_candidate *candidate) {
  const int64_t cost = (int64_t)try_cost_ns(placement, candidate);
  const int64_t budget = (int64_t)tm_min_u64(atomic_load(&table->spent_ns) / EXPLORE_ONE_IN, INT64_MAX);
  if (atomic_fetch_add(&table->explored_ns, cost) + cost > budget) {
    atomic_fetch_sub(&table->explored_ns, cost);
    return false;
  }
  atomic_fetch_add(&candidate->tried_ns, (uint64_t)cost);
  return true;
}

/* Prices need not be looked at again before there is time for it. */
static void wait_for_more(const tm_placement_table *table, tm_placement *placement, const tm_plan_candidate *candidate, uint64_t learned) {
  const int64_t explored = atomic_load(&table->explored_ns);
  const uint64_t needed_ns = tm_cost_add(try_cost_ns(placement, candidate), explored > 0 ? (uint64_t)explored : 0);
  atomic_store(&placement->enough_ns, tm_cost_times(needed_ns, EXPLORE_ONE_IN));
  atomic_store(&placement->waiting, learned);
}

void tm_exploration_consider(tm_placement_table *table, tm_placement *placement) {
  const uint64_t learned = atomic_load(&table->market.correction->generation);
  const bool is_frozen = atomic_load_explicit(&table->market.correction->is_frozen, memory_order_relaxed);
  if (placement->candidate_count < 2 || is_frozen || atomic_load(&placement->settled) == learned) return;
  if (atomic_load(&placement->waiting) == learned && atomic_load(&table->spent_ns) < atomic_load(&placement->enough_ns)) return;
  if (!tm_mutex_try_lock(&placement->lock)) return;
  tm_placement_reprice(table, placement);
  const uint32_t chosen = tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0);
  const uint32_t found = chosen == placement->candidate_count ? TM_EXPLORE_NONE : find_promising(placement, chosen);
  atomic_store(&placement->chosen, chosen);
  if (found == TM_EXPLORE_NONE) atomic_store(&placement->settled, learned);
  else if (set_aside(table, placement, &placement->candidates[found])) atomic_store(&placement->explore, found);
  else wait_for_more(table, placement, &placement->candidates[found], learned);
  tm_mutex_unlock(&placement->lock);
}

void tm_exploration_settle(tm_placement_table *table, tm_plan_candidate *candidate, uint64_t measured_ns) {
  if (atomic_load_explicit(&candidate->tried_ns, memory_order_relaxed) == 0) return;
  const uint64_t planned = atomic_exchange(&candidate->tried_ns, 0);
  atomic_fetch_add(&table->explored_ns, (int64_t)tm_min_u64(measured_ns, INT64_MAX) - (int64_t)planned);
}
