/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_adapters.h - the adapters of an implementation, each once, with what each can do. */
#ifndef WEBGPU_ADAPTERS_H
#define WEBGPU_ADAPTERS_H

#include "webgpu_api.h"
#include "webgpu_kernel.h"

#define WEBGPU_MOST_ADAPTERS 16u
#define WEBGPU_NAME_BYTES 128u

/* How to get an adapter again: a device uses its adapter up. */
typedef struct webgpu_request {
  wapi_enum power;
  wapi_bool fallback;
} webgpu_request;

typedef struct webgpu_adapter {
  wapi_adapter    handle;               /* NULL once a device was made of it */
  webgpu_request  request;
  uint32_t        place;                /* in the implementation's own list; unused without one */
  wapi_enum       backend_type;
  wapi_enum       adapter_type;
  uint32_t        vendor_id, device_id;
  char            name[WEBGPU_NAME_BYTES];
  char            driver[WEBGPU_NAME_BYTES];
  wapi_limits     native;               /* as the implementation gives them */
  webgpu_limits   limits;
  tm_identity     uuid;
  tm_memory_space memory;
  const tm_memory_space *memories[1];
} webgpu_adapter;

typedef struct webgpu_adapters {
  webgpu_adapter items[WEBGPU_MOST_ADAPTERS];
  uint32_t       count;
  uint32_t       is_asked;              /* a request is on its way: its answer will be written here */
  wapi_adapter   answer;
  const tm_host *host;
} webgpu_adapters;

/* What the user asks for. */
typedef struct webgpu_selection {
  tm_string name;                       /* part of an adapter's name, in any case; empty: all */
  uint64_t  max_binding_bytes;          /* 0: the adapter's own limit */
} webgpu_selection;

/* Lists them; the log tells of those beyond WEBGPU_MOST_ADAPTERS.  None is no error.  The struct stays where it is until the instance is released. */
void webgpu_adapters_list(const tm_host *host, const webgpu_api *api, wapi_instance instance, const webgpu_selection *selection,
                          webgpu_adapters *out_adapters);
void webgpu_adapters_release(const webgpu_api *api, webgpu_adapters *adapters);

/* The adapter's handle, anew if it was used up; the caller releases it.  NULL if it is gone. */
wapi_adapter webgpu_adapter_take(const webgpu_api *api, wapi_instance instance, webgpu_adapters *adapters, uint32_t index);

#endif
