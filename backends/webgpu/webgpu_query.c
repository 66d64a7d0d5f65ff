/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is judged in stages, each weeding out less than the one before: operation, the adapter's features, formats,
 * attributes, numerics and demands, the adapter's compiler, the row's own predicate, sizes.  The row that came furthest explains the refusal.
 */
#include "webgpu_query.h"

#include <string.h>

#define KNOWN_VERSION 1u
#define KNOWN_DEMANDS TM_OPERATION_RUN_TO_RUN
#define LAUNCH_NS 25000u                /* encoding, submitting and hearing of the end */
#define SETUP_NS 3000000u               /* one shader compiled */
#define MOST_ELEMENTS (UINT64_C(1) << 31)

typedef enum stage {
  STAGE_OPERATION, STAGE_FEATURES, STAGE_FORMATS, STAGE_ATTRIBUTES, STAGE_NUMERICS, STAGE_COMPILER, STAGE_OWN, STAGE_SIZE, STAGE_YES
} stage;

typedef struct verdict {
  const webgpu_row *row;
  stage    reached;
  uint32_t matched;             /* leading operands whose formats fit, when formats decided */
  uint32_t reasons;
  uint32_t operand;
} verdict;

static const char *const stage_text[] = {
  [STAGE_OPERATION]  = "no kernel for this operation",
  [STAGE_FEATURES]   = "the kernel needs a feature that the adapter lacks",
  [STAGE_FORMATS]    = "no kernel for these formats",
  [STAGE_ATTRIBUTES] = "an attribute that the kernel does not know",
  [STAGE_NUMERICS]   = "the kernel is less exact, or less repeatable, than the caller asks for",
  [STAGE_COMPILER]   = "the adapter's compiler refused the kernel",
  [STAGE_OWN]        = "the kernel does not take this shape or layout",
  [STAGE_SIZE]       = "larger than a binding of the adapter",
};

int webgpu_rest_is_zero(const void *data, uint64_t known, uint64_t size) {
  const unsigned char *bytes = data;
  for (uint64_t i = known; i < size; ++i) {
    if (bytes[i] != 0) return 0;
  }
  return 1;
}

/* ---- sizes ---- */

static uint64_t bytes_below(const tm_operand *operand) {
  uint64_t below = 0;
  for (uint32_t i = 0; i < operand->rank; ++i) {
    if (operand->strides_bytes[i] < 0 && operand->dims[i] > 1)
      below += (operand->dims[i] - 1) * (0 - (uint64_t)operand->strides_bytes[i]);
  }
  return below;
}

uint64_t webgpu_binding_bytes(const webgpu_limits *limits, const tm_operand *operand) {
  if (operand->byte_count == 0) return 4;
  if (operand->byte_count > limits->binding_bytes) return operand->byte_count;
  const uint64_t above = operand->byte_count - bytes_below(operand);
  return (webgpu_first_byte(limits, operand) + above + 3) / 4 * 4;
}

static int is_too_large(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation, uint32_t *out_operand) {
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    *out_operand = i;
    if (operation->operands[i].element_count > MOST_ELEMENTS) return 1;
    if (webgpu_binding_bytes(offer->limits, &operation->operands[i]) > offer->limits->binding_bytes) return 1;
  }
  *out_operand = TM_NO_OPERAND;
  return webgpu_workspace_bytes(offer, row, operation) > offer->limits->binding_bytes;
}

uint64_t webgpu_workspace_bytes(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation) {
  const uint64_t bytes = row->workspace_bytes != NULL ? row->workspace_bytes(offer->limits, operation) : 0;
  return (bytes + 3) / 4 * 4;
}

/* ---- judging ---- */

static uint32_t own_refusal(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation,
                            uint32_t *out_operand) {
  uint32_t operand = TM_NO_OPERAND;
  const uint32_t reasons = row->refuses != NULL ? row->refuses(offer->limits, operation, &operand)
                                                : webgpu_refuses_strided(offer->limits, operation, &operand);
  *out_operand = reasons != 0 ? operand : TM_NO_OPERAND;
  return reasons;
}

/* The number of leading operands whose formats fit; all of them if the row takes the operation's formats. */
static uint32_t matching_formats(const webgpu_row *row, const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count && i < WEBGPU_ROW_FORMATS; ++i) {
    if (row->formats[i] != TM_FORMAT_NONE && row->formats[i] != operation->operands[i].format) return i;
  }
  return count;
}

static int has_room_for_bindings(const webgpu_limits *limits, const tm_operation *operation) {
  return operation->input_count + operation->output_count + 1 <= limits->storage_buffers && operation->input_count <= 8 &&
         operation->output_count <= 3;
}

static void judge(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation, verdict *out) {
  const uint32_t demands = operation->flags & ~TM_OPERATION_FACTS;
  *out = (verdict){ .row = row, .operand = TM_NO_OPERAND };
  out->reached = STAGE_FEATURES;
  out->reasons = TM_REASON_OPERATION;
  if ((row->needs & ~offer->limits->features) != 0 || !has_room_for_bindings(offer->limits, operation)) return;
  out->reached = STAGE_FORMATS;
  out->reasons = TM_REASON_FORMAT;
  out->operand = out->matched = matching_formats(row, operation);
  if (out->matched < operation->input_count + operation->output_count) return;
  out->operand = TM_NO_OPERAND;
  out->reached = STAGE_ATTRIBUTES;
  out->reasons = TM_REASON_ATTRIBUTE;
  if (!webgpu_rest_is_zero(operation->attributes, row->attribute_bytes, operation->attribute_bytes)) return;
  out->reached = STAGE_NUMERICS;
  out->reasons = TM_REASON_NUMERICS;
  if (row->numerics > operation->worst_numerics) return;
  out->reasons = TM_REASON_DEMAND;
  if ((demands & TM_OPERATION_RUN_TO_RUN) != 0 && (row->numerics_flags & TM_NUMERICS_RUN_TO_RUN) == 0) return;
  out->reached = STAGE_COMPILER;
  out->reasons = TM_REASON_RESOURCES;
  if (webgpu_offer_lacks(offer, row)) return;
  out->reached = STAGE_OWN;
  out->reasons = own_refusal(offer, row, operation, &out->operand);
  if (out->reasons != 0) return;
  out->reached = STAGE_SIZE;
  out->reasons = TM_REASON_SIZE;
  if (is_too_large(offer, row, operation, &out->operand)) return;
  out->reasons = 0;
  out->reached = STAGE_YES;
}

/* Judges every row of the operation; stops at the first yes. */
static verdict best_verdict(const webgpu_offer *offer, const tm_operation *operation) {
  verdict best = { .reached = STAGE_OPERATION, .reasons = TM_REASON_OPERATION, .operand = TM_NO_OPERAND };
  for (const webgpu_row_table *const *table = webgpu_row_tables; *table != NULL; ++table) {
    for (uint32_t i = 0; i < (*table)->count; ++i) {
      if ((*table)->rows[i].op != operation->op) continue;
      verdict next;
      judge(offer, &(*table)->rows[i], operation, &next);
      if (next.reached > best.reached || (next.reached == best.reached && next.matched > best.matched)) best = next;
      if (best.reached == STAGE_YES) return best;
    }
  }
  return best;
}

/* Of a struct newer than this code, or asking for what it does not know; such an operation gets no row at all. */
static uint32_t foreign_reasons(const tm_operation *operation) {
  if (operation->struct_size < sizeof *operation) return TM_REASON_OPERATION;
  if (!webgpu_rest_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->input_count > TM_MAX_OPERANDS || operation->output_count > TM_MAX_OPERANDS - operation->input_count) {
    return TM_REASON_SIZE;
  }
  if ((operation->flags & ~(TM_OPERATION_FACTS | KNOWN_DEMANDS)) != 0) return TM_REASON_DEMAND;
  return operation->version == KNOWN_VERSION ? 0 : TM_REASON_OPERATION;
}

const webgpu_row *webgpu_row_find(const webgpu_offer *offer, const tm_operation *operation) {
  if (foreign_reasons(operation) != 0) return NULL;
  const verdict best = best_verdict(offer, operation);
  return best.reached == STAGE_YES ? best.row : NULL;
}

/* ---- changes ---- */

/* The operand as it would be when dense; 0 where that cannot be said. */
static int densify(tm_operand *operand) {
  const uint32_t bytes = webgpu_element_bytes(operand->format);
  uint64_t stride = bytes;
  if (bytes == 0 || operand->element_count > (uint64_t)INT64_MAX / bytes) return 0;
  for (uint32_t axis = operand->rank; axis-- > 0;) {
    operand->strides_bytes[axis] = (int64_t)stride;
    if (operand->dims[axis] != 0) stride *= operand->dims[axis];
  }
  operand->byte_count = operand->element_count * bytes;
  operand->flags |= TM_OPERAND_CONTIGUOUS;
  return 1;
}

static void add_change(tm_answer *answer, const tm_change *change) {
  if (answer->change_count < TM_MAX_CHANGES) answer->changes[answer->change_count] = *change;
  answer->change_count++;
}

/* Copies that turn the refusal into a yes, also one of size where elements lie far apart: they are applied to a copy of the
   operands, and the row is asked again, so nothing is proposed that would not help. */
static void propose_copies(const webgpu_offer *offer, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  tm_operand changed[TM_MAX_OPERANDS];
  tm_operation then = *operation;
  const uint32_t count = operation->input_count + operation->output_count;
  int helps = 1;
  memcpy(changed, operation->operands, count * sizeof *changed);
  then.operands = changed;
  for (uint32_t i = 0; i < count && helps; ++i) {
    if ((changed[i].flags & TM_OPERAND_CONTIGUOUS) != 0) continue;
    add_change(answer, &(tm_change){ .kind = TM_CHANGE_CONTIGUOUS, .operand = i });
    helps = densify(&changed[i]);
  }
  verdict again = { .reached = STAGE_OPERATION };
  if (helps) judge(offer, refusal->row, &then, &again);
  if (again.reached == STAGE_YES && answer->change_count <= TM_MAX_CHANGES) return;
  answer->change_count = 0;
  memset(answer->changes, 0, sizeof answer->changes);
}

static void propose_split(const webgpu_offer *offer, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  tm_change change = { .kind = 0 };
  const webgpu_row *row = refusal->row;
  int (*split)(const webgpu_limits *, const tm_operation *, tm_change *) = row->split != NULL ? row->split : webgpu_split_output;
  if (split(offer->limits, operation, &change)) add_change(answer, &change);
}

static void refuse(const webgpu_offer *offer, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  answer->level = TM_LEVEL_REFUSED;
  answer->reasons = refusal->reasons;
  answer->operand = refusal->operand;
  answer->text = (tm_string){ stage_text[refusal->reached], strlen(stage_text[refusal->reached]) };
  if (refusal->reached >= STAGE_OWN) propose_copies(offer, refusal, operation, answer);
  if (refusal->reached == STAGE_SIZE && answer->change_count == 0) propose_split(offer, refusal, operation, answer);
}

static void accept(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation, tm_answer *answer) {
  answer->level = row->level;
  answer->numerics = row->numerics;
  answer->numerics_flags = row->numerics_flags;
  answer->numerics_bound = row->numerics_bound;
  answer->growth = row->growth;
  answer->accumulator = row->accumulator;
  answer->operand = TM_NO_OPERAND;
  answer->text = (tm_string){ row->name, strlen(row->name) };
  answer->cost_ns = LAUNCH_NS + row->cost_ns(offer->limits, operation);
  answer->launch_ns = LAUNCH_NS;
  answer->setup_ns = SETUP_NS;
  answer->workspace_bytes = webgpu_workspace_bytes(offer, row, operation);
  answer->moved_bytes = (uint64_t)webgpu_operand_bytes(operation);
}

void webgpu_query_answer(const webgpu_offer *offer, const tm_operation *operation, tm_answer *out_answer) {
  tm_answer answer = { .struct_size = out_answer->struct_size, .epoch = offer->epoch };
  verdict best = { .reached = STAGE_OPERATION, .reasons = foreign_reasons(operation), .operand = TM_NO_OPERAND };
  if (best.reasons == 0) best = best_verdict(offer, operation);
  if (best.reached == STAGE_YES) {
    accept(offer, best.row, operation, &answer);
  } else {
    refuse(offer, &best, operation, &answer);
  }
  const uint64_t known = sizeof answer < answer.struct_size ? sizeof answer : answer.struct_size;
  memcpy(out_answer, &answer, known);
}
