/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/candidate.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"
#include "base/log2_fixed.h"
#include "base/text.h"
#include "plugin/answer.h"
#include "plugin/device.h"
#include "plugin/device_identity.h"
#include "plugin/wake.h"
#include "schedule/lowered_candidate.h"

uint32_t tm_candidate_most(const tm_inventory *inventory) { return inventory->device_count * 2; }

bool tm_candidate_can_run(const tm_plan_candidate *candidate) { return candidate->verdict <= TM_VERDICT_SLOWER; }

/* ---- what it costs ---- */

static void price(const tm_market *market, tm_plan_candidate *candidate) {
  candidate->estimate = tm_correction_look(market->correction, &candidate->basis.key);
  candidate->copy_ns = tm_cost_times(tm_price_copy_ns(market->correction, &candidate->basis), candidate->times);
  candidate->lowering_ns = candidate->lowering == NULL ? 0 : tm_bill_price_ns(market->correction, &candidate->lowering->bill);
  candidate->total_ns = tm_cost_add(tm_cost_scale(candidate->answer.cost_ns, candidate->estimate.factor),
                                    tm_cost_add(candidate->lowering_ns, candidate->copy_ns));
  candidate->due = tm_candidate_due(market, candidate, 0);
  atomic_store_explicit(&candidate->is_device_known, candidate->estimate.device_samples != 0, memory_order_relaxed);
}

uint64_t tm_candidate_hoped_ns(const tm_plan_candidate *candidate) {
  return tm_cost_add(tm_cost_scale(candidate->answer.cost_ns, candidate->estimate.least_factor),
                     tm_cost_add(candidate->lowering_ns, candidate->copy_ns));
}

void tm_candidate_take_price(const tm_market *market, tm_plan_candidate *candidate) {
  candidate->trial = tm_trial_find(candidate->device, &candidate->operation);
  candidate->answer.cost_ns = tm_cost_times(candidate->basis.declared_ns, candidate->times);
  price(market, candidate);
}

/* ---- what it pays once ---- */

enum { SETUP_OPEN = 1, SETUP_SHARED, SETUP_OWN, SETUP_CONSTANTS };

void tm_candidate_add_setup(tm_plan_candidate *candidate, const tm_setup_item *item) {
  for (uint32_t i = 0; i < candidate->setup_count; i++)
    if (candidate->setups[i].key == item->key) return;
  if (candidate->setup_count == TM_CANDIDATE_SETUPS)    /* no room for another: the last stands for both */
    candidate->setups[TM_CANDIDATE_SETUPS - 1].cost_ns =
        tm_cost_add(candidate->setups[TM_CANDIDATE_SETUPS - 1].cost_ns, item->cost_ns);
  else
    candidate->setups[candidate->setup_count++] = *item;
}

static uint64_t hash_operation(const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  const uint64_t operands = XXH3_64bits(operation->operands, count * sizeof(tm_operand));
  const uint64_t attributes = operation->attribute_bytes == 0 ? 0 : XXH3_64bits(operation->attributes, operation->attribute_bytes);
  return tm_setup_key_of(operation->op, operands, attributes);
}

/* A key that says nothing of the place in the list is the same in every process. */
void tm_candidate_note_setups(const tm_market *market, tm_plan_candidate *candidate, const tm_answer *answer) {
  const uint32_t device = candidate->device->index, kind = answer->setup_key != 0 ? SETUP_SHARED : SETUP_OWN;
  const uint64_t declared_ns = tm_min_u64(candidate->device->info.open_ns, TM_LARGEST_COST_NS);
  const uint64_t open_ns = tm_correction_setup_ns(market->correction, device, tm_setup_key_of(SETUP_OPEN, 0, 0), declared_ns);
  const uint64_t what = answer->setup_key != 0 ? answer->setup_key : hash_operation(&candidate->operation);
  const uint64_t key = tm_setup_key_of(kind, 0, what);
  const uint64_t own_ns = tm_correction_setup_ns(market->correction, device, key, answer->setup_ns);
  if (open_ns != 0) tm_candidate_add_setup(candidate, &(tm_setup_item){ tm_setup_key_of(SETUP_OPEN, device, 0), open_ns });
  if (own_ns != 0) tm_candidate_add_setup(candidate, &(tm_setup_item){ tm_setup_key_of(kind, device, what), own_ns });
  if (candidate->setup_key == 0) candidate->setup_key = key;
}

/* Shorter ones, if nobody declared them, are not told from a launch that was held up. */
#define SHORTEST_SETUP_NS UINT64_C(100000)
#define SHORTEST_UNDECLARED_NS UINT64_C(1000000)
#define UNDECLARED_LAUNCHES 4u

void tm_candidate_learn_setup(const tm_market *market, tm_plan_candidate *candidate, uint64_t launch_ns) {
  tm_correction *correction = market->correction;
  const uint32_t device = candidate->device->index;
  const uint64_t open_ns = atomic_exchange(&candidate->device->opened_ns, 0), prepare_ns = atomic_exchange(&candidate->prepare_ns, 0);
  const uint64_t first_ns = atomic_exchange(&candidate->first_ns, 0), declared_ns = candidate->promise.setup_ns;
  const uint64_t taken_ns = tm_cost_add(prepare_ns, first_ns > launch_ns ? first_ns - launch_ns : 0);
  const uint64_t shortest_ns = tm_max_u64(SHORTEST_UNDECLARED_NS, tm_cost_times(launch_ns, UNDECLARED_LAUNCHES));
  if (tm_max_u64(open_ns, candidate->device->info.open_ns) >= SHORTEST_SETUP_NS)
    tm_correction_learn_setup(correction, device, tm_setup_key_of(SETUP_OPEN, 0, 0), candidate->device->info.open_ns, open_ns,
                              SHORTEST_UNDECLARED_NS);
  if (declared_ns == 0 || tm_max_u64(declared_ns, taken_ns) >= SHORTEST_SETUP_NS)
    tm_correction_learn_setup(correction, device, candidate->setup_key, declared_ns, taken_ns, shortest_ns);
}

bool tm_candidate_has_setup(const tm_plan_candidate *candidate) {
  return candidate->setup_count != 0 || candidate->constant_ns != 0;
}

/* The items still open, those of the constants last. */
static uint32_t list_items(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key,
                           tm_setup_item *items) {
  const uint64_t opening = tm_setup_key_of(SETUP_OPEN, candidate->device->index, 0);
  uint32_t count = 0;
  for (uint32_t i = 0; i < candidate->setup_count; i++)
    if (candidate->setups[i].key != opening || !atomic_load(&candidate->device->is_open)) items[count++] = candidate->setups[i];
  if (candidate->constant_ns == 0) return count;
  const uint64_t generation = atomic_load(&market->setups->kept_generation);
  const uint64_t which = constants_key == 0 ? 0 : tm_setup_key_of(constants_key, candidate->device->index, generation);
  items[count++] = (tm_setup_item){ tm_setup_key_of(SETUP_CONSTANTS, which, candidate->operation.op), candidate->constant_ns };
  return count;
}

uint32_t tm_candidate_open_items(const tm_market *market, const tm_plan_candidate *candidate, tm_setup_item *out_items) {
  tm_setup_item items[TM_CANDIDATE_SETUPS + 1];
  uint32_t count = 0;
  if (candidate->due.cost_ns == candidate->due.earned_ns || candidate->setup_count == 0) return 0;
  const uint32_t all = list_items(market, candidate, 0, items), own = candidate->constant_ns == 0 ? all : all - 1;
  for (uint32_t i = 0; i < own; i++) {
    const tm_setup_due due = tm_setup_ledger_due(market->setups, &items[i], 1);
    if (due.cost_ns > due.earned_ns) out_items[count++] = (tm_setup_item){ items[i].key, due.cost_ns - due.earned_ns };
  }
  return count;
}

tm_setup_due tm_candidate_due(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key) {
  tm_setup_item items[TM_CANDIDATE_SETUPS + 1];
  if (!tm_candidate_has_setup(candidate)) return (tm_setup_due){ 0, 0 };
  return tm_setup_ledger_due(market->setups, items, list_items(market, candidate, constants_key, items));
}

void tm_candidate_credit(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key, uint64_t ns) {
  tm_setup_item items[TM_CANDIDATE_SETUPS + 1];
  tm_setup_ledger_credit(market->setups, items, list_items(market, candidate, constants_key, items), ns);
}

void tm_candidate_pay(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key) {
  tm_setup_item items[TM_CANDIDATE_SETUPS + 1];
  const uint32_t count = list_items(market, candidate, constants_key, items);
  const bool knows_constants = candidate->constant_ns == 0 || constants_key != 0;
  tm_setup_ledger_pay(market->setups, items, knows_constants ? count : count - 1);
}

static uint64_t price_for(const tm_plan_candidate *candidate, uint64_t repeats) {
  const tm_setup_due *due = &candidate->due;
  const uint64_t part_ns = repeats != 0 ? due->cost_ns / repeats : due->cost_ns - due->earned_ns;
  return tm_cost_add(candidate->total_ns, part_ns);
}

uint64_t tm_candidate_price_ns(const tm_plan_candidate *candidate) { return price_for(candidate, candidate->repeats); }

/* ---- one device ---- */

static const tm_identity host_memory = TM_HOST_MEMORY, nameless = { { 0 } };

/* Memory that says nothing of itself is the device's own. */
static const tm_identity *memory_of(const tm_device_slot *device) {
  const tm_identity *identity = &device->memories[0].identity;
  return memcmp(identity, &nameless, sizeof nameless) == 0 ? &device->info.uuid : identity;
}

uint32_t tm_candidate_link_in(const tm_market *market, const tm_device_slot *device) {
  return tm_correction_link_of(market->correction, &host_memory, memory_of(device));
}

uint32_t tm_candidate_link_out(const tm_market *market, const tm_device_slot *device) {
  return tm_correction_link_of(market->correction, memory_of(device), &host_memory);
}

tm_price_basis tm_candidate_basis(const tm_market *market, const tm_device_slot *device, const tm_operation *operation,
                                  const tm_operation *moved, uint64_t declared_ns) {
  tm_work work = { 0, 0, 0 };
  const tm_op_row *row = tm_op_find(operation->op);
  if (row != NULL) row->work(moved, &work);
  const uint64_t bytes = tm_cost_add(work.read_bytes, work.written_bytes);
  const uint64_t work_ns = tm_min_u64(1000 + work.flops / 2 + bytes / 4, TM_LARGEST_COST_NS);
  const uint64_t expected_ns = declared_ns != 0 ? declared_ns : work_ns;
  tm_price_basis basis = {
    .device = device,
    .key = { .device = device->index, .op_class = row == NULL ? TM_CLASS_MOVE : row->op_class,
             .bucket = tm_correction_bucket_of(operation, &work), .work_factor = tm_log2_of_ratio(work_ns, expected_ns) },
    .declared_ns = expected_ns,
    .link_in = TM_NO_LINK,
    .link_out = TM_NO_LINK,
  };
  if (device->is_host_memory) return basis;
  basis.copied_in_bytes = work.read_bytes;
  basis.copied_out_bytes = work.written_bytes;
  basis.link_in = tm_candidate_link_in(market, device);
  basis.link_out = tm_candidate_link_out(market, device);
  return basis;
}

void tm_candidate_bind(tm_plan_candidate *candidate, const tm_operation *operation) {
  candidate->operation = *operation;
  const uint32_t count = operation->input_count + operation->output_count;
  memcpy(candidate->operands, operation->operands, count * sizeof(tm_operand));
  candidate->operation.operands = candidate->operands;
}

static void say(tm_plan_candidate *candidate, const char *text) {
  snprintf(candidate->reason, sizeof candidate->reason, "%s", text);
}

static void say_answer(tm_plan_candidate *candidate) {
  const tm_answer *answer = &candidate->answer;
  (void)tm_text_escape(answer->text.data == NULL ? "" : answer->text.data, answer->text.length, candidate->reason,
                       sizeof candidate->reason);
}

static void judge(tm_plan_candidate *candidate) {
  const tm_answer *answer = &candidate->answer;
  candidate->verdict = TM_VERDICT_SLOWER;
  say_answer(candidate);
  if (answer->level != TM_LEVEL_REFUSED) return;
  candidate->verdict = (answer->reasons & TM_REASON_NUMERICS) != 0 ? TM_VERDICT_INEXACT : TM_VERDICT_REFUSED;
}

/* Devices that are not asked at all say why. */
bool tm_candidate_is_out(const tm_market *market, uint32_t only_device, tm_plan_candidate *candidate) {
  const tm_device_slot *device = candidate->device;
  const uint32_t state = atomic_load(&device->state);
  char reason[TM_HEALTH_REASON_BYTES];
  candidate->verdict = TM_VERDICT_QUARANTINED;
  if (state == TM_DEVICE_LOST) {
    say(candidate, "the device is lost");
  } else if (state == TM_DEVICE_QUARANTINED) {
    say(candidate, atomic_load(&device->is_stuck) ? device->stuck_reason : "the device broke too many promises");
  } else if (tm_health_is_quarantined(market->health, device, &candidate->operation, reason)) {
    say(candidate, reason);
  } else if (atomic_load(&device->backend->state) != TM_BACKEND_READY) {
    const char *why = atomic_load(&device->backend->reason);    /* it was listed, and then something was wrong with it */
    say(candidate, why[0] != '\0' ? why : "its backend cannot be used");
  } else if (state == TM_DEVICE_EXCLUDED || (only_device != TM_ANY_DEVICE && only_device != device->index)) {
    candidate->verdict = TM_VERDICT_EXCLUDED;
    say(candidate, device->excluded_reason != NULL ? device->excluded_reason : "another device was asked for");
  } else if (only_device != device->index && tm_backend_is_asleep(device->backend)) {
    candidate->verdict = TM_VERDICT_EXCLUDED;
    say(candidate, "it is not loaded yet, and loading it would cost more than it could save");
  } else {
    return false;
  }
  return true;
}

void tm_candidate_ask(const tm_market *market, tm_plan_candidate *candidate) {
  const tm_operation *operation = &candidate->operation;
  tm_device_query(candidate->device, &operation, 1, market->cancelled, &candidate->promise);
  candidate->answer = candidate->promise;
  judge(candidate);
  if (tm_answer_has_no_price(&candidate->promise))
    tm_health_record_violation(market->health, candidate->device, operation, candidate->reason);
}

/* ---- all ---- */

/* Cheapest first, to the fraction of a nanosecond where a run bears a part; ties by what the device is, never by its name or place in
   the list. */
bool tm_candidate_is_before(const tm_plan_candidate *a, const tm_plan_candidate *b, uint64_t repeats) {
  if (atomic_load(&a->is_starved) != atomic_load(&b->is_starved)) return !atomic_load(&a->is_starved);
  const uint64_t a_ns = price_for(a, repeats), b_ns = price_for(b, repeats);
  if (a_ns != b_ns) return a_ns < b_ns;
  const uint64_t a_rest = repeats == 0 ? 0 : a->due.cost_ns % repeats, b_rest = repeats == 0 ? 0 : b->due.cost_ns % repeats;
  if (a_rest != b_rest) return a_rest < b_rest;
  const int by_device = tm_device_identity_compare(a->device, b->device);
  if (by_device != 0) return by_device < 0;
  return a->lowering == NULL && b->lowering != NULL;
}

/* Those of one request that have anything to pay have the same repeats; the others were perhaps not told. */
static bool before(const tm_plan_candidate *a, const tm_plan_candidate *b) {
  if (tm_candidate_can_run(a) != tm_candidate_can_run(b)) return tm_candidate_can_run(a);
  return tm_candidate_can_run(a) && tm_candidate_is_before(a, b, tm_max_u64(a->repeats, b->repeats));
}

/* Is it worth asking again with what the device proposed? */
static bool may_lower(const tm_request *request, const tm_plan_candidate *candidate) {
  return (request->flags & TM_REQUEST_AS_IS) == 0 && candidate->answer.change_count != 0;
}

uint32_t tm_candidates_evaluate_device(const tm_market *market, const tm_request *whole, tm_device_slot *device,
                                       tm_plan_candidate *candidates) {
  tm_plan_candidate *candidate = &candidates[0];
  const tm_operation normal = tm_request_operation(whole);
  memset(candidate, 0, sizeof *candidate);
  candidate->device = device;
  tm_candidate_bind(candidate, &normal);
  tm_op_normalize(&candidate->operation, candidate->operands);
  if (tm_candidate_is_out(market, whole->only_device, candidate)) return 1;
  tm_candidate_ask(market, candidate);
  if (tm_candidate_can_run(candidate)) {
    candidate->basis = tm_candidate_basis(market, device, &candidate->operation, &candidate->operation, candidate->answer.cost_ns);
    candidate->times = 1;
    candidate->trial = tm_trial_find(device, &candidate->operation);
    tm_candidate_note_setups(market, candidate, &candidate->answer);
    tm_candidate_take_price(market, candidate);
  }
  if (!may_lower(whole, candidate)) return 1;
  tm_request apart = *whole;            /* what is done to operands first makes others of them */
  tm_request_set_apart(&apart);
  memset(&candidates[1], 0, sizeof candidates[1]);
  candidates[1].device = device;
  return tm_candidate_lower(market, &apart, &candidate->answer, &candidates[1]) ? 2 : 1;
}

/* The one form in which everybody sees a request. */
static void normalize(const tm_request *request, tm_request *out_whole) {
  *out_whole = *request;
  tm_operation operation = tm_request_operation(out_whole);
  tm_op_normalize(&operation, out_whole->operands);
}

uint32_t tm_candidates_evaluate(const tm_market *market, const tm_request *request, tm_plan_candidate *candidates) {
  uint32_t count = 0;
  tm_request whole;
  normalize(request, &whole);
  for (uint32_t i = 0; i < market->inventory->device_count; i++)
    count += tm_candidates_evaluate_device(market, &whole, market->inventory->devices[i], &candidates[count]);
  for (uint32_t i = 0; i < count; i++)          /* what they were made from goes with this call */
    if (candidates[i].lowering == NULL && request->attribute_bytes != 0) candidates[i].operation.attributes = request->attributes;
  return count;
}

void tm_candidates_clear(const tm_market *market, tm_plan_candidate *candidates, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tm_memory_free(market->memory, candidates[i].lowering, sizeof *candidates[i].lowering);
    candidates[i].lowering = NULL;
  }
}

void tm_candidates_reprice(const tm_market *market, tm_plan_candidate *candidates, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (tm_candidate_can_run(&candidates[i])) price(market, &candidates[i]);
}

static bool contains(const uint32_t *indices, uint32_t count, uint32_t index) {
  for (uint32_t i = 0; i < count; i++)
    if (indices[i] == index) return true;
  return false;
}

uint32_t tm_candidates_best(const tm_plan_candidate *candidates, uint32_t count, const uint32_t *tried, uint32_t tried_count) {
  uint32_t best = count;
  for (uint32_t i = 0; i < count; i++) {
    if (!tm_candidate_can_run(&candidates[i]) || !tm_device_is_usable(candidates[i].device)) continue;
    if (contains(tried, tried_count, i)) continue;
    if (best == count || before(&candidates[i], &candidates[best])) best = i;
  }
  return best;
}

void tm_candidates_sort(const tm_plan_candidate *candidates, uint32_t count, uint32_t *out_order) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t place = i;
    for (; place > 0 && before(&candidates[i], &candidates[out_order[place - 1]]); place--)
      out_order[place] = out_order[place - 1];
    out_order[place] = i;
  }
}
