/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/explanation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/log2_fixed.h"
#include "plugin/answer.h"
#include "plugin/wake.h"
#include "schedule/worthwhile_repeats.h"

/* What all devices say of one request. */
typedef struct opinion {
  tm_plan_candidate *candidates;
  uint32_t          *order;
  uint32_t           count;
} opinion;

static void evaluate(const tm_market *market, const struct tm_explanation *explanation, const tm_request *request, opinion *out) {
  out->count = tm_candidates_evaluate(market, request, out->candidates);
  for (uint32_t i = 0; i < out->count; i++) out->candidates[i].repeats = explanation->repeats;
  tm_candidates_sort(out->candidates, out->count, out->order);
}

static const tm_plan_candidate *first_of(const tm_plan_candidate *candidates, const uint32_t *order, uint32_t count) {
  return count != 0 && tm_candidate_can_run(&candidates[order[0]]) ? &candidates[order[0]] : NULL;
}

static const tm_plan_candidate *winner(const struct tm_explanation *explanation) {
  return first_of(explanation->candidates, explanation->order, explanation->candidate_count);
}

/* Would this class lead elsewhere?  That is asked of everybody, as a class is part of the question. */
static void try_class(const tm_market *market, struct tm_explanation *explanation, uint32_t numerics, opinion *other) {
  const tm_plan_candidate *now = winner(explanation);
  const bool is_stronger = numerics < explanation->request.worst_numerics;
  tm_request request = explanation->request;
  request.worst_numerics = numerics;
  evaluate(market, explanation, &request, other);
  const tm_plan_candidate *then = first_of(other->candidates, other->order, other->count);
  if (then != NULL && (now == NULL || (then->device != now->device &&
                                       (is_stronger || tm_candidate_price_ns(then) < tm_candidate_price_ns(now)))))
    explanation->class_winners[numerics] =
        (tm_class_winner){ then->device, then->lowering != NULL, tm_candidate_price_ns(then) };
  tm_candidates_clear(market, other->candidates, other->count);
}

/* The classes that are not accepted now, the nearest first and of two the weaker one; false past the last. */
static bool nearest_class(uint32_t accepted, uint32_t place, uint32_t *out_numerics) {
  for (uint32_t distance = 1; distance <= TM_NUMERICS_N4; distance++) {
    const uint32_t others[2] = { accepted + distance, accepted - distance };
    for (uint32_t i = 0; i < 2; i++) {
      if (others[i] > TM_NUMERICS_N4 || place-- != 0) continue;
      *out_numerics = others[i];
      return true;
    }
  }
  return false;
}

/* The nearest class that leads elsewhere is named. */
static void find_flips(const tm_market *market, struct tm_explanation *explanation, opinion *other) {
  const uint32_t accepted = explanation->request.worst_numerics;
  uint32_t numerics;
  for (uint32_t i = 0; nearest_class(accepted, i, &numerics); i++) {
    const tm_class_winner *then = &explanation->class_winners[numerics];
    try_class(market, explanation, numerics, other);
    if (then->device == NULL || explanation->flip[0] != '\0') continue;
    snprintf(explanation->flip, sizeof explanation->flip, "accepting N%u %s would choose %s", numerics,
             numerics < accepted ? "only" : "as well", then->device->name);
    explanation->flip_price_ns = then->price_ns;
  }
}

/* With which class the candidate would be chosen, or its device in any way if it cannot run as things are. */
static uint32_t find_flip_of(const struct tm_explanation *explanation, const tm_plan_candidate *candidate) {
  uint32_t numerics;
  for (uint32_t i = 0; nearest_class(explanation->request.worst_numerics, i, &numerics); i++) {
    const tm_class_winner *then = &explanation->class_winners[numerics];
    if (then->device != candidate->device) continue;
    if (!tm_candidate_can_run(candidate) || then->is_lowered == (candidate->lowering != NULL)) return numerics;
  }
  return TM_NUMERICS_DEFAULT;
}

static void allocate_opinion(tm_memory *memory, uint32_t room, opinion *out) {
  out->candidates = tm_memory_calloc(memory, room, sizeof *out->candidates);
  out->order = tm_memory_calloc(memory, room, sizeof *out->order);
}

static void free_opinion(tm_memory *memory, uint32_t room, opinion *one) {
  tm_memory_free(memory, one->candidates, room * sizeof *one->candidates);
  tm_memory_free(memory, one->order, room * sizeof *one->order);
}

static bool judge(const tm_market *market, struct tm_explanation *explanation) {
  const uint32_t room = explanation->candidate_room;
  opinion now = { explanation->candidates, explanation->order, 0 }, other = { NULL, NULL, 0 };
  allocate_opinion(explanation->memory, room, &other);
  const bool has_room = other.candidates != NULL && other.order != NULL;
  if (has_room) {
    evaluate(market, explanation, &explanation->request, &now);
    explanation->candidate_count = now.count;
    find_flips(market, explanation, &other);
  }
  free_opinion(explanation->memory, room, &other);
  return has_room;
}

static bool allocate(struct tm_explanation *explanation, uint32_t room) {
  explanation->candidate_room = room;
  explanation->candidates = tm_memory_calloc(explanation->memory, room, sizeof *explanation->candidates);
  explanation->order = tm_memory_calloc(explanation->memory, room, sizeof *explanation->order);
  return explanation->candidates != NULL && explanation->order != NULL;
}

tm_status tm_explanation_make(const tm_market *market, tm_memory *memory, const tm_request *request, uint64_t repeats,
                              struct tm_explanation **out_explanation, tm_error *error) {
  const tm_operation operation = tm_request_operation(request);
  TM_TRY(tm_op_check(&operation, error));
  (void)tm_inventory_wake_all(market->inventory, NULL);       /* every candidate is to say its word */
  struct tm_explanation *explanation = tm_memory_calloc(memory, 1, sizeof *explanation);
  if (explanation == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an explanation");
  explanation->memory = memory;
  explanation->market = *market;
  explanation->request = *request;
  explanation->repeats = repeats;
  if (!allocate(explanation, tm_candidate_most(market->inventory))) {
    tm_explanation_destroy(explanation);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an explanation");
  }
  const tm_op_row *row = tm_op_find(request->op);
  if (row != NULL) row->work(&operation, &explanation->work);
  if (!judge(market, explanation)) {
    tm_explanation_destroy(explanation);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an explanation");
  }
  *out_explanation = explanation;
  return TM_OK;
}

void tm_explanation_summarize(const tm_explanation *explanation, tm_explanation_summary *out_summary) {
  const tm_plan_candidate *best = winner(explanation);
  tm_explanation_summary summary = {
    .struct_size = out_summary->struct_size,
    .op = explanation->request.op,
    .worst_numerics = explanation->request.worst_numerics,
    .candidate_count = explanation->candidate_count,
    .flops = explanation->work.flops,
    .read_bytes = explanation->work.read_bytes,
    .written_bytes = explanation->work.written_bytes,
    .chosen = best == NULL ? TM_ANY_DEVICE : 0,
    .flip = explanation->flip,
    .flip_price_ns = explanation->flip_price_ns,
  };
  if (best != NULL && explanation->candidate_count > 1) {
    const tm_plan_candidate *second = &explanation->candidates[explanation->order[1]];
    const uint64_t best_ns = tm_candidate_price_ns(best);
    if (tm_candidate_can_run(second) && best_ns != 0) summary.margin = (double)tm_candidate_price_ns(second) / (double)best_ns;
  }
  memcpy(out_summary, &summary, summary.struct_size < sizeof summary ? summary.struct_size : sizeof summary);
}

tm_status tm_explanation_candidate(const tm_explanation *explanation, uint32_t index, tm_candidate *out_candidate) {
  if (index >= explanation->candidate_count) return TM_END;
  const tm_plan_candidate *from = &explanation->candidates[explanation->order[index]];
  const bool can = tm_candidate_can_run(from);
  const uint64_t price_ns = can ? tm_candidate_price_ns(from) : 0;
  const tm_repeat_range repeats = tm_worthwhile_repeats(explanation->candidates, explanation->candidate_count, from);
  const uint32_t flip = find_flip_of(explanation, from);
  const tm_candidate candidate = {
    .struct_size = out_candidate->struct_size,
    .device = from->device->index,
    .device_name = from->device->name,
    .lowering = from->lowering == NULL ? "" : from->lowering->text,
    .verdict = can && index == 0 ? TM_VERDICT_CHOSEN : from->verdict,
    .level = from->answer.level,
    .numerics = from->answer.numerics,
    .numerics_flags = from->answer.numerics_flags,
    .numerics_bound = from->answer.numerics_bound,
    .growth = from->answer.growth,
    .accumulator = from->answer.accumulator,
    .declared_ns = from->answer.cost_ns,
    .correction = can ? exp2((double)from->estimate.factor / (double)TM_LOG2_ONE) : 1,
    .sample_count = from->estimate.samples,
    .lowering_ns = from->lowering_ns,
    .copy_ns = from->copy_ns,
    .setup_ns = from->due.cost_ns,
    .workspace_bytes = from->answer.workspace_bytes,
    .total_ns = from->total_ns,
    .reason = from->reason,
    .earned_ns = from->due.earned_ns,
    .price_ns = price_ns,
    .correction_spread = can && from->estimate.samples != 0 ? exp2((double)from->estimate.spread / (double)TM_LOG2_ONE) : 1,
    .setup_share_ns = can ? price_ns - from->total_ns : 0,
    .regret_ns = can ? price_ns - tm_candidate_price_ns(winner(explanation)) : TM_NEVER_NS,
    .repeats_from = repeats.from,
    .repeats_to = repeats.to,
    .flip_numerics = flip,
    .flip_price_ns = flip == TM_NUMERICS_DEFAULT ? 0 : explanation->class_winners[flip].price_ns,
  };
  memcpy(out_candidate, &candidate, candidate.struct_size < sizeof candidate ? candidate.struct_size : sizeof candidate);
  return TM_OK;
}

void tm_explanation_destroy(tm_explanation *explanation) {
  if (explanation == NULL) return;
  tm_memory *memory = explanation->memory;
  const uint64_t room = explanation->candidate_room;
  if (explanation->candidates != NULL)
    tm_candidates_clear(&explanation->market, explanation->candidates, explanation->candidate_count);
  tm_memory_free(memory, explanation->candidates, room * sizeof *explanation->candidates);
  tm_memory_free(memory, explanation->order, room * sizeof *explanation->order);
  tm_memory_free(memory, explanation, sizeof *explanation);
}
