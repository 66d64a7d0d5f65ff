/* SPDX-License-Identifier: Apache-2.0 */
/* A matrix unit that is a stranger: integers only, two axes, K in 32s up to 4096, N in 16s, weights packed in its own memory. */
#include <math.h>

#include "base/thread.h"
#include "fakes/picky_case.h"

static const picky_control matrix_unit = {
  .only_op = TM_OP_MATMUL,
  .needs_constant = 2,
  .has_own_memory = 1,
  .cost_ns = 100,
  .rules = {
    { .kind = TM_CHANGE_QUANTIZE, .operand = 0, .format = TM_FORMAT_I8 },
    { .kind = TM_CHANGE_QUANTIZE, .operand = 1, .format = TM_FORMAT_I8 },
    { .kind = TM_CHANGE_REDUCE_RANK, .operand = 0, .value = 2 },
    { .kind = TM_CHANGE_REDUCE_RANK, .operand = 1, .value = 2 },
    { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 0, .value = 96 },
    { .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 32 },
    { .kind = TM_CHANGE_PAD, .operand = 1, .axis_from_last = 0, .value = 16 },
    { .kind = TM_CHANGE_CONTIGUOUS, .operand = 0 },
    { .kind = TM_CHANGE_CONVERT, .operand = 1 },
  },
};

/* ---- matrices ---- */

/* Nearly normally distributed. */
static float random_normal(uint64_t *state) {
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += (double)picky_random(state) / 2147483648.0;
  return (float)sum;
}

typedef struct product {
  uint64_t m, k, n;
  float   *a, *b;
  tm_tensor *ta, *tb;
} product;

static void make_product(picky_case *one, product *p, uint64_t m, uint64_t k, uint64_t n, uint32_t b_flags) {
  uint64_t state = m + k + n;
  *p = (product){ m, k, n, malloc(m * k * sizeof(float)), malloc(k * n * sizeof(float)), NULL, NULL };
  for (uint64_t i = 0; i < m * k; i++) p->a[i] = random_normal(&state);
  for (uint64_t i = 0; i < k * n; i++) p->b[i] = random_normal(&state);
  const tm_operand a = { .format = TM_FORMAT_F32, .rank = 2, .dims = { m, k } };
  const tm_operand b = { .format = TM_FORMAT_F32, .rank = 2, .dims = { k, n }, .flags = b_flags };
  assert_int_equal(tm_tensor_wrap(one->context, &a, p->a, m * k * sizeof(float), &p->ta, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(one->context, &b, p->b, k * n * sizeof(float), &p->tb, NULL), TM_OK);
}

static void free_product(product *p) {
  tm_tensor_destroy(p->ta);
  tm_tensor_destroy(p->tb);
  free(p->a);
  free(p->b);
}

static const tm_matmul_attributes plain;

static picky_call call_of(const product *p, uint32_t worst) {
  return (picky_call){ .op = TM_OP_MATMUL,
                       .attributes = &plain,
                       .attribute_bytes = sizeof plain,
                       .input_count = 2,
                       .worst_numerics = worst,
                       .inputs = { p->ta, p->tb } };
}

/* The normalized mean square error of what the device says. */
static double measure_error(picky_case *one, const product *p, uint32_t device_plus_one, tm_status *out_status) {
  const picky_call call = call_of(p, TM_NUMERICS_N3);
  tm_tensor *expected = picky_output(one, &call), *found = picky_output(one, &call);
  assert_int_equal(picky_try(one, &call, one->reference + 1, expected), TM_OK);
  *out_status = picky_try(one, &call, device_plus_one, found);
  double error = 0, energy = 0;
  for (uint64_t i = 0; i < p->m * p->n; i++) {
    const double e = ((float *)tm_tensor_data(expected))[i], f = ((float *)tm_tensor_data(found))[i];
    error += (f - e) * (f - e);
    energy += e * e;
  }
  tm_tensor_destroy(expected);
  tm_tensor_destroy(found);
  return energy == 0 ? error : error / energy;
}

/* ---- the whole chain ---- */

static void a_product_of_floats_runs_on_integers(void **state) {
  (void)state;
  const uint64_t shapes[][3] = { { 1, 1, 1 },    { 7, 13, 5 },    { 33, 64, 16 }, { 5, 96, 17 },
                                 { 20, 97, 31 }, { 64, 300, 48 }, { 3, 512, 129 } };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    picky_case one = { .control = matrix_unit };
    picky_case_open(&one);
    product p;
    tm_status status;
    make_product(&one, &p, shapes[i][0], shapes[i][1], shapes[i][2], TM_OPERAND_CONSTANT);
    const double error = measure_error(&one, &p, one.device + 1, &status);
    if (status != TM_OK) fail_msg("%s", one.error.text);
    assert_int_equal(one.report.device, one.device);
    assert_int_equal(one.report.numerics, TM_NUMERICS_N3);
    assert_int_equal(one.report.level, TM_LEVEL_EMULATED);
    assert_true(error <= 1e-3);
    const uint64_t parts = (shapes[i][1] + 95) / 96;
    assert_int_equal(atomic_load(&one.control.converts), parts);
    assert_int_equal(atomic_load(&one.control.launches), parts);
    free_product(&p);
    picky_case_close(&one);
  }
}

static void the_explanation_names_each_step(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.setup_ns = 2000000000;
  one.control.open_ns = 1000;
  picky_case_open(&one);
  product p;
  make_product(&one, &p, 40, 90, 20, TM_OPERAND_CONSTANT);
  picky_call call = call_of(&p, TM_NUMERICS_N3);
  tm_explanation *explanation = picky_explain(&one, &call);
  const tm_candidate candidate = picky_candidate(explanation, 1);
  assert_string_equal(
      candidate.lowering,
      "quantize(a, i8), quantize(b, i8), pad(a, [40,96]), pad(b, [96,32]), convert(b, private), pad(y, [40,32]), rescale(y)");
  assert_int_equal(candidate.numerics, TM_NUMERICS_N3);
  assert_true(candidate.numerics_bound == 0.01);
  assert_true(candidate.setup_ns > 2000001000);         /* and the packing */
  assert_int_equal(candidate.earned_ns, 0);
  assert_int_equal(candidate.price_ns, candidate.total_ns + candidate.setup_ns);
  assert_int_equal(candidate.total_ns,
                   candidate.lowering_ns + candidate.copy_ns + (uint64_t)((double)candidate.declared_ns * candidate.correction));
  tm_explanation_destroy(explanation);
  call.worst_numerics = TM_NUMERICS_N2;
  explanation = picky_explain(&one, &call);
  tm_candidate none = { .struct_size = sizeof none };
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &none) == TM_OK; i++)
    assert_true(none.lowering[0] == '\0');              /* not that exact */
  tm_explanation_destroy(explanation);
  free_product(&p);
  picky_case_close(&one);
}

/* Batches with weights of their own: a loop, and each has its packed copy. */
static void batches_loop_over_packed_weights(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  picky_case_open(&one);
  const uint64_t a[] = { 3, 5, 64 }, b[] = { 3, 64, 16 };
  tm_tensor *tb = picky_tensor(&one, TM_FORMAT_F32, 3, b, 2), *constant = NULL;
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 3, .dims = { 3, 64, 16 }, .flags = TM_OPERAND_CONSTANT };
  assert_int_equal(tm_tensor_view(tb, &layout, 0, &constant, NULL), TM_OK);
  const picky_call call = { .op = TM_OP_MATMUL,
                            .attributes = &plain,
                            .attribute_bytes = sizeof plain,
                            .input_count = 2,
                            .worst_numerics = TM_NUMERICS_N3,
                            .inputs = { picky_tensor(&one, TM_FORMAT_F32, 3, a, 1), constant } };
  tm_tensor *expected = picky_output(&one, &call), *found = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.reference + 1, expected), TM_OK);
  for (int run = 0; run < 3; run++) {
    if (picky_try(&one, &call, one.device + 1, found) != TM_OK) fail_msg("%s", one.error.text);
    for (int i = 0; i < 3 * 5 * 16; i++) {
      const float e = ((float *)tm_tensor_data(expected))[i], f = ((float *)tm_tensor_data(found))[i];
      assert_true(fabsf(e - f) < 4);
    }
  }
  assert_int_equal(atomic_load(&one.control.converts), 3);
  assert_int_equal(atomic_load(&one.control.launches), 9);
  tm_tensor_destroy(expected);
  tm_tensor_destroy(found);
  tm_tensor_destroy(call.inputs[0]);
  tm_tensor_destroy(constant);
  tm_tensor_destroy(tb);
  picky_case_close(&one);
}

/* A batch with one matrix of weights is one product with more rows. */
static void a_batch_with_shared_weights_is_one_product(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  picky_case_open(&one);
  const uint64_t a[] = { 3, 5, 64 };
  product p;
  make_product(&one, &p, 1, 64, 24, TM_OPERAND_CONSTANT);
  const picky_call call = { .op = TM_OP_MATMUL, .attributes = &plain, .attribute_bytes = sizeof plain, .input_count = 2, .worst_numerics = TM_NUMERICS_N3,
                            .inputs = { picky_tensor(&one, TM_FORMAT_F32, 3, a, 1), p.tb } };
  tm_tensor *expected = picky_output(&one, &call), *found = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.reference + 1, expected), TM_OK);
  if (picky_try(&one, &call, one.device + 1, found) != TM_OK) fail_msg("%s", one.error.text);
  double error = 0, energy = 0;
  for (int i = 0; i < 3 * 5 * 24; i++) {
    const double e = ((float *)tm_tensor_data(expected))[i], f = ((float *)tm_tensor_data(found))[i];
    error += (e - f) * (e - f);
    energy += e * e;
  }
  assert_true(error < 1e-3 * energy);
  assert_int_equal(atomic_load(&one.control.launches), 1);
  assert_int_equal(atomic_load(&one.control.converts), 1);
  tm_tensor_destroy(expected);
  tm_tensor_destroy(found);
  tm_tensor_destroy(call.inputs[0]);
  free_product(&p);
  picky_case_close(&one);
}

/* ---- copies that are kept ---- */

static uint64_t run_and_count(picky_case *one, const product *p) {
  tm_status status;
  const uint64_t before = atomic_load(&one->control.converts);
  const double error = measure_error(one, p, one->device + 1, &status);
  if (status != TM_OK) fail_msg("%s", one->error.text);
  assert_true(error < 1e-2);
  return atomic_load(&one->control.converts) - before;
}

static void equal_bytes_share_one_copy(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  picky_case_open(&one);
  product p, same, other;
  make_product(&one, &p, 4, 64, 32, TM_OPERAND_CONSTANT);
  make_product(&one, &same, 4, 64, 32, TM_OPERAND_CONSTANT);
  make_product(&one, &other, 4, 64, 32, TM_OPERAND_CONSTANT);
  other.b[5] += 9;
  assert_int_equal(run_and_count(&one, &p), 1);
  assert_int_equal(run_and_count(&one, &p), 0);
  const uint64_t used = atomic_load(&one.control.used_bytes);
  assert_true(used >= 64 * 32);
  assert_int_equal(run_and_count(&one, &same), 0);
  assert_int_equal(atomic_load(&one.control.used_bytes), used);
  assert_int_equal(run_and_count(&one, &other), 1);
  assert_int_equal(atomic_load(&one.control.used_bytes), 2 * used);
  free_product(&p);
  free_product(&same);
  free_product(&other);
  picky_case_close(&one);
}

/* What is not promised to stay is never packed; what is gone, and came back as something else, is packed anew. */
static void no_stale_copy_is_ever_used(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  picky_case_open(&one);
  product p;
  tm_status status;
  make_product(&one, &p, 4, 64, 32, 0);
  (void)measure_error(&one, &p, one.device + 1, &status);
  assert_int_equal(status, TM_ERROR_NO_DEVICE);
  assert_int_equal(atomic_load(&one.control.converts), 0);
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 64, 32 }, .flags = TM_OPERAND_CONSTANT };
  for (int round = 0; round < 5; round++) {     /* the same address each time */
    tm_tensor_destroy(p.tb);
    for (int i = 0; i < 64 * 32; i++) p.b[i] = (float)((i * (round + 3)) % 17 - 8);
    assert_int_equal(tm_tensor_wrap(one.context, &layout, p.b, 64 * 32 * sizeof(float), &p.tb, NULL), TM_OK);
    assert_int_equal(run_and_count(&one, &p), 1);
    assert_int_equal(run_and_count(&one, &p), 0);
  }
  free_product(&p);
  picky_case_close(&one);
}

static void copies_yield_when_memory_runs_short(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.capacity_bytes = 40000;           /* of a device that has room for two or three */
  picky_case_open(&one);
  product p[6];
  for (int i = 0; i < 6; i++) make_product(&one, &p[i], 4, 64 + 32 * (uint64_t)(i % 2), 80 + 16 * (uint64_t)i, TM_OPERAND_CONSTANT);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 6; i++) (void)run_and_count(&one, &p[i]);
  assert_true(atomic_load(&one.control.converts) > 6);
  for (int i = 0; i < 6; i++) free_product(&p[i]);
  picky_case_close(&one);
}

static void copies_go_with_a_lost_device(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  picky_case_open(&one);
  product p;
  tm_status status;
  make_product(&one, &p, 4, 64, 32, TM_OPERAND_CONSTANT);
  assert_int_equal(run_and_count(&one, &p), 1);
  assert_true(atomic_load(&one.control.used_bytes) > 0);
  atomic_store(&one.control.launch_status, TM_ERROR_DEVICE_LOST);
  (void)measure_error(&one, &p, one.device + 1, &status);
  assert_int_equal(status, TM_ERROR_NO_DEVICE);
  assert_int_equal(atomic_load(&one.control.used_bytes), 0);
  assert_true(measure_error(&one, &p, 0, &status) == 0);
  assert_int_equal(status, TM_OK);
  free_product(&p);
  picky_case_close(&one);
}

/* A device whose memory is the host's packs, too. */
static void packing_in_host_memory(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.has_own_memory = 0;
  one.control.store_granule = 64;
  picky_case_open(&one);
  product p;
  make_product(&one, &p, 9, 200, 33, TM_OPERAND_CONSTANT);
  assert_int_equal(run_and_count(&one, &p), 3);
  assert_int_equal(run_and_count(&one, &p), 0);
  free_product(&p);
  picky_case_close(&one);
}

/* A device that says what a packed operand takes as it is now is asked again once it is padded. */
static void packing_after_padding(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.is_naive = 1;
  picky_case_open(&one);
  product p;
  make_product(&one, &p, 9, 70, 33, TM_OPERAND_CONSTANT);
  assert_int_equal(run_and_count(&one, &p), 1);
  assert_int_equal(run_and_count(&one, &p), 0);
  free_product(&p);
  picky_case_close(&one);
}

/* Without a format of its own, too, a constant that was changed stays one. */
static void changed_constants_are_kept_where_they_must_be_constant(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.rules[8].kind = 0;
  picky_case_open(&one);
  product p;
  tm_status status;
  make_product(&one, &p, 9, 70, 33, TM_OPERAND_CONSTANT);
  for (int run = 0; run < 3; run++) {
    assert_true(measure_error(&one, &p, one.device + 1, &status) < 1e-2);
    if (status != TM_OK) fail_msg("%s", one.error.text);
  }
  assert_int_equal(atomic_load(&one.control.launches), 3);
  free_product(&p);
  picky_case_close(&one);
}

#define THREADS 4

typedef struct worker {
  picky_case *one;
  product    *p;
  tm_tensor  *y;
  int         failures;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  const picky_call call = call_of(w->p, TM_NUMERICS_N3);
  const tm_run_options options = { .struct_size = sizeof options,
                                   .worst_numerics = TM_NUMERICS_N3,
                                   .device_plus_one = w->one->device + 1 };
  for (int run = 0; run < 20; run++) {
    tm_tensor *const inputs[2] = { call.inputs[0], call.inputs[1] };
    w->failures += tm_run(w->one->context, TM_OP_MATMUL, &plain, sizeof plain, inputs, 2, &w->y, 1, &options, NULL) != TM_OK;
  }
  return NULL;
}

/* Several threads want the same and different copies while memory is short. */
static void threads_share_copies(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.capacity_bytes = 400000;
  picky_case_open(&one);
  product p[THREADS];
  worker workers[THREADS];
  tm_thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    make_product(&one, &p[i], 8, 96, 64 + 16 * (uint64_t)(i % 2), TM_OPERAND_CONSTANT);
    const picky_call call = call_of(&p[i], TM_NUMERICS_N3);
    workers[i] = (worker){ &one, &p[i], picky_output(&one, &call), 0 };
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(tm_thread_start(&threads[i], work, &workers[i], NULL), TM_OK);
  for (int i = 0; i < THREADS; i++) tm_thread_join(&threads[i]);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(workers[i].failures, 0);
    tm_tensor_destroy(workers[i].y);
    free_product(&p[i]);
  }
  picky_case_close(&one);
}

/* ---- numbers that integers are no good for ---- */

typedef void (*spoil_fn)(product *p);

static void put_nan(product *p) { p->a[p->k + 3] = NAN; }
static void put_infinity(product *p) { p->b[7] = INFINITY; }
static void put_huge(product *p) { p->a[0] = 3e38f; }
static void put_tiny(product *p) { for (uint64_t i = 0; i < p->k; i++) p->a[i] = 1e-42f; }
/* Each row has one number that leaves nothing of the others. */
static void put_outliers(product *p) {
  for (uint64_t i = 0; i < p->m; i++) p->a[i * p->k + i % p->k] = 20000;
  for (uint64_t i = 0; i < p->n; i++) p->b[((i + 1) % p->k) * p->n + i] = 0;
  for (uint64_t i = 0; i < p->m; i++) for (uint64_t j = 0; j < p->n; j++) p->b[(i % p->k) * p->n + j] *= 1e-4f;
}
/* All roundings go one way, and none is cancelled by another. */
static void put_halves(product *p) {
  for (uint64_t i = 0; i < p->m * p->k; i++) p->a[i] = i % p->k == 0 ? 127.0f : 0.49f;
  for (uint64_t i = 0; i < p->k * p->n; i++) p->b[i] = 1;
}
/* The product is nothing but what is left of large terms. */
static void put_cancellation(product *p) {
  for (uint64_t i = 0; i < p->m; i++)
    for (uint64_t k = 0; k + 1 < p->k; k += 2) p->a[i * p->k + k + 1] = p->a[i * p->k + k] * (k % 4 == 0 ? 1.0f : 1.003f);
  for (uint64_t k = 0; k + 1 < p->k; k += 2)
    for (uint64_t j = 0; j < p->n; j++) p->b[(k + 1) * p->n + j] = -p->b[k * p->n + j];
}

static void what_would_be_far_off_goes_elsewhere(void **state) {
  (void)state;
  static const spoil_fn spoils[] = { put_nan, put_infinity, put_huge, put_tiny, put_outliers, put_halves, put_cancellation };
  for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
    picky_case one = { .control = matrix_unit };
    picky_case_open(&one);
    product p;
    tm_status status;
    make_product(&one, &p, 24, 90, 40, TM_OPERAND_CONSTANT);
    spoils[i](&p);
    (void)measure_error(&one, &p, one.device + 1, &status);
    if (status != TM_ERROR_NO_DEVICE) fail_msg("spoil %d was taken", (int)i);
    assert_non_null(strstr(one.error.text, "not for i8"));
    tm_device_description device = { .struct_size = sizeof device };
    (void)tm_device_describe(one.context, one.device, &device);
    assert_int_equal(device.violation_count, 0);
    const picky_call call = call_of(&p, TM_NUMERICS_N3);
    tm_tensor *y = picky_output(&one, &call);
    for (int run = 0; run < 3; run++) {
      assert_int_equal(picky_try(&one, &call, 0, y), TM_OK);
      assert_int_equal(one.report.device, one.reference);
      assert_int_equal(one.report.fell_back, 0);
    }
    tm_tensor_destroy(y);
    free_product(&p);
    picky_case_close(&one);
  }
}

static void zeros_are_zero(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  picky_case_open(&one);
  product p;
  tm_status status;
  make_product(&one, &p, 10, 64, 32, TM_OPERAND_CONSTANT);
  memset(p.a, 0, 5 * 64 * sizeof(float));
  assert_true(measure_error(&one, &p, one.device + 1, &status) < 1e-3);
  assert_int_equal(status, TM_OK);
  memset(p.a, 0, 10 * 64 * sizeof(float));
  assert_true(measure_error(&one, &p, one.device + 1, &status) == 0);
  assert_int_equal(status, TM_OK);
  free_product(&p);
  picky_case_close(&one);
}

/* The check knows nothing of how the product came about. */
static void a_wrong_product_is_found_out(void **state) {
  (void)state;
  picky_case one = { .control = matrix_unit };
  one.control.is_wrong = 1;
  picky_case_open(&one);
  product p;
  tm_status status;
  make_product(&one, &p, 24, 64, 32, TM_OPERAND_CONSTANT);
  (void)measure_error(&one, &p, one.device + 1, &status);
  assert_int_equal(status, TM_ERROR_NO_DEVICE);
  free_product(&p);
  picky_case_close(&one);
}

static void other_formats_are_quantized_and_rescaled(void **state) {
  (void)state;
  static const uint32_t formats[] = { TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F64 };
  for (int i = 0; i < 3; i++)
    for (uint32_t turned = 0; turned < 4; turned++) {
      picky_case one = { .control = matrix_unit };
      one.control.needs_constant = 0;
      one.control.rules[8].kind = 0;
      picky_case_open(&one);
      const tm_matmul_attributes attributes = { turned & 1u, turned >> 1 };
      const uint64_t a[] = { 12, 70 }, at[] = { 70, 12 }, b[] = { 70, 20 }, bt[] = { 20, 70 };
      const picky_call call = { .op = TM_OP_MATMUL,
                                .attributes = &attributes,
                                .attribute_bytes = sizeof attributes,
                                .input_count = 2,
                                .worst_numerics = TM_NUMERICS_N3,
                                .inputs = { picky_tensor(&one, formats[i], 2, attributes.transpose_a ? at : a, 1),
                                            picky_tensor(&one, formats[i], 2, attributes.transpose_b ? bt : b, 2) } };
      tm_tensor *expected = picky_output(&one, &call), *found = picky_output(&one, &call);
      assert_int_equal(picky_try(&one, &call, one.reference + 1, expected), TM_OK);
      if (turned == 0 && picky_try(&one, &call, one.device + 1, found) != TM_OK) fail_msg("%s", one.error.text);
      if (turned != 0 && picky_try(&one, &call, 0, found) != TM_OK) fail_msg("%s", one.error.text);
      double e[240], f[240];
      tm_codec_find(formats[i])->decode(tm_tensor_data(expected), 240, e);
      tm_codec_find(formats[i])->decode(tm_tensor_data(found), 240, f);
      for (int j = 0; j < 240; j++) assert_true(fabs(e[j] - f[j]) < 6);
      tm_tensor_destroy(expected);
      tm_tensor_destroy(found);
      tm_tensor_destroy(call.inputs[0]);
      tm_tensor_destroy(call.inputs[1]);
      picky_case_close(&one);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_product_of_floats_runs_on_integers),
    cmocka_unit_test(the_explanation_names_each_step),
    cmocka_unit_test(batches_loop_over_packed_weights),
    cmocka_unit_test(a_batch_with_shared_weights_is_one_product),
    cmocka_unit_test(equal_bytes_share_one_copy),
    cmocka_unit_test(no_stale_copy_is_ever_used),
    cmocka_unit_test(copies_yield_when_memory_runs_short),
    cmocka_unit_test(copies_go_with_a_lost_device),
    cmocka_unit_test(packing_in_host_memory),
    cmocka_unit_test(packing_after_padding),
    cmocka_unit_test(changed_constants_are_kept_where_they_must_be_constant),
    cmocka_unit_test(threads_share_copies),
    cmocka_unit_test(what_would_be_far_off_goes_elsewhere),
    cmocka_unit_test(zeros_are_zero),
    cmocka_unit_test(a_wrong_product_is_found_out),
    cmocka_unit_test(other_formats_are_quantized_and_rescaled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
