/* SPDX-License-Identifier: Apache-2.0 */
/* From an earlier minor: its table ends behind launch. */
#include "zoo.h"

static const tm_accelerator_backend_plugin table = {
  .struct_size = offsetof(tm_accelerator_backend_plugin, flush), .init = zoo_init, .shutdown = zoo_shutdown,
  .device_info = zoo_device_info, .query = zoo_query, .prepare = zoo_prepare, .release = zoo_release, .launch = zoo_launch,
  /* Beyond its size, so it must not be read. */
  .flush = (tm_status (*)(tm_device *, uint32_t))1,
};

TM_DEFINE_PLUGIN("zoo_old", "1", "zoo", table)
