/* SPDX-License-Identifier: Apache-2.0 */
/* The command sees the public headers only and has a table of its own of what is not shown: it is the library's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "cli/printable_text.h"

static size_t encode(uint32_t code, char *out) {
  const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
  for (size_t i = bytes; i-- > 0; code >>= 6) out[i] = (char)(i == 0 ? leads[bytes] | code : 0x80 | (code & 0x3f));
  return bytes;
}

static void hides_what_the_library_hides(void **state) {
  (void)state;
  uint32_t hidden = 0;
  for (uint32_t code = 0x80; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    char text[4];
    uint32_t decoded;
    const size_t bytes = encode(code, text);
    assert_int_equal(tm_printable_character(text, bytes), bytes);
    const bool is_hidden = tm_printable_is_hidden(text, bytes, &decoded);
    assert_int_equal(decoded, code);
    if (is_hidden == tm_text_is_clean(text, bytes)) fail_msg("U+%04X: hidden here: %d", (unsigned)code, is_hidden);
    hidden += is_hidden;
  }
  assert_true(hidden > 100 && hidden < 400);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(hides_what_the_library_hides) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
