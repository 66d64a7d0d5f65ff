/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/lowered_candidate.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "plugin/answer.h"
#include "plugin/device.h"
#include "schedule/composed_numerics.h"

/* One candidate under construction. */
typedef struct build {
  const tm_market   *market;
  const tm_request  *whole;
  tm_plan_candidate *candidate;
  tm_lowering       *lowering;
} build;

/* ---- what steps cost ---- */

/* Finds the cheapest way to carry out a step with what devices can do directly; false if none can. */
static bool find_step(const tm_market *market, tm_request *request, tm_price_basis *out_basis) {
  tm_operation operation = tm_request_operation(request);
  tm_op_normalize(&operation, request->operands);
  uint64_t best = UINT64_MAX;
  for (uint32_t i = 0; i < market->inventory->device_count; i++) {
    tm_plan_candidate candidate = { .device = market->inventory->devices[i] };
    tm_candidate_bind(&candidate, &operation);
    if (!tm_device_is_usable(candidate.device) || tm_candidate_is_out(market, TM_ANY_DEVICE, &candidate)) continue;
    tm_candidate_ask(market, &candidate);
    if (!tm_candidate_can_run(&candidate)) continue;
    const tm_price_basis basis = tm_candidate_basis(market, candidate.device, &operation, &operation, candidate.answer.cost_ns);
    const uint64_t total = tm_price_ns(market->correction, &basis);
    if (total >= best) continue;
    best = total;
    *out_basis = basis;
  }
  return best < TM_LARGEST_COST_NS;
}

/* Of a constant it is paid once, else each time. */
static bool add_step(build *b, tm_request *request, bool is_kept) {
  tm_price_basis basis;
  if (!find_step(b->market, request, &basis)) return false;
  if (!is_kept) return tm_bill_add(&b->lowering->bill, &basis, 1);
  b->candidate->constant_ns = tm_cost_add(b->candidate->constant_ns, tm_price_ns(b->market->correction, &basis));
  return true;
}

/* Only the device itself can pack; what it packs stays there. */
static bool add_packing(build *b, const tm_operand_way *way) {
  tm_request request;
  tm_lowering_convert_request(way, b->candidate->device->index, &request);
  const tm_operation operation = tm_request_operation(&request), *asked = &operation;
  tm_answer answer;
  tm_device_query(b->candidate->device, &asked, 1, b->market->cancelled, &answer);
  if (answer.level == TM_LEVEL_REFUSED) return false;
  tm_operand from[2] = { way->presented, way->presented };
  tm_operation moved = operation;
  moved.operands = from;
  const tm_price_basis basis = tm_candidate_basis(b->market, b->candidate->device, &operation, &moved, answer.cost_ns);
  b->candidate->constant_ns = tm_cost_add(b->candidate->constant_ns, tm_price_ns(b->market->correction, &basis));
  tm_candidate_note_setups(b->market, b->candidate, &answer);
  return true;
}

static bool add_way(build *b, const tm_operand_way *way) {
  const bool is_output = way->operand >= b->whole->input_count;
  tm_request request;
  if (way->op != TM_OP_NONE) {
    tm_lowering_move_request(way, is_output, &request);
    if (!add_step(b, &request, way->is_kept)) return false;
  }
  if (way->is_padded && !is_output) {
    tm_lowering_fill_request(way, &request);
    if (!add_step(b, &request, way->is_kept)) return false;
  }
  return way->packed.format == TM_FORMAT_NONE || add_packing(b, way);
}

/* ---- what is left is a request of its own ---- */

/* Parts of parts: more launches than this are not worth the device that wants them. */
#define MOST_TIMES (UINT64_C(1) << 20)

static const tm_plan_candidate *cheapest(const tm_plan_candidate *candidates, uint32_t count) {
  const uint32_t best = tm_candidates_best(candidates, count, NULL, 0);
  return best == count ? NULL : &candidates[best];
}

/* Takes over what the inner candidate costs and promises, `times` times. */
static bool take_inner(build *b, const tm_plan_candidate *inner, uint64_t times, bool is_main) {
  tm_plan_candidate *candidate = b->candidate;
  if (tm_cost_times(inner->times, times) > MOST_TIMES) return false;
  if (is_main) {
    candidate->basis = inner->basis;
    candidate->times = tm_cost_times(inner->times, times);
    candidate->answer = inner->answer;
    candidate->answer.change_count = 0;
  } else {
    tm_numerics_join(&inner->answer, &candidate->answer);
    candidate->answer.workspace_bytes = tm_max_u64(candidate->answer.workspace_bytes, inner->answer.workspace_bytes);
    if (!tm_bill_add(&b->lowering->bill, &inner->basis, tm_cost_times(inner->times, times))) return false;
  }
  for (uint32_t i = 0; i < inner->setup_count; i++) tm_candidate_add_setup(candidate, &inner->setups[i]);
  candidate->constant_ns = tm_cost_add(candidate->constant_ns, tm_cost_times(inner->constant_ns, times));
  if (inner->lowering == NULL) return true;
  if (is_main && inner->lowering->text[0] != '\0') {
    const size_t used = strlen(b->lowering->text);
    snprintf(b->lowering->text + used, sizeof b->lowering->text - used, "%s%s", used == 0 ? "" : ", ", inner->lowering->text);
  }
  return tm_bill_add_bill(&b->lowering->bill, &inner->lowering->bill, times);
}

/* Asks the device about `request`, which is its own from now on. */
static bool nest(build *b, tm_request *request, uint64_t times, bool is_main) {
  tm_plan_candidate inner[2];
  request->only_device = b->candidate->device->index;
  tm_request whole = *request;
  tm_operation operation = tm_request_operation(&whole);
  tm_op_normalize(&operation, whole.operands);
  const uint32_t count = tm_candidates_evaluate_device(b->market, &whole, b->candidate->device, inner);
  const tm_plan_candidate *best = cheapest(inner, count);
  const bool found = best != NULL && take_inner(b, best, times, is_main);
  tm_candidates_clear(b->market, inner, count);
  return found;
}

/* ---- the three programs ---- */

/* What the host itself takes for each further part: a look-up and a few hundred bytes moved about. */
#define PART_NS 1000u

static bool finish_split(build *b) {
  tm_lowering *lowering = b->lowering;
  lowering->bill.fixed_ns = tm_cost_times(PART_NS, lowering->split.count);
  const bool has_tail = lowering->tail.input_count != 0;
  const uint64_t full = lowering->split.count - (has_tail ? 1 : 0);
  if (!nest(b, &lowering->inner, full, true) || (has_tail && !nest(b, &lowering->tail, 1, false))) return false;
  if (lowering->split.join != TM_JOIN_ADD) return true;
  /* Additions of partial sums; those of an integer format or f64 need no cast at the end. */
  tm_request step;
  tm_lowering_add_request(&lowering->split, &lowering->split.sum, &step);
  tm_price_basis basis;
  if (!find_step(b->market, &step, &basis) || !tm_bill_add(&lowering->bill, &basis, lowering->split.count - 1)) return false;
  tm_lowering_finish_request(&lowering->split, &b->whole->operands[b->whole->input_count], &step);
  return add_step(b, &step, false);
}

/* Loops over values in f64: some 6 ns each for a factor, 3 ns for a product. */
#define FACTOR_NS 6u
#define PRODUCT_NS 3u

static uint64_t loop_ns(const build *b, uint64_t elements, uint64_t each_ns) {
  return tm_cost_times(elements, each_ns) / tm_pool_lane_count(b->market->inventory->pool);
}

static bool finish_quantized(build *b) {
  tm_lowering *lowering = b->lowering;
  const tm_operand *y = &b->whole->operands[2];
  if (!nest(b, &lowering->inner, 1, true) || b->candidate->answer.numerics != TM_NUMERICS_N0) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const tm_operand *factor = &lowering->inner.operands[i];
    uint64_t *ns = (factor->flags & TM_OPERAND_CONSTANT) != 0 ? &b->candidate->constant_ns : &lowering->bill.fixed_ns;
    *ns = tm_cost_add(*ns, loop_ns(b, factor->element_count, FACTOR_NS));
  }
  lowering->bill.fixed_ns = tm_cost_add(lowering->bill.fixed_ns, loop_ns(b, y->element_count, PRODUCT_NS));
  for (uint32_t i = 0; i < TM_RESCALE_STEPS; i++) {
    tm_request step;
    tm_lowering_rescale_request(&lowering->inner, y, i, &step);
    if ((i != TM_RESCALE_TO_FORMAT || y->format != TM_FORMAT_F32) && !add_step(b, &step, false)) return false;
  }
  const size_t used = strlen(lowering->text);
  snprintf(lowering->text + used, sizeof lowering->text - used, ", rescale(y)");
  return true;
}

/* The changed operation without what is packed, which lies in the device's memory already. */
static tm_price_basis changed_basis(const build *b, uint64_t declared_ns) {
  tm_operand moved[TM_MAX_OPERANDS];
  tm_operation operation = b->candidate->operation;
  memcpy(moved, operation.operands, sizeof moved);
  operation.operands = moved;
  uint64_t resident_bytes = 0;
  for (uint32_t i = 0; i < b->lowering->way_count; i++) {
    const tm_operand_way *way = &b->lowering->ways[i];
    if (way->packed.format == TM_FORMAT_NONE) continue;
    moved[way->operand] = way->presented;
    resident_bytes = tm_cost_add(resident_bytes, way->presented.byte_count);
  }
  tm_price_basis basis = tm_candidate_basis(b->market, b->candidate->device, &b->candidate->operation, &operation, declared_ns);
  basis.copied_in_bytes -= tm_min_u64(basis.copied_in_bytes, resident_bytes);
  return basis;
}

static bool has_packed(const tm_lowering *lowering) {
  for (uint32_t i = 0; i < lowering->way_count; i++)
    if (lowering->ways[i].packed.format != TM_FORMAT_NONE) return true;
  return false;
}

/* A copy made for one run is no constant; one that is kept is. */
static bool set_constants(build *b, bool keep) {
  bool has_any = false;
  for (uint32_t i = 0; i < b->lowering->way_count; i++) {
    tm_operand_way *way = &b->lowering->ways[i];
    if (way->op == TM_OP_NONE || way->operand >= b->whole->input_count || way->packed.format != TM_FORMAT_NONE) continue;
    if ((way->original.flags & TM_OPERAND_CONSTANT) == 0) continue;
    tm_operand *operand = &b->candidate->operands[way->operand];
    operand->flags = keep ? operand->flags | TM_OPERAND_CONSTANT : operand->flags & ~TM_OPERAND_CONSTANT;
    way->is_kept = keep;
    has_any = true;
  }
  return has_any;
}

/* Refused with further changes: the changed operation becomes a request of its own. */
static bool change_again(build *b) {
  tm_lowering *lowering = b->lowering;
  (void)set_constants(b, true);
  lowering->has_inner = true;
  lowering->inner = *b->whole;
  lowering->inner.flags += TM_REQUEST_ROUND;
  memcpy(lowering->inner.operands, b->candidate->operands, sizeof lowering->inner.operands);
  memcpy(lowering->inner.attributes, lowering->attributes, sizeof lowering->attributes);
  if (!nest(b, &lowering->inner, 1, true)) return false;
  b->candidate->verdict = TM_VERDICT_SLOWER;
  b->candidate->reason[0] = '\0';
  return true;
}

/* Where a buffer of the device starts is the device's to say.  Only operands that are certain to be used where they lie have
   the alignment that the host gives them. */
static void bound_alignments(build *b) {
  const tm_device_slot *device = b->candidate->device;
  const tm_memory_space *space = &device->memories[0];
  const uint32_t most = space->alignment > 64 ? space->alignment : 64;
  if (device->is_host_memory && space->alignment <= 1 && space->store_granule <= 1) return;
  for (uint32_t i = 0; i < b->whole->input_count + b->whole->output_count; i++)
    if (b->candidate->operands[i].alignment > most) b->candidate->operands[i].alignment = most;
}

/* A backend may ask for changes after which there is no such operation: one of two operands in another format, say.  What is
   packed counts as what it was packed from. */
static bool is_legal(const build *b) {
  tm_operation operation = b->candidate->operation;
  tm_operand operands[TM_MAX_OPERANDS];
  memcpy(operands, b->candidate->operands, sizeof operands);
  for (uint32_t i = 0; i < b->lowering->way_count; i++) {
    const tm_operand_way *way = &b->lowering->ways[i];
    if (way->packed.format != TM_FORMAT_NONE) operands[way->operand] = way->presented;
  }
  operation.operands = operands;
  return tm_op_check(&operation, NULL) == TM_OK;
}

static bool finish_changed(build *b) {
  tm_plan_candidate *candidate = b->candidate;
  if (!is_legal(b)) return false;
  if (has_packed(b->lowering)) candidate->operation.flags &= ~TM_OPERATION_FACTS;
  else tm_op_normalize(&candidate->operation, candidate->operands);
  (void)set_constants(b, false);
  bound_alignments(b);
  if (tm_candidate_is_out(b->market, b->candidate->device->index, candidate)) return true;    /* listed, with the reason */
  tm_candidate_ask(b->market, candidate);
  if ((candidate->answer.reasons & TM_REASON_CONSTANT) != 0 && set_constants(b, true)) tm_candidate_ask(b->market, candidate);
  if (tm_candidate_can_run(candidate)) {
    candidate->basis = changed_basis(b, candidate->answer.cost_ns);
    candidate->times = 1;
    candidate->trial = tm_trial_find(candidate->device, &candidate->operation);
    tm_candidate_note_setups(b->market, candidate, &candidate->answer);
  } else if (candidate->answer.change_count == 0 || has_packed(b->lowering) || !change_again(b)) {
    return false;
  }
  for (uint32_t i = 0; i < b->lowering->way_count; i++)
    if (!add_way(b, &b->lowering->ways[i])) return false;
  return true;
}

/* ---- which one ---- */

static bool change(build *b, const tm_answer *proposal) {
  if ((b->whole->flags & TM_REQUEST_ROUNDS) >= 2 * TM_REQUEST_ROUND) return false;
  if (!tm_lowering_change(&b->candidate->operation, b->candidate->operands, proposal, b->lowering)) return false;
  tm_lowering_describe(b->lowering, b->whole->input_count, b->lowering->text, sizeof b->lowering->text);
  return finish_changed(b);
}

static bool split(build *b, const tm_answer *proposal) {
  if ((b->whole->flags & TM_REQUEST_SPLITS) == TM_REQUEST_SPLITS || !tm_lowering_split(b->whole, proposal, b->lowering))
    return false;
  tm_lowering_describe(b->lowering, b->whole->input_count, b->lowering->text, sizeof b->lowering->text);
  b->candidate->verdict = TM_VERDICT_SLOWER;
  return finish_split(b);
}

static bool quantize(build *b, const tm_answer *proposal) {
  if (b->whole->worst_numerics < TM_NUMERICS_N3 || !tm_lowering_quantize(b->whole, proposal, b->lowering)) return false;
  tm_lowering_describe(b->lowering, b->whole->input_count, b->lowering->text, sizeof b->lowering->text);
  b->candidate->verdict = TM_VERDICT_SLOWER;
  return finish_quantized(b);
}

static void begin_again(build *b) {
  const tm_operation operation = tm_request_operation(b->whole);
  tm_candidate_bind(b->candidate, &operation);
  b->candidate->setup_count = 0;
  b->candidate->setup_key = 0;
  b->candidate->constant_ns = 0;
  memset(&b->candidate->answer, 0, sizeof b->candidate->answer);
  memset(b->lowering, 0, sizeof *b->lowering);
}

/* How much room a packed operand takes is easily said of the operand as it was: then everything else is done first. */
static bool change_before_packing(build *b, const tm_answer *proposal) {
  tm_answer rest = *proposal;
  rest.change_count = 0;
  for (uint32_t i = 0; i < proposal->change_count; i++)
    if (proposal->changes[i].kind != TM_CHANGE_CONVERT) rest.changes[rest.change_count++] = proposal->changes[i];
  begin_again(b);
  return rest.change_count != 0 && rest.change_count != proposal->change_count && change(b, &rest);
}

/* Integers first, because their sums split exactly; then parts, which are asked about anew; then the operands. */
static bool make(build *b, const tm_answer *proposal) {
  begin_again(b);
  if (tm_answer_has_change(proposal, TM_CHANGE_QUANTIZE)) return quantize(b, proposal);
  if (tm_answer_has_change(proposal, TM_CHANGE_SPLIT_ABOVE)) return split(b, proposal);
  if (change(b, proposal) || change_before_packing(b, proposal)) return true;
  if (!tm_answer_has_change(proposal, TM_CHANGE_REDUCE_RANK)) return false;
  begin_again(b);
  return split(b, proposal);
}

bool tm_candidate_lower(const tm_market *market, const tm_request *whole, const tm_answer *proposal, tm_plan_candidate *candidate) {
  tm_lowering *lowering = tm_memory_calloc(market->memory, 1, sizeof *lowering);
  if (lowering == NULL) return false;
  candidate->lowering = lowering;
  build b = { market, whole, candidate, lowering };
  bool is_good = make(&b, proposal);
  if (is_good && tm_candidate_can_run(candidate)) {
    tm_numerics_compose(lowering, whole->operands[whole->input_count].format, &candidate->answer);
    is_good = candidate->answer.numerics <= whole->worst_numerics;
    if (is_good) tm_candidate_take_price(market, candidate);
  }
  if (candidate->operation.attribute_bytes != 0 && lowering->kind != TM_LOWERING_CHANGED)
    candidate->operation.attributes = lowering->inner.attributes;
  if (!is_good) tm_candidates_clear(market, candidate, 1);
  return is_good;
}
