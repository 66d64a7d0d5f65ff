/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/mapping.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "formats/scratch.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#define PAGES 16u

static tm_memory memory;
static scratch files;
static uint64_t page;

static int set_up(void **state) {
  (void)state;
  page = (uint64_t)sysconf(_SC_PAGESIZE);
  tm_memory_init(&memory, 0);
  return scratch_init(&files) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  scratch_deinit(&files);
  return memory.used_bytes == 0 ? 0 : -1;
}

static tm_file *open_mapped(const char *name) {
  tm_file *file = NULL;
  unsigned char *bytes = malloc(PAGES * page);
  assert_non_null(bytes);
  memset(bytes, 0xa5, PAGES * page);
  const char *path = scratch_write(&files, name, bytes, PAGES * page);
  free(bytes);
  assert_non_null(path);
  assert_int_equal(tm_file_open(&memory, path, TM_FILE_MAP, &file, NULL), TM_OK);
  return file;
}

static bool has_handler(void) {
  struct sigaction action;
  assert_int_equal(sigaction(SIGBUS, NULL, &action), 0);
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

/* The test library catches SIGBUS itself; some tests need a process that does not. */
static void use_default_action(struct sigaction *out_before) {
  const struct sigaction nothing = { .sa_handler = SIG_DFL };
  assert_int_equal(sigaction(SIGBUS, &nothing, out_before), 0);
}

static void the_whole_file_is_there(void **state) {
  (void)state;
  tm_file *file = open_mapped("whole");
  const unsigned char *bytes = tm_file_bytes(file);
  assert_non_null(bytes);
  for (uint64_t i = 0; i < PAGES * page; i++) assert_int_equal(bytes[i], 0xa5);
  tm_file_park(file);
  assert_int_equal(bytes[5], 0xa5);
  assert_int_equal(tm_file_check_unchanged(file, NULL), TM_OK);
  tm_file_close(file);
}

static void truncation_gives_zeros_and_an_offset(void **state) {
  (void)state;
  tm_error error = TM_ERROR_INIT;
  tm_file *file = open_mapped("shrinks");
  const unsigned char *bytes = tm_file_bytes(file);
  assert_int_equal(truncate(tm_file_path(file), (off_t)(3 * page + 100)), 0);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < PAGES * page; i++) sum += ((const volatile unsigned char *)bytes)[i];
  assert_int_equal(sum, 0xa5 * (3 * page + 100));
  assert_int_equal(tm_file_check_unchanged(file, &error), TM_ERROR_CHANGED);
  char expected[64];
  (void)snprintf(expected, sizeof expected, "at offset %llu of", (unsigned long long)(4 * page));
  assert_non_null(strstr(error.text, expected));
  tm_file_close(file);
}

static void the_lowest_offset_wins(void **state) {
  (void)state;
  tm_file *file = open_mapped("twice");
  const volatile unsigned char *bytes = tm_file_bytes(file);
  assert_int_equal(truncate(tm_file_path(file), 0), 0);
  tm_error error = TM_ERROR_INIT;
  char expected[64];
  const uint64_t offsets[] = { 9 * page + 17, 2 * page + 5, 12 * page };
  for (size_t i = 0; i < 3; i++) assert_int_equal(bytes[offsets[i]], 0);
  (void)snprintf(expected, sizeof expected, "at offset %llu of", (unsigned long long)offsets[1]);
  assert_int_equal(tm_file_check_unchanged(file, &error), TM_ERROR_CHANGED);
  assert_non_null(strstr(error.text, expected));
  tm_file_close(file);
}

static void other_mappings_are_left_alone(void **state) {
  (void)state;
  tm_file *kept = open_mapped("kept");
  tm_file *shrunk = open_mapped("shrunk");
  assert_int_equal(truncate(tm_file_path(shrunk), 0), 0);
  assert_int_equal(*(const volatile unsigned char *)tm_file_bytes(shrunk), 0);
  assert_int_equal(tm_file_check_unchanged(kept, NULL), TM_OK);
  assert_int_equal(((const unsigned char *)tm_file_bytes(kept))[7 * page], 0xa5);
  tm_file_close(shrunk);
  tm_file_close(kept);
}

static void the_handler_comes_and_goes(void **state) {
  (void)state;
  if (IS_SANITIZED) {
    print_message("skipped: the sanitizer has a handler of its own\n");
    skip();
  }
  struct sigaction before;
  use_default_action(&before);
  tm_file *first = open_mapped("first");
  tm_file *second = open_mapped("second");
  assert_true(has_handler());
  tm_file_close(first);
  assert_true(has_handler());
  tm_file_close(second);
  assert_false(has_handler());
  assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
}

/* -------------------------------------------------------------------------------------------------- foreign faults ---- */

static volatile sig_atomic_t foreign_faults;
static sigjmp_buf after_fault;

static void on_foreign(int number, siginfo_t *info, void *context) {
  (void)number;
  (void)info;
  (void)context;
  foreign_faults++;
  siglongjmp(after_fault, 1);
}

/* Raises SIGBUS in a mapping that is not the library's. */
static void touch_foreign_mapping(void) {
  const char *path = scratch_write(&files, "foreign", "x", 1);
  const int descriptor = open(path, O_RDONLY);
  assert_true(descriptor >= 0);
  const volatile char *bytes = mmap(NULL, page, PROT_READ, MAP_SHARED, descriptor, 0);
  assert_true(bytes != MAP_FAILED);
  assert_int_equal(truncate(path, 0), 0);
  if (sigsetjmp(after_fault, 1) == 0) (void)bytes[0];
  (void)munmap((void *)(uintptr_t)bytes, page);
  (void)close(descriptor);
}

static void foreign_faults_are_passed_on(void **state) {
  (void)state;
  struct sigaction action = { .sa_flags = SA_SIGINFO }, before, after;
  action.sa_sigaction = on_foreign;
  assert_int_equal(sigaction(SIGBUS, &action, &before), 0);
  tm_file *file = open_mapped("ours");
  foreign_faults = 0;
  touch_foreign_mapping();
  assert_int_equal(foreign_faults, 1);
  assert_int_equal(truncate(tm_file_path(file), 0), 0);
  assert_int_equal(*(const volatile unsigned char *)tm_file_bytes(file), 0);
  assert_int_equal(foreign_faults, 1);
  tm_file_close(file);
  assert_int_equal(sigaction(SIGBUS, &before, &after), 0);
  assert_true(after.sa_sigaction == on_foreign);
}

/* A handler that somebody put above ours and that passes on: no endless loop, and ours still works. */
static struct sigaction below;
static volatile sig_atomic_t passed_up;

static void on_top(int number, siginfo_t *info, void *context) {
  passed_up++;
  below.sa_sigaction(number, info, context);
}

static void a_handler_on_top_is_respected(void **state) {
  (void)state;
  struct sigaction bottom = { .sa_flags = SA_SIGINFO }, top = { .sa_flags = SA_SIGINFO }, before;
  bottom.sa_sigaction = on_foreign;
  assert_int_equal(sigaction(SIGBUS, &bottom, &before), 0);
  tm_file *file = open_mapped("first");
  top.sa_sigaction = on_top;
  assert_int_equal(sigaction(SIGBUS, &top, &below), 0);
  tm_file_close(file);
  file = open_mapped("second");
  assert_int_equal(truncate(tm_file_path(file), 0), 0);
  passed_up = foreign_faults = 0;
  assert_int_equal(*(const volatile unsigned char *)tm_file_bytes(file), 0);
  assert_int_equal(passed_up, 1);
  touch_foreign_mapping();
  assert_int_equal(passed_up, 2);
  assert_int_equal(foreign_faults, 1);
  assert_int_equal(sigaction(SIGBUS, &below, NULL), 0);
  tm_file_close(file);
  assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
}

static void without_a_previous_handler_the_process_dies_as_before(void **state) {
  (void)state;
  if (IS_SANITIZED) {
    print_message("skipped: the sanitizer turns the signal into a report\n");
    skip();
  }
  struct sigaction before;
  use_default_action(&before);
  tm_file *file = open_mapped("guarded");
  const pid_t child = fork();
  if (child == 0) {
    touch_foreign_mapping();
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
  tm_file_close(file);
  assert_int_equal(sigaction(SIGBUS, &before, NULL), 0);
}

/* ------------------------------------------------------------------------------------------------------ threads ---- */

static _Atomic uint32_t thread_failures;

static void *map_and_truncate(void *argument) {
  char path[1100];
  (void)snprintf(path, sizeof path, "%s/thread%d", files.folder, (int)(intptr_t)argument);
  for (int round = 0; round < 40; round++) {
    FILE *made = fopen(path, "wb");
    const bool is_made = made != NULL && ftruncate(fileno(made), (off_t)(PAGES * page)) == 0;
    if (made != NULL) (void)fclose(made);
    tm_file *file = NULL;
    if (!is_made || tm_file_open(&memory, path, TM_FILE_MAP, &file, NULL) != TM_OK) {
      thread_failures++;
      continue;
    }
    const volatile unsigned char *bytes = tm_file_bytes(file);
    if (bytes == NULL || truncate(path, (off_t)page) != 0 || bytes[8 * page] != 0 ||
        tm_file_check_unchanged(file, NULL) != TM_ERROR_CHANGED)
      thread_failures++;
    tm_file_close(file);
  }
  return NULL;
}

static void many_threads_at_once(void **state) {
  (void)state;
  pthread_t threads[8];
  for (intptr_t i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, map_and_truncate, (void *)i), 0);
  for (int i = 0; i < 8; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(thread_failures, 0);
}

/* ----------------------------------------------------------------------------------------------------- fallback ---- */

static void a_full_table_falls_back(void **state) {
  (void)state;
  enum { MANY = 5000 };
  tm_fault_range **ranges = calloc(MANY, sizeof *ranges);
  uint32_t taken = 0;
  static char somewhere[16];
  while (taken < MANY && (ranges[taken] = tm_fault_guard_enter(somewhere, 1, false)) != NULL) taken++;
  assert_true(taken >= 1024 && taken < MANY);
  tm_file *file = open_mapped("beyond");
  assert_null(tm_file_bytes(file));
  unsigned char byte;
  assert_int_equal(tm_file_read(file, 9, &byte, 1, NULL), TM_OK);
  assert_int_equal(byte, 0xa5);
  tm_file_close(file);
  for (uint32_t i = 0; i < taken; i++) tm_fault_guard_leave(ranges[i]);
  free(ranges);
  file = open_mapped("again");
  assert_non_null(tm_file_bytes(file));
  tm_file_close(file);
}

/* 24 GiB of file under an address space limit of a few: mmap says ENOMEM. */
static void mapping_fails_under_an_address_limit(void **state) {
  (void)state;
  if (IS_SANITIZED) {
    print_message("skipped: the sanitizer needs the whole address space\n");
    skip();
  }
  const char *path = scratch_write_sparse(&files, "huge", "x", 1, UINT64_C(24) << 30);
  assert_non_null(path);
  struct rlimit old, limited;
  assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
  limited = old;
  limited.rlim_cur = (rlim_t)4 << 30;
  assert_int_equal(setrlimit(RLIMIT_AS, &limited), 0);
  tm_file *file = NULL;
  const tm_status status = tm_file_open(&memory, path, TM_FILE_MAP, &file, NULL);
  assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
  assert_int_equal(status, TM_OK);
  assert_null(tm_file_bytes(file));
  char byte = 1;
  assert_int_equal(tm_file_read(file, (UINT64_C(24) << 30) - 1, &byte, 1, NULL), TM_OK);
  assert_int_equal(byte, 0);
  tm_file_close(file);
}

/* Of files that this process has mapped and read. */
static uint64_t resident_file_pages(void) {
  unsigned long long pages[3] = { 0 };
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%llu %llu %llu", &pages[0], &pages[1], &pages[2]), 3);
  (void)fclose(file);
  return pages[2];
}

static void touch(const volatile unsigned char *bytes, uint64_t byte_count) {
  for (uint64_t at = 0; at < byte_count; at += page) (void)bytes[at];
}

/* Also a file that ends in the middle of a step, one that lost its end after it was read, and one of less than a step. */
static void forgotten_pages_are_read_again(void **state) {
  const uint64_t sizes[] = { (UINT64_C(80) << 20) + 5, UINT64_C(64) << 20, 3 * page + 1 };
  tm_pool *pool = NULL;
  (void)state;
  assert_int_equal(tm_pool_create(&memory, 3, &pool, NULL), TM_OK);
  for (uint32_t i = 0; i < 3; i++) {
    tm_file *file = NULL;
    assert_int_equal(tm_file_open(&memory, scratch_write_sparse(&files, "large", "begin", 5, sizes[i]), TM_FILE_MAP, &file, NULL), TM_OK);
    const unsigned char *bytes = tm_file_bytes(file);
    assert_non_null(bytes);
    const uint64_t before = resident_file_pages();
    touch(bytes, sizes[i]);
    if (i < 2) assert_true(resident_file_pages() > before + sizes[i] / page / 2);
    tm_file_forget_pages(file, pool);
    if (i < 2) assert_true(resident_file_pages() < before + 512);       /* some are the program's own */
    assert_memory_equal(bytes, "begin", 5);
    assert_int_equal(tm_file_check_unchanged(file, NULL), TM_OK);
    assert_int_equal(truncate(tm_file_path(file), 2), 0);
    touch(bytes, sizes[i]);
    tm_file_forget_pages(file, pool);
    if (i < 2) assert_int_equal(bytes[sizes[i] - 1], 0);
    tm_file_close(file);
  }
  tm_pool_destroy(pool);
}

static void an_empty_file_needs_no_mapping(void **state) {
  (void)state;
  tm_file *file = NULL;
  assert_int_equal(tm_file_open(&memory, scratch_write(&files, "empty", "", 0), TM_FILE_MAP, &file, NULL), TM_OK);
  assert_null(tm_file_bytes(file));
  tm_file_close(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_whole_file_is_there), cmocka_unit_test(truncation_gives_zeros_and_an_offset),
    cmocka_unit_test(the_lowest_offset_wins), cmocka_unit_test(other_mappings_are_left_alone),
    cmocka_unit_test(the_handler_comes_and_goes), cmocka_unit_test(foreign_faults_are_passed_on),
    cmocka_unit_test(a_handler_on_top_is_respected),
    cmocka_unit_test(without_a_previous_handler_the_process_dies_as_before), cmocka_unit_test(many_threads_at_once),
    cmocka_unit_test(a_full_table_falls_back), cmocka_unit_test(mapping_fails_under_an_address_limit),
    cmocka_unit_test(forgotten_pages_are_read_again), cmocka_unit_test(an_empty_file_needs_no_mapping),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
