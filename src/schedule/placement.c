/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/placement.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "plugin/device.h"
#include "plugin/wake.h"
#include "schedule/exploration.h"

#define SLOTS 1024u
/* Beyond this many placements those not in use are dropped: a program with ever new shapes must not grow for ever. */
#define MOST_PLACEMENTS 1024u

/* Choices that a starved candidate is passed over, doubled each time that it was no better afterwards. */
#define FIRST_PATIENCE 16u
#define MOST_DOUBLINGS 8u

tm_status tm_placement_table_init(tm_placement_table *table, const tm_market *market, tm_memory *memory) {
  memset(table, 0, sizeof *table);
  table->market = *market;
  table->slot_count = SLOTS;
  table->slots = tm_memory_calloc(memory, SLOTS, sizeof *table->slots);
  if (table->slots == NULL) return TM_ERROR_NO_MEMORY;
  if (tm_mutex_init(&table->lock) != TM_OK) {
    tm_memory_free(memory, table->slots, SLOTS * sizeof *table->slots);
    return TM_ERROR_NO_MEMORY;
  }
  table->memory = memory;
  return TM_OK;
}

/* Not under the table's lock: a backend is called. */
static void destroy(tm_placement_table *table, tm_placement *placement) {
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    tm_plan_candidate *candidate = &placement->candidates[i];
    if (atomic_load(&candidate->first_ns) != 0)         /* it ran once only */
      tm_candidate_learn_setup(&table->market, candidate, atomic_load(&candidate->first_ns));
    if (atomic_load(&candidate->is_prepared)) tm_device_release(candidate->device, atomic_load(&candidate->kernel));
  }
  tm_condition_deinit(&placement->prepared);
  tm_mutex_deinit(&placement->lock);
  tm_candidates_clear(&table->market, placement->candidates, placement->candidate_count);
  tm_memory_free(table->memory, placement->candidates, placement->candidate_count * sizeof *placement->candidates);
  tm_memory_free(table->memory, placement, sizeof *placement);
}

static void destroy_list(tm_placement_table *table, tm_placement *list) {
  while (list != NULL) {
    tm_placement *placement = list;
    list = placement->next;
    destroy(table, placement);
  }
}

void tm_placement_table_deinit(tm_placement_table *table) {
  if (table->memory == NULL) return;
  for (uint32_t i = 0; i < table->slot_count; i++) destroy_list(table, table->slots[i]);
  tm_memory_free(table->memory, table->slots, table->slot_count * sizeof *table->slots);
  tm_mutex_deinit(&table->lock);
}

/* ---- making one ---- */

/* Fills placement->candidates, no more of them than there are. */
static bool evaluate(tm_placement_table *table, tm_placement *placement, const _Atomic uint32_t *cancelled) {
  tm_market market = table->market;
  market.cancelled = cancelled;
  const uint32_t room = tm_candidate_most(table->market.inventory);
  tm_plan_candidate *all = tm_memory_calloc(table->memory, room, sizeof *all);
  if (all == NULL) return false;
  uint32_t count = tm_candidates_evaluate(&market, &placement->request, all);
  if (placement->request.only_device == TM_ANY_DEVICE && tm_candidates_best(all, count, NULL, 0) == count &&
      tm_inventory_wake_all(table->market.inventory, cancelled)) {
    tm_candidates_clear(&table->market, all, count);
    count = tm_candidates_evaluate(&market, &placement->request, all);
  }
  placement->candidates = tm_memory_alloc(table->memory, count * sizeof *all, 0);
  placement->candidate_count = placement->candidates == NULL ? 0 : count;
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    memcpy(&placement->candidates[i], &all[i], sizeof *all);
    placement->candidates[i].operation.operands = placement->candidates[i].operands;
  }
  if (placement->candidates == NULL) tm_candidates_clear(&table->market, all, count);
  tm_memory_free(table->memory, all, room * sizeof *all);
  return placement->candidates != NULL;
}

/* Whoever wants the same bits every time stays where it is: another device may round otherwise. */
static bool is_pinned(const tm_placement *placement) { return (placement->request.flags & TM_REQUEST_RUN_TO_RUN) != 0; }

static bool any_setup(const tm_placement *placement) {
  for (uint32_t i = 0; i < placement->candidate_count; i++)
    if (tm_candidate_can_run(&placement->candidates[i]) && tm_candidate_has_setup(&placement->candidates[i])) return true;
  return false;
}

static bool init_locks(tm_placement *placement) {
  if (tm_mutex_init(&placement->lock) != TM_OK) return false;
  if (tm_condition_init(&placement->prepared) == TM_OK) return true;
  tm_mutex_deinit(&placement->lock);
  return false;
}

static tm_placement *make(tm_placement_table *table, const tm_request *request, uint64_t hash, uint64_t generation,
                          const _Atomic uint32_t *cancelled) {
  tm_placement *placement = tm_memory_calloc(table->memory, 1, sizeof *placement);
  if (placement == NULL) return NULL;
  if (!init_locks(placement)) {
    tm_memory_free(table->memory, placement, sizeof *placement);
    return NULL;
  }
  placement->hash = hash;
  placement->generation = generation;
  placement->references = 1;
  memcpy(&placement->request, request, tm_request_key_bytes(request));
  atomic_init(&placement->learned, atomic_load(&table->market.correction->generation));
  atomic_init(&placement->explore, TM_EXPLORE_NONE);
  if (!evaluate(table, placement, cancelled)) {
    destroy(table, placement);
    return NULL;
  }
  atomic_init(&placement->chosen, tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0));
  atomic_init(&placement->has_setups, !is_pinned(placement) && any_setup(placement));
  atomic_fetch_add(&table->query_count, 1);
  return placement;
}

/* ---- the table ---- */

static tm_placement *find(const tm_placement_table *table, const tm_request *request, uint64_t hash, uint64_t generation) {
  const uint64_t bytes = tm_request_key_bytes(request);
  for (tm_placement *p = table->slots[hash & (table->slot_count - 1)]; p != NULL; p = p->next)
    if (p->hash == hash && p->generation == generation && memcmp(&p->request, request, bytes) == 0) return p;
  return NULL;
}

/* Under the lock: moves what nobody uses to the list, if it is out of date or if everything is to go. */
static void sweep_slot(tm_placement_table *table, tm_placement **slot, uint64_t generation, bool everything, tm_placement **list) {
  for (tm_placement **link = slot; *link != NULL;) {
    tm_placement *placement = *link;
    if (placement->references != 0 || (!everything && placement->generation == generation)) {
      link = &placement->next;
      continue;
    }
    *link = placement->next;
    table->count--;
    placement->next = *list;
    *list = placement;
  }
}

static void sweep(tm_placement_table *table, uint64_t generation, bool everything, tm_placement **list) {
  for (uint32_t i = 0; i < table->slot_count; i++) sweep_slot(table, &table->slots[i], generation, everything, list);
}

static tm_placement *find_or_add(tm_placement_table *table, tm_placement *fresh, const tm_request *request, uint64_t hash,
                                 uint64_t generation) {
  tm_placement *swept = NULL;
  tm_mutex_lock(&table->lock);
  tm_placement *placement = find(table, request, hash, generation);
  if (placement != NULL) {
    placement->references++;
  } else if (fresh != NULL) {
    if (table->count >= MOST_PLACEMENTS) {
      sweep(table, generation, false, &swept);
      if (table->count >= MOST_PLACEMENTS) sweep(table, generation, true, &swept);
    }
    tm_placement **slot = &table->slots[hash & (table->slot_count - 1)];
    sweep_slot(table, slot, generation, false, &swept);         /* else one request leaves a placement at each change of a device */
    fresh->next = *slot;
    *slot = fresh;
    table->count++;
    placement = fresh;
  }
  tm_mutex_unlock(&table->lock);
  destroy_list(table, swept);
  return placement;
}

void tm_placement_table_drop(tm_placement_table *table) {
  tm_placement *swept = NULL;
  tm_mutex_lock(&table->lock);
  sweep(table, 0, true, &swept);
  tm_mutex_unlock(&table->lock);
  destroy_list(table, swept);
}

/* What the ledger forgot is to be paid once more. */
void tm_placement_reprice(tm_placement_table *table, tm_placement *placement) {
  tm_candidates_reprice(&table->market, placement->candidates, placement->candidate_count);
  for (uint32_t i = 0; i < placement->candidate_count && !is_pinned(placement); i++)
    if (tm_candidate_can_run(&placement->candidates[i]) && placement->candidates[i].due.cost_ns != 0)
      atomic_store(&placement->has_setups, true);
}

/* Looks at prices again after something was learned.  Another thread that does so already is enough. */
void tm_placement_refresh(tm_placement_table *table, tm_placement *placement) {
  const uint64_t learned = atomic_load(&table->market.correction->generation);
  if (atomic_load(&placement->learned) == learned || is_pinned(placement) || !tm_mutex_try_lock(&placement->lock)) return;
  tm_placement_reprice(table, placement);
  atomic_store(&placement->chosen, tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0));
  atomic_store(&placement->learned, learned);
  tm_mutex_unlock(&placement->lock);
}

static bool is_cancelled(const _Atomic uint32_t *flag) { return flag != NULL && atomic_load(flag) != 0; }

static tm_status acquire(tm_placement_table *table, const tm_request *request, const _Atomic uint32_t *cancelled,
                         tm_placement **out_placement, tm_error *error) {
  const uint64_t hash = tm_request_hash(request);
  const uint64_t generation = atomic_load(&table->market.inventory->generation);
  tm_placement *placement = find_or_add(table, NULL, request, hash, generation);
  if (placement == NULL) {
    const tm_operation operation = tm_request_operation(request);
    TM_TRY(tm_op_check(&operation, error));
    tm_placement *fresh = make(table, request, hash, generation, cancelled);
    if (is_cancelled(cancelled)) {      /* some may not have been asked at all */
      if (fresh != NULL) destroy(table, fresh);
      return tm_fail(error, TM_ERROR_CANCELLED, "cancelled while devices were asked");
    }
    if (fresh == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to place an operation");
    placement = find_or_add(table, fresh, request, hash, generation);
    if (placement != fresh) destroy(table, fresh);
  }
  tm_placement_refresh(table, placement);
  *out_placement = placement;
  return TM_OK;
}

/* Backends that sleep are woken once the work placed so far, this run included, is worth it. */
static bool wake_sleepers(tm_placement_table *table, tm_placement *placement, const _Atomic uint32_t *cancelled) {
  const uint32_t chosen = atomic_load(&placement->chosen);
  const uint64_t cost = chosen == placement->candidate_count ? 0 : tm_placement_expect(placement, &placement->candidates[chosen]);
  const uint64_t placed = atomic_fetch_add(&table->placed_ns, cost) + cost;
  if (placed < atomic_load(&table->market.inventory->next_wake_ns)) return false;
  return tm_inventory_wake_worth(table->market.inventory, placed, cancelled);
}

tm_status tm_placement_acquire(tm_placement_table *table, const tm_request *request, const _Atomic uint32_t *cancelled,
                               tm_placement **out_placement, tm_error *error) {
  tm_inventory *inventory = table->market.inventory;
  const bool somebody_sleeps = atomic_load_explicit(&inventory->asleep_count, memory_order_relaxed) != 0;
  if (somebody_sleeps && (request->flags & TM_REQUEST_RUN_TO_RUN) != 0) (void)tm_inventory_wake_all(inventory, cancelled);
  TM_TRY(acquire(table, request, cancelled, out_placement, error));
  if (!somebody_sleeps || !wake_sleepers(table, *out_placement, cancelled)) return TM_OK;
  tm_placement_release(table, *out_placement);
  return acquire(table, request, cancelled, out_placement, error);
}

void tm_placement_release(tm_placement_table *table, tm_placement *placement) {
  tm_mutex_lock(&table->lock);
  placement->references--;
  tm_mutex_unlock(&table->lock);
}

/* ---- one placement ---- */

/* A caller that may be cancelled looks this often. */
#define LOOK_NS UINT64_C(10000000)

/* Under the lock.  True: it is this caller's to prepare. */
static bool begin_to_prepare(tm_placement *placement, tm_plan_candidate *candidate, const _Atomic uint32_t *cancelled) {
  while (candidate->is_being_prepared && !atomic_load(&candidate->is_prepared)) {
    if (is_cancelled(cancelled)) return false;
    (void)tm_condition_wait(&placement->prepared, &placement->lock, cancelled == NULL ? UINT64_MAX : tm_now_ns() + LOOK_NS);
  }
  candidate->is_being_prepared = !atomic_load(&candidate->is_prepared);
  return candidate->is_being_prepared;
}

/* The lock is not held meanwhile: other candidates may have to do the work. */
static tm_status prepare(tm_placement *placement, tm_plan_candidate *candidate, const _Atomic uint32_t *cancelled, tm_error *error) {
  tm_kernel *kernel = NULL;
  const tm_clock *clock = &candidate->device->backend->inventory->clock;
  const uint64_t begin = tm_clock_now(clock);
  const tm_preparation what = { &candidate->operation, &candidate->promise, candidate->trial, cancelled };
  const tm_status status = tm_device_prepare(candidate->device, &what, &kernel, error);
  const uint64_t taken_ns = tm_clock_since(clock, begin), open_ns = atomic_load(&candidate->device->opened_ns);
  tm_mutex_lock(&placement->lock);
  if (status == TM_OK) {
    atomic_store(&candidate->prepare_ns, taken_ns - tm_min_u64(taken_ns, open_ns));
    atomic_store(&candidate->kernel, kernel);
    atomic_store_explicit(&candidate->is_prepared, true, memory_order_release);
  }
  candidate->is_being_prepared = false;
  tm_condition_wake_all(&placement->prepared);
  tm_mutex_unlock(&placement->lock);
  return status;
}

tm_status tm_placement_kernel(tm_placement *placement, tm_plan_candidate *candidate, const _Atomic uint32_t *cancelled,
                              tm_kernel **out_kernel, tm_error *error) {
  tm_status status = TM_OK;
  if (!atomic_load_explicit(&candidate->is_prepared, memory_order_acquire)) {
    tm_mutex_lock(&placement->lock);
    const bool is_ours = begin_to_prepare(placement, candidate, cancelled);
    const bool is_there = atomic_load(&candidate->is_prepared);
    tm_mutex_unlock(&placement->lock);
    if (is_ours) status = prepare(placement, candidate, cancelled, error);
    else if (!is_there) status = tm_fail(error, TM_ERROR_CANCELLED, "cancelled while %s prepares", candidate->device->name);
  }
  if (status == TM_OK) *out_kernel = atomic_load(&candidate->kernel);
  return status;
}

uint32_t tm_placement_next(tm_placement *placement, const uint32_t *tried, uint32_t tried_count) {
  tm_mutex_lock(&placement->lock);
  const uint32_t next = tm_candidates_best(placement->candidates, placement->candidate_count, tried, tried_count);
  tm_mutex_unlock(&placement->lock);
  return next;
}

static void choose_again(tm_placement *placement) {
  atomic_store(&placement->chosen, tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0));
}

void tm_placement_demote(tm_placement *placement, tm_plan_candidate *candidate) {
  const uint32_t lacks = atomic_fetch_add(&candidate->lacks, 1) + 1;
  if (lacks < 2) return;
  tm_mutex_lock(&placement->lock);
  atomic_store(&candidate->is_starved, true);
  atomic_store(&placement->patience, FIRST_PATIENCE << (lacks - 2 < MOST_DOUBLINGS ? lacks - 2 : MOST_DOUBLINGS));
  choose_again(placement);
  tm_mutex_unlock(&placement->lock);
}

static void forgive_starved(tm_placement *placement) {
  tm_mutex_lock(&placement->lock);
  for (uint32_t i = 0; i < placement->candidate_count; i++) atomic_store(&placement->candidates[i].is_starved, false);
  choose_again(placement);
  tm_mutex_unlock(&placement->lock);
}

uint64_t tm_placement_expect(tm_placement *placement, const tm_plan_candidate *candidate) {
  tm_mutex_lock(&placement->lock);
  const uint64_t total = candidate->total_ns;
  tm_mutex_unlock(&placement->lock);
  return total;
}

/* ---- what is paid once ---- */

/* The candidate of its device that takes least time, whatever it has to pay first. */
static bool is_fastest_of_device(const tm_placement *placement, uint32_t index) {
  const tm_plan_candidate *one = &placement->candidates[index];
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *other = &placement->candidates[i];
    if (i == index || other->device != one->device || !tm_candidate_can_run(other)) continue;
    if (other->total_ns < one->total_ns || (other->total_ns == one->total_ns && i < index)) return false;
  }
  return true;
}

/* Under the lock: looks at what is still to be paid, with the constants of this very run. */
static bool look_at_setups(tm_placement_table *table, tm_placement *placement, const tm_choice_site *site, uint64_t constants_key) {
  bool any_left = false;
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    tm_plan_candidate *candidate = &placement->candidates[i];
    if (!tm_candidate_can_run(candidate) || !tm_candidate_has_setup(candidate)) continue;
    candidate->due = tm_candidate_due(&table->market, candidate, constants_key);
    candidate->repeats = site->repeats;
    any_left |= candidate->due.cost_ns != 0 || candidate->constant_ns != 0;
  }
  return any_left;
}

/* Candidates that would have been faster than the choice but for that earn the difference. */
static void credit_setups(tm_placement_table *table, const tm_placement *placement, uint32_t chosen, uint64_t constants_key) {
  if (chosen >= placement->candidate_count) return;
  const uint64_t taken_ns = placement->candidates[chosen].total_ns;
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const tm_plan_candidate *candidate = &placement->candidates[i];
    if (!tm_candidate_can_run(candidate) || candidate->due.cost_ns == 0 || candidate->total_ns >= taken_ns) continue;
    if (i != chosen && tm_device_is_usable(candidate->device) && is_fastest_of_device(placement, i))
      tm_candidate_credit(&table->market, candidate, constants_key, taken_ns - candidate->total_ns);
  }
}

static void weigh_setups(tm_placement_table *table, tm_placement *placement, const tm_choice_site *site) {
  const uint64_t constants_key = tm_request_constants_key(&placement->request, site->pointers, site->origins);
  tm_mutex_lock(&placement->lock);
  const bool any_left = look_at_setups(table, placement, site, constants_key);
  const uint32_t chosen = tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0);
  atomic_store(&placement->chosen, chosen);
  credit_setups(table, placement, chosen, constants_key);
  if (!any_left) atomic_store(&placement->has_setups, false);
  tm_mutex_unlock(&placement->lock);
}

uint32_t tm_placement_choose(tm_placement_table *table, tm_placement *placement, const tm_choice_site *site) {
  uint32_t patience = atomic_load_explicit(&placement->patience, memory_order_relaxed);
  if (patience != 0 && atomic_compare_exchange_strong(&placement->patience, &patience, patience - 1) && patience == 1)
    forgive_starved(placement);
  if (atomic_load_explicit(&placement->explore, memory_order_relaxed) != TM_EXPLORE_NONE) {
    const uint32_t explored = atomic_exchange(&placement->explore, TM_EXPLORE_NONE);
    if (explored != TM_EXPLORE_NONE) return explored;   /* a try; what it costs was set aside */
  }
  if (atomic_load_explicit(&placement->has_setups, memory_order_relaxed))
    weigh_setups(table, placement, site);
  return atomic_load(&placement->chosen);
}

/* Under the lock: all that it needs once is paid, and nobody would be faster who has yet to be. */
static bool owes_nothing(const tm_placement *placement, uint32_t index) {
  const tm_plan_candidate *one = &placement->candidates[index];
  if (tm_candidate_has_setup(one) && !atomic_load(&one->is_paid)) return false;
  for (uint32_t i = 0; i < placement->candidate_count; i++)
    if (tm_candidate_can_run(&placement->candidates[i]) && placement->candidates[i].total_ns < one->total_ns) return false;
  return one->constant_ns == 0;
}

uint32_t tm_placement_peek(tm_placement *placement) {
  const uint32_t chosen = atomic_load(&placement->chosen), nobody = placement->candidate_count;
  const bool is_waiting = atomic_load_explicit(&placement->patience, memory_order_relaxed) != 0;
  if (chosen == nobody || is_waiting || atomic_load(&placement->explore) != TM_EXPLORE_NONE) return nobody;
  if (!atomic_load_explicit(&placement->has_setups, memory_order_relaxed)) return chosen;
  tm_mutex_lock(&placement->lock);
  const bool is_settled = owes_nothing(placement, chosen);
  tm_mutex_unlock(&placement->lock);
  return is_settled ? chosen : nobody;
}

tm_status tm_placement_quote(tm_placement_table *table, const tm_request *request, const _Atomic uint32_t *cancelled,
                             tm_quote *out_quote, tm_error *error) {
  tm_placement *placement = NULL;
  TM_TRY(tm_placement_acquire(table, request, cancelled, &placement, error));
  tm_mutex_lock(&placement->lock);
  (void)look_at_setups(table, placement, &(tm_choice_site){ NULL, NULL, 0 }, 0);
  const uint32_t best = tm_candidates_best(placement->candidates, placement->candidate_count, NULL, 0);
  *out_quote = (tm_quote){ .total_ns = UINT64_MAX };
  if (best < placement->candidate_count) {
    const tm_plan_candidate *candidate = &placement->candidates[best];
    const uint64_t price_ns = tm_candidate_price_ns(candidate);
    *out_quote = (tm_quote){ candidate->total_ns, price_ns > candidate->total_ns ? price_ns - candidate->total_ns : 0,
                             candidate->device->index, candidate->estimate.samples != 0 };
  }
  tm_mutex_unlock(&placement->lock);
  tm_placement_release(table, placement);
  return TM_OK;
}

void tm_placement_pay(tm_placement_table *table, tm_placement *placement, tm_plan_candidate *candidate, void *const *pointers,
                      const uint64_t *origins) {
  const bool is_watched = atomic_load_explicit(&placement->has_setups, memory_order_relaxed);
  if (!tm_candidate_has_setup(candidate) || (!is_watched && atomic_load(&candidate->is_paid))) return;
  atomic_store(&candidate->is_paid, true);
  tm_candidate_pay(&table->market, candidate, tm_request_constants_key(&placement->request, pointers, origins));
}

/* ---- learning ---- */

void tm_placement_learn(tm_placement_table *table, tm_placement *placement, tm_plan_candidate *candidate, uint64_t measured_ns,
                        uint64_t run_count) {
  tm_correction_learn(table->market.correction, &candidate->basis.key, &candidate->operation, candidate->basis.declared_ns, measured_ns);
  atomic_fetch_add_explicit(&table->spent_ns, tm_cost_times(measured_ns, run_count), memory_order_relaxed);
  tm_exploration_settle(table, candidate, measured_ns);
  if (!is_pinned(placement)) tm_exploration_consider(table, placement);
}
