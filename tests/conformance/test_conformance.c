/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance run on the animals of the zoo: it passes those that keep their word and says what the others did. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "conformance/campaign.h"
#include "conformance/image.h"
#include "conformance/worker_message.h"
#include "plugin/library.h"
#include "plugin/table.h"

#define ZOO(name) TM_BINARY_DIR "/tests/zoo/" name ".so"

typedef struct expectation {
  const char *path;
  uint32_t    op;
  uint32_t    format;
  const char *failure;          /* NULL: it keeps its word */
} expectation;

static const expectation expectations[] = {
  { ZOO("honest"), TM_OP_NEG, TM_FORMAT_F32, NULL },
  { ZOO("honest"), TM_OP_ADD, TM_FORMAT_F32, NULL },
  { ZOO("greased"), TM_OP_NEG, TM_FORMAT_F32, NULL },
  { ZOO("old"), TM_OP_COPY, TM_FORMAT_F32, NULL },
  { ZOO("busy"), TM_OP_NEG, TM_FORMAT_F32, NULL },
  { ZOO("slow"), TM_OP_NEG, TM_FORMAT_F32, NULL },
  { ZOO("unpriced"), TM_OP_NEG, TM_FORMAT_F32, NULL },
  { ZOO("two_queues"), TM_OP_NEG, TM_FORMAT_F32, NULL },
  { ZOO("two_queues"), TM_OP_COPY, TM_FORMAT_U8, NULL },
  { ZOO("wrong"), TM_OP_NEG, TM_FORMAT_F32, "element " },
  { ZOO("liar"), TM_OP_MATMUL, TM_FORMAT_F32, "says yes to an unknown demand" },
  { ZOO("liar"), TM_OP_NEG, TM_FORMAT_F16, "says yes to an unknown demand" },
  { ZOO("answers"), TM_OP_NEG, TM_FORMAT_F32, "answers with level 77" },
  { ZOO("leaker"), TM_OP_NEG, TM_FORMAT_F32, "allocated memory beyond" },
  { ZOO("float_mode"), TM_OP_NEG, TM_FORMAT_F32, "floating-point mode" },
  { ZOO("lost"), TM_OP_NEG, TM_FORMAT_F32, "launch gave -5" },
  { ZOO("out_of_memory"), TM_OP_NEG, TM_FORMAT_F32, "prepare gave -3" },
};
#define EXPECTATIONS (sizeof expectations / sizeof expectations[0])

static void load(const char *path, tm_accelerator_backend_plugin *out_table) {
  const tm_log silent = { NULL, NULL };
  const tm_plugin_header *header = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_plugin_library_load(path, &silent, &header, &error) != TM_OK ||
      tm_plugin_table_accept(header, path, out_table, &error) != TM_OK)
    fail_msg("%s: %s", path, error.text);
}

static void expect(const expectation *e) {
  tm_accelerator_backend_plugin table;
  load(e->path, &table);
  combination only = { .row = tm_op_find(e->op), .inputs = tm_op_find(e->op)->input_min };
  for (uint32_t i = 0; i <= only.inputs; i++) only.formats[i] = e->format;
  const campaign c = { .subject = { .table = &table }, .seed = 3, .cases = 24, .only_op = e->op, .only = &only };
  report r;
  assert_true(campaign_run(&c, &r));
  bool said = false;
  for (uint32_t i = 0; i < r.count; i++) said |= e->failure != NULL && strstr(r.claims[i].failure, e->failure) != NULL;
  if (e->failure == NULL && (r.failure_count != 0 || r.count == 0))
    fail_msg("%s fails: %s", e->path, r.count == 0 ? "no claim" : r.claims[0].failure);
  if (e->failure != NULL && !said)
    fail_msg("%s: expected '%s', found '%s'", e->path, e->failure, r.count == 0 ? "no claim" : r.claims[0].failure);
  report_free(&r);
}

static void animals_are_told_apart(void **state) {
  (void)state;
  for (size_t i = 0; i < EXPECTATIONS; i++) expect(&expectations[i]);
}

/* ---- a crash is one case's failure ---- */

static tm_status launch_crashing(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  (void)device, (void)launch, (void)out_ticket;
  raise(SIGSEGV);
  return TM_OK;
}

static void a_crash_names_its_case(void **state) {
  (void)state;
  tm_accelerator_backend_plugin table;
  load(ZOO("honest"), &table);
  table.launch = launch_crashing;
  const campaign c = { .subject = { .table = &table }, .seed = 3, .cases = 8, .only_op = TM_OP_NEG };
  report r;
  assert_true(campaign_run(&c, &r));
  assert_int_equal(r.count, 1);
  assert_non_null(strstr(r.claims[0].failure, "signal 11; the last call was launch, of neg f32["));
  assert_int_equal(r.claims[0].which.formats[0], TM_FORMAT_F32);
  report_free(&r);
}

static tm_status init_crashing(const tm_host *host, tm_backend **out_backend) {
  (void)host, (void)out_backend;
  raise(SIGABRT);
  return TM_OK;
}

static void a_backend_that_does_not_open_is_told(void **state) {
  (void)state;
  campaign_opening opening;
  tm_accelerator_backend_plugin table;
  load(ZOO("honest"), &table);
  table.init = init_crashing;
  campaign c = { .subject = { .table = &table }, .seed = 1, .cases = 2 };
  campaign_open(&c, &opening);
  assert_int_equal(opening.status, TM_ERROR_INTERNAL);
  load(ZOO("null"), &table);
  campaign_open(&c, &opening);
  assert_int_equal(opening.status, TM_ERROR_NO_DEVICE);
  load(ZOO("honest"), &table);
  campaign_open(&c, &opening);
  assert_int_equal(opening.status, TM_OK);
}

/* Whoever has the same pipe could send one. */
static void a_message_has_its_sender(void **state) {
  (void)state;
  int ends[2];
  worker_message m;
  report_check found = { .name = "order" };
  report r = { .count = 0 }, taken = { .count = 0 };
  assert_int_equal(pipe(ends), 0);
  assert_true(report_add_check(&r, &found));
  worker_line line = worker_line_of(ends[1]);
  const pid_t other = fork();
  if (other == 0) _exit(worker_message_send_report(&line, &r) ? 0 : 1);
  assert_int_equal(read(ends[0], &m, sizeof m), sizeof m);
  assert_true(worker_message_is_from(&m, (int32_t)other));
  assert_false(worker_message_is_from(&m, (int32_t)getpid()));
  assert_true(worker_message_take(&taken, &m));
  assert_int_equal(taken.check_count, 1);
  assert_int_equal(waitpid(other, NULL, 0), other);
  close(ends[0]);
  close(ends[1]);
  report_free(&r);
  report_free(&taken);
}

/* Keeps what prepare takes. */
static void release_nothing(tm_device *device, tm_kernel *kernel) { (void)device, (void)kernel; }

static void a_leak_is_seen(void **state) {
  (void)state;
  tm_accelerator_backend_plugin table;
  load(ZOO("honest"), &table);
  table.release = release_nothing;
  const campaign c = { .subject = { .table = &table }, .seed = 3, .cases = 4, .only_op = TM_OP_NEG };
  report r;
  assert_true(campaign_run(&c, &r));
  assert_int_equal(r.count, 1);
  assert_non_null(strstr(r.claims[0].failure, "more with each prepare and release"));
  report_free(&r);
}

/* ---- questions ---- */

/* Weights may be any of the inputs; where all are, there is nothing to run. */
static void any_input_may_be_the_constant_one(void **state) {
  (void)state;
  const combination sum = { tm_op_find(TM_OP_ADD), 2, { TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 } };
  uint32_t constants[2] = { 0, 0 };
  for (uint32_t number = 0; number < 8; number++) {
    question q;
    if (!question_make(&q, &sum, number, number)) continue;
    const uint32_t a = q.c.operands[0].flags & TM_OPERAND_CONSTANT, b = q.c.operands[1].flags & TM_OPERAND_CONSTANT;
    assert_false(a != 0 && b != 0);
    constants[0] += a != 0;
    constants[1] += b != 0;
  }
  assert_true(constants[0] >= 2 && constants[1] >= 2);
}

static uint64_t count_pairs(const float *a, const float *b, uint64_t count, float x, float y) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) found += memcmp(&a[i], &x, sizeof x) == 0 && memcmp(&b[i], &y, sizeof y) == 0;
  return found;
}

/* Whatever the seed. */
static void special_values_meet_each_other(void **state) {
  (void)state;
  const combination sum = { tm_op_find(TM_OP_ADD), 2, { TM_FORMAT_F32, TM_FORMAT_F32, TM_FORMAT_F32 } };
  const float values[] = { 0, -0.0f, INFINITY, -INFINITY, 0x1p-149f, 0x1.fffffep127f };
  const subject host = { .space = { .offset_granule = 1, .store_granule = 1 } };
  image inputs[2];
  uint64_t seed = 77;
  question q;
  assert_true(question_make(&q, &sum, 1, seed));
  for (int i = 0; i < 2; i++) assert_true(image_for(&inputs[i], &host, &q.c.operands[i], false));
  image_fill_inputs(inputs, &q, &seed);
  const float *a = (const float *)(const void *)(inputs[0].bytes + inputs[0].first);
  const float *b = (const float *)(const void *)(inputs[1].bytes + inputs[1].first);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
      assert_true(count_pairs(a, b, q.c.operands[0].element_count, values[i], values[k]) > 0);
  for (int i = 0; i < 2; i++) image_drop(&inputs[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(animals_are_told_apart),
    cmocka_unit_test(a_crash_names_its_case),
    cmocka_unit_test(a_message_has_its_sender),
    cmocka_unit_test(a_backend_that_does_not_open_is_told),
    cmocka_unit_test(a_leak_is_seen),
    cmocka_unit_test(any_input_may_be_the_constant_one),
    cmocka_unit_test(special_values_meet_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
