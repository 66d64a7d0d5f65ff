/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For every row of the table and every format that it accepts, on random small shapes and random bits:
 *   - inputs and outputs with any strides give what dense ones give, and nothing beside the output is written;
 *   - computing units in parts gives what computing them at once gives;
 *   - the normal form gives the same bytes, is accepted by the check, and normalizing it again changes nothing;
 *   - the outputs that infer makes are the ones that check accepts.
 * TM_TEST_SEED repeats a failure.
 */
#include <stdio.h>

#include "ops/op_check.h"
#include "unit/ops/op_case.h"
#include "unit/ops/strided_tensor.h"

#define CASES_PER_FORMAT 12
#define MOST_INPUTS 6

typedef union any_attributes {
  tm_transpose_attributes transpose;
  tm_axis_attributes axis;
  tm_cast_attributes cast;
  tm_compare_attributes compare;
  tm_gelu_attributes gelu;
  tm_reduce_attributes reduce;
  tm_matmul_attributes matmul;
  tm_matmul_scaled_attributes scaled;
  tm_norm_attributes norm;
  tm_rope_attributes rope;
  tm_attention_attributes attention;
  tm_ties_attributes ties;
  tm_magnitudes_attributes magnitudes;
} any_attributes;

/* What an operation is asked to do, before memory is given to it. */
typedef struct recipe {
  uint32_t       op;
  uint32_t       input_count;
  uint32_t       formats[MOST_INPUTS];
  uint32_t       ranks[MOST_INPUTS];
  uint64_t       dims[MOST_INPUTS][TM_MAX_RANK];
  uint32_t       output_format;
  tm_operand     shape;         /* fill: the wanted one */
  any_attributes attributes;
} recipe;

/* ---- random recipes ---- */

static uint64_t random_extent(random_source *random) {
  return random_below(random, 8) == 0 ? 0 : 1 + random_below(random, 4);
}

static void random_shape(random_source *random, uint32_t format, uint32_t least_rank, uint32_t *out_rank,
                         uint64_t *out_dims) {
  const uint32_t block = tm_format_find(format)->block_elements;
  const uint32_t least = block > 1 && least_rank == 0 ? 1 : least_rank;
  *out_rank = least + random_below(random, 4);
  for (uint32_t i = 0; i < *out_rank; i++) out_dims[i] = random_extent(random);
  if (block > 1) out_dims[*out_rank - 1] *= block;
  if (block == 1 && *out_rank > 0 && random_below(random, 6) == 0)
    out_dims[*out_rank - 1] = 600; /* more than one run */
}

static void broadcastable(random_source *random, const recipe *r, uint32_t from, uint32_t *out_rank,
                          uint64_t *out_dims) {
  const uint32_t dropped = random_below(random, r->ranks[from] + 1);
  *out_rank = r->ranks[from] - dropped;
  for (uint32_t i = 0; i < *out_rank; i++) {
    const uint64_t extent = r->dims[from][i + dropped];
    out_dims[i] = random_below(random, 3) == 0 ? 1 : extent;
  }
}

static uint32_t random_format(random_source *random, uint32_t set) {
  uint32_t count = 0;
  while (tm_format_at(count) != NULL) count++;
  for (;;) {
    const uint32_t format = tm_format_at(random_below(random, count))->format;
    if (tm_format_set(format) & set) return format;
  }
}

static void permute(random_source *random, recipe *r) {
  const uint32_t rank = r->ranks[0];
  const uint32_t fixed = tm_format_find(r->formats[0])->block_elements > 1 ? 1 : 0;
  for (uint32_t i = 0; i < rank; i++) r->attributes.transpose.permutation[i] = (uint8_t)i;
  for (uint32_t i = rank - fixed; i-- > 1 && rank > fixed;) {
    const uint32_t j = random_below(random, i + 1);
    const uint8_t axis = r->attributes.transpose.permutation[i];
    r->attributes.transpose.permutation[i] = r->attributes.transpose.permutation[j];
    r->attributes.transpose.permutation[j] = axis;
  }
}

static void make_matrices(random_source *random, recipe *r) {
  const bool is_scaled = r->op == TM_OP_MATMUL_SCALED;
  const bool has_blocks = tm_format_find(r->formats[0])->block_elements > 1;
  const uint32_t b_choices[] = { r->formats[0], r->formats[0], TM_FORMAT_Q8_0, TM_FORMAT_F16 };
  r->formats[1] = is_scaled ? r->formats[0] : b_choices[random_below(random, 4)];
  const bool b_has_blocks = tm_format_find(r->formats[1])->block_elements > 1;
  const uint64_t m = random_extent(random), n = random_below(random, 5) == 0 ? 70 : random_extent(random);
  const uint64_t k = b_has_blocks || has_blocks     ? 64 * random_extent(random)
                     : random_below(random, 4) == 0 ? 150
                                                    : random_extent(random);
  const uint32_t ta = has_blocks ? 0 : random_below(random, 2);
  const uint32_t tb = b_has_blocks ? 1 : random_below(random, 2);
  const uint64_t batch[2] = { 2, 1 + random_below(random, 3) };
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t batches = random_below(random, 3);
    const bool k_last = i == 0 ? !ta : tb;
    r->ranks[i] = batches + 2;
    for (uint32_t j = 0; j < batches; j++) r->dims[i][j] = random_below(random, 3) == 0 ? 1 : batch[2 - batches + j];
    r->dims[i][batches] = k_last ? (i == 0 ? m : n) : k;
    r->dims[i][batches + 1] = k_last ? k : (i == 0 ? m : n);
  }
  r->attributes.matmul = (tm_matmul_attributes){ ta, tb };
  if (!is_scaled) return;
  const uint32_t zeros = random_below(random, 2);
  r->attributes.scaled = (tm_matmul_scaled_attributes){ ta, tb, zeros, 0 };
  r->input_count = zeros ? 6 : 4;
  for (uint32_t i = 0; i < 2; i++) {
    r->formats[2 + i] = TM_FORMAT_F32;
    r->formats[4 + i] = TM_FORMAT_I32;
    r->ranks[2 + i] = random_below(random, 3) == 0 ? 0 : r->ranks[i];
    for (uint32_t j = 0; j < r->ranks[2 + i]; j++) {
      const uint64_t extent = r->dims[i][j];
      const uint64_t choices[] = { 1, extent == 0 ? 1 : extent, extent != 0 && extent % 2 == 0 ? extent / 2 : 1 };
      r->dims[2 + i][j] = choices[random_below(random, 3)];
    }
    r->ranks[4 + i] = r->ranks[2 + i];
    memcpy(r->dims[4 + i], r->dims[2 + i], sizeof r->dims[0]);
  }
}

static void set_dims(recipe *r, uint32_t input, uint32_t rank, const uint64_t *dims) {
  r->ranks[input] = rank;
  memcpy(r->dims[input], dims, rank * sizeof *dims);
}

static void make_norm(random_source *random, recipe *r) {
  random_shape(random, r->formats[0], 1, &r->ranks[0], r->dims[0]);
  for (uint32_t i = 1; i < r->input_count; i++) set_dims(r, i, 1, &r->dims[0][r->ranks[0] - 1]);
  r->attributes.norm.epsilon = 1e-5;
}

static uint32_t random_index_format(random_source *random) { return random_below(random, 2) ? TM_FORMAT_I32 : TM_FORMAT_I64; }

static void make_rope(random_source *random, recipe *r) {
  const uint64_t tokens = random_extent(random), dim = 2 * random_extent(random) + (random_below(random, 8) == 0 ? 1200 : 0);
  const uint64_t dims[] = { random_extent(random), tokens, random_extent(random), dim };
  const uint32_t skipped = random_below(random, 2);
  set_dims(r, 0, 4 - skipped, dims + skipped);
  r->formats[1] = random_index_format(random);
  set_dims(r, 1, 1, &tokens);
  r->attributes.rope.layout = random_below(random, 2);
  r->attributes.rope.rotary_dims = 2 * random_below(random, (uint32_t)dim / 2 + 1);
}

static void make_update(random_source *random, recipe *r) {
  const bool has_blocks = tm_format_find(r->formats[0])->block_elements > 1;
  const uint64_t count = random_extent(random);
  random_shape(random, r->formats[0], has_blocks ? 2 : 1, &r->ranks[0], r->dims[0]);
  const uint32_t axis = random_below(random, has_blocks ? r->ranks[0] - 1 : r->ranks[0]);
  set_dims(r, 1, r->ranks[0], r->dims[0]);
  r->dims[1][axis] = count;
  r->formats[2] = random_index_format(random);
  set_dims(r, 2, random_below(random, 2), &count);
  r->attributes.axis.axis = axis;
}

static void make_attention(random_source *random, recipe *r) {
  static const uint32_t caches[] = { TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_BF16 };
  const uint64_t batch = random_extent(random), tokens = random_extent(random), shared = 1 + random_below(random, 2);
  const uint64_t heads = shared * random_extent(random), capacity = random_extent(random), dim = random_extent(random);
  const uint64_t width = random_below(random, 8) == 0 ? 600 : random_extent(random);
  const uint32_t skipped = random_below(random, 2);
  set_dims(r, 0, 4 - skipped, (const uint64_t[]){ batch, tokens, heads, dim } + skipped);
  set_dims(r, 1, 4 - skipped, (const uint64_t[]){ batch, capacity, shared, dim } + skipped);
  set_dims(r, 2, 4 - skipped, (const uint64_t[]){ batch, capacity, shared, width } + skipped);
  if (random_below(random, 2)) r->formats[1] = caches[random_below(random, 3)];
  if (random_below(random, 2)) r->formats[2] = caches[random_below(random, 3)];
  r->formats[3] = random_index_format(random);
  r->ranks[3] = 0;
  r->attributes.attention.causal = random_below(random, 2);
  if (random_below(random, 2)) return;
  const uint32_t rank = 2 + random_below(random, 3 - skipped);
  const uint64_t mask[] = { batch, heads, tokens, capacity };
  r->input_count = 5;
  r->formats[4] = random_below(random, 2) ? TM_FORMAT_BOOL : TM_FORMAT_F32;
  set_dims(r, 4, rank, mask + 4 - rank);
  for (uint32_t i = 0; i < rank; i++)
    if (random_below(random, 3) == 0) r->dims[4][i] = 1;
}

static void same_shape(recipe *r, uint32_t input) {
  r->ranks[input] = r->ranks[0];
  memcpy(r->dims[input], r->dims[0], sizeof r->dims[0]);
}

/* Up to four inputs of formats of their own beside the settings. */
static void make_merge(random_source *random, const tm_op_row *row, recipe *r) {
  r->input_count = row->input_min + random_below(random, 3);
  const uint64_t others = r->input_count - 2;
  const uint64_t each = r->op == TM_OP_DARE_SUM ? TM_DARE_WORDS : r->op == TM_OP_TIES_SUM ? 2 : 1, settings = 1 + each * others;
  const bool has_whole_blocks = r->ranks[0] > 0 && r->dims[0][r->ranks[0] - 1] % 32 == 0;
  for (uint32_t i = 2; i < r->input_count; i++) {
    r->formats[i] = random_format(random, has_whole_blocks && random_below(random, 2) ? TM_SET_BLOCK : TM_SET_FLOAT);
    if (r->formats[i] > TM_FORMAT_GGUF && r->formats[i] != TM_FORMAT_Q4_0) r->formats[i] = TM_FORMAT_Q8_0;
    same_shape(r, i);
  }
  r->formats[1] = r->op == TM_OP_DARE_SUM ? TM_FORMAT_U64 : TM_FORMAT_F64;
  set_dims(r, 1, 1, &settings);
  r->output_format = random_format(random, TM_SET_FLOAT);
  if (r->op == TM_OP_TIES_SUM) r->attributes.ties.sum = random_below(random, 2);
}

/* Shapes, attributes and formats that suit the operation if it takes `format` for its first (where: second) input. */
static recipe make_recipe(random_source *random, const tm_op_row *row, uint32_t format) {
  recipe r = { .op = row->op, .input_count = row->input_min };
  for (uint32_t i = 0; i < MOST_INPUTS; i++) r.formats[i] = format;
  if (row->op == TM_OP_WHERE) r.formats[0] = TM_FORMAT_BOOL;
  random_shape(random, format, 0, &r.ranks[0], r.dims[0]);
  const uint32_t axis = random_below(random, r.ranks[0] > 0 ? r.ranks[0] : 1);
  if (row->broadcasts)
    for (uint32_t i = 1; i < row->input_max; i++) broadcastable(random, &r, 0, &r.ranks[i], r.dims[i]);
  switch (row->op) {
    case TM_OP_TRANSPOSE: permute(random, &r); break;
    case TM_OP_GATHER:
      r.formats[1] = random_below(random, 2) ? TM_FORMAT_I32 : TM_FORMAT_I64;
      r.ranks[1] = random_below(random, 3);
      for (uint32_t i = 0; i < r.ranks[1]; i++) r.dims[1][i] = random_extent(random);
      r.attributes.axis.axis = axis;
      break;
    case TM_OP_FILL:
      r.shape.rank = r.ranks[0];
      memcpy(r.shape.dims, r.dims[0], sizeof r.shape.dims);
      r.ranks[0] = 0;
      break;
    case TM_OP_CAST:
      r.attributes.cast.saturate = random_below(random, 2);
      r.output_format = random_format(random, TM_SET_NUMBER | TM_SET_BOOL | TM_SET_INTEGER_4);
      break;
    case TM_OP_QUANTIZE:
      random_shape(random, TM_FORMAT_Q8_0, 1, &r.ranks[0], r.dims[0]);
      r.output_format = random_below(random, 2) ? TM_FORMAT_Q8_0 : TM_FORMAT_Q4_0;
      break;
    case TM_OP_COMPARE: r.attributes.compare.predicate = random_below(random, 6); break;
    case TM_OP_MAGNITUDES:
      if (random_below(random, 2)) r.attributes.magnitudes = (tm_magnitudes_attributes){ 1, random_below(random, 1u << 16) };
      same_shape(&r, 1);
      break;
    case TM_OP_COMPARE_TENSORS: same_shape(&r, 1); break;
    case TM_OP_WEIGHTED_SUM:
    case TM_OP_DARE_SUM:
    case TM_OP_TIES_SUM: make_merge(random, row, &r); break;
    case TM_OP_GELU: r.attributes.gelu.tanh_form = random_below(random, 2); break;
    case TM_OP_SUM:
    case TM_OP_MEAN:
    case TM_OP_MIN:
    case TM_OP_MAX:
      r.attributes.reduce = (tm_reduce_attributes){random_below(random, 1u << r.ranks[0]), random_below(random, 2)};
      break;
    case TM_OP_ARGMAX: r.attributes.reduce = (tm_reduce_attributes){ 1u << axis, random_below(random, 2) }; break;
    case TM_OP_MATMUL:
    case TM_OP_MATMUL_SCALED: make_matrices(random, &r); break;
    case TM_OP_SOFTMAX: r.attributes.axis.axis = axis; break;
    case TM_OP_LAYER_NORM:
    case TM_OP_RMS_NORM:
      make_norm(random, &r);
      break;
    case TM_OP_ROPE: make_rope(random, &r); break;
    case TM_OP_UPDATE: make_update(random, &r); break;
    case TM_OP_ATTENTION: make_attention(random, &r); break;
    default: break;
  }
  return r;
}

/* The input that holds indices or a length; UINT32_MAX: none. */
static uint32_t index_input(uint32_t op) {
  return op == TM_OP_GATHER ? 1 : op == TM_OP_UPDATE ? 2 : op == TM_OP_ATTENTION ? 3 : UINT32_MAX;
}

/* ---- an operation in memory ---- */

typedef struct run {
  tm_operation   operation;
  tm_operand     operands[TM_MAX_OPERANDS];
  void          *pointers[TM_MAX_OPERANDS];
  strided_tensor tensors[TM_MAX_OPERANDS];
  uint32_t       count;
} run;

/* Any bits, but often values near each other, so that ties, zeros and equal operands happen. */
static void fill_randomly(random_source *random, strided_tensor *t, bool are_indices) {
  static const double values[] = { 0.0, -0.0, 1, -1, 2, 0.5, 3, -7 };
  const tm_format_info *info = tm_format_find(t->operand.format);
  const uint64_t count = total_blocks(&t->operand);
  for (uint64_t i = 0; i < count; i++) {
    unsigned char *block = block_at(t, i);
    for (uint32_t j = 0; j < info->block_bytes; j++) block[j] = (unsigned char)random_bits(random);
    const int64_t index = (int64_t)random_below(random, 6) - 1;
    if (are_indices) memcpy(block, &index, info->block_bytes);
    else if (info->block_elements == 1 && info->has_arithmetic && random_below(random, 2))
      op_encode(info->format, &values[random_below(random, 8)], 1, block);
  }
}

static run make_dense(random_source *random, const tm_op_row *row, const recipe *r, tm_status *out_status) {
  run x = { .operation = { .struct_size = sizeof(tm_operation), .op = r->op, .version = tm_op_find(r->op)->version, .attributes = &r->attributes,
                           .attribute_bytes = row->attribute_bytes, .input_count = r->input_count, .output_count = 1 },
            .count = r->input_count + 1 };
  if (row->attribute_bytes == 0) x.operation.attributes = NULL;
  *out_status = TM_OK;
  for (uint32_t i = 0; i < r->input_count && *out_status == TM_OK; i++)
    *out_status = tm_operand_contiguous(r->formats[i], r->ranks[i], r->dims[i], &x.operands[i], NULL);
  x.operands[r->input_count] = r->shape;
  x.operands[r->input_count].format = r->output_format;
  x.operation.operands = x.operands;
  if (*out_status == TM_OK) *out_status = tm_op_infer_outputs(&x.operation, &x.operands[r->input_count], NULL);
  if (*out_status != TM_OK) return x;
  for (uint32_t i = 0; i < x.count; i++) {
    x.tensors[i].operand = x.operands[i];
    place(&x.tensors[i]);
    if (i < r->input_count) fill_randomly(random, &x.tensors[i], index_input(r->op) == i);
    x.pointers[i] = x.tensors[i].first;
  }
  return x;
}

/* The same operation with the same inputs and other strides. */
static run make_strided(random_source *random, const run *dense) {
  run x = *dense;
  for (uint32_t i = 0; i < x.count; i++) {
    random_strides(random, &x.operands[i]);
    assert_int_equal(tm_operand_derive(&x.operands[i], NULL), TM_OK);
    x.tensors[i].operand = x.operands[i];
    place(&x.tensors[i]);
    if (i + 1 < x.count) copy_elements(&dense->tensors[i], &x.tensors[i]);
    x.pointers[i] = x.tensors[i].first;
  }
  return x;
}

static void release(run *x) {
  for (uint32_t i = 0; i < x->count; i++) free(x->tensors[i].memory);
}

/* Bits, except that one NaN is as good as another where the operation computes. */
static bool same_results(const run *a, const run *b) {
  const strided_tensor *x = &a->tensors[a->count - 1], *y = &b->tensors[b->count - 1];
  const tm_format_info *info = tm_format_find(x->operand.format);
  const uint64_t count = total_blocks(&x->operand);
  for (uint64_t i = 0; i < count; i++) {
    const unsigned char *p = block_at(x, i), *q = block_at(y, i);
    if (memcmp(p, q, info->block_bytes) == 0) continue;
    double u, v;
    if (info->kind != TM_KIND_FLOAT || !info->has_arithmetic) return false;
    tm_codec_find(info->format)->decode(p, 1, &u);
    tm_codec_find(info->format)->decode(q, 1, &v);
    if (u == u || v == v) return false;
  }
  return true;
}

static void compute(const tm_op_row *row, run *x, uint64_t most_units) {
  x->operation.operands = x->operands;
  const uint64_t units = row->units(&x->operation);
  for (uint64_t at = 0, n; at < units; at += n) {
    n = most_units != 0 && most_units < units - at ? most_units : units - at;
    row->reference(&x->operation, x->pointers, at, at + n);
  }
}

static void must_check(const tm_op_row *row, run *x) {
  tm_error error = TM_ERROR_INIT;
  x->operation.operands = x->operands;
  if (tm_op_check(&x->operation, &error) != TM_OK) fail_msg("%s: %s", row->name, error.text);
}

static void try_normal_form(const tm_op_row *row, const run *strided, const run *dense) {
  run x = *strided;
  strided_tensor *y = &x.tensors[x.count - 1];
  place(y);
  x.pointers[x.count - 1] = y->first;
  x.operation.operands = x.operands;
  tm_op_normalize(&x.operation, x.operands);
  must_check(row, &x);
  compute(row, &x, 0);
  if (!same_results(&x, dense) || !guards_hold(y)) fail_msg("%s: the normal form gives other results", row->name);
  run again = x;
  again.operation.operands = again.operands;
  tm_op_normalize(&again.operation, again.operands);
  if (memcmp(again.operands, x.operands, x.count * sizeof x.operands[0]) != 0)
    fail_msg("%s: normalizing is not idempotent", row->name);
  assert_int_equal(again.operation.flags, x.operation.flags);
  free(y->memory);
}

static bool try_case(random_source *random, const tm_op_row *row, uint32_t format) {
  tm_status status;
  const recipe r = make_recipe(random, row, format);
  run dense = make_dense(random, row, &r, &status);
  if (status != TM_OK) return false;
  must_check(row, &dense);
  compute(row, &dense, 0);
  if (!guards_hold(&dense.tensors[dense.count - 1])) fail_msg("%s: wrote beside its dense output", row->name);
  run strided = make_strided(random, &dense);
  must_check(row, &strided);
  compute(row, &strided, 1 + random_below(random, 7));
  const strided_tensor *y = &strided.tensors[strided.count - 1];
  if (!same_results(&dense, &strided))
    fail_msg("%s of %s: strides or parts change the result", row->name, tm_format_find(format)->name);
  if (!guards_hold(y)) fail_msg("%s of %s: wrote beside its strided output", row->name, tm_format_find(format)->name);
  try_normal_form(row, &strided, &dense);
  release(&strided);
  release(&dense);
  return true;
}

static uint64_t seed(void) {
  const char *text = getenv("TM_TEST_SEED");
  return text != NULL ? strtoull(text, NULL, 0) : 20260;
}

static void every_row_and_format(void **state) {
  (void)state;
  random_source random = { seed() };
  print_message("TM_TEST_SEED=%llu\n", (unsigned long long)random.state);
  const tm_op_row *row;
  const tm_format_info *info;
  for (uint32_t i = 0; (row = tm_op_at(i)) != NULL; i++) {
    if (row->reference == NULL) continue;
    uint32_t formats = 0, cases = 0;
    for (uint32_t j = 0; (info = tm_format_at(j)) != NULL; j++) {
      uint32_t taken = 0;
      for (uint32_t k = 0; k < CASES_PER_FORMAT; k++) taken += try_case(&random, row, info->format);
      formats += taken != 0;
      cases += taken;
    }
    print_message("%-16s %2u formats %4u cases\n", row->name, formats, cases);
    assert_true(formats > 0);
  }
}

/* An axis that splittable names: the parts of y, computed from the parts of x, lie side by side in y. */
static void splits_concatenate(void **state) {
  (void)state;
  static const uint32_t ops[] = { TM_OP_COPY, TM_OP_NEG, TM_OP_EXP, TM_OP_SOFTMAX, TM_OP_DEQUANTIZE };
  random_source random = { seed() ^ 77 };
  uint32_t splits = 0;
  for (uint32_t i = 0; i < 400; i++) {
    const tm_op_row *row = tm_op_find(ops[i % 5]);
    tm_status status;
    const recipe r = make_recipe(&random, row, row->op == TM_OP_DEQUANTIZE ? TM_FORMAT_Q4_0 : TM_FORMAT_F16);
    run whole = make_dense(&random, row, &r, &status);
    if (status != TM_OK) continue;
    compute(row, &whole, 0);
    const uint32_t mask = row->splittable(&whole.operation);
    for (uint32_t axis = 0; axis < whole.operands[0].rank; axis++) {
      const uint64_t steps = block_count(&whole.operands[0], axis);
      if ((mask >> axis & 1u) == 0 || steps < 2) continue;
      run parts = whole;
      place(&parts.tensors[1]);
      const uint64_t cut = 1 + random_below(&random, (uint32_t)steps - 1);
      const uint64_t block = axis + 1 == whole.operands[0].rank ? tm_format_find(r.formats[0])->block_elements : 1;
      const uint64_t y_block = block / tm_format_find(whole.operands[1].format)->block_elements;
      for (uint32_t part = 0; part < 2; part++) {
        run x = parts;
        const int64_t skipped = part == 0 ? 0 : (int64_t)cut;
        for (uint32_t operand = 0; operand < 2; operand++) {
          x.operands[operand].dims[axis] = (part == 0 ? cut : steps - cut) * block;
          assert_int_equal(tm_operand_derive(&x.operands[operand], NULL), TM_OK);
        }
        x.pointers[0] = (char *)whole.pointers[0] + skipped * whole.operands[0].strides_bytes[axis];
        x.pointers[1] = parts.tensors[1].first + skipped * (int64_t)y_block * whole.operands[1].strides_bytes[axis];
        compute(row, &x, 0);
      }
      if (!same_results(&whole, &parts))
        fail_msg("%s: split at %llu of axis %u", row->name, (unsigned long long)cut, axis);
      free(parts.tensors[1].memory);
      splits++;
    }
    release(&whole);
  }
  assert_true(splits > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_and_format),
    cmocka_unit_test(splits_concatenate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
