/* SPDX-License-Identifier: Apache-2.0 */
/* Children: how they end, what they say, and that one that hangs costs its time limit and no more. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"

#define SHELL "/bin/sh"
#define MS UINT64_C(1000000)
#define LONG_NS (UINT64_C(60) * 1000 * MS)

static tm_process_result shell(const char *script, uint64_t timeout_ns) {
  tm_process_result result;
  tm_error error = TM_ERROR_INIT;
  memset(&result, 0x55, sizeof result);
  if (tm_process_run(SHELL, "-c", script, timeout_ns, &result, &error) != TM_OK) fail_msg("%s", error.text);
  return result;
}

static void output_and_exit_code_are_told(void **state) {
  (void)state;
  const tm_process_result result = shell("printf hello; exit 7", LONG_NS);
  assert_false(result.timed_out);
  assert_int_equal(result.exit_code, 7);
  assert_int_equal(result.signal, 0);
  assert_int_equal(result.output_length, 5);
  assert_string_equal(result.output, "hello");
}

static void a_limit_that_never_comes_is_fine(void **state) {
  (void)state;
  assert_string_equal(shell("printf x", UINT64_MAX).output, "x");
}

static void the_signal_is_told(void **state) {
  (void)state;
  const tm_process_result result = shell("kill -SEGV $$", LONG_NS);
  assert_int_equal(result.signal, SIGSEGV);
  assert_false(result.timed_out);
}

static void a_hang_costs_its_time_limit(void **state) {
  (void)state;
  static const char *const hangs[] = { "exec sleep 100", "exec >&-; exec sleep 100", "trap '' TERM; while :; do :; done" };
  for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
    const uint64_t begin = tm_now_ns();
    const tm_process_result result = shell(hangs[i], 150 * MS);
    const uint64_t taken = tm_now_ns() - begin;
    assert_true(result.timed_out);
    assert_int_equal(result.signal, SIGKILL);
    assert_true(taken >= 150 * MS && taken < 20000 * MS);
  }
}

static void long_output_is_cut_and_read_to_its_end(void **state) {
  (void)state;
  const tm_process_result result = shell("i=0; while [ $i -lt 3000 ]; do printf 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 3", LONG_NS);
  assert_int_equal(result.exit_code, 3);
  assert_int_equal(result.output_length, sizeof result.output - 1);
  assert_int_equal(strlen(result.output), sizeof result.output - 1);
}

static void its_input_is_empty(void **state) {
  (void)state;
  assert_string_equal(shell("cat; printf done", LONG_NS).output, "done");
}

static void a_program_that_is_not_there_is_an_error(void **state) {
  (void)state;
  tm_process_result result = { .exit_code = 55 };
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_process_run("/nowhere/at/all", NULL, NULL, LONG_NS, &result, &error), TM_ERROR_NOT_FOUND);
  assert_non_null(strstr(error.text, "/nowhere/at/all"));
  assert_int_equal(result.exit_code, 55);
  assert_true(tm_is_executable(SHELL));
  assert_false(tm_is_executable("/nowhere/at/all"));
  assert_false(tm_is_privileged());
}

/* A host that ignores its children's ends leaves no status; what the child said is there all the same. */
static void a_host_that_reaps_by_itself_is_not_disturbed(void **state) {
  (void)state;
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  const tm_process_result result = shell("printf hello; exit 7", LONG_NS);
  assert_true(signal(SIGCHLD, before) == SIG_IGN);
  assert_string_equal(result.output, "hello");
  assert_false(result.timed_out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(output_and_exit_code_are_told),
    cmocka_unit_test(a_limit_that_never_comes_is_fine),
    cmocka_unit_test(the_signal_is_told),
    cmocka_unit_test(a_hang_costs_its_time_limit),
    cmocka_unit_test(long_output_is_cut_and_read_to_its_end),
    cmocka_unit_test(its_input_is_empty),
    cmocka_unit_test(a_program_that_is_not_there_is_an_error),
    cmocka_unit_test(a_host_that_reaps_by_itself_is_not_disturbed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
