/* SPDX-License-Identifier: Apache-2.0 */
/* Once it is let in, says yes to everything and then does nothing, with a different excuse each time. */
#include "zoo.h"

static tm_status query_yes(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                           tm_answer *const *out_answers) {
  if (zoo_is_on_trial()) return zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count; i++) zoo_accept(out_answers[i]);
  return TM_OK;
}

static tm_status launch_never(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  static const tm_status excuses[] = { TM_UNSUPPORTED, TM_ERROR_INTERNAL, TM_ERROR_ARGUMENT, TM_PENDING, -77, 77 };
  if (zoo_is_on_trial()) return zoo_launch(device, launch, out_ticket);
  tm_backend *backend = zoo_backend_of(device);
  const tm_host *host = backend->host;
  const uint64_t call = atomic_fetch_add(&backend->calls, 1);
  const tm_string text = TM_STRING("the dog ate it");
  return host->fail(host->context, excuses[call % (sizeof excuses / sizeof excuses[0])], 42, text);
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(zoo_device_info, query_yes, zoo_prepare, launch_never) };

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
