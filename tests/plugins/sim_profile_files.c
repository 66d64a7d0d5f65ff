/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated device that takes what a real one took: from files as the library writes them, and from such as it never would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../plugins/simulator/sim_description.h"
#include "../../plugins/simulator/sim_judge.h"
#include "ops/op_table.h"
#include "schedule/profile_text.h"
#include "tensor/shape.h"

#define DESCRIPTION TM_SCRATCH "/profiled.json"
#define PROFILE TM_SCRATCH "/profiled.profile"
#define ONE (INT64_C(1) << 32)

/* ---- files ---- */

typedef struct text {
  char     bytes[65536];
  uint64_t length;
} text;

static void write_file(const char *path, const char *bytes, uint64_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, (size_t)length, file), length);
  assert_int_equal(fclose(file), 0);
}

static void add(text *t, const tm_profile_record *record) {
  t->length += tm_profile_record_print(record, t->bytes + t->length);
  assert_true(t->length < sizeof t->bytes - TM_PROFILE_LINE_BYTES);
}

static void begin(text *t, uint32_t version) {
  t->length = 0;
  add(t, &(tm_profile_record){ .kind = TM_PROFILE_HEADER, .version = version, .generation = 1 });
}

static uint64_t add_device(text *t, const char *backend, const char *uuid, uint64_t threads) {
  tm_profile_record record = { .kind = TM_PROFILE_DEVICE };
  tm_profile_device_set(record.device.backend, backend);
  tm_profile_device_set(record.device.build_id, "a build");
  snprintf(record.device.uuid, sizeof record.device.uuid, "%s", uuid);
  record.device.thread_count = threads;
  record.fingerprint = tm_profile_device_fingerprint(&record.device);
  add(t, &record);
  return record.fingerprint;
}

static void add_entry(text *t, uint64_t device, uint32_t kind, uint64_t key, int64_t mean, uint32_t weight) {
  tm_profile_record record = { .kind = TM_PROFILE_ENTRY, .fingerprint = device };
  record.entry.kind = kind;
  record.entry.key = key;
  record.entry.node.fresh = (tm_correction_state){ .mean = mean, .weight = weight, .samples = 9, .variance = 77 };
  add(t, &record);
}

static void describe(const char *profile, const char *device) {
  char json[2048];
  const int length = snprintf(json, sizeof json,
      "{\"name\": \"profiled\", \"memory\": {\"bytes\": 1000000000}, \"link\": {\"bytes_per_second\": 1e12},"
      "\"profile\": {\"file\": \"%s\", \"device\": \"%s\"},"
      "\"operations\": ["
      "{\"names\": [\"copy\", \"cast\", \"add\", \"neg\", \"clamp\", \"sqrt\", \"exp\", \"gelu\", \"sum\", \"softmax\", \"rms_norm\","
      "\"matmul\"], \"formats\": [\"f32\"], \"flops_per_second\": 1e9, \"bytes_per_second\": 1e15, \"launch_ns\": 70000}]}",
      profile, device);
  write_file(DESCRIPTION, json, (uint64_t)length);
}

static sim_description *read_good(void) {
  static sim_description description;
  char words[SIM_TEXT_BYTES] = { 0 };
  if (!sim_description_read(DESCRIPTION, &description, words)) fail_msg("%s", words);
  return &description;
}

/* ---- operations ---- */

typedef struct question {
  tm_operation  operation;
  tm_operand    operands[SIM_MAX_OPERANDS];
  unsigned char attributes[32];
} question;

static tm_operand dense(uint32_t format, uint64_t rows, uint64_t columns) {
  const uint64_t dims[] = { rows, columns };
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, 2, dims, &operand, NULL), TM_OK);
  operand.alignment = 64;
  return operand;
}

static void ask(question *q, const sim_loop *loop) {
  memset(q, 0, sizeof *q);
  const uint32_t inputs = loop->operand_count - 1;
  q->operation = (tm_operation){ .struct_size = sizeof q->operation, .op = loop->op, .version = 1, .worst_numerics = TM_NUMERICS_N4,
                                 .attribute_bytes = tm_op_find(loop->op)->attribute_bytes, .input_count = inputs, .output_count = 1,
                                 .operands = q->operands, .attributes = q->attributes,
                                 .flags = loop->same_shape ? TM_OPERATION_ALL_SAME_SHAPE : 0 };
  for (uint32_t i = 0; i <= inputs; i++) q->operands[i] = dense(TM_FORMAT_F32, 96, 96);
  if (loop->op == TM_OP_SUM) {
    const tm_reduce_attributes attributes = { .axes = 2 };
    memcpy(q->attributes, &attributes, sizeof attributes);
    q->operands[1] = dense(TM_FORMAT_F32, 96, 1);
  }
}

static uint64_t cost_of(const sim_description *description, const question *q) {
  tm_answer answer = { .struct_size = sizeof answer };
  sim_judge(description, &q->operation, &answer);
  if (answer.level == TM_LEVEL_REFUSED) fail_msg("%s: %.*s", sim_loop_find(q->operation.op)->name, (int)answer.text.length, answer.text.data);
  assert_true(answer.launch_ns <= answer.cost_ns);
  return answer.cost_ns;
}

static uint64_t counted_ns(const question *q) {
  tm_work work;
  tm_op_find(q->operation.op)->work(&q->operation, &work);
  return 1000 + work.flops / 2 + (work.read_bytes + work.written_bytes) / 4;
}

/* ---- what was measured ---- */

/* With every class as fast as the core's own count says: what the plugin counts is what the core does. */
static void the_count_is_the_hosts(void **state) {
  (void)state;
  static text t;
  begin(&t, TM_PROFILE_VERSION);
  const uint64_t device = add_device(&t, "there", "00112233445566778899aabbccddeeff", 4);
  for (uint32_t class_number = 0; class_number < TM_CLASS_COUNT; class_number++)
    add_entry(&t, device, TM_CORRECTION_WORK, class_number, 0, 256);
  write_file(PROFILE, t.bytes, t.length);
  describe("profiled.profile", "there");
  const sim_description *description = read_good();
  assert_int_equal(SIM_CLASSES, TM_CLASS_COUNT);
  for (uint32_t i = 0; i < description->claim_count; i++) {
    question q;
    const sim_loop *loop = description->claims[i].loop;
    ask(&q, loop);
    assert_int_equal(loop->class_number, tm_op_find(loop->op)->op_class);
    if (cost_of(description, &q) != counted_ns(&q))
      fail_msg("%s: %llu ns, and the host counts %llu", loop->name, (unsigned long long)cost_of(description, &q),
               (unsigned long long)counted_ns(&q));
  }
}

static void classes_have_their_own_speed(void **state) {
  (void)state;
  static text t;
  question q;
  begin(&t, TM_PROFILE_VERSION);
  const uint64_t other = add_device(&t, "other", "ff112233445566778899aabbccddeeff", 4);
  const uint64_t less = add_device(&t, "there", "00112233445566778899aabbccddeeff", 2);
  const uint64_t device = add_device(&t, "there", "00112233445566778899aabbccddeeff", 4);
  add_entry(&t, other, TM_CORRECTION_WORK, TM_CLASS_ELEMENTWISE, 5 * ONE, 256);
  add_entry(&t, less, TM_CORRECTION_WORK, TM_CLASS_ELEMENTWISE, 7 * ONE, 256);
  add_entry(&t, device, TM_CORRECTION_CLASS, TM_CLASS_ELEMENTWISE, 9 * ONE, 256);
  add_entry(&t, device, TM_CORRECTION_WORK, TM_CLASS_ELEMENTWISE, -3 * ONE, 256);
  add_entry(&t, device, TM_CORRECTION_WORK, TM_CLASS_ELEMENTWISE, -1 * ONE, 256);        /* as much again: the mean is 2^-2 */
  add_entry(&t, device, TM_CORRECTION_WORK, TM_CLASS_MATMUL, 1 * ONE, 512);
  write_file(PROFILE, t.bytes, t.length);
  const char *const names[] = { "there", "0011", "00112233445566778899aabbccddeeff" };
  for (uint32_t i = 0; i < 3; i++) {
    describe(i == 0 ? "profiled.profile" : PROFILE, names[i]);
    const sim_description *description = read_good();
    ask(&q, sim_loop_by_name("add"));
    assert_int_equal(cost_of(description, &q), counted_ns(&q) / 4);
    ask(&q, sim_loop_by_name("matmul"));
    assert_int_equal(cost_of(description, &q), counted_ns(&q) * 2);
    ask(&q, sim_loop_by_name("exp"));                                     /* nothing is known: as it is described */
    assert_int_equal(cost_of(description, &q), 70000 + 96 * 96 * 10);
  }
  const uint64_t hash = read_good()->hash;
  add_entry(&t, device, TM_CORRECTION_WORK, TM_CLASS_MATMUL, 0, 256);
  write_file(PROFILE, t.bytes, t.length);
  assert_true(read_good()->hash != hash);               /* another device */
}

/* ---- what is wrong ---- */

static void expect_complaint(const char *words) {
  static sim_description description;
  char found[SIM_TEXT_BYTES] = { 0 };
  assert_int_equal(sim_description_read(DESCRIPTION, &description, found), 0);
  if (strstr(found, words) == NULL) fail_msg("'%s' does not say '%s'", found, words);
  for (const char *c = found; *c != '\0'; c++) assert_true(*c >= ' ' && *c <= '~');
}

static void make_sound(text *t) {
  begin(t, TM_PROFILE_VERSION);
  const uint64_t device = add_device(t, "there", "00112233445566778899aabbccddeeff", 4);
  add_entry(t, device, TM_CORRECTION_WORK, TM_CLASS_ELEMENTWISE, ONE, 256);
  describe("profiled.profile", "there");
}

static void what_is_no_profile_is_said_to_be_none(void **state) {
  (void)state;
  static text t;
  describe("no-such.profile", "there");
  expect_complaint("no-such.profile: expected a profile (profile.file), found: No such file");
  describe(".", "there");
  expect_complaint("can be read");
  describe("profiled.profile", "there");
  write_file(PROFILE, "", 0);
  expect_complaint("profiled.profile: expected what `tensormorph profile export` writes");
  write_file(PROFILE, "{}\n", 3);
  expect_complaint("expected what `tensormorph profile export` writes");
  begin(&t, 7);
  write_file(PROFILE, t.bytes, t.length);
  expect_complaint("expected a profile of version 1, found 7");
  describe("profiled.json", "there");
  expect_complaint("profiled.json: expected what");
}

static void damage_is_found(void **state) {
  (void)state;
  static text t;
  make_sound(&t);
  write_file(PROFILE, t.bytes, t.length);
  (void)read_good();
  write_file(PROFILE, t.bytes, t.length - 1);
  expect_complaint("line 3: expected a whole line");
  for (uint64_t at = 0; at < t.length; at++) {          /* a bit anywhere */
    static sim_description description;
    char words[SIM_TEXT_BYTES] = { 0 };
    t.bytes[at] ^= 1;
    write_file(PROFILE, t.bytes, t.length);
    assert_int_equal(sim_description_read(DESCRIPTION, &description, words), 0);
    assert_non_null(strstr(words, "profiled.profile: "));
    t.bytes[at] ^= 1;
  }
  static char zeros[3000];
  memcpy(t.bytes + t.length, zeros, sizeof zeros);
  write_file(PROFILE, t.bytes, t.length + sizeof zeros);
  expect_complaint("line 4: ");
}

static void devices_are_named_as_they_are(void **state) {
  (void)state;
  static text t;
  make_sound(&t);
  write_file(PROFILE, t.bytes, t.length);
  describe("profiled.profile", "elsewhere");
  expect_complaint("expected a device 'elsewhere', and there are there (00112233)");
  const uint64_t second = add_device(&t, "there", "88112233445566778899aabbccddeeff", 4);
  write_file(PROFILE, t.bytes, t.length);
  describe("profiled.profile", "there");
  expect_complaint("'there' is several: name one by its uuid; there are there (00112233), there (88112233)");
  describe("profiled.profile", "8811");
  expect_complaint("nothing was measured of '8811': run `tensormorph calibrate` there first");
  add_entry(&t, second, TM_CORRECTION_WORK, TM_CLASS_CAST, ONE, 256);
  write_file(PROFILE, t.bytes, t.length);
  (void)read_good();
  for (uint32_t i = 0; i < 64; i++) (void)add_device(&t, "many", "77112233445566778899aabbccddeeff", i);
  write_file(PROFILE, t.bytes, t.length);
  expect_complaint("expected at most 64 devices");
}

static void the_description_names_both(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
    { "{}", "profile.file: expected it to be there" },
    { "{\"file\": \"x\"}", "profile.device: expected it to be there" },
    { "{\"file\": 7, \"device\": \"x\"}", "profile.file: expected a path of 1 to 1023 bytes, found 7" },
    { "{\"file\": \"x\", \"device\": \"\"}", "profile.device: expected a text of 1 to 63" },
    { "{\"file\": \"x\", \"device\": \"x\", \"speed\": 2}", "profile: expected one of the keys file, device" },
    { "[]", "profile: expected an object" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char json[1024];
    const int length = snprintf(json, sizeof json,
        "{\"name\": \"x\", \"memory\": {\"bytes\": 1000}, \"link\": {\"bytes_per_second\": 1}, \"profile\": %s, \"operations\": []}",
        wrong[i][0]);
    write_file(DESCRIPTION, json, (uint64_t)length);
    expect_complaint(wrong[i][1]);
  }
}

/* Each complaint has a place. */
static void a_description_is_an_object(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
    { "[]", ": description: expected an object, found a list of 0" },
    { "[{}, {}]", ": description: expected an object, found a list of 2" },
    { "{\"speed\": 2}", ": description: expected one of the keys " },
    { "{\"name\": \"x\", \"memory\": [], \"link\": {\"bytes_per_second\": 1}, \"operations\": []}", ": memory: expected an object" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    write_file(DESCRIPTION, wrong[i][0], strlen(wrong[i][0]));
    expect_complaint(wrong[i][1]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_description_is_an_object),
    cmocka_unit_test(the_count_is_the_hosts),
    cmocka_unit_test(classes_have_their_own_speed),
    cmocka_unit_test(what_is_no_profile_is_said_to_be_none),
    cmocka_unit_test(damage_is_found),
    cmocka_unit_test(devices_are_named_as_they_are),
    cmocka_unit_test(the_description_names_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
