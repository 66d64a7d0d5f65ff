/* SPDX-License-Identifier: Apache-2.0 */
/* Who changed the environment, and that nobody hangs for being asked while libraries are loaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conformance/environment_watch.h"

#define LOADS 3000
#define HANG_SECONDS 100        /* for a machine under load; nothing waits for it */

static void *load(void) {
  void *driver = dlopen(EAGER_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) fail_msg("%s", dlerror());
  return driver;
}

static void set_by(void *driver, const char *variable) {
  int (*set)(const char *) = NULL;
  void *address = dlsym(driver, "eager_driver_set");
  assert_non_null(address);
  memcpy(&set, &address, sizeof set);
  assert_int_equal(set(variable), 0);
}

static void expect_description(const char *expected) {
  char text[256];
  environment_watch_describe(text, sizeof text);
  assert_string_equal(text, expected);
}

static void it_counts(void **state) {
  (void)state;
  assert_int_equal(unsetenv("EAGER_DRIVER_WAS_HERE"), 0);
  environment_watch_begin();
  expect_description("");
  void *driver = load();
  assert_true(environment_watch_excuses("EAGER_DRIVER_WAS_HERE=eager"));
  expect_description("eager_driver.so, which it opens, sets EAGER_DRIVER_WAS_HERE once");
  set_by(driver, "EAGER_DRIVER_WAS_HERE");
  expect_description("eager_driver.so, which it opens, sets EAGER_DRIVER_WAS_HERE 2 times");
  environment_watch_end();
  expect_description("eager_driver.so, which it opens, sets EAGER_DRIVER_WAS_HERE 2 times");
  set_by(driver, "EAGER_DRIVER_WAS_HERE");
  assert_false(environment_watch_excuses("EAGER_DRIVER_WAS_HERE=eager"));
  expect_description("");
  assert_int_equal(dlclose(driver), 0);
}

static void what_the_host_touches_is_its_own(void **state) {
  (void)state;
  assert_int_equal(unsetenv("EAGER_DRIVER_WAS_HERE"), 0);
  environment_watch_begin();
  void *driver = load();
  assert_int_equal(setenv("EAGER_DRIVER_WAS_HERE", "mine", 1), 0);
  assert_false(environment_watch_excuses("EAGER_DRIVER_WAS_HERE=mine"));
  environment_watch_end();
  assert_int_equal(dlclose(driver), 0);
}

static _Atomic int is_over;

static void *change_always(void *context) {
  (void)context;
  for (int i = 0; !atomic_load(&is_over); i++) {
    (void)setenv("HOST_WAS_HERE", "1", 1);
    if (i % 64 == 0) environment_watch_begin();
  }
  return NULL;
}

/* The loader's lock and the watch's own must not be wanted in both orders. */
static void loading_and_changing_at_once(void **state) {
  (void)state;
  pthread_t other;
  assert_int_equal(setenv("HOST_WAS_HERE", "1", 1), 0);
  environment_watch_begin();
  (void)alarm(HANG_SECONDS);
  atomic_store(&is_over, 0);
  assert_int_equal(pthread_create(&other, NULL, change_always, NULL), 0);
  for (int i = 0; i < LOADS; i++) assert_int_equal(dlclose(load()), 0);
  atomic_store(&is_over, 1);
  assert_int_equal(pthread_join(other, NULL), 0);
  (void)alarm(0);
  environment_watch_end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(loading_and_changing_at_once),
    cmocka_unit_test(it_counts),
    cmocka_unit_test(what_the_host_touches_is_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
