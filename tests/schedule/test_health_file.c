/* SPDX-License-Identifier: Apache-2.0 */
/* The file of broken promises when it is full, and how kinds of work stand in files. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/kept_file.h"
#include "formats/scratch.h"
#include "schedule/health_file.h"

#define ROOM 4096u

typedef struct log_line {
  char     text[1024];
  uint32_t count;
} log_line;

static void keep_line(void *context, uint32_t level, const char *message) {
  log_line *line = context;
  (void)level;
  line->count++;
  snprintf(line->text, sizeof line->text, "%s", message);
}

static bool count_entry(void *context, const tm_health_entry *entry) {
  (void)entry;
  ++*(uint32_t *)context;
  return true;
}

static void write_entries(const char *path, uint32_t count) {
  const size_t room = 64 + (size_t)count * 32;
  char *text = malloc(room);
  assert_non_null(text);
  size_t used = (size_t)snprintf(text, room, "tensormorph-health 2\n");
  for (uint32_t i = 0; i < count; i++) used += (size_t)snprintf(text + used, room - used, "b\tbuild\tu%u\t1\t\t1\twhy\n", i);
  assert_int_equal(tm_kept_file_replace(path, text, used, NULL), TM_OK);
  free(text);
}

static void no_room_is_said_once(void **state) {
  (void)state;
  scratch files;
  tm_memory memory;
  log_line line = { .count = 0 };
  tm_memory_init(&memory, 0);
  assert_true(scratch_init(&files));
  tm_health_file file = { .memory = &memory, .log = { keep_line, &line }, .folder = files.folder };
  const tm_health_entry added = { .backend = "b", .build_id = "build", .uuid = "new", .kind = { .op = 2 }, .count = 1, .reason = "why" };
  write_entries(scratch_path(&files, "health"), ROOM - 1);
  for (uint32_t i = 0, found = 0; i < 3; i++, found = 0) {
    tm_health_entry one = added;
    char uuid[16];
    snprintf(uuid, sizeof uuid, "new%u", i);
    one.uuid = uuid;
    tm_health_file_update(&file, count_entry, &found, &one);
    assert_int_equal(found, i == 0 ? ROOM - 1 : ROOM);
    assert_int_equal(line.count, i == 0 ? 0 : 1);
  }
  assert_non_null(strstr(line.text, "no room for more"));
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
  scratch_deinit(&files);
}

static void kinds_of_work_come_back(void **state) {
  (void)state;
  char text[TM_WORK_KIND_BYTES];
  tm_work_kind kind = { .op = UINT32_MAX }, back;
  for (uint32_t count = 0; count <= TM_MAX_OPERANDS; count++) {
    kind.format_count = count;
    for (uint32_t i = 0; i < count; i++) kind.formats[i] = UINT32_MAX - i;
    tm_work_kind_print(&kind, text);
    char *tab = strchr(text, '\t');
    assert_non_null(tab);
    *tab = '\0';
    assert_true(tm_work_kind_parse(text, tab + 1, &back));
    assert_true(tm_work_kind_equal(&kind, &back));
  }
}

static void anything_else_is_no_kind(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
    { "", "" }, { "x", "" }, { "1 ", "" }, { " 1", "" }, { "-1", "" }, { "0x1", "" }, { "123456789", "" },
    { "1", "," }, { "1", "1 " }, { "1", "1,,2" }, { "1", "+1" }, { "1", "1;2" },
    { "1", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1" },
  };
  tm_work_kind kind;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    if (tm_work_kind_parse(wrong[i][0], wrong[i][1], &kind)) fail_msg("'%s' '%s' is taken", wrong[i][0], wrong[i][1]);
  assert_true(tm_work_kind_parse("a", "1,2", &kind));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_room_is_said_once),
    cmocka_unit_test(kinds_of_work_come_back),
    cmocka_unit_test(anything_else_is_no_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
