/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row is judged in stages, each weeding out less than the one before: operation, instruction set, formats, attributes,
 * numerics and demands, the row's own predicate.  The row that came furthest explains the refusal.
 */
#include "cpu_query.h"

#include <string.h>

#include "cpu_memory_cost.h"

#define KNOWN_VERSION 1u
#define KNOWN_DEMANDS TM_OPERATION_RUN_TO_RUN

typedef enum stage { STAGE_OPERATION, STAGE_ISA, STAGE_FORMATS, STAGE_ATTRIBUTES, STAGE_NUMERICS, STAGE_OWN, STAGE_YES } stage;

typedef struct verdict {
  const cpu_row *row;
  stage          reached;
  uint32_t       matched;       /* leading operands whose formats fit, when formats decided */
  uint32_t       reasons;
  uint32_t       operand;
} verdict;

static const char *const stage_text[] = {
  [STAGE_OPERATION]  = "no kernel for this operation",
  [STAGE_ISA]        = "the kernel needs AVX2, FMA and F16C, which the processor lacks or the option isa excludes",
  [STAGE_FORMATS]    = "no kernel for these formats",
  [STAGE_ATTRIBUTES] = "an attribute that the kernel does not know",
  [STAGE_NUMERICS]   = "the kernel is less exact, or less repeatable, than the caller asks for",
  [STAGE_OWN]        = "the kernel does not take this shape or layout",
};

int cpu_rest_is_zero(const void *data, uint64_t known, uint64_t size) {
  const unsigned char *bytes = data;
  for (uint64_t i = known; i < size; ++i) {
    if (bytes[i] != 0) return 0;
  }
  return 1;
}

uint32_t cpu_refuses_strided(const tm_operation *operation, uint32_t *out_operand) {
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    if (operation->operands[i].flags & TM_OPERAND_CONTIGUOUS) continue;
    *out_operand = i;
    return TM_REASON_LAYOUT;
  }
  return 0;
}

double cpu_operand_bytes(const tm_operation *operation) {
  double bytes = 0;
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; ++i) bytes += (double)operation->operands[i].byte_count;
  return bytes;
}

uint64_t cpu_cost_ns(double units, double units_per_us, double bytes, uint32_t lanes) {
  const double compute = units * 1000.0 / (units_per_us * lanes);
  const double memory = cpu_move_ns(bytes, lanes);
  const double work = compute > memory ? compute : memory;
  const double ns = lanes > 1 && work > CPU_WAKE_NS ? work + CPU_WAKE_NS : work;
  return ns < 9e18 ? (uint64_t)ns : UINT64_C(9000000000000000000);
}

static uint32_t own_refusal(const cpu_row *row, const tm_operation *operation, uint32_t *out_operand) {
  *out_operand = TM_NO_OPERAND;
  return row->refuses != NULL ? row->refuses(operation, out_operand) : cpu_refuses_strided(operation, out_operand);
}

/* The number of leading operands whose formats fit; all of them if the row takes the operation's formats. */
static uint32_t matching_formats(const cpu_row *row, const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count && i < CPU_ROW_FORMATS; ++i) {
    if (row->formats[i] != TM_FORMAT_NONE && row->formats[i] != operation->operands[i].format) return i;
  }
  return count;
}

static void judge(const cpu_offer *offer, const cpu_row *row, const tm_operation *operation, verdict *out) {
  const uint32_t demands = operation->flags & ~TM_OPERATION_FACTS;
  *out = (verdict){ .row = row, .operand = TM_NO_OPERAND };
  out->reached = STAGE_ISA;
  out->reasons = TM_REASON_OPERATION;
  if ((row->isa & ~offer->isa) != 0) return;
  out->reached = STAGE_FORMATS;
  out->reasons = TM_REASON_FORMAT;
  out->operand = out->matched = matching_formats(row, operation);
  if (out->matched < operation->input_count + operation->output_count) return;
  out->operand = TM_NO_OPERAND;
  out->reached = STAGE_ATTRIBUTES;
  out->reasons = TM_REASON_ATTRIBUTE;
  if (!cpu_rest_is_zero(operation->attributes, row->attribute_bytes, operation->attribute_bytes)) return;
  out->reached = STAGE_NUMERICS;
  out->reasons = TM_REASON_NUMERICS;
  if (row->numerics > operation->worst_numerics) return;
  out->reasons = TM_REASON_DEMAND;
  if ((demands & TM_OPERATION_RUN_TO_RUN) != 0 && (row->numerics_flags & TM_NUMERICS_RUN_TO_RUN) == 0) return;
  out->reached = STAGE_OWN;
  out->reasons = own_refusal(row, operation, &out->operand);
  if (out->reasons == 0) out->reached = STAGE_YES;
}

/* Judges every row of the operation; stops at the first yes. */
static verdict best_verdict(const cpu_offer *offer, const tm_operation *operation) {
  verdict best = { .reached = STAGE_OPERATION, .reasons = TM_REASON_OPERATION, .operand = TM_NO_OPERAND };
  for (const cpu_row_table *const *table = cpu_row_tables; *table != NULL; ++table) {
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
  if (!cpu_rest_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->input_count > TM_MAX_OPERANDS || operation->output_count > TM_MAX_OPERANDS - operation->input_count) {
    return TM_REASON_SIZE;
  }
  if ((operation->flags & ~(TM_OPERATION_FACTS | KNOWN_DEMANDS)) != 0) return TM_REASON_DEMAND;
  return operation->version == KNOWN_VERSION ? 0 : TM_REASON_OPERATION;
}

const cpu_row *cpu_row_find(const cpu_offer *offer, const tm_operation *operation) {
  if (foreign_reasons(operation) != 0) return NULL;
  const verdict best = best_verdict(offer, operation);
  return best.reached == STAGE_YES ? best.row : NULL;
}

/* The operand as it would be after a change: dense, in another format if `format` is not TM_FORMAT_NONE.  Only formats of
   whole bytes come up here: no row wants a packed or block operand that a cast could make. */
static int densify(tm_operand *operand, uint32_t format) {
  static const uint8_t element_bytes[] = {
    [TM_FORMAT_F64] = 8, [TM_FORMAT_F32] = 4, [TM_FORMAT_F16] = 2, [TM_FORMAT_BF16] = 2, [TM_FORMAT_F8_E4M3FN] = 1,
    [TM_FORMAT_F8_E5M2] = 1, [TM_FORMAT_I8] = 1, [TM_FORMAT_U8] = 1, [TM_FORMAT_I16] = 2, [TM_FORMAT_U16] = 2,
    [TM_FORMAT_I32] = 4, [TM_FORMAT_U32] = 4, [TM_FORMAT_I64] = 8, [TM_FORMAT_U64] = 8, [TM_FORMAT_BOOL] = 1,
  };
  if (format != TM_FORMAT_NONE) operand->format = format;
  if (operand->format >= sizeof element_bytes || element_bytes[operand->format] == 0) return 0;
  uint64_t stride = element_bytes[operand->format];
  if (operand->element_count > (uint64_t)INT64_MAX / stride) return 0;
  for (uint32_t axis = operand->rank; axis-- > 0;) {
    operand->strides_bytes[axis] = (int64_t)stride;
    if (operand->dims[axis] != 0) stride *= operand->dims[axis];
  }
  operand->byte_count = operand->element_count * element_bytes[operand->format];
  operand->flags |= TM_OPERAND_CONTIGUOUS;
  return 1;
}

static void add_change(tm_answer *answer, uint32_t kind, uint32_t operand, uint32_t format) {
  if (answer->change_count < TM_MAX_CHANGES) {
    answer->changes[answer->change_count] = (tm_change){ .kind = kind, .operand = operand, .format = format };
  }
  answer->change_count++;
}

/* Adds what operand `i` needs to fit the row and changes it so; 0 if nothing would help. */
static int change_operand(const cpu_row *row, uint32_t i, tm_operand *operand, tm_answer *answer) {
  const uint32_t wanted = i < CPU_ROW_FORMATS ? row->formats[i] : TM_FORMAT_NONE;
  if (wanted != TM_FORMAT_NONE && wanted != operand->format) {
    add_change(answer, operand->format >= TM_FORMAT_GGUF ? TM_CHANGE_DEQUANTIZE : TM_CHANGE_CAST, i, wanted);
    return row->castable && densify(operand, wanted);
  }
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) != 0) return 1;
  add_change(answer, TM_CHANGE_CONTIGUOUS, i, TM_FORMAT_NONE);
  return densify(operand, TM_FORMAT_NONE);
}

/* Casts and copies that turn the refusal into a yes, if there are any: they are applied to a copy of the operands, and
   the row is asked again, so nothing is proposed that would not help. */
static void propose_changes(const cpu_offer *offer, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  tm_operand changed[TM_MAX_OPERANDS];
  tm_operation then = *operation;
  const uint32_t count = operation->input_count + operation->output_count;
  int helps = 1;
  memcpy(changed, operation->operands, count * sizeof *changed);
  then.operands = changed;
  then.flags |= TM_OPERATION_ALL_CONTIGUOUS;
  for (uint32_t i = 0; i < count && helps; ++i) helps = change_operand(refusal->row, i, &changed[i], answer);
  verdict again = { .reached = STAGE_OPERATION };
  if (helps) judge(offer, refusal->row, &then, &again);
  if (again.reached == STAGE_YES && answer->change_count <= TM_MAX_CHANGES) return;
  answer->change_count = 0;
  memset(answer->changes, 0, sizeof answer->changes);
}

static void refuse(const cpu_offer *offer, const verdict *refusal, const tm_operation *operation, tm_answer *answer) {
  answer->level = TM_LEVEL_REFUSED;
  answer->reasons = refusal->reasons;
  answer->operand = refusal->operand;
  answer->text = (tm_string){ stage_text[refusal->reached], strlen(stage_text[refusal->reached]) };
  if (refusal->reached == STAGE_FORMATS || refusal->reached == STAGE_OWN) {
    propose_changes(offer, refusal, operation, answer);
  }
}

uint64_t cpu_workspace_bytes(const cpu_offer *offer, const cpu_row *row, const tm_operation *operation) {
  const uint64_t bytes = row->workspace_bytes != NULL ? row->workspace_bytes(operation, offer->lanes) : 0;
  return bytes != 0 ? bytes + CPU_WORKSPACE_ALIGNMENT : 0;
}

static void accept(const cpu_offer *offer, const cpu_row *row, const tm_operation *operation, tm_answer *answer) {
  answer->level = row->level;
  answer->numerics = row->numerics;
  answer->numerics_flags = row->numerics_flags;
  answer->numerics_bound = row->numerics_bound;
  answer->growth = row->growth;
  answer->accumulator = row->accumulator;
  answer->operand = TM_NO_OPERAND;
  answer->text = (tm_string){ row->name, strlen(row->name) };
  answer->launch_ns = CPU_LAUNCH_NS;
  answer->cost_ns = CPU_LAUNCH_NS + row->cost_ns(operation, offer->lanes);
  answer->spread_ns = answer->cost_ns / 4;
  answer->workspace_bytes = cpu_workspace_bytes(offer, row, operation);
  answer->moved_bytes = (uint64_t)cpu_operand_bytes(operation);
  answer->alias_mask = row->alias_mask;
}

void cpu_query_answer(const cpu_offer *offer, const tm_operation *operation, tm_answer *out_answer) {
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
