/* SPDX-License-Identifier: Apache-2.0 */
/* host_services.h - the tm_host that each backend gets, and the frame around every call into a backend. */
#ifndef TM_PLUGIN_HOST_SERVICES_H
#define TM_PLUGIN_HOST_SERVICES_H

#include "base/float_mode.h"
#include "plugin/inventory.h"

/* Fills slot->host; the slot must stay where it is. */
void tm_host_services_init(tm_backend_slot *slot);

/* Around a call into a backend: what it says through fail lands in `error`, and the floating-point mode is restored. */
typedef struct tm_call_frame {
  tm_error     *outer;
  tm_float_mode mode;
} tm_call_frame;

void tm_call_enter(tm_call_frame *frame, tm_error *error);
void tm_call_leave(const tm_call_frame *frame);

#endif
