/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_builtins.h - a list of built-in backends that stands in for the library's own: one that starts at once, one whose
 * device has to be opened and that takes 40 ms and looks at a variable of the environment, and one that takes as long though its
 * device is at hand.  Included by a program once; it counts how often each is started.
 */
#ifndef TM_TESTS_FAKE_BUILTINS_H
#define TM_TESTS_FAKE_BUILTINS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "plugin/builtin_plugins.h"
#include "tensormorph/plugin.h"

static _Atomic int slow_inits, quick_inits, held_up_inits;

static const tm_memory_space host_memory = {
  .struct_size = sizeof host_memory, .flags = TM_MEMORY_HOST_POINTER, .identity = TM_HOST_MEMORY, .alignment = 1,
  .offset_granule = 1, .store_granule = 1, .name = TM_STRING("host memory"),
};
static const tm_memory_space *const memories[] = { &host_memory };

static tm_status slow_init(const tm_host *host, tm_backend **out_backend) {
  (void)host;
  *out_backend = NULL;
  atomic_fetch_add(&slow_inits, 1);
  if (getenv("FAKE_DRIVER_FAILS") != NULL) return TM_ERROR_INTERNAL;
  return nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL) == 0 ? TM_OK : TM_ERROR_INTERNAL;
}

static tm_status quick_init(const tm_host *host, tm_backend **out_backend) {
  (void)host;
  *out_backend = NULL;
  atomic_fetch_add(&quick_inits, 1);
  return TM_OK;
}

static tm_status held_up_init(const tm_host *host, tm_backend **out_backend) {
  (void)host;
  *out_backend = NULL;
  atomic_fetch_add(&held_up_inits, 1);
  return nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL) == 0 ? TM_OK : TM_ERROR_INTERNAL;
}

static tm_status one_device(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend;
  if (index != 0) return TM_END;
  out_info->flags = TM_DEVICE_SYNCHRONOUS;
  out_info->name = (tm_string)TM_STRING("a built-in \\ with a \n name");
  out_info->memory_count = 1;
  out_info->memories = memories;
  return TM_OK;
}

static tm_status far_device(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = one_device(backend, index, out_info);
  if (status == TM_OK) out_info->open_ns = 1000;
  return status;
}

static tm_status refuse_all(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  (void)backend, (void)index, (void)operations;
  for (uint32_t i = 0; i < count; i++) out_answers[i]->reasons = TM_REASON_OPERATION;
  return TM_OK;
}

static tm_status no_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  (void)device, (void)operation, (void)answer, (void)out_kernel;
  return TM_ERROR_ARGUMENT;
}

static tm_status no_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  (void)device, (void)launch, (void)out_ticket;
  return TM_ERROR_ARGUMENT;
}

static const tm_option mood = { .struct_size = sizeof mood, .type = TM_OPTION_TEXT, .name = TM_STRING("mood"),
                                .default_value = TM_STRING("good"), .help = TM_STRING("Nothing depends on it.") };
static const tm_option *const fake_options[] = { &mood };

#define TABLE(init_fn, device_fn) { .struct_size = sizeof(tm_accelerator_backend_plugin), .option_count = 1, .options = fake_options, .init = init_fn, \
                         .device_info = device_fn, .query = refuse_all, .prepare = no_prepare, .launch = no_launch }
static const tm_accelerator_backend_plugin slow_table = TABLE(slow_init, far_device),
  quick_table = TABLE(quick_init, one_device), held_up_table = TABLE(held_up_init, one_device);
static const tm_trait slow_traits[] = { { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), 1, 0, &slow_table } };
static const tm_trait quick_traits[] = { { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), 1, 0, &quick_table } };
static const tm_trait held_up_traits[] = { { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), 1, 0, &held_up_table } };
#define HEADER(name, traits) { TM_PLUGIN_MAGIC, sizeof(tm_plugin_header), TM_ABI_MAJOR, TM_ABI_MINOR, TM_BUILD_FLAGS,               \
                               TM_LAYOUT_FINGERPRINT, TM_STRING(name), TM_STRING("1"), TM_STRING("test"), TM_STRING("build " name), \
                               1, traits }
static const tm_plugin_header slow_header = HEADER("slow_built_in", slow_traits);
static const tm_plugin_header quick_header = HEADER("quick_built_in", quick_traits);
static const tm_plugin_header held_up_header = HEADER("held_up_built_in", held_up_traits);

static const tm_plugin_header *query_held_up(uint32_t major, uint32_t minor) { (void)major, (void)minor; return &held_up_header; }
static const tm_plugin_header *query_slow(uint32_t major, uint32_t minor) { (void)major, (void)minor; return &slow_header; }
static const tm_plugin_header *query_quick(uint32_t major, uint32_t minor) { (void)major, (void)minor; return &quick_header; }

const tm_builtin_plugin tm_builtin_plugins[] = { { "quick_built_in", query_quick }, { "slow_built_in", query_slow },
                                                { "held_up_built_in", query_held_up } };
const uint32_t tm_builtin_plugin_count = 3;

#endif
