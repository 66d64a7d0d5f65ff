/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come under the names of a checkpoint after it was planned: they stay, whenever they come. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "formats/scratch.h"
#include "formats/written_model.h"

static tm_memory memory;
static scratch files;
static tm_error error;

static int set_up(void **state) {
  (void)state;
  tm_memory_init(&memory, 0);
  error = (tm_error)TM_ERROR_INIT;
  return scratch_init(&files) ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  scratch_deinit(&files);
  return memory.used_bytes == 0 ? 0 : -1;
}

static const char *path_of(const char *name, char out_path[1024]) {
  (void)snprintf(out_path, 1024, "%s/%s", files.folder, name);
  return out_path;
}

/* Whether it comes before writing begins or while it goes on, of one file or of a set. */
static void what_comes_meanwhile_stays(void **state) {
  (void)state;
  static const char *const newcomers[] = { "m.safetensors", "m-00002-of-00002.safetensors", "m.safetensors.index.json" };
  for (int i = 0; i < 6; i++) {
    char path[1024], found[8] = "";
    const char *newcomer = newcomers[i / 2];
    tm_checkpoint_writer *writer = NULL;
    assert_int_equal(model_plan(&memory, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), i < 2 ? 0 : SHARDS_OF_THREE,
                                &writer, &error), TM_OK);
    if (i % 2 != 0) assert_non_null(scratch_write(&files, newcomer, "mine", 4));
    const tm_status status = tm_checkpoint_writer_begin(writer, &error);
    assert_int_equal(status, i % 2 != 0 ? TM_ERROR_IO : TM_OK);
    if (status == TM_OK) {
      assert_int_equal(model_fill(writer, 2, &error), TM_OK);
      assert_non_null(scratch_write(&files, newcomer, "mine", 4));
      assert_int_equal(tm_checkpoint_writer_finish(writer, &error), TM_ERROR_IO);
    }
    assert_int_equal(error.native_code, EEXIST);
    assert_non_null(strstr(error.text, "it stays as it is"));
    tm_checkpoint_writer_destroy(writer);
    assert_int_equal(count_entries(files.folder, ""), 1);
    FILE *file = fopen(path_of(newcomer, path), "rb");
    assert_int_equal(fread(found, 1, sizeof found - 1, file), 4);
    (void)fclose(file);
    assert_string_equal(found, "mine");
    assert_int_equal(remove(path), 0);
  }
}

/* Memory that another writer's files come with. */
typedef struct newcomer_heap {
  const char *name;
  uint64_t    calls, at;        /* it comes with this call, counted from 1 */
} newcomer_heap;

static void *alloc_and_come(void *context, uint64_t bytes, uint64_t alignment) {
  newcomer_heap *heap = context;
  if (++heap->calls == heap->at) assert_non_null(scratch_write(&files, heap->name, "mine", 4));
  return aligned_alloc((size_t)alignment, (size_t)((bytes + alignment) / alignment * alignment));
}

static void free_plainly(void *context, void *pointer, uint64_t bytes) {
  (void)context;
  (void)bytes;
  free(pointer);
}

/* Whatever the writer is at when it comes, under its names or under others that would go for it. */
static void what_comes_at_any_moment_stays(void **state) {
  (void)state;
  static const char *const newcomers[] = { "m.safetensors", "m-00002-of-00002.safetensors", "m.safetensors.index.json" };
  uint64_t refused_count = 0;
  for (int i = 0; i < 4; i++) {
    bool is_over = false;
    for (uint64_t k = 1; !is_over; k++) {
      char path[1024], found[8] = "";
      newcomer_heap heap = { newcomers[i % 3], 0, 0 };
      tm_memory own;
      tm_checkpoint_writer *writer = NULL;
      tm_memory_init(&own, 0);
      own.alloc = alloc_and_come;
      own.free = free_plainly;
      own.context = &heap;
      const uint64_t shard_bytes = i == 0 || i == 2 ? 0 : SHARDS_OF_THREE;      /* beside the newcomer one file, or a set */
      assert_int_equal(model_plan(&own, TM_WRITE_SAFETENSORS, path_of("m.safetensors", path), shard_bytes, &writer, &error), TM_OK);
      heap.at = heap.calls + k;
      tm_status status = tm_checkpoint_writer_begin(writer, &error);
      if (status == TM_OK) status = model_fill(writer, 2, &error);
      is_over = heap.calls < heap.at;
      if (status == TM_OK) status = tm_checkpoint_writer_finish(writer, &error);
      is_over = is_over && heap.calls < heap.at;
      tm_checkpoint_writer_destroy(writer);
      if (!is_over) {
        FILE *file = fopen(path_of(heap.name, path), "rb");
        assert_non_null(file);
        assert_int_equal(fread(found, 1, sizeof found - 1, file), 4);
        (void)fclose(file);
        assert_string_equal(found, "mine");
      }
      refused_count += status == TM_ERROR_IO && error.native_code == EEXIST;
      assert_true(status == TM_OK || (status == TM_ERROR_IO && error.native_code == EEXIST));
      scratch_deinit(&files);
      assert_true(scratch_init(&files));
    }
  }
  assert_true(refused_count != 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_comes_meanwhile_stays, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_comes_at_any_moment_stays, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
