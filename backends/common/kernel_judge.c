/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_judge.h"

#include <string.h>

#define KNOWN_DEMANDS TM_OPERATION_RUN_TO_RUN

/* How far a row came.  Other formats on a device that lacks what the row needs is less than other formats alone, which a
   cast may help. */
typedef enum stage {
  STAGE_OPERATION, STAGE_ELSEWHERE, STAGE_FORMATS, STAGE_DEVICE, STAGE_ATTRIBUTES, STAGE_NUMERICS, STAGE_REPEATS, STAGE_COMPILER,
  STAGE_OWN, STAGE_SIZE, STAGE_YES
} stage;

typedef struct verdict {
  const void *row;
  stage       reached;
  uint32_t    matched;          /* leading operands whose formats fit, when formats decided */
  uint32_t    reasons;
  uint32_t    operand;
} verdict;

/* One question: what stays the same while rows are judged. */
typedef struct trial {
  const kernel_judge *judge;
  const void         *context;
} trial;

static uint32_t operand_count(const tm_operation *operation) { return operation->input_count + operation->output_count; }

/* ---- formats ---- */

static uint64_t bit_of(uint32_t format) {
  uint32_t elements, bytes;
  if (format == TM_FORMAT_Q4_0) return KERNEL_Q4_0_BIT;
  if (format == TM_FORMAT_Q8_0) return KERNEL_Q8_0_BIT;
  if (!kernel_block_size(format, &elements, &bytes)) return 0;
  return format < TM_FORMAT_C64 ? KERNEL_FORMAT_BIT(format) : KERNEL_OTHER_BIT;
}

static int is_one_format(uint64_t taken) { return taken != TM_FORMAT_NONE && taken <= UINT32_MAX; }

static int fits(uint64_t taken, const tm_operation *operation, uint32_t index) {
  const uint32_t format = operation->operands[index].format;
  if (taken == TM_FORMAT_NONE) return 1;
  if (is_one_format(taken)) return taken == format;
  return taken == KERNEL_SAME ? format == operation->operands[0].format : (taken & bit_of(format)) != 0;
}

/* The number of leading operands whose formats fit; all of them if the row takes the operation's formats. */
static uint32_t matching_formats(const kernel_claim *claim, const tm_operation *operation) {
  const uint32_t count = operand_count(operation);
  for (uint32_t i = 0; i < count && i < KERNEL_CLAIM_FORMATS; ++i) {
    if (!fits(claim->formats[i], operation, i)) return i;
  }
  return count;
}

/* ---- judging ---- */

static kernel_closeness closeness_of(const trial *t, const kernel_claim *claim) {
  if (t->judge->closeness != NULL) return t->judge->closeness(t->context, claim);
  return (kernel_closeness){ claim->numerics, claim->numerics_flags, claim->numerics_bound };
}

/* What can be said without the shapes. */
static stage judge_kind(const trial *t, const kernel_claim *claim, const tm_operation *operation, verdict *out) {
  const kernel_judge *judge = t->judge;
  out->matched = matching_formats(claim, operation);
  out->operand = out->matched;
  out->reasons = TM_REASON_FORMAT;
  const uint32_t lacking = judge->lacks != NULL ? judge->lacks(t->context, claim, operation) : 0;
  if (out->matched < operand_count(operation)) return lacking != 0 ? STAGE_ELSEWHERE : STAGE_FORMATS;
  out->operand = TM_NO_OPERAND;
  out->reasons = lacking;
  if (lacking != 0) return STAGE_DEVICE;
  out->reasons = TM_REASON_ATTRIBUTE;
  if (operation->attribute_bytes < claim->attribute_bytes) return STAGE_ATTRIBUTES;
  if (!kernel_rest_is_zero(operation->attributes, claim->attribute_bytes, operation->attribute_bytes)) return STAGE_ATTRIBUTES;
  const kernel_closeness closeness = closeness_of(t, claim);
  out->reasons = TM_REASON_NUMERICS;
  if (closeness.numerics > operation->worst_numerics) return STAGE_NUMERICS;
  out->reasons = TM_REASON_DEMAND;
  if ((operation->flags & TM_OPERATION_RUN_TO_RUN) != 0 && (closeness.flags & TM_NUMERICS_RUN_TO_RUN) == 0) return STAGE_REPEATS;
  out->reasons = TM_REASON_RESOURCES;
  return judge->is_broken != NULL && judge->is_broken(t->context, claim) ? STAGE_COMPILER : STAGE_OWN;
}

static verdict judge_row(const trial *t, const void *row, const tm_operation *operation) {
  const kernel_judge *judge = t->judge;
  verdict v = { .row = row, .operand = TM_NO_OPERAND };
  v.reached = judge_kind(t, row, operation, &v);
  if (v.reached < STAGE_OWN) return v;
  v.reasons = judge->refuses != NULL ? judge->refuses(t->context, row, operation, &v.operand) : 0;
  if (v.reasons != 0) return v;
  v.reached = STAGE_SIZE;
  v.reasons = TM_REASON_SIZE;
  v.operand = TM_NO_OPERAND;
  if (judge->exceeds != NULL && judge->exceeds(t->context, row, operation, &v.operand)) return v;
  return (verdict){ .row = row, .reached = STAGE_YES, .operand = TM_NO_OPERAND };
}

static int is_further(const verdict *a, const verdict *b) {
  return a->reached > b->reached || (a->reached == b->reached && a->matched > b->matched);
}

static uint32_t known_version(uint32_t op) { return op == TM_OP_COMPARE_TENSORS ? TM_COMPARISON_VERSION : 1; }

/* Of a struct newer than this code, or asking for what it does not know; such an operation gets no row at all. */
static uint32_t foreign_reasons(const tm_operation *operation) {
  if (operation->struct_size < sizeof *operation) return TM_REASON_OPERATION;
  if (!kernel_rest_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->input_count > TM_MAX_OPERANDS || operation->output_count > TM_MAX_OPERANDS - operation->input_count) {
    return TM_REASON_SIZE;
  }
  if ((operation->flags & ~(TM_OPERATION_FACTS | KNOWN_DEMANDS)) != 0) return TM_REASON_DEMAND;
  return operation->version == known_version(operation->op) ? 0 : TM_REASON_OPERATION;
}

/* Judges every row of the operation; stops at the first yes. */
static verdict find_best(const trial *t, const tm_operation *operation) {
  verdict best = { .reached = STAGE_OPERATION, .reasons = foreign_reasons(operation), .operand = TM_NO_OPERAND };
  if (best.reasons != 0) return best;
  best.reasons = TM_REASON_OPERATION;
  for (const kernel_row_table *const *table = t->judge->tables; *table != NULL; ++table) {
    const char *row = (*table)->rows;
    for (uint32_t i = 0; i < (*table)->count; ++i, row += t->judge->row_bytes) {
      if (((const kernel_claim *)(const void *)row)->op != operation->op) continue;
      const verdict next = judge_row(t, row, operation);
      if (is_further(&next, &best)) best = next;
      if (best.reached == STAGE_YES) return best;
    }
  }
  return best;
}

const void *kernel_judge_find(const kernel_judge *judge, const void *context, const tm_operation *operation) {
  const verdict best = find_best(&(trial){ judge, context }, operation);
  return best.reached == STAGE_YES ? best.row : NULL;
}

/* ---- refusals ---- */

tm_status kernel_refusal_status(const tm_answer *answer) {
  return (answer->reasons & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0 ? TM_UNSUPPORTED : TM_ERROR_ARGUMENT;
}

static void add_change(tm_answer *answer, tm_change change) {
  if (answer->change_count < TM_MAX_CHANGES) answer->changes[answer->change_count] = change;
  answer->change_count++;
}

/* Adds what operand `i` needs to fit the row and changes it so; 0 if nothing would help. */
static int change_operand(const kernel_claim *claim, const tm_operation *operation, uint32_t i, tm_operand *operand,
                          tm_answer *answer) {
  const uint64_t taken = i < KERNEL_CLAIM_FORMATS ? claim->formats[i] : TM_FORMAT_NONE;
  if (!fits(taken, operation, i)) {
    const uint32_t kind = operand->format >= TM_FORMAT_GGUF ? TM_CHANGE_DEQUANTIZE : TM_CHANGE_CAST;
    if (!claim->castable || !is_one_format(taken)) return 0;
    operand->format = (uint32_t)taken;
    add_change(answer, (tm_change){ .kind = kind, .operand = i, .format = operand->format });
    return kernel_operand_densify(operand);
  }
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) != 0) return 1;
  add_change(answer, (tm_change){ .kind = TM_CHANGE_CONTIGUOUS, .operand = i });
  return kernel_operand_densify(operand);
}

/* Casts and copies that turn the refusal into a yes, if there are any, also one for size where elements lie far apart: they
   are applied to a copy of the operands, and the row is asked again, so nothing is proposed that would not help. */
static void propose_copies(const trial *t, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  tm_operand changed[TM_MAX_OPERANDS];
  tm_operation then = *operation;
  const uint32_t count = operand_count(operation);
  int helps = 1;
  memcpy(changed, operation->operands, count * sizeof *changed);
  then.operands = changed;
  then.flags |= TM_OPERATION_ALL_CONTIGUOUS;
  for (uint32_t i = 0; i < count && helps; ++i) helps = change_operand(refusal->row, operation, i, &changed[i], answer);
  if (helps && answer->change_count <= TM_MAX_CHANGES && judge_row(t, refusal->row, &then).reached == STAGE_YES) return;
  answer->change_count = 0;
  memset(answer->changes, 0, sizeof answer->changes);
}

static void propose(const trial *t, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  tm_change change = { .kind = 0 };
  if (refusal->reached == STAGE_FORMATS || refusal->reached >= STAGE_OWN) propose_copies(t, refusal, operation, answer);
  if (refusal->reached != STAGE_SIZE || answer->change_count != 0 || t->judge->split == NULL) return;
  if (t->judge->split(t->context, refusal->row, operation, refusal->operand, &change)) add_change(answer, change);
}

static const char *text_of(const kernel_judge *judge, stage reached) {
  static const char *const texts[] = {
    [STAGE_OPERATION]  = "no kernel for this operation",
    [STAGE_ELSEWHERE]  = "no kernel for these formats",
    [STAGE_FORMATS]    = "no kernel for these formats",
    [STAGE_ATTRIBUTES] = "an attribute that the kernel does not know",
    [STAGE_NUMERICS]   = "the kernel is less exact than the caller asks for",
    [STAGE_REPEATS]    = "the kernel may give other bits at each run, and the caller asks for equal ones",
    [STAGE_COMPILER]   = "the device's compiler refused the kernel",
    [STAGE_OWN]        = "the kernel does not take this shape or layout",
  };
  return reached == STAGE_DEVICE ? judge->lacks_text : reached == STAGE_SIZE ? judge->exceeds_text : texts[reached];
}

/* ---- answers ---- */

static void accept(const trial *t, const kernel_claim *claim, const tm_operation *operation, tm_answer *answer) {
  const kernel_closeness closeness = closeness_of(t, claim);
  answer->level = claim->level;
  answer->numerics = closeness.numerics;
  answer->numerics_flags = closeness.flags;
  answer->numerics_bound = closeness.bound;
  answer->growth = claim->growth;
  answer->accumulator = claim->accumulator;
  answer->text = (tm_string){ claim->name, strlen(claim->name) };
  answer->moved_bytes = (uint64_t)kernel_operand_bytes(operation);
  answer->alias_mask = claim->alias_mask;
  t->judge->price(t->context, claim, operation, answer);
}

void kernel_judge_answer(const kernel_judge *judge, const void *context, uint64_t epoch, const tm_operation *operation,
                         tm_answer *out_answer) {
  const trial t = { judge, context };
  const verdict best = find_best(&t, operation);
  tm_answer answer = { .struct_size = out_answer->struct_size, .operand = best.operand, .epoch = epoch };
  if (best.reached == STAGE_YES) {
    accept(&t, best.row, operation, &answer);
  } else {
    const char *text = text_of(judge, best.reached);
    answer.reasons = best.reasons;
    answer.text = (tm_string){ text, strlen(text) };
    propose(&t, &best, operation, &answer);
  }
  memcpy(out_answer, &answer, sizeof answer < answer.struct_size ? sizeof answer : answer.struct_size);
}
