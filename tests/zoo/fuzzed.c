/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many devices whose answers are random bytes, from the seed that the option names.  Pointers alone are kept sound, since
 * no host can check them.  What it can do (see zoo.h) it does right; the rest fails, in random ways.
 */
#include <string.h>

#include "zoo.h"

#define DEVICES 48u
#define SEED_DIGITS 20u

static const tm_option seed_option = {
  .struct_size = sizeof seed_option,
  .type = TM_OPTION_INTEGER,
  .name = TM_STRING("seed"),
  .default_value = TM_STRING("1"),
  .help = TM_STRING("Where the random numbers begin."),
};
static const tm_option *const options[] = { &seed_option };

static const tm_memory_space own_memory = {
  .struct_size = sizeof own_memory, .identity = { { 'o', 'w', 'n' } }, .alignment = 1, .offset_granule = 7, .store_granule = 3,
};
static const tm_memory_space *const own_memories[] = { &own_memory };

static uint64_t next(tm_backend *backend) {
  uint64_t z = (atomic_fetch_add(&backend->calls, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t below(tm_backend *backend, uint32_t limit) { return (uint32_t)(next(backend) % limit); }

static tm_status init_seeded(const tm_host *host, tm_backend **out_backend) {
  tm_string value = seed_option.default_value;
  const tm_status status = zoo_init(host, out_backend);
  if (status != TM_OK) return status;
  uint64_t seed = 0;
  (void)host->config_get(host->context, seed_option.name, &value);
  for (uint64_t i = 0; i < value.length && i < SEED_DIGITS; i++) seed = seed * 10 + (uint64_t)(value.data[i] - '0');
  atomic_store(&(*out_backend)->calls, seed << 32);
  return TM_OK;
}

/* One in four has memory of its own, and no function to make any. */
static tm_status many_devices(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index >= DEVICES) return TM_END;
  (void)zoo_device_info(backend, 0, out_info);
  if (index % 4 == 3) out_info->memories = own_memories;
  return TM_OK;
}

/* Half of the numbers are small, so that they mean something. */
static uint32_t some_number(tm_backend *backend, uint32_t meaningful) {
  return below(backend, 2) ? below(backend, meaningful) : (uint32_t)next(backend);
}

static void random_text(tm_backend *backend, tm_answer *answer) {
  static const char text[] = "a text \x01\xff with bytes of every kind %s %n";
  static const uint64_t lengths[] = { 0, 1, sizeof text - 1, UINT64_MAX, 1 << 20 };
  answer->text.data = below(backend, 2) ? text : NULL;
  answer->text.length = lengths[below(backend, sizeof lengths / sizeof lengths[0])];
}

static void random_changes(tm_backend *backend, tm_answer *answer) {
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_BF16, TM_FORMAT_F64, TM_FORMAT_Q8_0, TM_FORMAT_I4, 0, 0x80000001u };
  answer->change_count = some_number(backend, TM_MAX_CHANGES + 1);
  for (uint32_t i = 0; i < TM_MAX_CHANGES; i++) {
    tm_change *change = &answer->changes[i];
    change->kind = some_number(backend, TM_CHANGE_QUANTIZE + 2);
    change->operand = some_number(backend, 3);
    change->axis = some_number(backend, 3);
    change->format = below(backend, 4) ? formats[below(backend, 7)] : (uint32_t)next(backend);
  }
}

static void random_answer(tm_backend *backend, tm_answer *answer) {
  static const uint64_t workspaces[] = { 0, 0, 0, 1, 4096, 1 << 20, UINT64_C(1) << 45, UINT64_MAX };
  uint64_t *words = (uint64_t *)(void *)answer;
  for (size_t i = 0; i < sizeof *answer / sizeof *words; i++) words[i] = next(backend);
  answer->level = some_number(backend, 3);
  answer->numerics = some_number(backend, 5);
  if (below(backend, 2)) answer->numerics_bound = 1;
  answer->growth = some_number(backend, 3);
  answer->numerics_flags = some_number(backend, 8);
  if (below(backend, 4)) answer->workspace_bytes = workspaces[below(backend, 8)];
  if (below(backend, 200)) answer->cost_ns = below(backend, 50);
  if (below(backend, 200)) answer->setup_ns = below(backend, 50);
  if (below(backend, 2)) answer->operand = below(backend, 4);
  if (below(backend, 2)) answer->epoch = 1;
  random_text(backend, answer);
  random_changes(backend, answer);
}

static tm_status random_status(tm_backend *backend) {
  static const tm_status all[] = { TM_UNSUPPORTED, TM_PENDING, TM_STALE, TM_END, TM_ERROR_ARGUMENT, TM_ERROR_NOT_FOUND,
                                   TM_ERROR_NO_MEMORY, TM_ERROR_NO_DEVICE, TM_ERROR_IO, TM_ERROR_CORRUPT, TM_ERROR_CHANGED,
                                   TM_ERROR_CANCELLED, TM_ERROR_PREDECESSOR, TM_ERROR_LIMIT, TM_ERROR_INTERNAL, 77, -77,
                                   INT32_MAX, INT32_MIN };
  if (below(backend, 40) == 0) return TM_ERROR_DEVICE_LOST;
  if (below(backend, 20) == 0) return TM_BUSY;
  return all[below(backend, sizeof all / sizeof all[0])];
}

static tm_status query_random(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                              tm_answer *const *out_answers) {
  const tm_host *host = backend->host;
  (void)index, (void)operations;
  for (uint32_t i = 0; i < count; i++) random_answer(backend, out_answers[i]);
  if (below(backend, 200) == 0) host->device_event(host->context, below(backend, DEVICES + 5), below(backend, 4) == 1, next(backend));
  return below(backend, 30) == 0 ? random_status(backend) : TM_OK;
}

static tm_status prepare_sometimes(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  tm_backend *backend = zoo_backend_of(device);
  if (zoo_refuses(operation) == 0 && below(backend, 4) != 0) return zoo_prepare(device, operation, answer, out_kernel);
  const tm_string text = TM_STRING("random failure \x02\xfe");
  const tm_status status = random_status(backend);
  return below(backend, 2) ? status : backend->host->fail(backend->host->context, status, (int64_t)next(backend), text);
}

static tm_status launch_sometimes(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  tm_backend *backend = zoo_backend_of(device);
  const uint32_t operands = launch->kernel->op == TM_OP_ADD ? 3 : 2;
  if (launch->binding_count < operands || below(backend, 8) == 0) return random_status(backend);
  tm_launch without_workspace = *launch;
  without_workspace.struct_size = sizeof without_workspace;
  without_workspace.binding_count = operands;
  return zoo_launch(device, &without_workspace, out_ticket);
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .option_count = 1, .options = options, .init = init_seeded, .shutdown = zoo_shutdown,
  .device_info = many_devices, .query = query_random, .prepare = prepare_sometimes, .release = zoo_release,
  .launch = launch_sometimes,
};

TM_DEFINE_PLUGIN("zoo_fuzzed", "1", "zoo", table)
