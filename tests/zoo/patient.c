/* SPDX-License-Identifier: Apache-2.0 */
/* Takes its time to open, and for its first kernel; says so if ZOO_DECLARED_NS is not 0. */
#include <stdatomic.h>
#include <string.h>
#include <threads.h>

#include "zoo.h"

#define TAKES_S 8               /* more than a step may take that declares nothing, and than 5 s beside what is declared once */

static _Atomic int kernels;

static tm_status patient_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  if (status == TM_OK && TM_HAS_MEMBER(out_info, tm_device_info, open_ns)) out_info->open_ns = ZOO_OPENS ? ZOO_DECLARED_NS : 0;
  return status;
}

static tm_status open_slowly(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  if (ZOO_OPENS) thrd_sleep(&(struct timespec){ .tv_sec = TAKES_S }, NULL);
  *out_device = (tm_device *)(void *)backend;
  return TM_OK;
}

static void close_device(tm_device *device) { (void)device; }

static tm_status patient_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                               tm_answer *const *out_answers) {
  const tm_status status = zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count; i++)
    if (TM_HAS_MEMBER(out_answers[i], tm_answer, setup_ns) && out_answers[i]->level != TM_LEVEL_REFUSED)
      out_answers[i]->setup_ns = ZOO_OPENS ? 0 : ZOO_DECLARED_NS;
  return status;
}

static tm_status prepare_slowly(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  if (!ZOO_OPENS && atomic_fetch_add(&kernels, 1) == 0) thrd_sleep(&(struct timespec){ .tv_sec = TAKES_S }, NULL);
  return zoo_prepare(device, operation, answer, out_kernel);
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = patient_info, .open = open_slowly,
  .close = close_device, .query = patient_query, .prepare = prepare_slowly, .release = zoo_release, .launch = zoo_launch,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
