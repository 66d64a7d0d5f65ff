/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of other minors: today's library is "later" to a shorter one and "earlier" to a longer one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/sized_struct.h"

/* A memory space in a minor that appended a field. */
typedef struct later_space {
  tm_memory_space known;
  uint64_t        appended;
} later_space;

static const tm_memory_space of_minor_1 = { .struct_size = TM_MEMORY_SPACE_BYTES_MINOR_1, .total_bytes = 77, .alignment = 64,
                                            .store_granule = 4, .reserved = 5 };

static void a_shorter_struct_is_filled_with_zeros(void **state) {
  (void)state;
  later_space taken;
  memset(&taken, 0xff, sizeof taken);
  tm_sized_struct_take(&taken, sizeof taken, &of_minor_1, of_minor_1.struct_size);
  assert_memory_equal(&taken.known, &of_minor_1, sizeof of_minor_1);
  assert_int_equal(taken.appended, 0);
}

static void a_longer_struct_is_cut(void **state) {
  (void)state;
  const later_space given = { of_minor_1, UINT64_MAX };
  struct { tm_memory_space known; uint64_t guard; } taken = { .guard = 99 };
  tm_sized_struct_take(&taken.known, sizeof taken.known, &given, sizeof given);
  assert_memory_equal(&taken.known, &of_minor_1, sizeof of_minor_1);
  assert_int_equal(taken.guard, 99);
}

/* Written as numbers: a field that is appended, or moved, must not change what an old plugin may have. */
static void minor_1_has_the_sizes_that_it_had(void **state) {
  (void)state;
  assert_int_equal(TM_OPTION_BYTES_MINOR_1, 56);
  assert_int_equal(TM_MEMORY_SPACE_BYTES_MINOR_1, 80);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_shorter_struct_is_filled_with_zeros),
    cmocka_unit_test(a_longer_struct_is_cut),
    cmocka_unit_test(minor_1_has_the_sizes_that_it_had),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
