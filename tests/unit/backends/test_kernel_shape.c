/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of formats against the core's table, and merged axes against the plain walk over the axes that they came from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/kernel_operand.h"
#include "backends/common/kernel_shape.h"
#include "base/error.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define MOST_STEPS 4096u
#define ROUNDS 2000u

static tm_operand dense(uint32_t format, uint32_t rank, const uint64_t *dims) {
  tm_operand operand;
  tm_error error = TM_ERROR_INIT;
  if (tm_operand_contiguous(format, rank, dims, &operand, &error) != TM_OK) fail_msg("%s", error.text);
  return operand;
}

/* ---- sizes ---- */

static void sizes_are_those_of_the_core(void **state) {
  (void)state;
  uint32_t known = 0;
  for (uint32_t format = 0; format < 0x200; ++format) {
    const tm_format_info *core = tm_format_find(format);
    uint32_t elements = 0, bytes = 0;
    if (!kernel_block_size(format, &elements, &bytes)) {
      assert_int_equal(kernel_element_bytes(format) + kernel_block_bytes(format), 0);
      continue;
    }
    known++;
    assert_non_null(core);
    assert_int_equal(elements, core->block_elements);
    assert_int_equal(bytes, core->block_bytes);
    assert_int_equal(kernel_element_bytes(format), elements == 1 ? bytes : 0);
    assert_int_equal(kernel_block_bytes(format), elements == 1 ? 0 : bytes);
  }
  assert_int_equal(known, 35);
  assert_int_equal(kernel_element_bytes(TM_FORMAT_PRIVATE + 2), 0);
}

static void a_dense_copy_is_what_the_core_would_make(void **state) {
  (void)state;
  static const struct { uint32_t format, rank; uint64_t dims[3]; } cases[] = {
    { TM_FORMAT_F32, 3, { 2, 3, 5 } },  { TM_FORMAT_F32, 0, { 0 } },       { TM_FORMAT_F64, 2, { 4, 1, 0 } },
    { TM_FORMAT_Q4_0, 2, { 3, 64, 0 } }, { TM_FORMAT_Q6_K, 3, { 2, 2, 512 } }, { TM_FORMAT_I4, 2, { 3, 8, 0 } },
  };
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const tm_operand wanted = dense(cases[i].format, cases[i].rank, cases[i].dims);
    tm_operand given = wanted;
    for (uint32_t axis = 0; axis < given.rank; ++axis) given.strides_bytes[axis] = 12345 - 100 * (int64_t)axis;
    given.byte_count = 1u << 20;
    given.flags = wanted.flags & ~TM_OPERAND_CONTIGUOUS;
    assert_int_equal(kernel_operand_densify(&given), 1);
    assert_memory_equal(&given, &wanted, sizeof wanted);
  }
}

static void what_has_no_dense_copy_stays(void **state) {
  (void)state;
  tm_operand huge = dense(TM_FORMAT_F64, 1, (const uint64_t[]){ 2 });
  huge.dims[0] = huge.element_count = UINT64_C(1) << 62;
  tm_operand unknown = huge;
  unknown.format = TM_FORMAT_PRIVATE;
  const tm_operand before[] = { huge, unknown };
  assert_int_equal(kernel_operand_densify(&huge), 0);
  assert_int_equal(kernel_operand_densify(&unknown), 0);
  assert_memory_equal(&huge, &before[0], sizeof huge);
  assert_memory_equal(&unknown, &before[1], sizeof unknown);
}

static void bytes_below_are_those_of_the_core(void **state) {
  (void)state;
  tm_operand x = dense(TM_FORMAT_F32, 3, (const uint64_t[]){ 4, 1, 3 });
  assert_int_equal(kernel_bytes_below(&x), 0);
  x.strides_bytes[0] = -24;
  x.strides_bytes[1] = -4000;
  x.strides_bytes[2] = -8;
  assert_int_equal(kernel_bytes_below(&x), 3 * 24 + 2 * 8);
  assert_int_equal(kernel_bytes_below(&x), tm_operand_bytes_below(&x));
}

/* ---- axes ---- */

static uint64_t next_random(uint64_t *random) {
  *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *random >> 33;
}

typedef struct place {
  int64_t x, y;
} place;

/* Where the elements of a walk lie, in its order. */
static uint64_t places_of(const kernel_axes *axes, place *out) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < axes->count; ++i) count *= axes->items[i].extent;
  for (uint64_t at = 0; at < count; ++at) {
    uint64_t rest = at;
    out[at] = (place){ 0, 0 };
    for (uint32_t i = axes->count; i-- > 0; rest /= axes->items[i].extent) {
      const int64_t index = (int64_t)(rest % axes->items[i].extent);
      out[at].x += index * axes->items[i].x_step_bytes;
      out[at].y += index * axes->items[i].y_step_bytes;
    }
  }
  return count;
}

static void random_axes(uint64_t *random, tm_operand *x) {
  static const int64_t steps[] = { 0, 4, -4, 8, 12, 1000 };
  const int is_dense = next_random(random) % 2 == 0;
  uint64_t dims[TM_MAX_RANK];
  const uint32_t rank = (uint32_t)(next_random(random) % 6);
  for (uint32_t i = 0; i < rank; ++i) dims[i] = next_random(random) % 8 == 0 ? 0 : 1 + next_random(random) % 3;
  *x = dense(TM_FORMAT_F32, rank, dims);
  for (uint32_t i = 0; i < rank && !is_dense; ++i) x->strides_bytes[i] = steps[next_random(random) % 6];
}

/* The axes as they stand in x, unmerged, and y's dims with its strides. */
static void part_plainly(const tm_operand *x, tm_operand *y, const tm_reduce_attributes *attributes, kernel_axes *kept,
                         kernel_axes *reduced) {
  uint64_t dims[TM_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < x->rank; ++i) {
    const int is_reduced = (attributes->axes >> i & 1u) != 0;
    if (!is_reduced || attributes->keep_dims) dims[rank++] = is_reduced ? 1 : x->dims[i];
  }
  *y = dense(TM_FORMAT_F32, rank, dims);
  kept->count = reduced->count = rank = 0;
  for (uint32_t i = 0; i < x->rank; ++i) {
    const int is_reduced = (attributes->axes >> i & 1u) != 0;
    kernel_axes *axes = is_reduced ? reduced : kept;
    axes->items[axes->count++] = (kernel_axis){ x->dims[i], x->strides_bytes[i], is_reduced ? 0 : y->strides_bytes[rank] };
    rank += !is_reduced || attributes->keep_dims != 0;
  }
}

static void assert_same_walk(const kernel_axes *merged, const kernel_axes *plain, uint64_t count) {
  static place a[MOST_STEPS], b[MOST_STEPS];
  assert_int_equal(places_of(merged, a), count);
  assert_int_equal(places_of(plain, b), count);
  if (count > 0) assert_memory_equal(a, b, count * sizeof a[0]);
  for (uint32_t i = 0; i < merged->count; ++i) assert_int_not_equal(merged->items[i].extent, 1);
}

static void merged_axes_walk_as_plain_ones(void **state) {
  (void)state;
  uint64_t random = 7;
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    tm_operand operands[2];
    kernel_axes kept, reduced;
    kernel_reduction r;
    random_axes(&random, &operands[0]);
    const tm_reduce_attributes attributes = {
      .axes = (uint32_t)(next_random(&random) % (1u << operands[0].rank)), .keep_dims = (uint32_t)(next_random(&random) % 2),
    };
    const tm_operation operation = { .input_count = 1, .output_count = 1, .operands = operands, .attributes = &attributes };
    part_plainly(&operands[0], &operands[1], &attributes, &kept, &reduced);
    kernel_reduction_make(&operation, &r);
    assert_same_walk(&r.kept, &kept, r.output_count);
    assert_same_walk(&r.reduced, &reduced, r.term_count);
  }
}

static void dense_axes_become_one(void **state) {
  (void)state;
  tm_operand operands[2] = {
    dense(TM_FORMAT_F32, 4, (const uint64_t[]){ 2, 3, 1, 5 }), dense(TM_FORMAT_F32, 1, (const uint64_t[]){ 2 }),
  };
  const tm_reduce_attributes attributes = { .axes = 0xe };
  const tm_operation operation = { .input_count = 1, .output_count = 1, .operands = operands, .attributes = &attributes };
  kernel_reduction r;
  kernel_reduction_make(&operation, &r);
  assert_int_equal(r.kept.count, 1);
  assert_int_equal(r.reduced.count, 1);
  assert_int_equal(r.reduced.items[0].extent, 15);
  assert_int_equal(r.reduced.items[0].x_step_bytes, 4);
  operands[1] = operands[0];
  kernel_reduction_make_lines(&operation, 1, &r);
  assert_int_equal(r.output_count, 10);
  assert_int_equal(r.term_count, 3);
  assert_int_equal(r.kept.count, 2);
  assert_int_equal(r.kept.items[1].y_step_bytes, 4);
}

/* ---- products ---- */

static void a_product_finds_its_axes(void **state) {
  (void)state;
  for (uint32_t transposed = 0; transposed < 4; ++transposed) {
    const tm_matmul_attributes attributes = { transposed & 1, transposed >> 1 };
    const uint64_t a[] = { 5, attributes.transpose_a ? 3 : 2, attributes.transpose_a ? 2 : 3 };
    const uint64_t b[] = { 5, attributes.transpose_b ? 7 : 3, attributes.transpose_b ? 3 : 7 };
    const tm_operand operands[] = { dense(TM_FORMAT_F32, 3, a), dense(TM_FORMAT_F32, 3, b),
                                    dense(TM_FORMAT_F32, 3, (const uint64_t[]){ 5, 2, 7 }) };
    const tm_operation operation = { .input_count = 2, .output_count = 1, .operands = operands, .attributes = &attributes };
    const kernel_product p = kernel_product_of(&operation);
    assert_int_equal(p.rows, 2);
    assert_int_equal(p.columns, 7);
    assert_int_equal(p.depth, 3);
    assert_int_equal(p.batch_count, 5);
    for (uint32_t i = 0; i < 2; ++i) {
      assert_int_equal(operands[i].dims[p.k_axis[i]], 3);
      assert_int_equal(operands[i].dims[p.line_axis[i]], i == 0 ? 2 : 7);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_those_of_the_core),    cmocka_unit_test(a_dense_copy_is_what_the_core_would_make),
    cmocka_unit_test(what_has_no_dense_copy_stays),   cmocka_unit_test(bytes_below_are_those_of_the_core),
    cmocka_unit_test(merged_axes_walk_as_plain_ones), cmocka_unit_test(dense_axes_become_one),
    cmocka_unit_test(a_product_finds_its_axes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
