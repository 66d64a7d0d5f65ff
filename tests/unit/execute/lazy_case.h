/* SPDX-License-Identifier: Apache-2.0 */
/* lazy_case.h - a context with three lazy accelerators (fakes/lazy_control.h) in it. */
#ifndef TM_TESTS_LAZY_CASE_H
#define TM_TESTS_LAZY_CASE_H

#include "base/thread.h"
#include "fakes/lazy_control.h"
#include "unit/execute/plan_case.h"

#define LAZY_COUNT 3u

/* Memory that a device which never came back keeps for ever is no leak: it stays known here. */
#define LAZY_BLOCKS 65536u
typedef struct lazy_heap {
  void    *blocks[LAZY_BLOCKS];
  uint32_t count;
  tm_mutex lock;
} lazy_heap;

static inline void *lazy_heap_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  lazy_heap *heap = context;
  const uint64_t unit = alignment < 64 ? 64 : alignment;
  void *block = aligned_alloc((size_t)unit, (size_t)((bytes / unit + 1) * unit));
  tm_mutex_lock(&heap->lock);
  if (block != NULL && heap->count < LAZY_BLOCKS) heap->blocks[heap->count++] = block;
  tm_mutex_unlock(&heap->lock);
  return block;
}

static inline void lazy_heap_free(void *context, void *memory, uint64_t bytes) {
  lazy_heap *heap = context;
  (void)bytes;
  tm_mutex_lock(&heap->lock);
  uint32_t at = heap->count;
  while (at > 0 && heap->blocks[at - 1] != memory) at--;
  if (at > 0) heap->blocks[at - 1] = heap->blocks[--heap->count];
  tm_mutex_unlock(&heap->lock);
  free(memory);
}

typedef struct lazy_case {
  tm_context  *context;
  lazy_control controls[LAZY_COUNT];
  log_lines    lines;
  uint64_t     patience_ns;     /* 0: 5 s */
  lazy_heap   *heap;            /* NULL: the usual */
  uint32_t     is_swapped;      /* loaded the other way round */
  uint32_t     order;           /* loaded in another one of the six orders */
  uint32_t     thread_count;    /* 0: the usual */
  uint32_t     is_alone;        /* nobody else computes */
} lazy_case;

static const char *const lazy_names[] = { "lazy_a", "lazy_b", "lazy_c" }, *const lazy_excluded[] = { "reference" };

static inline void lazy_case_open(lazy_case *one) {
  static const char *const names[] = { "lazy_a", "lazy_b", "lazy_c" };
  static const char *const files[] = { TM_BINARY_DIR "/tests/fakes/lazy_a.so", TM_BINARY_DIR "/tests/fakes/lazy_b.so",
                                    TM_BINARY_DIR "/tests/fakes/lazy_c.so" };
  static const uint32_t orders[6][LAZY_COUNT] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
  const char *paths[LAZY_COUNT];
  tm_named_pointer pointers[LAZY_COUNT];
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    paths[i] = files[orders[one->is_swapped ? 5 : one->order][i]];
    pointers[i] = (tm_named_pointer){ names[i], LAZY_CONTROL_KEY, &one->controls[i] };
    one->controls[i].uuid.bytes[0] = (uint8_t)(i + 1);
    one->controls[i].resource.bytes[0] = (uint8_t)(i + 1);
  }
  tm_context_options options = options_with(paths, LAZY_COUNT);
  options.pointers = pointers;
  options.pointer_count = LAZY_COUNT;
  options.patience_ns = one->patience_ns != 0 ? one->patience_ns : UINT64_C(5000000000);
  options.thread_count = one->thread_count;
  if (one->is_alone) {
    options.devices = lazy_names;
    options.device_count = LAZY_COUNT;
    options.excluded_devices = lazy_excluded;
    options.excluded_device_count = 1;
  }
  options.log = keep_line;
  options.log_context = &one->lines;
  if (one->heap != NULL) {
    options.alloc = lazy_heap_alloc;
    options.free = lazy_heap_free;
    options.allocator_context = one->heap;
  }
  one->lines.length = 0;
  one->context = open_context(&options);
  expect_state(one->context, "lazy_a", TM_BACKEND_READY, "");
  expect_state(one->context, "lazy_b", TM_BACKEND_READY, "");
  expect_state(one->context, "lazy_c", TM_BACKEND_READY, "");
}

/* Nobody else, whatever it costs. */
#define LAZY_OPTIONS                                                                                                        \
  {                                                                                                                         \
    .struct_size = sizeof(tm_plan_options), .worst_numerics = TM_NUMERICS_N0, .wait_for_prepare = 1, .devices = lazy_names, \
    .device_count = LAZY_COUNT, .excluded_devices = lazy_excluded, .excluded_device_count = 1                               \
  }

static inline void lazy_case_close(lazy_case *one) {
  tm_context_destroy(one->context);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    assert_int_equal(atomic_load(&one->controls[i].complaints), 0);
    assert_int_equal(atomic_load(&one->controls[i].buffers), 0);
  }
}

static inline tm_plan *lazy_plan(tm_graph *graph, const tm_plan_options *options) {
  tm_plan *plan = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_plan_create(graph, options, &plan, &error) != TM_OK) fail_msg("no plan: %s", error.text);
  return plan;
}

#endif
