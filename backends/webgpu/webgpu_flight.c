/* SPDX-License-Identifier: Apache-2.0 */
/* What callbacks do: they set flags in memory that lives until the last of them has come. */
#include <string.h>

#include "webgpu_device.h"

webgpu_flight *webgpu_flight_create(const tm_host *host) {
  webgpu_flight *flight = host->alloc(host->context, sizeof *flight, 64);
  if (flight == NULL) return NULL;
  memset(flight, 0, sizeof *flight);
  atomic_init(&flight->references, 1);
  return flight;
}

void webgpu_flight_hold(webgpu_flight *flight) { atomic_fetch_add(&flight->references, 1); }
int webgpu_flight_drop(webgpu_flight *flight) { return atomic_fetch_sub(&flight->references, 1) == 1; }

void webgpu_flight_free(const tm_host *host, webgpu_flight *flight) {
  host->free(host->context, flight, sizeof *flight);
}

static void keep_text(char *to, wapi_string message) {
  const size_t length = message.data == NULL ? 0 : message.length == SIZE_MAX ? strlen(message.data) : message.length;
  const size_t kept = length < WEBGPU_ERROR_TEXT ? length : WEBGPU_ERROR_TEXT - 1;
  if (kept != 0) memcpy(to, message.data, kept);
  to[kept] = '\0';
}

/* ---- what comes unasked ---- */

static void note(webgpu_trouble *trouble, uintptr_t generation, wapi_enum type, wapi_string message, uint32_t is_lost) {
  native_lock_take(&trouble->lock);
  if (trouble->generation == generation) {
    trouble->error_count++;
    trouble->error_type = type;
    keep_text(trouble->error_text, message);
    if (is_lost) atomic_store(&trouble->is_lost, 1);
  }
  native_lock_give(&trouble->lock);
}

void webgpu_on_error(const wapi_device *device, wapi_enum type, wapi_string message, void *trouble, void *generation) {
  (void)device;
  note(trouble, (uintptr_t)generation, type, message, 0);
}

void webgpu_on_lost(const wapi_device *device, wapi_enum reason, wapi_string message, void *trouble, void *generation) {
  (void)device;
  note(trouble, (uintptr_t)generation, reason, message, 1);
}

uint32_t webgpu_error_count(webgpu_trouble *trouble) {
  native_lock_take(&trouble->lock);
  const uint32_t count = trouble->error_count;
  native_lock_give(&trouble->lock);
  return count;
}

void webgpu_trouble_lose(webgpu_trouble *trouble, const char *why) {
  native_lock_take(&trouble->lock);
  trouble->error_count++;
  trouble->error_type = WAPI_ERROR_NONE;
  keep_text(trouble->error_text, (wapi_string){ why, strlen(why) });
  atomic_store(&trouble->is_lost, 1);
  native_lock_give(&trouble->lock);
}

uintptr_t webgpu_trouble_renew(webgpu_trouble *trouble) {
  native_lock_take(&trouble->lock);
  const uintptr_t generation = ++trouble->generation;
  trouble->error_count = 0;
  trouble->error_text[0] = '\0';
  atomic_store(&trouble->is_lost, 0);
  native_lock_give(&trouble->lock);
  return generation;
}

/* ---- answers ---- */

void webgpu_on_device(wapi_enum status, wapi_device device, wapi_string message, void *a, void *unused) {
  webgpu_flight *flight = a;
  (void)unused;
  flight->opened = status == WAPI_SUCCESS ? device : NULL;
  keep_text(flight->scope_text, message);
  atomic_store(&flight->is_opening, 0);
  (void)webgpu_flight_drop(flight);
}

/* Scopes are closed together; the first error found is kept. */
void webgpu_on_scope(wapi_enum status, wapi_enum type, wapi_string message, void *a, void *round) {
  webgpu_flight *flight = a;
  const int is_current = (uintptr_t)round == flight->scope_round;
  if (is_current && status == WAPI_SUCCESS && type != WAPI_ERROR_NONE && flight->scope_type == WAPI_ERROR_NONE) {
    flight->scope_type = type;
    keep_text(flight->scope_text, message);
  }
  if (is_current) atomic_fetch_sub(&flight->scopes_asked, 1);
  (void)webgpu_flight_drop(flight);
}

static void on_status(wapi_enum status, wapi_string message, void *a, void *b) {
  webgpu_reply *reply = b;
  (void)message;
  atomic_store(&reply->status, status);
  atomic_store(&reply->is_asked, 0);
  (void)webgpu_flight_drop(a);
}

wapi_status_call webgpu_call_for(webgpu_flight *flight, webgpu_reply *reply) {
  webgpu_flight_hold(flight);
  atomic_store(&reply->status, 0);
  atomic_store(&reply->is_asked, 1);
  return (wapi_status_call){ .mode = WAPI_ALLOW_PROCESS_EVENTS, .function = on_status, .a = flight, .b = reply };
}
