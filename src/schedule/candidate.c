/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/candidate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "plugin/answer.h"
#include "plugin/device.h"
#include "plugin/wake.h"

uint32_t tm_candidate_most(const tm_inventory *inventory) { return inventory->device_count * 2; }

bool tm_candidate_can_run(const tm_plan_candidate *candidate) { return candidate->verdict <= TM_VERDICT_SLOWER; }

/* ---- what it costs ---- */

static uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  return tm_checked_add(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t scale(uint64_t ns, double factor) {
  const double scaled = (double)ns * factor;
  return scaled >= (double)TM_LARGEST_COST_NS ? TM_LARGEST_COST_NS : (uint64_t)scaled;
}

/* What the operation costs on the device by its own word.  Without one the core's count of work stands in, at a rate that
   any device reaches. */
static tm_price_basis basis_of(const tm_device_slot *device, const tm_operation *operation, uint64_t declared_ns) {
  tm_work work = { 0, 0, 0 };
  const tm_op_row *row = tm_op_find(operation->op);
  if (row != NULL) row->work(operation, &work);
  const uint64_t bytes = saturating_add(work.read_bytes, work.written_bytes);
  return (tm_price_basis){
    .device = device,
    .key = { device->index, row == NULL ? TM_CLASS_MOVE : row->op_class, tm_correction_bucket_of(operation, &work) },
    .declared_ns = declared_ns != 0 ? declared_ns : 1000 + work.flops / 2 + bytes / 4,
    .copied_bytes = device->is_host_memory ? 0 : bytes,
  };
}

static uint64_t copy_price(const tm_market *market, const tm_price_basis *basis) {
  return basis->copied_bytes == 0 ? 0 : tm_correction_copy_ns(market->correction, basis->device->index, basis->copied_bytes);
}

static uint64_t step_price(const tm_market *market, const tm_price_basis *basis) {
  const tm_correction_estimate estimate = tm_correction_look(market->correction, &basis->key);
  return saturating_add(scale(basis->declared_ns, estimate.factor), copy_price(market, basis));
}

static void price(const tm_market *market, tm_plan_candidate *candidate) {
  candidate->estimate = tm_correction_look(market->correction, &candidate->basis.key);
  candidate->copy_ns = copy_price(market, &candidate->basis);
  candidate->lowering_ns = 0;
  for (uint32_t i = 0; i < candidate->lowering.step_count; i++)
    candidate->lowering_ns = saturating_add(candidate->lowering_ns, step_price(market, &candidate->step_bases[i]));
  candidate->total_ns = saturating_add(scale(candidate->basis.declared_ns, candidate->estimate.factor),
                                       saturating_add(candidate->lowering_ns, candidate->copy_ns));
}

uint64_t tm_candidate_hoped_ns(const tm_plan_candidate *candidate) {
  return saturating_add(scale(candidate->basis.declared_ns, candidate->estimate.least_factor),
                        saturating_add(candidate->lowering_ns, candidate->copy_ns));
}

/* For one that can run: fixes what the price rests on, and prices. */
static void take_price(const tm_market *market, tm_plan_candidate *candidate) {
  candidate->trial = tm_trial_find(candidate->device, &candidate->operation);
  candidate->basis = basis_of(candidate->device, &candidate->operation, candidate->answer.cost_ns);
  candidate->answer.cost_ns = candidate->basis.declared_ns;
  price(market, candidate);
}

/* ---- one device ---- */

static void bind_operands(tm_plan_candidate *candidate, const tm_operation *operation) {
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
static bool is_out(const tm_market *market, uint32_t only_device, tm_plan_candidate *candidate) {
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

static void ask(tm_plan_candidate *candidate) {
  const tm_operation *operation = &candidate->operation;
  tm_device_query(candidate->device, &operation, 1, &candidate->promise);
  candidate->answer = candidate->promise;
  judge(candidate);
}

/* ---- lowerings ---- */

/* Finds the cheapest way to carry out a step with what devices can do directly; false if none can. */
static bool find_step(const tm_market *market, const tm_operation *original, const tm_lowering_step *step, tm_price_basis *out_basis) {
  tm_request request;
  tm_lowering_request(step, &original->operands[step->operand], step->operand >= original->input_count, &request);
  tm_operation operation = tm_request_operation(&request);
  tm_op_normalize(&operation, request.operands);
  uint64_t best = UINT64_MAX;
  for (uint32_t i = 0; i < market->inventory->device_count; i++) {
    tm_plan_candidate candidate = { .device = market->inventory->devices[i] };
    bind_operands(&candidate, &operation);
    if (!tm_device_is_usable(candidate.device) || is_out(market, TM_ANY_DEVICE, &candidate)) continue;
    ask(&candidate);
    if (!tm_candidate_can_run(&candidate)) continue;
    const tm_price_basis basis = basis_of(candidate.device, &operation, candidate.answer.cost_ns);
    const uint64_t total = step_price(market, &basis);
    if (total >= best) continue;
    best = total;
    *out_basis = basis;
  }
  return best < TM_LARGEST_COST_NS;
}

/* What a lowering does to the promise: a second rounding costs half an ulp, lost bits cost it all. */
static void compose_numerics(const tm_lowering *lowering, tm_answer *answer) {
  answer->level = TM_LEVEL_EMULATED;
  if (lowering->loses_bits) {
    answer->numerics = TM_NUMERICS_N4;
    answer->numerics_bound = 0;
  } else if (lowering->rounds_output && answer->numerics <= TM_NUMERICS_N1) {
    answer->numerics_bound = (answer->numerics == TM_NUMERICS_N0 ? 0 : answer->numerics_bound) + 1;
    answer->numerics = TM_NUMERICS_N1;
  }
}

/* Fills `candidate` with what the device makes of the operation after its proposal; false when that leads nowhere. */
static bool lower(const tm_market *market, const tm_operation *original, const tm_answer *proposal, tm_plan_candidate *candidate) {
  bind_operands(candidate, original);
  if (!tm_lowering_make(original, proposal, candidate->operands, &candidate->lowering)) return false;
  tm_op_normalize(&candidate->operation, candidate->operands);
  if (is_out(market, TM_ANY_DEVICE, candidate)) return true;    /* listed, with the reason */
  ask(candidate);
  if (!tm_candidate_can_run(candidate)) return false;
  compose_numerics(&candidate->lowering, &candidate->answer);
  if (candidate->answer.numerics > original->worst_numerics) return false;
  for (uint32_t i = 0; i < candidate->lowering.step_count; i++)
    if (!find_step(market, original, &candidate->lowering.steps[i], &candidate->step_bases[i])) return false;
  take_price(market, candidate);
  return true;
}

/* ---- all ---- */

/* Cheapest first; ties by what the device is, never by its name or place in the list. */
static bool before(const tm_plan_candidate *a, const tm_plan_candidate *b) {
  if (tm_candidate_can_run(a) != tm_candidate_can_run(b)) return tm_candidate_can_run(a);
  if (!tm_candidate_can_run(a)) return false;
  if (atomic_load(&a->is_starved) != atomic_load(&b->is_starved)) return !atomic_load(&a->is_starved);
  if (a->total_ns != b->total_ns) return a->total_ns < b->total_ns;
  const int by_uuid = memcmp(&a->device->info.uuid, &b->device->info.uuid, sizeof(tm_identity));
  if (by_uuid != 0) return by_uuid < 0;
  return a->lowering.step_count < b->lowering.step_count;
}

uint32_t tm_candidates_evaluate(const tm_market *market, const tm_operation *normal, uint32_t only_device, bool with_lowerings,
                                tm_plan_candidate *candidates) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < market->inventory->device_count; i++) {
    tm_plan_candidate *candidate = &candidates[count];
    memset(candidate, 0, sizeof *candidate);
    candidate->device = market->inventory->devices[i];
    if (atomic_load(&candidate->device->backend->state) != TM_BACKEND_READY) continue;
    count++;
    bind_operands(candidate, normal);
    if (is_out(market, only_device, candidate)) continue;
    ask(candidate);
    if (tm_candidate_can_run(candidate)) take_price(market, candidate);
    if (!with_lowerings || candidate->answer.change_count == 0) continue;
    tm_plan_candidate *lowered = &candidates[count];
    memset(lowered, 0, sizeof *lowered);
    lowered->device = candidate->device;
    if (lower(market, normal, &candidate->answer, lowered)) count++;
  }
  return count;
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
