/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, mutexes, conditions with a deadline; errors and the clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define MS UINT64_C(1000000)

typedef struct meeting {
  tm_mutex     lock;
  tm_condition changed;
  uint32_t     arrived;
  uint32_t     is_open;
} meeting;

static void open_meeting(meeting *m) {
  memset(m, 0, sizeof *m);
  assert_int_equal(tm_mutex_init(&m->lock), TM_OK);
  assert_int_equal(tm_condition_init(&m->changed), TM_OK);
}

static void close_meeting(meeting *m) {
  tm_condition_deinit(&m->changed);
  tm_mutex_deinit(&m->lock);
}

static void *arrive(void *argument) {
  meeting *m = argument;
  tm_mutex_lock(&m->lock);
  m->arrived++;
  tm_condition_wake_all(&m->changed);
  while (m->is_open == 0) (void)tm_condition_wait(&m->changed, &m->lock, UINT64_MAX);
  tm_mutex_unlock(&m->lock);
  return NULL;
}

static void all_wait_and_all_are_woken(void **state) {
  (void)state;
  meeting m;
  open_meeting(&m);
  tm_thread threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(tm_thread_start(&threads[i], arrive, &m, NULL), TM_OK);
  tm_mutex_lock(&m.lock);
  while (m.arrived < 4) (void)tm_condition_wait(&m.changed, &m.lock, UINT64_MAX);
  assert_false(m.is_open);
  m.is_open = 1;
  tm_condition_wake_all(&m.changed);
  tm_mutex_unlock(&m.lock);
  for (int i = 0; i < 4; i++) tm_thread_join(&threads[i]);
  close_meeting(&m);
}

static void a_wait_ends_at_its_deadline(void **state) {
  (void)state;
  meeting m;
  open_meeting(&m);
  tm_mutex_lock(&m.lock);
  const uint64_t deadline = tm_now_ns() + 30 * MS;
  while (tm_condition_wait(&m.changed, &m.lock, deadline)) {
  }
  assert_true(tm_now_ns() >= deadline);
  assert_false(tm_condition_wait(&m.changed, &m.lock, 0));      /* long past */
  tm_mutex_unlock(&m.lock);
  close_meeting(&m);
}

static void *try_it(void *argument) {
  meeting *m = argument;
  m->is_open = tm_mutex_try_lock(&m->lock) ? 1 : 2;
  return NULL;
}

static void a_held_mutex_is_not_taken(void **state) {
  (void)state;
  meeting m;
  open_meeting(&m);
  tm_thread thread;
  assert_true(tm_mutex_try_lock(&m.lock));
  assert_int_equal(tm_thread_start(&thread, try_it, &m, NULL), TM_OK);
  tm_thread_join(&thread);
  assert_int_equal(m.is_open, 2);
  tm_mutex_unlock(&m.lock);
  close_meeting(&m);
}

static void the_clock_goes_forward(void **state) {
  (void)state;
  const uint64_t begin = tm_now_ns();
  tm_sleep_ns(5 * MS);
  assert_true(tm_now_ns() - begin >= 5 * MS);
  tm_sleep_ns(0);
}

static void errors_are_recorded_once_and_prefixed(void **state) {
  (void)state;
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_fail_native(&error, TM_ERROR_IO, 5, "reading %d bytes", 7), TM_ERROR_IO);
  tm_error_prefix(&error, "file %s", "x");
  assert_string_equal(error.text, "file x: reading 7 bytes");
  assert_int_equal(error.code, TM_ERROR_IO);
  assert_int_equal(error.native_code, 5);
  char longer[2000];
  memset(longer, 'a', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  assert_int_equal(tm_fail(&error, TM_ERROR_LIMIT, "%s", longer), TM_ERROR_LIMIT);
  assert_int_equal(strlen(error.text), sizeof error.text - 1);
  tm_error_prefix(&error, "%s", longer);
  assert_int_equal(strlen(error.text), sizeof error.text - 1);
  assert_int_equal(error.native_code, 0);
  tm_error_prefix(NULL, "x");
  assert_int_equal(tm_fail(NULL, TM_ERROR_IO, "x"), TM_ERROR_IO);
}

static void every_status_has_a_name(void **state) {
  (void)state;
  for (tm_status status = TM_ERROR_INTERNAL; status <= TM_END; status++) assert_string_not_equal(tm_status_name(status), "unknown status");
  assert_string_equal(tm_status_name(12345), "unknown status");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_wait_and_all_are_woken),
    cmocka_unit_test(a_wait_ends_at_its_deadline),
    cmocka_unit_test(a_held_mutex_is_not_taken),
    cmocka_unit_test(the_clock_goes_forward),
    cmocka_unit_test(errors_are_recorded_once_and_prefixed),
    cmocka_unit_test(every_status_has_a_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
