/* SPDX-License-Identifier: Apache-2.0 */
/* Has no device. */
#include "zoo.h"

static tm_status no_device(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  (void)backend, (void)index, (void)out_info;
  return TM_END;
}

static const tm_accelerator_backend_plugin table = { ZOO_TABLE(no_device, zoo_query, zoo_prepare, zoo_launch) };

TM_DEFINE_PLUGIN("zoo_null", "1", "zoo", table)
