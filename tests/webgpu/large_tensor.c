/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of 300 MB on a real device whose bindings hold less: added to itself and its rows summed up, every bit right. */
#include "free_memory.h"
#include "webgpu/webgpu_scheduled.h"

#define ROWS UINT64_C(7501)
#define COLUMNS UINT64_C(10007)         /* 300.25 million bytes, and no part of it is round */
#define NEEDED_BYTES (UINT64_C(2500) << 20)

static uint64_t largest_binding(scheduled *c) {
  tm_memory_description memory = { .struct_size = sizeof memory };
  assert_int_equal(tm_device_memory_describe(c->context, c->device, 0, &memory), TM_OK);
  return memory.largest_binding_bytes;
}

static tm_tensor *make(scheduled *c, uint32_t rank, const uint64_t *dims) {
  tm_tensor *tensor = NULL;
  if (tm_tensor_create(c->context, TM_FORMAT_F32, rank, dims, &tensor, &c->error) != TM_OK) fail_msg("%s", c->error.text);
  return tensor;
}

static void run(scheduled *c, uint32_t device, uint32_t op, const tm_reduce_attributes *attributes, tm_tensor *const *inputs,
                uint32_t count, tm_tensor *y) {
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .device_plus_one = device + 1,
                                   .report = &report };
  const uint32_t bytes = attributes == NULL ? 0 : sizeof *attributes;
  if (tm_run(c->context, op, attributes, bytes, inputs, count, &y, 1, &options, &c->error) != TM_OK) fail_msg("%s", c->error.text);
  assert_int_equal(report.device, device);
}

static void check_sum(scheduled *c, tm_tensor *x) {
  static const tm_reduce_attributes last = { .axes = 2 };
  const uint64_t rows = ROWS;
  tm_tensor *found = make(c, 1, &rows), *expected = make(c, 1, &rows);
  run(c, c->device, TM_OP_SUM, &last, &x, 1, found);
  run(c, c->reference, TM_OP_SUM, &last, &x, 1, expected);
  assert_memory_equal(tm_tensor_data(found), tm_tensor_data(expected), ROWS * sizeof(float));
  assert_true(*(const float *)tm_tensor_data(found) != 0);
  tm_tensor_destroy(expected);
  tm_tensor_destroy(found);
}

static void check_add(scheduled *c, tm_tensor *x) {
  tm_tensor *const inputs[] = { x, x };
  tm_tensor *y = make(c, 2, (const uint64_t[]){ ROWS, COLUMNS });
  run(c, c->device, TM_OP_ADD, NULL, inputs, 2, y);
  const float *from = tm_tensor_data(x), *found = tm_tensor_data(y);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < ROWS * COLUMNS; i++) wrong += found[i] != from[i] + from[i];
  assert_int_equal(wrong, 0);
  tm_tensor_destroy(y);
}

int main(void) {
  scheduled c;
  if (available_bytes() < NEEDED_BYTES) {
    printf("skipped: needs 2.5 GB of free memory\n");
    return SCHEDULED_SKIPPED;
  }
  if (!scheduled_open(&c, NULL, NULL, NULL)) return SCHEDULED_SKIPPED;
  if (largest_binding(&c) >= ROWS * COLUMNS * sizeof(float)) {
    printf("skipped: %s takes %llu bytes at once\n", c.description.description, (unsigned long long)largest_binding(&c));
    tm_context_destroy(c.context);
    return SCHEDULED_SKIPPED;
  }
  tm_tensor *x = make(&c, 2, (const uint64_t[]){ ROWS, COLUMNS });
  float *values = tm_tensor_data(x);
  for (uint64_t i = 0; i < ROWS * COLUMNS; i++) values[i] = (float)(i % 16777213) * 0x1p-7f - 3;
  check_add(&c, x);
  check_sum(&c, x);
  tm_tensor_destroy(x);
  tm_context_destroy(c.context);
  return 0;
}
