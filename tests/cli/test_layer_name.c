/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "layer_name.h"

typedef struct name_case {
  const char *name;
  uint64_t    layer;
  const char *kind;
  const char *prefix;
} name_case;

static const name_case cases[] = {
  { "model.layers.31.self_attn.q_proj.weight", 31, "model.layers.*.self_attn.q_proj.weight", "model.layers.*." },
  { "blk.0.attn_q.weight", 0, "blk.*.attn_q.weight", "blk.*." },
  { "model.layers.2.mlp.experts.17.w1.weight", 2, "model.layers.*.mlp.experts.*.w1.weight", "model.layers.*." },
  { "0.weight", 0, "*.weight", "*." },
  { "h.7", 7, "h.*", "h.*" },
  { "007", 7, "*", "*" },
  { "/model/stft/Constant_1_output_0", TM_NO_LAYER, "/model/stft/Constant_1_output_0", "" },
  { "onnx/encoder.3/conv/weight", 3, "onnx/encoder.*/conv/weight", "onnx/encoder.*/" },
  { "conv1.weight", TM_NO_LAYER, "conv1.weight", "" },
  { "lm_head.weight", TM_NO_LAYER, "lm_head.weight", "" },
  { "a.1234567890.b", TM_NO_LAYER, "a.1234567890.b", "" },
  { "a.999999999.b", 999999999, "a.*.b", "a.*." },
  { "a..1..b.", 1, "a..*..b.", "a..*." },
  { "a.-1.b", TM_NO_LAYER, "a.-1.b", "" },
  { "...", TM_NO_LAYER, "...", "" },
  { "", TM_NO_LAYER, "", "" },
};

static void splits_names(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const name_case    *wanted = &cases[i];
    char                kind[64] = "";
    const tm_layer_name split = tm_layer_name_split(wanted->name, strlen(wanted->name), kind);
    kind[split.kind_length] = '\0';
    assert_string_equal(kind, wanted->kind);
    assert_true(split.layer == wanted->layer);
    assert_int_equal(split.prefix_length, strlen(wanted->prefix));
    assert_memory_equal(kind, wanted->prefix, split.prefix_length);
  }
}

static void takes_any_bytes(void **state) {
  (void)state;
  const char          name[] = "a\0.5.\xff";
  char                kind[sizeof name];
  const tm_layer_name split = tm_layer_name_split(name, sizeof name - 1, kind);
  assert_true(split.layer == 5);
  assert_int_equal(split.kind_length, sizeof name - 1);
  assert_memory_equal(kind, "a\0.*.\xff", split.kind_length);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(splits_names), cmocka_unit_test(takes_any_bytes) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
