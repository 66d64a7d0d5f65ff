/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's driver, which leaves a variable in the environment when it is first used, and may set it several times. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

__attribute__((visibility("default"))) int zoo_driver_begin(const char *variable, int times);

int zoo_driver_begin(const char *variable, int times) {
  static int is_begun;
  if (is_begun) return 0;
  for (int i = 0; i < times; i++)
    if (setenv(variable, "/zoo", 1) != 0) return -1;    /* no tail call: it must be seen who calls */
  is_begun = 1;
  return 0;
}
