/* SPDX-License-Identifier: Apache-2.0 */
/* idle_devices.h - for tests of time alone: their devices compute nothing, and nobody is to look at that. */
#ifndef TM_TESTS_IDLE_DEVICES_H
#define TM_TESTS_IDLE_DEVICES_H

#include "api/context.h"

static inline void allow_idle_devices(tm_context *context) {
  for (uint32_t i = 0; i < context->inventory->device_count; i++) context->inventory->devices[i]->is_checked = false;
}

#endif
