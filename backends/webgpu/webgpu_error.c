/* SPDX-License-Identifier: Apache-2.0 */
/* The implementation's errors as statuses, with its own words. */
#include <stdio.h>
#include <string.h>

#include "webgpu_device.h"

#define SCOPE_NS UINT64_C(10000000000)  /* a device that does not answer for an error scope by then is lost */

tm_status webgpu_fail(const tm_host *host, tm_status status, const char *text) {
  return host->fail(host->context, status, 0, (tm_string){ text, strlen(text) });
}

static tm_status fail_with(tm_device *device, tm_status status, wapi_enum type, const char *what, const char *said) {
  const tm_host *host = device->backend->host;
  char text[WEBGPU_ERROR_TEXT + 256];
  const int length = snprintf(text, sizeof text, "%s: %s: %s", device->adapter->name, what, said);
  const uint64_t kept = length < 0 ? 0 : (size_t)length < sizeof text ? (uint64_t)length : sizeof text - 1;
  return host->fail(host->context, status, (int64_t)type, (tm_string){ text, kept });
}

tm_status webgpu_fail_told(tm_device *device, tm_status status, const char *what) {
  webgpu_trouble *trouble = device->trouble;
  char said[WEBGPU_ERROR_TEXT];
  native_lock_take(&trouble->lock);
  memcpy(said, trouble->error_text, sizeof said);
  const wapi_enum type = trouble->error_type;
  native_lock_give(&trouble->lock);
  return fail_with(device, status, type, what, said);
}

void webgpu_scope_begin(tm_device *device) {
  device->api->DevicePushErrorScope(device->handle, WAPI_FILTER_OUT_OF_MEMORY);
  device->api->DevicePushErrorScope(device->handle, WAPI_FILTER_VALIDATION);
}

tm_status webgpu_scope_end(tm_device *device, const char *what, tm_status otherwise) {
  webgpu_flight *flight = device->flight;
  const uintptr_t round = ++flight->scope_round;
  const wapi_scope_call call = {
    .mode = WAPI_ALLOW_PROCESS_EVENTS, .function = webgpu_on_scope, .a = flight, .b = (void *)round,
  };
  atomic_store(&flight->scopes_asked, 0);
  flight->scope_type = WAPI_ERROR_NONE;
  for (int i = 0; i < 2; ++i) {
    webgpu_flight_hold(flight);
    atomic_fetch_add(&flight->scopes_asked, 1);
    (void)device->api->DevicePopErrorScope(device->handle, call);
  }
  if (!webgpu_device_poll_until(device, &flight->scopes_asked, 0, SCOPE_NS))
    webgpu_trouble_lose(device->trouble, "an error scope was not answered");
  if (atomic_load(&device->trouble->is_lost)) return webgpu_fail_told(device, TM_ERROR_DEVICE_LOST, what);
  if (flight->scope_type == WAPI_ERROR_NONE) return TM_OK;
  const tm_status status = flight->scope_type == WAPI_ERROR_OUT_OF_MEMORY ? TM_ERROR_NO_MEMORY : otherwise;
  return fail_with(device, status, flight->scope_type, what, flight->scope_text);
}
