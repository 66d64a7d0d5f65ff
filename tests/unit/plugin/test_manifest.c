/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: what is read, what is refused with which words, and that a lie keeps the plugin out before its code runs. */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "base/processor.h"
#include "base/sha256.h"
#include "formats/scratch.h"
#include "plugin/manifest.h"
#include "plugin_case.h"

/* ---- the text ---- */

static void everything_is_read(void **state) {
  (void)state;
  static const char text[] = "{\"schema\":1,\"name\":\"adder\",\"version\":\"1.0\",\"file\":\"adder.so\",\"abi\":\"0.1\","
                             "\"architecture\":\"some\",\"processor_features\":[\"a\",\"b\"],\"watches\":[\"/etc/x\"],"
                             "\"sha256\":\"000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F\",\"later\":[{}]}";
  static tm_manifest m;
  assert_int_equal(tm_manifest_parse(text, sizeof text - 1, "m.json", &m, NULL), TM_OK);
  assert_true(m.exists && m.has_abi && m.has_digest);
  assert_string_equal(m.name, "adder");
  assert_string_equal(m.version, "1.0");
  assert_string_equal(m.file, "adder.so");
  assert_string_equal(m.architecture, "some");
  assert_int_equal(m.abi_major, 0);
  assert_int_equal(m.abi_minor, 1);
  assert_int_equal(m.feature_count, 2);
  assert_string_equal(m.features[1], "b");
  assert_int_equal(m.watch_count, 1);
  for (uint8_t i = 0; i < 32; i++) assert_int_equal(m.digest[i], i);
}

typedef struct nonsense {
  const char *text;
  const char *reason;
} nonsense;

static void nonsense_is_refused_by_reason(void **state) {
  (void)state;
  static const nonsense all[] = {
    { "", "byte 0" },
    { "[]", "no JSON object" },
    { "{", "byte 1" },
    { "{\"schema\":1}", "which \"name\"" },
    { "{\"name\":\"a\"}", "\"schema\": 1" },
    { "{\"schema\":2,\"name\":\"a\"}", "\"schema\" must be 1 (byte 1)" },
    { "{\"schema\":\"1\",\"name\":\"a\"}", "\"schema\"" },
    { "{\"schema\":1,\"name\":7}", "\"name\" must be" },
    { "{\"schema\":1,\"name\":\"a\",\"abi\":\"one\"}", "\"abi\"" },
    { "{\"schema\":1,\"name\":\"a\",\"sha256\":\"12\"}", "\"sha256\"" },
    { "{\"schema\":1,\"name\":\"a\",\"processor_features\":\"x\"}", "\"processor_features\"" },
    { "{\"schema\":1,\"name\":\"a\",\"watches\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\",\"l\",\"m\",\"n\",\"o\",\"p\",\"q\"]}",
      "\"watches\" must be a list of at most 16 absolute paths" },
    { "{\"schema\":1,\"name\":\"a\",\"watches\":[\"/etc/x\",\"x\"]}", "\"watches\" must be a list of at most 16 absolute paths" },
    { "{\"schema\":1,\"name\":\"a\"} x", "byte 24" },
    { "{\"schema\":1,\"na\\u006de\":[[[[", "\"na\\\\u006de\"" },
  };
  static tm_manifest m;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    tm_error error = TM_ERROR_INIT;
    assert_int_equal(tm_manifest_parse(all[i].text, strlen(all[i].text), "m.json", &m, &error), TM_ERROR_CORRUPT);
    if (strstr(error.text, all[i].reason) == NULL) fail_msg("'%s' does not say '%s'", error.text, all[i].reason);
  }
}

/* FIPS 180-4 examples, and a million times "a". */
static void the_hash_is_sha256(void **state) {
  (void)state;
  static const struct { const char *text; int times; const char *digest; } known[] = {
    { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    tm_sha256 hash;
    uint8_t digest[TM_SHA256_BYTES];
    char text[2 * TM_SHA256_BYTES + 1];
    tm_sha256_init(&hash);
    for (int t = 0; t < known[i].times; t++) tm_sha256_add(&hash, known[i].text, strlen(known[i].text));
    tm_sha256_finish(&hash, digest);
    for (uint32_t b = 0; b < TM_SHA256_BYTES; b++) snprintf(text + 2 * b, 3, "%02x", digest[b]);
    assert_string_equal(text, known[i].digest);
  }
}

/* ---- beside a plugin ---- */

typedef struct beside_case {
  scratch folder;
  char    plugin[1024];
  char    digest[2 * TM_SHA256_BYTES + 1];
} beside_case;

static void beside_begin(beside_case *c, const char *plugin) {
  uint64_t bytes = 0;
  unsigned char *content = scratch_slurp(plugin, &bytes);
  assert_true(scratch_init(&c->folder));
  assert_non_null(content);
  snprintf(c->plugin, sizeof c->plugin, "%s", scratch_write(&c->folder, "beside.so", content, bytes));
  assert_int_equal(chmod(c->plugin, 0755), 0);
  tm_sha256 hash;
  uint8_t digest[TM_SHA256_BYTES];
  tm_sha256_init(&hash);
  tm_sha256_add(&hash, content, bytes);
  tm_sha256_finish(&hash, digest);
  for (uint32_t b = 0; b < TM_SHA256_BYTES; b++) snprintf(c->digest + 2 * b, 3, "%02x", digest[b]);
  free(content);
}

static void expect_with_manifest(beside_case *c, const char *text, uint32_t state, const char *reason) {
  assert_non_null(scratch_write(&c->folder, "beside.json", text, strlen(text)));
  const char *paths[] = { c->plugin, ZOO("old") };
  const tm_context_options options = options_with(paths, 2);
  tm_context *context = open_context(&options);
  expect_state(context, c->plugin, state, reason);
  expect_state(context, "zoo_old", TM_BACKEND_READY, "");
  tm_context_destroy(context);
}

static void a_true_one_lets_it_in(void **state) {
  (void)state;
  beside_case c;
  char text[1024];
  beside_begin(&c, ZOO("honest"));
  snprintf(text, sizeof text,
           "{\"schema\":1,\"name\":\"zoo_honest\",\"version\":\"1\",\"file\":\"beside.so\",\"abi\":\"0.1\",\"architecture\":\"%s\","
           "\"sha256\":\"%s\"}",
           tm_processor_architecture(), c.digest);
  expect_with_manifest(&c, text, TM_BACKEND_READY, "");
  scratch_deinit(&c.folder);
}

static void a_lie_keeps_it_out(void **state) {
  (void)state;
  static const nonsense lies[] = {
    { "{\"schema\":1,\"name\":\"zoo_honset\"}", "calls it zoo_honset, the plugin itself zoo_honest" },
    { "{\"schema\":1,\"name\":\"zoo_honest\",\"version\":\"2\"}", "says version 2, the plugin itself 1" },
    { "{\"schema\":1,\"name\":\"zoo_honest\",\"file\":\"other.so\"}", "about another file: other.so" },
    { "{\"schema\":1,\"name\":\"zoo_honest\",\"architecture\":\"pdp11\"}", "another architecture: pdp11" },
    { "{\"schema\":1,\"name\":\"zoo_honest\",\"abi\":\"9.1\"}", "contract version 9.1" },
    { "{\"schema\":1,\"name\":\"zoo_honest\",\"processor_features\":[\"warp_drive\"]}", "processor feature that this machine lacks: warp_drive" },
    { "{\"schema\":1,\"name\":\"zoo_honest\",\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\"}",
      "another sha256 (00000000...)" },
    { "{\"schema\":1", "manifest: byte" },
  };
  beside_case c;
  beside_begin(&c, ZOO("honest"));
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) expect_with_manifest(&c, lies[i].text, TM_BACKEND_REFUSED, lies[i].reason);
  scratch_deinit(&c.folder);
}

/* Its constructor would abort: nobody gets that far. */
static void no_code_runs_before_it_is_read(void **state) {
  (void)state;
  beside_case c;
  beside_begin(&c, ZOO("constructor_aborts"));
  expect_with_manifest(&c, "{\"schema\":1,\"name\":\"x\",\"architecture\":\"pdp11\"}", TM_BACKEND_REFUSED, "another architecture");
  char *huge = malloc(TM_MANIFEST_BYTES + 2);
  assert_non_null(huge);
  memset(huge, ' ', TM_MANIFEST_BYTES + 1);
  huge[TM_MANIFEST_BYTES + 1] = '\0';
  expect_with_manifest(&c, huge, TM_BACKEND_REFUSED, "65537 bytes, at most 65536");
  free(huge);
  scratch_deinit(&c.folder);
}

static void a_folder_in_its_place_keeps_it_out(void **state) {
  (void)state;
  beside_case c;
  beside_begin(&c, ZOO("honest"));
  assert_int_equal(mkdir(scratch_path(&c.folder, "beside.json"), 0755), 0);
  const char *paths[] = { c.plugin };
  const tm_context_options options = options_with(paths, 1);
  tm_context *context = open_context(&options);
  expect_state(context, c.plugin, TM_BACKEND_REFUSED, "directory");
  tm_context_destroy(context);
  scratch_deinit(&c.folder);
}

/* What is kept of a plugin holds until a file that its manifest watches changes. */
static void what_it_watches_is_looked_at(void **state) {
  (void)state;
  beside_case c;
  char text[2048], diary[1024], watched[1024], kept[1024], records[1100];
  beside_begin(&c, ZOO_FOLDER "/culprits/diary.so");
  snprintf(diary, sizeof diary, "%s", scratch_path(&c.folder, "diary.txt"));
  snprintf(watched, sizeof watched, "%s", scratch_path(&c.folder, "watched"));
  snprintf(kept, sizeof kept, "%s", scratch_path(&c.folder, "state"));
  snprintf(text, sizeof text, "{\"schema\":1,\"name\":\"zoo_diary\",\"watches\":[\"%.900s\"]}", watched);
  assert_non_null(scratch_write(&c.folder, "beside.json", text, strlen(text)));
  const char *paths[] = { c.plugin };
  const tm_setting setting = { "zoo_diary", "diary", diary };
  tm_context_options options = options_with(paths, 1);
  options.state_folder = kept;
  options.settings = &setting;
  options.setting_count = 1;
  for (int i = 0; i < 4; i++) {
    uint64_t bytes = 0;
    if (i == 2) assert_non_null(scratch_write(&c.folder, "watched", "driver", 6));
    tm_context_destroy(open_context(&options));
    unsigned char *lines = scratch_slurp(diary, &bytes);
    assert_int_equal(bytes / 5, i < 2 ? 1 : 2);
    free(lines);
  }
  scratch inner;
  snprintf(records, sizeof records, "%.1000s/backends", kept);
  snprintf(inner.folder, sizeof inner.folder, "%.255s", records);
  scratch_deinit(&inner);
  assert_int_equal(rmdir(kept), 0);
  scratch_deinit(&c.folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(everything_is_read),
    cmocka_unit_test(nonsense_is_refused_by_reason),
    cmocka_unit_test(the_hash_is_sha256),
    cmocka_unit_test(a_true_one_lets_it_in),
    cmocka_unit_test(a_lie_keeps_it_out),
    cmocka_unit_test(no_code_runs_before_it_is_read),
    cmocka_unit_test(a_folder_in_its_place_keeps_it_out),
    cmocka_unit_test(what_it_watches_is_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
