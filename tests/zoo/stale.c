/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out in prepare that its answer about neg does not hold (ZOO_STALE): moves its epoch and says TM_STALE, and then keeps
 * to what it said (RECOVERS), says no from then on (WITHDRAWS), or does the same again each time (ALWAYS); or says so without
 * moving it (UNANNOUNCED).
 */
#include "zoo.h"

#define RECOVERS 0
#define WITHDRAWS 1
#define ALWAYS 2
#define UNANNOUNCED 3

static _Atomic uint64_t epoch = 1;

static tm_status stale_init(const tm_host *host, tm_backend **out_backend) {
  atomic_store(&epoch, 1);
  return zoo_init(host, out_backend);
}

static tm_status stale_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  if (status == TM_OK && TM_HAS_MEMBER(out_info, tm_device_info, epoch)) out_info->epoch = atomic_load(&epoch);
  return status;
}

static tm_status stale_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                             tm_answer *const *out_answers) {
  (void)backend, (void)index;
  for (uint32_t i = 0; i < count; i++) {
    const int is_over = ZOO_STALE == WITHDRAWS && operations[i]->op == TM_OP_NEG && atomic_load(&epoch) > 1;
    zoo_reply(out_answers[i], is_over ? TM_REASON_RESOURCES : zoo_refuses(operations[i]));
    if (TM_HAS_MEMBER(out_answers[i], tm_answer, epoch)) out_answers[i]->epoch = atomic_load(&epoch);
  }
  return TM_OK;
}

static void move(tm_device *device) {
  const tm_host *host = zoo_backend_of(device)->host;
  host->device_event(host->context, 0, TM_EVENT_EPOCH_MOVED, atomic_fetch_add(&epoch, 1) + 1);
}

static tm_status stale_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  if (zoo_strange(operation) != 0 || zoo_is_on_trial()) return zoo_prepare(device, operation, answer, out_kernel);
  if (ZOO_STALE == UNANNOUNCED && operation->op == TM_OP_NEG) return TM_STALE;
  if (answer->epoch != 0 && answer->epoch != atomic_load(&epoch)) return TM_STALE;
  if (operation->op != TM_OP_NEG || (ZOO_STALE != ALWAYS && atomic_load(&epoch) > 1))
    return zoo_prepare(device, operation, answer, out_kernel);
  move(device);
  return TM_STALE;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = stale_init, .shutdown = zoo_shutdown, .device_info = stale_info, .query = stale_query,
  .prepare = stale_prepare, .release = zoo_release, .launch = zoo_launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
