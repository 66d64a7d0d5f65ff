/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that changes the environment from its constructor: the loader's lock is held meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

__attribute__((visibility("default"))) int eager_driver_set(const char *variable);

int eager_driver_set(const char *variable) {
  const volatile int failed = setenv(variable, "eager", 1);
  return failed;        /* volatile, so no tail call, also where this is inlined: it must be seen who calls */
}

__attribute__((constructor)) static void begin(void) { (void)eager_driver_set("EAGER_DRIVER_WAS_HERE"); }
