/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/answer.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/op_table.h"
#include "ops/result_closeness.h"
#include "tensor/format.h"

#define LARGEST_WORKSPACE (UINT64_C(1) << 46)
#define LONGEST_TEXT 256u

static void refuse(tm_answer *answer, uint32_t reason, const char *text) {
  answer->level = TM_LEVEL_REFUSED;
  answer->reasons |= reason;
  answer->text = (tm_string){ text, strlen(text) };
}

/* ---- prices ---- */

static const char no_price[] = "declares a time that is none: negative, not a number, or over 10^15 ns (eleven days)";

static bool is_endless(const tm_operation *operation) {
  tm_work work = { .flops = 0 };
  const tm_op_row *row = tm_op_find(operation->op);
  if (row != NULL) row->work(operation, &work);
  if (work.flops > TM_ENDLESS_FLOPS) return true;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++)
    if (operation->operands[i].byte_count > TM_ENDLESS_BYTES) return true;
  return false;
}

static void check_price(const tm_operation *operation, tm_answer *answer) {
  const uint64_t largest_ns = tm_max_u64(answer->cost_ns, answer->setup_ns);
  if (answer->level == TM_LEVEL_REFUSED || largest_ns <= TM_LARGEST_COST_NS || is_endless(operation)) return;
  answer->change_count = 0;
  refuse(answer, TM_REASON_OPERATION, no_price);
}

bool tm_answer_has_no_price(const tm_answer *answer) {
  return answer->level == TM_LEVEL_REFUSED && answer->text.data == no_price;
}

/* ---- the rest ---- */

/* The bound of class N2 is counted in steps of the accumulator: without one it bounds nothing. */
static bool has_accumulator(const tm_answer *answer) {
  const tm_format_info *info = tm_format_find(answer->accumulator);
  return answer->numerics != TM_NUMERICS_N2 || (info != NULL && info->kind == TM_KIND_FLOAT && info->has_arithmetic);
}

/* A bound that zeros would keep is none. */
static bool has_bound(const tm_operation *operation, const tm_answer *answer) {
  const bool needs_one = answer->numerics >= TM_NUMERICS_N1 && answer->numerics <= TM_NUMERICS_N3;
  return !needs_one || answer->numerics_bound <= tm_closeness_largest_bound(operation, answer);
}

static void check_numerics(const tm_operation *operation, tm_answer *answer) {
  const bool sound = answer->numerics <= TM_NUMERICS_N4 && answer->numerics_bound >= 0 && isfinite(answer->numerics_bound) &&
                     answer->growth <= TM_GROWTH_LINEAR && has_accumulator(answer) && has_bound(operation, answer);
  if (!sound) {                 /* a NaN bound fails the comparison above, too */
    answer->numerics = TM_NUMERICS_N4;
    answer->numerics_bound = 0;
    answer->growth = TM_GROWTH_ONE;
  }
  const bool bounded = answer->numerics == TM_NUMERICS_N1 || answer->numerics == TM_NUMERICS_N2 || answer->numerics == TM_NUMERICS_N3;
  if (bounded && answer->numerics_bound == 0) answer->numerics = TM_NUMERICS_N4;
  if (answer->level != TM_LEVEL_REFUSED && answer->numerics > operation->worst_numerics)
    refuse(answer, TM_REASON_NUMERICS, "only in a weaker numerics class than accepted");
  const bool wants_repeatable = (operation->flags & TM_OPERATION_RUN_TO_RUN) != 0;
  if (answer->level != TM_LEVEL_REFUSED && wants_repeatable && (answer->numerics_flags & TM_NUMERICS_RUN_TO_RUN) == 0)
    refuse(answer, TM_REASON_DEMAND, "does not give equal bits every time");
}

static bool change_is_sound(const tm_operation *operation, const tm_change *change) {
  return change->kind >= TM_CHANGE_CONTIGUOUS && change->kind <= TM_CHANGE_QUANTIZE &&
         change->operand < operation->input_count + operation->output_count && change->axis < TM_MAX_RANK;
}

static void check_changes(const tm_operation *operation, tm_answer *answer) {
  if (answer->change_count > TM_MAX_CHANGES) answer->change_count = 0;
  for (uint32_t i = 0; i < answer->change_count; i++)
    if (!change_is_sound(operation, &answer->changes[i])) answer->change_count = 0;
  if (answer->operand >= operation->input_count + operation->output_count) answer->operand = TM_NO_OPERAND;
}

void tm_answer_make_sound(const tm_operation *operation, tm_answer *answer) {
  answer->struct_size = sizeof *answer;
  if (answer->text.data == NULL || answer->text.length > TM_LONGEST_SOUND_TEXT) answer->text = (tm_string){ NULL, 0 };
  if (answer->text.length > LONGEST_TEXT) answer->text.length = LONGEST_TEXT;
  if (answer->level > TM_LEVEL_NATIVE) refuse(answer, TM_REASON_OPERATION, "answered with an unknown level");
  if (answer->workspace_bytes > LARGEST_WORKSPACE) refuse(answer, TM_REASON_RESOURCES, "asks for an absurd workspace");
  check_price(operation, answer);
  check_numerics(operation, answer);
  check_changes(operation, answer);
  if (answer->level == TM_LEVEL_REFUSED && answer->reasons == 0) answer->reasons = TM_REASON_OPERATION;
  if (answer->level != TM_LEVEL_REFUSED) answer->reasons = 0;
  answer->cost_ns = tm_min_u64(answer->cost_ns, TM_LARGEST_COST_NS);
  answer->spread_ns = tm_min_u64(answer->spread_ns, TM_LARGEST_COST_NS);
  answer->launch_ns = tm_min_u64(answer->launch_ns, answer->cost_ns);
  answer->setup_ns = tm_min_u64(answer->setup_ns, TM_LARGEST_COST_NS);
}
