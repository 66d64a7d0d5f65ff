/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard has no list of adapters, only requests with preferences, so without an extension all preferences are tried
 * and what comes twice is dropped.
 */
#include "webgpu_adapters.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "native_lock.h"

#define REQUEST_NS UINT64_C(10000000000)        /* a request that is not answered by then is not waited for */
#define LARGEST_BINDING_BYTES (UINT64_C(1) << 30)       /* an i32 must count its bytes, whatever rounding adds */
/* Kernels keep up to 16 bytes an invocation in workgroup memory, of which an adapter need not have more than 16 KiB: a
   workgroup of 1024 would take all of it, and no other could run beside it on its compute unit.  They run over their items
   in strides, so a larger workgroup would start fewer of them and do nothing that four of these do not. */
#define MOST_WORKGROUP_SIZE 256u
#define LEAST_WORKGROUP_SIZE 64u

/* ---- one request ---- */

static void on_adapter(wapi_enum status, wapi_adapter adapter, wapi_string message, void *a, void *b) {
  webgpu_adapters *list = a;
  (void)message, (void)b;
  list->answer = status == WAPI_SUCCESS ? adapter : NULL;
  list->is_asked = 0;
}

/* A request that is not answered ends the asking: its answer may still come. */
static wapi_adapter request(const webgpu_api *api, wapi_instance instance, webgpu_adapters *list, webgpu_request what) {
  const wapi_adapter_options options = {
    .feature_level = WAPI_LEVEL_CORE, .power_preference = what.power, .force_fallback = what.fallback,
  };
  const wapi_adapter_call call = { .mode = WAPI_ALLOW_PROCESS_EVENTS, .function = on_adapter, .a = list };
  if (list->is_asked) return NULL;
  const uint64_t end = list->host->now_ns(list->host->context) + REQUEST_NS;
  list->is_asked = 1;
  list->answer = NULL;
  (void)api->InstanceRequestAdapter(instance, &options, call);
  for (uint32_t i = 0; list->is_asked && list->host->now_ns(list->host->context) < end; ++i) {
    api->InstanceProcessEvents(instance);
    if (list->is_asked) native_pause(i);
  }
  return list->is_asked ? NULL : list->answer;
}

/* ---- what it is ---- */

static void copy_text(char *to, wapi_string from) {
  const size_t length = from.data == NULL ? 0 : from.length == SIZE_MAX ? strlen(from.data) : from.length;
  const size_t kept = length < WEBGPU_NAME_BYTES ? length : WEBGPU_NAME_BYTES - 1;
  if (kept != 0) memcpy(to, from.data, kept);
  to[kept] = '\0';
}

static void hash_bytes(uint64_t *hash, const void *data, size_t count) {
  const unsigned char *bytes = data;
  for (size_t i = 0; i < count; ++i) *hash = (*hash ^ bytes[i]) * UINT64_C(0x100000001b3);
}

/* The interface tells no serial number: kind, name and place among equals are what stays the same. */
static void make_uuid(webgpu_adapter *adapter, uint32_t ordinal) {
  for (uint64_t half = 0; half < 2; ++half) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325) + half;
    hash_bytes(&hash, &adapter->vendor_id, sizeof adapter->vendor_id);
    hash_bytes(&hash, &adapter->device_id, sizeof adapter->device_id);
    hash_bytes(&hash, adapter->name, strlen(adapter->name));
    hash_bytes(&hash, &adapter->backend_type, sizeof adapter->backend_type);
    hash_bytes(&hash, &ordinal, sizeof ordinal);
    memcpy(adapter->uuid.bytes + 8 * half, &hash, sizeof hash);
  }
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t power_of_two_below(uint32_t value) {
  uint32_t power = LEAST_WORKGROUP_SIZE;
  while (power * 2 <= value && power < MOST_WORKGROUP_SIZE) power *= 2;
  return power;
}

static void make_limits(const webgpu_api *api, webgpu_adapter *adapter, const wapi_adapter_info *info, uint64_t max_binding_bytes) {
  const wapi_limits *native = &adapter->native;
  webgpu_limits *limits = &adapter->limits;
  uint64_t binding = native->max_storage_binding_bytes;
  if (binding > native->max_buffer_bytes) binding = native->max_buffer_bytes;
  if (binding > LARGEST_BINDING_BYTES) binding = LARGEST_BINDING_BYTES;
  if (max_binding_bytes != 0 && max_binding_bytes < binding) binding = max_binding_bytes;
  const uint32_t f16 = api->AdapterHasFeature(adapter->handle, WAPI_FEATURE_SHADER_F16) ? WEBGPU_NEEDS_F16 : 0;
  const uint32_t subgroups = api->AdapterHasFeature(adapter->handle, WAPI_FEATURE_SUBGROUPS) ? WEBGPU_NEEDS_SUBGROUPS : 0;
  *limits = (webgpu_limits){
    .binding_bytes = binding - binding % 4,
    .buffer_bytes = native->max_buffer_bytes,
    .offset_alignment = native->min_storage_offset_alignment < 4 ? 4 : native->min_storage_offset_alignment,
    .workgroup_size = power_of_two_below(least(native->max_workgroup_x, native->max_invocations)),
    .workgroup_bytes = native->max_workgroup_bytes,
    .workgroup_count = native->max_workgroups,
    .storage_buffers = native->max_storage_buffers,
    .features = f16 | subgroups,
    .subgroup_min = info->subgroup_min,
    .subgroup_max = info->subgroup_max,
    .is_processor = info->adapter_type == WAPI_ADAPTER_CPU,
  };
}

static void make_memory(webgpu_adapter *adapter) {
  adapter->memory = (tm_memory_space){
    .struct_size = sizeof adapter->memory,
    .name = TM_STRING("device memory"),
    .largest_buffer_bytes = adapter->limits.buffer_bytes,
    .largest_binding_bytes = adapter->limits.binding_bytes,
    .offset_granule = adapter->limits.offset_alignment,
    .store_granule = 4,
  };
  memcpy(adapter->memory.identity.bytes, adapter->uuid.bytes, sizeof adapter->uuid.bytes);
  adapter->memories[0] = &adapter->memory;
}

static int describe(const webgpu_api *api, webgpu_adapter *adapter, uint64_t max_binding_bytes) {
  wapi_adapter_info info = { .next = NULL };
  adapter->native = (wapi_limits){ .next = NULL };
  if (api->AdapterGetInfo(adapter->handle, &info) != WAPI_SUCCESS) return 0;
  adapter->backend_type = info.backend_type;
  adapter->adapter_type = info.adapter_type;
  adapter->vendor_id = info.vendor_id;
  adapter->device_id = info.device_id;
  copy_text(adapter->name, info.device.length != 0 ? info.device : info.description);
  copy_text(adapter->driver, info.description);
  const int good = api->AdapterGetLimits(adapter->handle, &adapter->native) == WAPI_SUCCESS;
  if (good) make_limits(api, adapter, &info, max_binding_bytes);
  api->AdapterInfoFreeMembers(info);
  adapter->native.next = NULL;
  return good;
}

/* ---- the list ---- */

static int contains(const char *text, tm_string part) {
  if (part.length == 0) return 1;
  for (; *text != '\0'; ++text) {
    uint64_t same = 0;
    while (same < part.length && text[same] != '\0' &&
           tolower((unsigned char)text[same]) == tolower((unsigned char)part.data[same])) ++same;
    if (same == part.length) return 1;
  }
  return 0;
}

static int is_same(const webgpu_adapter *a, const webgpu_adapter *b) {
  return a->vendor_id == b->vendor_id && a->device_id == b->device_id && strcmp(a->name, b->name) == 0;
}

static int is_wanted(const webgpu_api *api, webgpu_adapter *one, const webgpu_selection *selection) {
  return describe(api, one, selection->max_binding_bytes) && one->backend_type != WAPI_BACKEND_NULL &&
         contains(one->name, selection->name);
}

/* Adds the one at items[count], or drops it: what the user did not ask for, an adapter seen before, and the kind that takes
   all work and does none of it.  Equal ones in one list of one kind are two cards; of two kinds, or from two requests, they
   are one. */
static void settle(const webgpu_api *api, webgpu_adapters *list, const webgpu_selection *selection, int is_listed) {
  webgpu_adapter *one = &list->items[list->count];
  uint32_t ordinal = 0;
  int keep = is_wanted(api, one, selection);
  for (uint32_t i = 0; i < list->count && keep; ++i) {
    if (!is_same(one, &list->items[i])) continue;
    keep = is_listed && one->backend_type == list->items[i].backend_type;
    ++ordinal;
  }
  if (!keep) {
    api->AdapterRelease(one->handle);
    one->handle = NULL;
    return;
  }
  make_uuid(one, ordinal);
  make_memory(one);
  ++list->count;
}

/* The implementation's own list, as long as it is. */
typedef struct listing {
  const tm_host *host;
  wapi_adapter  *handles;
  size_t         count;
  uint64_t       bytes;                 /* of `handles` if the host gave them; 0: they are `room` */
  wapi_adapter   room[2 * WEBGPU_MOST_ADAPTERS];
} listing;

/* Lists of usual length need no memory of the host, which may have none. */
static wapi_adapter *listing_room(listing *all, size_t count) {
  if (count <= sizeof all->room / sizeof all->room[0]) return all->room;
  all->bytes = count * sizeof *all->handles;
  return all->host->alloc(all->host->context, all->bytes, _Alignof(wapi_adapter));
}

static void listing_free(const listing *all) {
  if (all->bytes != 0) all->host->free(all->host->context, all->handles, all->bytes);
}

static void listing_fill(listing *all, const webgpu_api *api, wapi_instance instance) {
  static const wapi_flags kinds[] = { WAPI_BACKENDS_PRIMARY, 0 };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && all->count == 0; ++i) {
    const wapi_enumerate_options options = { .next = NULL, .backends = kinds[i] };
    const size_t count = api->InstanceEnumerateAdapters(instance, &options, NULL);
    if (count == 0) continue;
    listing_free(all);
    all->bytes = 0;
    all->handles = listing_room(all, count);
    if (all->handles == NULL) return;
    all->count = api->InstanceEnumerateAdapters(instance, &options, all->handles);
  }
}

static const webgpu_request requests[] = {
  { WAPI_POWER_HIGH, 0 }, { WAPI_POWER_LOW, 0 }, { 0, 0 }, { 0, 1 },
};

static void tell_of_more(const tm_host *host, size_t count) {
  char text[160];
  const int length = snprintf(text, sizeof text, "WebGPU: %zu more adapters than the %u that are used; the option adapter chooses",
                              count, WEBGPU_MOST_ADAPTERS);
  host->log(host->context, TM_LOG_WARNING, (tm_string){ text, length < 0 ? 0 : (uint64_t)length });
}

static void settle_listing(const webgpu_api *api, const listing *all, const webgpu_selection *selection,
                           webgpu_adapters *out_adapters) {
  size_t more = 0;
  for (size_t i = 0; i < all->count; ++i) {
    if (out_adapters->count == WEBGPU_MOST_ADAPTERS) {
      webgpu_adapter beyond = { .handle = all->handles[i] };
      more += (size_t)is_wanted(api, &beyond, selection);
      api->AdapterRelease(all->handles[i]);
      continue;
    }
    webgpu_adapter *one = &out_adapters->items[out_adapters->count];
    one->handle = all->handles[i];
    one->place = (uint32_t)i;
    settle(api, out_adapters, selection, 1);
  }
  if (more != 0) tell_of_more(all->host, more);
}

void webgpu_adapters_list(const tm_host *host, const webgpu_api *api, wapi_instance instance, const webgpu_selection *selection,
                          webgpu_adapters *out_adapters) {
  memset(out_adapters, 0, sizeof *out_adapters);
  out_adapters->host = host;
  if (api->InstanceEnumerateAdapters != NULL) {
    listing all = { .host = host };
    listing_fill(&all, api, instance);
    settle_listing(api, &all, selection, out_adapters);
    listing_free(&all);
    return;
  }
  for (size_t i = 0; i < sizeof requests / sizeof requests[0]; ++i) {
    webgpu_adapter *one = &out_adapters->items[out_adapters->count];
    one->request = requests[i];
    one->handle = request(api, instance, out_adapters, requests[i]);
    if (one->handle != NULL) settle(api, out_adapters, selection, 0);
  }
}

void webgpu_adapters_release(const webgpu_api *api, webgpu_adapters *adapters) {
  for (uint32_t i = 0; i < adapters->count; ++i) {
    if (adapters->items[i].handle != NULL) api->AdapterRelease(adapters->items[i].handle);
    adapters->items[i].handle = NULL;
  }
}

wapi_adapter webgpu_adapter_take(const webgpu_api *api, wapi_instance instance, webgpu_adapters *adapters, uint32_t index) {
  webgpu_adapter *adapter = &adapters->items[index];
  wapi_adapter taken = adapter->handle;
  adapter->handle = NULL;
  if (taken != NULL) return taken;
  if (api->InstanceEnumerateAdapters == NULL) return request(api, instance, adapters, adapter->request);
  listing all = { .host = adapters->host };
  listing_fill(&all, api, instance);
  for (size_t i = 0; i < all.count; ++i) {
    if (i == adapter->place) taken = all.handles[i];
    else api->AdapterRelease(all.handles[i]);
  }
  listing_free(&all);
  return taken;
}
