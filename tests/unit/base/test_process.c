/* SPDX-License-Identifier: Apache-2.0 */
/* Children: how they end, what they say, and that one that hangs costs its time limit and no more. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"

#define SHELL "/bin/sh"

/* Instead of the C library's: was the child still there to be collected?  If not, its number may be somebody else's. */
static pid_t killed;
static bool was_there;
int kill(pid_t process, int signal) {
  siginfo_t about;
  killed = process;
  was_there = waitid(P_PID, (id_t)(process < 0 ? -process : process), &about, WEXITED | WNOHANG | WNOWAIT) == 0;
  return (int)syscall(SYS_kill, process, signal);
}

#define MS UINT64_C(1000000)
#define LONG_NS (UINT64_C(60) * 1000 * MS)

#define OUTPUT_BYTES 1024u

/* The result's output is kept here, so that tests need not free it. */
typedef struct shell_result {
  bool     timed_out;
  int32_t  signal;
  int32_t  exit_code;
  uint64_t output_length;
  char     output[OUTPUT_BYTES];
} shell_result;

static shell_result shell_within(const char *script, uint64_t silence_ns, uint64_t total_ns) {
  tm_memory memory;
  tm_memory_init(&memory, 0);
  tm_process_result result;
  tm_error error = TM_ERROR_INIT;
  memset(&result, 0x55, sizeof result);
  const char *const command[] = { SHELL, "-c", script, NULL };
  const tm_process_limits limits = { silence_ns, total_ns, OUTPUT_BYTES, NULL, NULL };
  if (tm_process_run(&memory, command, &limits, &result, &error) != TM_OK) fail_msg("%s", error.text);
  shell_result kept = { result.timed_out, result.signal, result.exit_code, result.output_length, { 0 } };
  memcpy(kept.output, result.output, OUTPUT_BYTES);
  tm_process_result_deinit(&result);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
  return kept;
}

static shell_result shell(const char *script, uint64_t timeout_ns) { return shell_within(script, UINT64_MAX, timeout_ns); }

/* Ended, or at least a zombie that nobody has collected yet. */
static bool is_dead(pid_t process) {
  char path[64], text[512] = "";
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
  FILE *file = fopen(path, "r");
  if (file == NULL) return true;
  const size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = '\0';
  const char *close = strrchr(text, ')');
  return close == NULL || close[2] == 'Z';
}

static void output_and_exit_code_are_told(void **state) {
  (void)state;
  const shell_result result = shell("printf hello; exit 7", LONG_NS);
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
  const shell_result result = shell("kill -SEGV $$", LONG_NS);
  assert_int_equal(result.signal, SIGSEGV);
  assert_false(result.timed_out);
}

static void a_hang_costs_its_time_limit(void **state) {
  (void)state;
  static const char *const hangs[] = { "exec sleep 1000", "exec >&-; exec sleep 1000", "trap '' TERM; while :; do :; done" };
  for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
    const uint64_t begin = tm_now_ns();
    const shell_result result = shell(hangs[i], 150 * MS);
    const uint64_t taken = tm_now_ns() - begin;
    assert_true(result.timed_out);
    assert_int_equal(result.signal, SIGKILL);
    assert_true(taken >= 150 * MS);
  }
}

static void long_output_is_cut_and_read_to_its_end(void **state) {
  (void)state;
  const shell_result result = shell("i=0; while [ $i -lt 3000 ]; do printf 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 3", LONG_NS);
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
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const char *const command[] = { "/nowhere/at/all", NULL };
  const tm_process_limits limits = { LONG_NS, LONG_NS, OUTPUT_BYTES, NULL, NULL };
  assert_int_equal(tm_process_run(&memory, command, &limits, &result, &error), TM_ERROR_NOT_FOUND);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
  assert_non_null(strstr(error.text, "/nowhere/at/all"));
  assert_int_equal(result.exit_code, 55);
  assert_true(tm_is_executable(SHELL));
  assert_false(tm_is_executable("/nowhere/at/all"));
  assert_false(tm_is_privileged());
}

/* One that keeps talking is not silent, however long it takes. */
static void silence_is_limited_apart(void **state) {
  (void)state;
  const shell_result talking = shell_within("for i in 1 2 3 4 5 6; do printf x; sleep 0.1; done", 2000 * MS, LONG_NS);
  assert_false(talking.timed_out);
  assert_string_equal(talking.output, "xxxxxx");
  const shell_result silent = shell_within("printf x; exec sleep 100", 150 * MS, LONG_NS);
  assert_true(silent.timed_out);
  assert_string_equal(silent.output, "x");
}

/* What a child started may hold its output open; it is neither waited for nor left behind. */
static void what_it_leaves_behind_is_ended(void **state) {
  (void)state;
  const shell_result result = shell("sleep 1000 & printf %s $!; exit 4", LONG_NS);
  assert_int_equal(result.exit_code, 4);
  assert_false(result.timed_out);
  const pid_t child = (pid_t)atol(result.output);
  assert_true(child > 1);
  while (!is_dead(child)) tm_sleep_ns(10 * MS);
}

/* A host that ignores its children's ends leaves no status; what the child said is there all the same. */
static void a_host_that_reaps_by_itself_is_not_disturbed(void **state) {
  (void)state;
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  const shell_result result = shell("printf hello; exit 7", LONG_NS);
  assert_true(signal(SIGCHLD, before) == SIG_IGN);
  assert_string_equal(result.output, "hello");
  assert_false(result.timed_out);
}

static void only_a_child_that_is_still_there_is_killed(void **state) {
  (void)state;
  static const char *const scripts[] = { "exit 3", "kill -9 $$", "sleep 60" };
  for (size_t i = 0; i < 3; i++) {
    was_there = false;
    killed = 0;
    (void)shell(scripts[i], UINT64_C(300) * MS);
    assert_true(killed < 0);
    assert_true(was_there);
  }
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  killed = 0;
  (void)shell("exit 3", LONG_NS);
  assert_true(signal(SIGCHLD, before) == SIG_IGN);
  assert_int_equal(killed, 0);
}

/* Each word buys another second. */
static void be_patient(void *context, const char *output, uint64_t length, uint64_t *silence_ns, uint64_t *total_ns) {
  (void)output;
  *(uint64_t *)context = length;
  *silence_ns = UINT64_C(1200) * MS;
  *total_ns += UINT64_C(1000) * MS;
}

static void a_listener_may_grant_more_time(void **state) {
  (void)state;
  uint64_t heard = 0;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  const char *const command[] = { SHELL, "-c", "printf a; sleep 0.6; printf b; sleep 0.6; printf c", NULL };
  tm_process_limits limits = { UINT64_C(400) * MS, UINT64_C(500) * MS, OUTPUT_BYTES, be_patient, &heard };
  for (int round = 0; round < 2; round++) {
    tm_process_result result;
    assert_int_equal(tm_process_run(&memory, command, &limits, &result, NULL), TM_OK);
    assert_string_equal(result.output, round == 0 ? "abc" : "a");
    assert_int_equal(result.timed_out, round == 1);
    assert_int_equal(heard, 3);
    tm_process_result_deinit(&result);
    limits.listen = NULL;
  }
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
    cmocka_unit_test(silence_is_limited_apart),
    cmocka_unit_test(what_it_leaves_behind_is_ended),
    cmocka_unit_test(a_host_that_reaps_by_itself_is_not_disturbed),
    cmocka_unit_test(only_a_child_that_is_still_there_is_killed),
    cmocka_unit_test(a_listener_may_grant_more_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
