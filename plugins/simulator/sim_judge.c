/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_judge.h"

#include <string.h>

#include "sim_matmul.h"
#include "sim_number.h"

#define A 0u
#define B 1u
#define Y 2u
#define MOST_NS 1e15

/* ---- extents of a product ---- */

/* Axes of an operand of a matmul. */
typedef struct product_axes {
  uint32_t m;                           /* of a */
  uint32_t a_k;
  uint32_t b_k;
  uint32_t n;                           /* of b */
} product_axes;

static product_axes axes_of(const tm_operation *operation) {
  const tm_matmul_attributes *attributes = operation->attributes;
  const uint32_t a = operation->operands[A].rank, b = operation->operands[B].rank;
  const uint32_t turned_a = attributes->transpose_a != 0, turned_b = attributes->transpose_b != 0;
  return (product_axes){ a - 2 + turned_a, a - 1 - turned_a, b - 2 + turned_b, b - 1 - turned_b };
}

/* Extents beyond this are no matrix's; below it, rounding up cannot wrap. */
#define MOST_EXTENT (UINT64_C(1) << 46)

static uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/* ---- a yes ---- */

/* `each`: of an element. */
static double flops_of(const tm_operation *operation, const sim_loop *loop, double each) {
  const uint32_t count = operation->input_count + operation->output_count;
  double most = 0;
  if (loop->op == TM_OP_MATMUL)
    return 2 * (double)operation->operands[Y].element_count * (double)operation->operands[A].dims[axes_of(operation).a_k];
  for (uint32_t i = 0; i < count; i++)
    if ((double)operation->operands[i].element_count > most) most = (double)operation->operands[i].element_count;
  return most * each;
}

static uint64_t clamped(double ns) { return (uint64_t)(ns < MOST_NS ? ns : MOST_NS); }

static uint64_t key_of(const char *text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash == 0 ? 1 : hash;
}

/* As it is described, or as a real device was measured. */
static double cost_of(const sim_claim *claim, const sim_profile *profile, const tm_operation *operation, double bytes) {
  const double measured = sim_profile_ns(profile, claim->loop, flops_of(operation, claim->loop, claim->loop->counted_flops), bytes);
  if (measured != 0) return measured;
  const double compute = flops_of(operation, claim->loop, claim->loop->flops) / claim->flops_per_second * 1e9;
  const double move = bytes / claim->bytes_per_second * 1e9;
  return (double)claim->launch_ns + (compute > move ? compute : move);
}

static void price(const sim_claim *claim, const sim_profile *profile, const tm_operation *operation, tm_answer *answer) {
  double bytes = 0;
  for (uint32_t i = 0; i < claim->loop->operand_count; i++) bytes += (double)operation->operands[i].byte_count;
  answer->cost_ns = clamped(cost_of(claim, profile, operation, bytes));
  answer->launch_ns = claim->launch_ns < answer->cost_ns ? claim->launch_ns : answer->cost_ns;
  if (answer->cost_ns == 0) answer->cost_ns = 1;        /* 0 would mean that it is not known */
  answer->moved_bytes = (uint64_t)(bytes < 0x1p62 ? bytes : 0x1p62);
  answer->setup_ns = claim->setup_ns;
  answer->setup_key = claim->setup_key[0] == '\0' ? 0 : key_of(claim->setup_key);
}

static void accept(const sim_claim *claim, const sim_profile *profile, const tm_operation *operation, tm_answer *answer) {
  answer->level = TM_LEVEL_NATIVE;
  answer->numerics = claim->numerics.class_number;
  answer->numerics_flags = claim->numerics.flags;
  answer->numerics_bound = claim->numerics.bound;
  answer->growth = claim->numerics.growth;
  answer->accumulator = claim->numerics.accumulator;
  price(claim, profile, operation, answer);
}

/* ---- a no ---- */

/* A refusal under construction.  is_final: no change helps. */
typedef struct refusal {
  tm_answer *answer;
  uint32_t   is_final;
  uint32_t   count;                     /* of changes, also those for which there is no room */
} refusal;

static void say(refusal *r, uint32_t reason, uint32_t operand) {
  r->answer->reasons |= reason;
  if (r->answer->operand == TM_NO_OPERAND) r->answer->operand = operand;
}

static void propose(refusal *r, uint32_t reason, tm_change change) {
  say(r, reason, change.operand);
  if (r->count < TM_MAX_CHANGES) r->answer->changes[r->count] = change;
  r->count++;
}

static void finish(refusal *r) {
  const int helps = !r->is_final && r->count <= TM_MAX_CHANGES;
  r->answer->change_count = helps ? r->count : 0;
  if (!helps) memset(r->answer->changes, 0, sizeof r->answer->changes);
}

static int is_in(const uint32_t *formats, uint32_t count, uint32_t format) {
  while (count > 0)
    if (formats[--count] == format) return 1;
  return 0;
}

#define NO_WAY (TM_CHANGE_QUANTIZE + 1)

/* How an operand comes to the claim's format: 0 if it is there, a kind of change, or NO_WAY. */
static uint32_t way_to(const sim_claim *claim, const tm_operation *operation, uint32_t index) {
  const uint32_t format = operation->operands[index].format;
  const int is_factor = claim->loop->op == TM_OP_MATMUL && index != Y;
  const int is_packable = index == B && claim->packs_b;
  if (format == claim->formats[index] || (is_packable && format == SIM_PACKED(claim->formats[B]))) return 0;
  if (is_factor && is_in(claim->quantize_from, claim->quantize_count, format)) return TM_CHANGE_QUANTIZE;
  if (!is_in(claim->cast_from, claim->cast_count, format)) return NO_WAY;
  return format >= TM_FORMAT_GGUF ? TM_CHANGE_DEQUANTIZE : TM_CHANGE_CAST;
}

/* After a quantization the host asks for an i32 product, whatever y was. */
static int can_reach(const sim_claim *claim, const tm_operation *operation) {
  const uint32_t count = claim->loop->operand_count;
  int quantizes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t way = i + 1 == count && quantizes ? 0 : way_to(claim, operation, i);
    if (way == NO_WAY) return 0;
    quantizes = quantizes || way == TM_CHANGE_QUANTIZE;
  }
  return 1;
}

static int is_exactly(const sim_claim *claim, const tm_operation *operation) {
  for (uint32_t i = 0; i < claim->loop->operand_count; i++)
    if (way_to(claim, operation, i) != 0) return 0;
  return 1;
}

static int is_packed(const tm_operand *operand) { return operand->format >= TM_FORMAT_PRIVATE; }

/* Formats, and layouts where the format stays: whatever the host converts becomes dense. */
static uint32_t refuse_formats(refusal *r, const sim_claim *claim, const tm_operation *operation) {
  uint32_t quantizes = 0;
  for (uint32_t i = 0; i < claim->loop->operand_count; i++) {
    const tm_operand *x = &operation->operands[i];
    const uint32_t way = i + 1 == claim->loop->operand_count && quantizes ? 0 : way_to(claim, operation, i);
    quantizes |= way == TM_CHANGE_QUANTIZE;
    if (way != 0) propose(r, TM_REASON_FORMAT, (tm_change){ .kind = way, .operand = i, .format = claim->formats[i] });
    else if (!is_packed(x) && (x->flags & TM_OPERAND_CONTIGUOUS) == 0)
      propose(r, TM_REASON_LAYOUT, (tm_change){ .kind = TM_CHANGE_CONTIGUOUS, .operand = i });
  }
  return quantizes;
}

static void refuse_ranks(refusal *r, const sim_claim *claim, const tm_operation *operation) {
  for (uint32_t i = 0; i < claim->loop->operand_count; i++)
    if (operation->operands[i].rank > claim->rank_max)
      propose(r, TM_REASON_RANK, (tm_change){ .kind = TM_CHANGE_REDUCE_RANK, .operand = i, .value = claim->rank_max });
}

static void refuse_multiple(refusal *r, const tm_operation *operation, uint32_t operand, uint32_t axis, uint64_t multiple) {
  if (operation->operands[operand].dims[axis] % multiple != 0)
    propose(r, TM_REASON_SHAPE, (tm_change){ .kind = TM_CHANGE_PAD, .operand = operand, .axis = axis, .value = multiple });
}

/* A constant b that is not packed yet.  Once it is an integer: before, the host could not pack what it will have. */
static void refuse_plain_b(refusal *r, const sim_claim *claim, const tm_operation *operation, uint32_t quantizes) {
  const tm_operand *b = &operation->operands[B];
  const product_axes axes = axes_of(operation);
  const uint64_t k = round_up(b->dims[axes.b_k], claim->k_multiple), n = round_up(b->dims[axes.n], claim->n_multiple);
  const uint64_t bytes = sim_packed_bytes(k, n, sim_format_find(claim->formats[B])->bytes);
  if (!claim->packs_b) return;
  if ((b->flags & TM_OPERAND_CONSTANT) == 0) {
    say(r, TM_REASON_CONSTANT, B);
    r->is_final = 1;
  } else if (is_packed(b)) {
    if (b->byte_count != bytes) r->is_final = 1, say(r, TM_REASON_LAYOUT, B);
  } else if (!quantizes) {
    const uint32_t format = SIM_PACKED(claim->formats[B]);
    propose(r, TM_REASON_FORMAT, (tm_change){ .kind = TM_CHANGE_CONVERT, .operand = B, .format = format, .value = bytes });
  }
}

/* The parts of a split are asked about anew, so it is all that is said. */
static void refuse_extent(refusal *r, uint32_t operand, uint32_t axis, uint64_t most) {
  if (most == 0) r->is_final = 1;
  r->count = 0;
  propose(r, TM_REASON_SIZE, (tm_change){ .kind = TM_CHANGE_SPLIT_ABOVE, .operand = operand, .axis = axis, .value = most });
}

static void refuse_product(refusal *r, const sim_claim *claim, const tm_operation *operation, uint32_t quantizes) {
  const product_axes axes = axes_of(operation);
  const uint64_t m = operation->operands[A].dims[axes.m], n = operation->operands[B].dims[axes.n];
  if (m > MOST_EXTENT || n > MOST_EXTENT || operation->operands[A].dims[axes.a_k] > MOST_EXTENT) {
    say(r, TM_REASON_SIZE, A);
    r->is_final = 1;
    return;
  }
  refuse_multiple(r, operation, A, axes.m, claim->m_multiple);
  refuse_multiple(r, operation, A, axes.a_k, claim->k_multiple);
  refuse_multiple(r, operation, B, axes.n, claim->n_multiple);
  refuse_plain_b(r, claim, operation, quantizes);
}

/* ---- what is too large ---- */

/* Elements of an operand that fit into one buffer, and that the claim takes. */
static uint64_t most_elements(const sim_description *description, const sim_claim *claim, uint32_t index) {
  const sim_memory *memory = &description->memory;
  const uint64_t bytes = memory->largest_buffer_bytes != 0 ? memory->largest_buffer_bytes : memory->bytes;
  const uint64_t elements = bytes / sim_format_find(claim->formats[index])->bytes;
  return claim->elements_max != 0 && claim->elements_max < elements ? claim->elements_max : elements;
}

/* Cuts an operand along an axis until it fits, at a multiple.  0 if it fits as it is. */
static int refuse_operand(refusal *r, const tm_operation *operation, uint32_t index, uint32_t axis, uint64_t most,
                          uint64_t multiple) {
  const tm_operand *x = &operation->operands[index];
  if (x->element_count <= most) return 0;
  if (x->rank == 0) {
    say(r, TM_REASON_SIZE, index);
    r->is_final = 1;
    return 1;
  }
  refuse_extent(r, index, axis, most / (x->element_count / x->dims[axis]) / multiple * multiple);
  return 1;
}

/* M of a and y, N of a b that is not packed yet, then K.  A sum of floats is cut only once they are integers, whose parts
   add up exactly. */
static void refuse_large_product(refusal *r, const sim_description *description, const sim_claim *claim,
                                 const tm_operation *operation) {
  const product_axes axes = axes_of(operation);
  const uint32_t y_row = operation->operands[Y].rank - 2;
  if (refuse_operand(r, operation, A, axes.m, most_elements(description, claim, A), claim->m_multiple)) return;
  if (refuse_operand(r, operation, Y, y_row, most_elements(description, claim, Y), claim->m_multiple)) return;
  if (is_packed(&operation->operands[B])) return;
  if (refuse_operand(r, operation, B, axes.n, most_elements(description, claim, B), claim->n_multiple)) return;
  if (claim->k_max != 0 && operation->operands[A].dims[axes.a_k] > claim->k_max) refuse_extent(r, A, axes.a_k, claim->k_max);
}

/* Others are cut along the outermost axis, if their operands share it and nothing couples along it. */
static void refuse_large(refusal *r, const sim_description *description, const sim_claim *claim, const tm_operation *operation) {
  const int can_split = claim->loop->same_shape && claim->loop->op != TM_OP_SOFTMAX;
  for (uint32_t i = 0; i < claim->loop->operand_count; i++) {
    if (!refuse_operand(r, operation, i, 0, most_elements(description, claim, i), 1)) continue;
    if (!can_split) r->is_final = 1;
    return;
  }
}

static void hold_against(const sim_description *description, const sim_claim *claim, const tm_operation *operation,
                         tm_answer *answer) {
  refusal r = { .answer = answer };
  if (claim->loop->same_shape && claim->loop->operand_count > 2 && (operation->flags & TM_OPERATION_ALL_SAME_SHAPE) == 0)
    say(&r, TM_REASON_SHAPE, TM_NO_OPERAND), r.is_final = 1;
  const uint32_t quantizes = refuse_formats(&r, claim, operation);
  const uint32_t best = quantizes ? TM_NUMERICS_N3 : claim->numerics.class_number;
  if (operation->worst_numerics < best) say(&r, TM_REASON_NUMERICS, TM_NO_OPERAND), r.is_final = 1;
  refuse_ranks(&r, claim, operation);
  if (claim->loop->op == TM_OP_MATMUL) refuse_product(&r, claim, operation, quantizes);
  if (claim->loop->op != TM_OP_MATMUL) refuse_large(&r, description, claim, operation);
  else if (!quantizes && !r.is_final) refuse_large_product(&r, description, claim, operation);
  finish(&r);
}

/* ---- packing ---- */

/* Packing is free but for moving the bytes; any claim that packs knows how fast. */
static const sim_claim *packer_of(const sim_description *description, uint32_t format) {
  for (uint32_t i = 0; i < description->claim_count; i++) {
    const sim_claim *claim = &description->claims[i];
    if (claim->packs_b && claim->formats[B] == format) return claim;
  }
  return NULL;
}

static void judge_packing(const sim_description *description, const tm_operation *operation, tm_answer *answer) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  const sim_claim *claim = packer_of(description, x->format);
  refusal r = { .answer = answer };
  if (claim == NULL || y->format != SIM_PACKED(x->format)) {
    say(&r, TM_REASON_FORMAT, claim == NULL ? 0 : 1);
    return;
  }
  const uint64_t bytes = x->rank == 2 ? sim_packed_bytes(x->dims[0], x->dims[1], sim_format_find(x->format)->bytes) : 0;
  const int has_tiles = x->rank == 2 && x->dims[0] % SIM_TILE == 0 && x->dims[1] % SIM_TILE == 0;
  if (!has_tiles || bytes == 0 || y->byte_count != bytes || memcmp(x->dims, y->dims, sizeof x->dims) != 0) {
    say(&r, x->rank == 2 ? TM_REASON_SHAPE : TM_REASON_RANK, 0);
    return;
  }
  if ((x->flags & TM_OPERAND_CONTIGUOUS) == 0)
    propose(&r, TM_REASON_LAYOUT, (tm_change){ .kind = TM_CHANGE_CONTIGUOUS, .operand = 0 });
  finish(&r);
  if (answer->reasons != 0) return;
  const sim_claim packing = { .loop = sim_loop_find(TM_OP_CONVERT), .numerics = sim_loop_find(TM_OP_CONVERT)->numerics,
                              .flops_per_second = claim->flops_per_second, .bytes_per_second = claim->bytes_per_second,
                              .launch_ns = claim->launch_ns };
  accept(&packing, &description->profile, operation, answer);
}

/* ---- the whole ---- */

/* What it cannot know about, whatever the description says. */
static uint32_t strangeness(const tm_operation *operation, const sim_loop *loop) {
  if (loop == NULL || operation->version != 1) return TM_REASON_OPERATION;
  if (operation->input_count + operation->output_count != loop->operand_count) return TM_REASON_OPERATION;
  if ((operation->flags & ~(TM_OPERATION_FACTS | TM_OPERATION_RUN_TO_RUN)) != 0) return TM_REASON_DEMAND;
  if (!sim_is_zero(operation, sizeof *operation, operation->struct_size)) return TM_REASON_DEMAND;
  if (operation->attribute_bytes < loop->attribute_bytes) return TM_REASON_ATTRIBUTE;
  return sim_is_zero(operation->attributes, loop->attribute_bytes, operation->attribute_bytes) ? 0 : TM_REASON_ATTRIBUTE;
}

/* The claim in just these formats, else the first one that can be reached; NULL if there is none. */
static const sim_claim *choose(const sim_description *description, const tm_operation *operation, int *out_has_operation) {
  const sim_claim *reachable = NULL;
  for (uint32_t i = 0; i < description->claim_count; i++) {
    const sim_claim *claim = &description->claims[i];
    if (claim->loop->op != operation->op) continue;
    *out_has_operation = 1;
    if (is_exactly(claim, operation)) return claim;
    if (reachable == NULL && can_reach(claim, operation)) reachable = claim;
  }
  return reachable;
}

static tm_string text_of(uint32_t reasons) {
  static const struct { uint32_t reason; tm_string text; } texts[] = {
    { TM_REASON_OPERATION, TM_STRING("not among the operations of the description") },
    { TM_REASON_CONSTANT, TM_STRING("b must be constant: it is packed") },
    { TM_REASON_NUMERICS, TM_STRING("only in a weaker class than is accepted") },
    { TM_REASON_FORMAT, TM_STRING("only in the formats that its description lists for the operation, b packed where it says so") },
    { TM_REASON_RANK, TM_STRING("too many axes") },
    { TM_REASON_SHAPE, TM_STRING("an extent that is no multiple of what the unit takes") },
    { TM_REASON_SIZE, TM_STRING("more than fits at once") },
    { TM_REASON_LAYOUT, TM_STRING("dense operands only") },
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if ((reasons & texts[i].reason) != 0) return texts[i].text;
  return (tm_string){ NULL, 0 };
}

void sim_judge(const sim_description *description, const tm_operation *operation, tm_answer *out_answer) {
  const sim_loop *loop = sim_loop_find(operation->op);
  int has_operation = operation->op == TM_OP_CONVERT;
  out_answer->operand = TM_NO_OPERAND;
  out_answer->reasons = strangeness(operation, loop);
  if (out_answer->reasons == 0 && operation->op == TM_OP_CONVERT) {
    judge_packing(description, operation, out_answer);
  } else if (out_answer->reasons == 0) {
    const sim_claim *claim = choose(description, operation, &has_operation);
    if (claim != NULL) hold_against(description, claim, operation, out_answer);
    else out_answer->reasons = has_operation ? TM_REASON_FORMAT : TM_REASON_OPERATION;
    if (out_answer->reasons == 0) accept(claim, &description->profile, operation, out_answer);
  }
  out_answer->text = text_of(out_answer->reasons);
}
