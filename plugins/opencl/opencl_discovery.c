/* SPDX-License-Identifier: Apache-2.0 */
#include "opencl_discovery.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "opencl_error.h"

#define MOST_PLATFORMS 32u
#define MOST_DEVICES_A_PLATFORM 32u
#define REASON_LENGTH 512
#define LONGEST_EXTENSIONS 16384u
#define LEAST_LOCAL_BYTES 32768u

/* What the search has found out so far. */
typedef struct search {
  tm_backend          *backend;
  const opencl_filter *filter;
  char                 passed_over[REASON_LENGTH];      /* devices that were not taken, and why */
} search;

/* ---- questions to a device ---- */

static uint64_t number_of(const opencl_api *api, opencl_device_id id, uint32_t what, size_t bytes) {
  uint64_t value = 0;
  uint32_t narrow = 0;
  if (bytes == sizeof narrow) return api->GetDeviceInfo(id, what, sizeof narrow, &narrow, NULL) == OPENCL_SUCCESS ? narrow : 0;
  return api->GetDeviceInfo(id, what, sizeof value, &value, NULL) == OPENCL_SUCCESS ? value : 0;
}

static uint32_t u32_of(const opencl_api *api, opencl_device_id id, uint32_t what) { return (uint32_t)number_of(api, id, what, 4); }
static uint64_t u64_of(const opencl_api *api, opencl_device_id id, uint32_t what) { return number_of(api, id, what, 8); }

static uint64_t size_of(const opencl_api *api, opencl_device_id id, uint32_t what) {
  size_t value = 0;
  return api->GetDeviceInfo(id, what, sizeof value, &value, NULL) == OPENCL_SUCCESS ? value : 0;
}

/* What is longer than the room for it is cut. */
static void text_of(const opencl_api *api, opencl_device_id id, uint32_t what, char *out_text) {
  char text[4 * OPENCL_NAME_LENGTH] = "";
  if (api->GetDeviceInfo(id, what, sizeof text - 1, text, NULL) != OPENCL_SUCCESS) text[0] = '\0';
  (void)snprintf(out_text, OPENCL_NAME_LENGTH, "%.*s", (int)(OPENCL_NAME_LENGTH - 1), text);
}

/* The list of extensions is words between spaces. */
static int has_extension(const search *s, opencl_device_id id, const char *name) {
  const opencl_api *api = &s->backend->api;
  const tm_host *host = s->backend->host;
  size_t bytes = 0;
  int found = 0;
  if (api->GetDeviceInfo(id, OPENCL_DEVICE_EXTENSIONS, 0, NULL, &bytes) != OPENCL_SUCCESS) return 0;
  if (bytes == 0 || bytes > LONGEST_EXTENSIONS) return 0;
  char *text = opencl_alloc(host, bytes + 1);
  if (text == NULL) return 0;
  if (api->GetDeviceInfo(id, OPENCL_DEVICE_EXTENSIONS, bytes, text, NULL) == OPENCL_SUCCESS) {
    const size_t length = strlen(name);
    text[bytes] = '\0';
    for (const char *at = text; !found && (at = strstr(at, name)) != NULL; at += length)
      found = (at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
  }
  opencl_free(host, text, bytes + 1);
  return found;
}

/* ---- is it one of ours? ---- */

/* "OpenCL 1.2 ..." or later. */
static int is_recent(const char *version) {
  unsigned major = 0, minor = 0;
  return sscanf(version, "OpenCL %u.%u", &major, &minor) == 2 && (major > 1 || (major == 1 && minor >= 2));
}

/* Why the kernels cannot run there; NULL if they can. */
static const char *why_not(const search *s, opencl_device_id id) {
  const opencl_api *api = &s->backend->api;
  const uint64_t wanted = OPENCL_FP_INF_NAN | OPENCL_FP_ROUND_TO_NEAREST;
  char version[OPENCL_NAME_LENGTH], profile[OPENCL_NAME_LENGTH];
  text_of(api, id, OPENCL_DEVICE_VERSION, version);
  text_of(api, id, OPENCL_DEVICE_PROFILE, profile);
  if (!is_recent(version)) return "is older than OpenCL 1.2";
  if (strcmp(profile, "FULL_PROFILE") != 0) return "has an embedded profile";
  if (u32_of(api, id, OPENCL_DEVICE_AVAILABLE) == 0) return "is not available";
  if (u32_of(api, id, OPENCL_DEVICE_COMPILER_AVAILABLE) == 0) return "has no compiler";
  if (u32_of(api, id, OPENCL_DEVICE_ENDIAN_LITTLE) == 0) return "is big-endian";
  if ((u64_of(api, id, OPENCL_DEVICE_SINGLE_FP_CONFIG) & wanted) != wanted) return "does not round to nearest or lacks NaN";
  if (size_of(api, id, OPENCL_DEVICE_MAX_WORK_GROUP_SIZE) < GROUP_SIZE) return "has groups of fewer than 64 work items";
  if (size_of(api, id, OPENCL_DEVICE_MAX_PARAMETER_SIZE) < sizeof(kernel_parameters) + 64) return "takes few bytes of arguments";
  return u64_of(api, id, OPENCL_DEVICE_LOCAL_MEM_SIZE) < LEAST_LOCAL_BYTES ? "has less than 32 KiB of local memory" : NULL;
}

static int contains(const char *text, tm_string part) {
  const size_t length = strlen(text);
  for (size_t i = 0; i + part.length <= length; i++) {
    size_t same = 0;
    while (same < part.length && tolower((unsigned char)text[i + same]) == tolower((unsigned char)part.data[same])) same++;
    if (same == part.length) return 1;
  }
  return 0;
}

static void pass_over(search *s, const char *name, const char *why) {
  const size_t length = strlen(s->passed_over);
  (void)snprintf(s->passed_over + length, sizeof s->passed_over - length, "%s%s %s", length == 0 ? "" : "; ", name, why);
}

/* ---- what is it? ---- */

static uint64_t hash_of(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash;
}

/* Two platforms may have one device, each its own view of it. */
static int is_taken(const tm_backend *backend, const tm_identity *uuid) {
  for (uint32_t i = 0; i < backend->device_count; i++)
    if (memcmp(&backend->devices[i].uuid, uuid, sizeof *uuid) == 0) return 1;
  return 0;
}

/* Its own uuid; else one from names and the number among devices of these names. */
static void identify(const search *s, opencl_found *found, const char *platform, uint32_t index) {
  const opencl_api *api = &s->backend->api;
  if (has_extension(s, found->id, "cl_khr_device_uuid") &&
      api->GetDeviceInfo(found->id, OPENCL_DEVICE_UUID, sizeof found->uuid, &found->uuid, NULL) == OPENCL_SUCCESS &&
      !is_taken(s->backend, &found->uuid))
    return;
  uint64_t halves[2];
  halves[0] = hash_of(hash_of(UINT64_C(0xcbf29ce484222325), platform) ^ index, found->name);
  halves[1] = hash_of(halves[0] ^ UINT64_C(0x9e3779b97f4a7c15), platform);
  memcpy(&found->uuid, halves, sizeof found->uuid);
}

/* Orders of magnitude, from what a device tells; the host corrects them by what it measures. */
static void estimate(const opencl_api *api, opencl_found *found) {
  kernel_device *facts = &found->facts;
  const int is_host = (u64_of(api, found->id, OPENCL_DEVICE_TYPE) & OPENCL_DEVICE_TYPE_CPU) != 0;
  const double units = u32_of(api, found->id, OPENCL_DEVICE_MAX_COMPUTE_UNITS);
  const double ghz = (double)u32_of(api, found->id, OPENCL_DEVICE_MAX_CLOCK_FREQUENCY) / 1000;
  const double width = u32_of(api, found->id, OPENCL_DEVICE_NATIVE_FLOAT_WIDTH);
  const double lanes = is_host ? (width >= 1 ? width : 4) : 64;
  facts->flops_per_ns = 2 * (units >= 1 ? units : 1) * (ghz > 0.1 ? ghz : 1) * lanes;
  facts->f64_flops_per_ns = facts->flops_per_ns / (is_host ? 2 : 16);
  const double spread = 8 * units;
  facts->bytes_per_ns = is_host ? 20 : u32_of(api, found->id, OPENCL_DEVICE_HOST_UNIFIED_MEMORY) ? 40 : spread > 30 ? spread : 30;
  facts->launch_ns = is_host ? 30000 : 10000;
  /* Drivers for processors optimize when a kernel is built and once more at its first launch. */
  facts->setup_ns = is_host ? 3500000000u : 400000000u;
}

static void describe(const search *s, opencl_found *found) {
  static const tm_identity host_cores = TM_HOST_CORES;
  const opencl_api *api = &s->backend->api;
  const uint64_t single = u64_of(api, found->id, OPENCL_DEVICE_SINGLE_FP_CONFIG);
  const uint64_t wide = u64_of(api, found->id, OPENCL_DEVICE_DOUBLE_FP_CONFIG);
  const uint64_t wanted = OPENCL_FP_DENORM | OPENCL_FP_INF_NAN | OPENCL_FP_ROUND_TO_NEAREST | OPENCL_FP_FMA;
  uint64_t largest = u64_of(api, found->id, OPENCL_DEVICE_MAX_MEM_ALLOC_SIZE);
  if (s->filter->max_allocation_bytes != 0 && s->filter->max_allocation_bytes < largest) largest = s->filter->max_allocation_bytes;
  text_of(api, found->id, OPENCL_DRIVER_VERSION, found->driver);
  found->facts.has_f64 = (wide & wanted) == wanted && !s->filter->ignores_f64;
  found->facts.has_denormals = (single & OPENCL_FP_DENORM) != 0;
  found->facts.specializes = (u32)s->filter->specializes;
  found->facts.has_exact_divide = (single & OPENCL_FP_EXACT_DIVIDE_SQRT) != 0;
  found->facts.largest_buffer_bytes = largest;
  estimate(api, found);
  const int is_host = (u64_of(api, found->id, OPENCL_DEVICE_TYPE) & OPENCL_DEVICE_TYPE_CPU) != 0;
  found->resource = is_host && !s->filter->owns_cores ? host_cores : found->uuid;
  found->space = (tm_memory_space){
    .struct_size = sizeof found->space, .name = TM_STRING("buffers"), .alignment = OPENCL_BUFFER_GRANULE,
    .total_bytes = u64_of(api, found->id, OPENCL_DEVICE_GLOBAL_MEM_SIZE), .largest_buffer_bytes = largest,
    .offset_granule = OPENCL_BUFFER_GRANULE, .store_granule = 1,
  };
  found->spaces[0] = &found->space;
}

/* ---- the search ---- */

static uint32_t same_before(const tm_backend *backend, opencl_platform platform, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < backend->device_count; i++)
    count += backend->devices[i].platform == platform && strcmp(backend->devices[i].name, name) == 0;
  return count;
}

static void consider(search *s, opencl_platform platform, const char *platform_name, opencl_device_id id) {
  tm_backend *backend = s->backend;
  char name[OPENCL_NAME_LENGTH];
  text_of(&backend->api, id, OPENCL_DEVICE_NAME, name);
  const char *why = contains(name, s->filter->device) ? why_not(s, id) : "is not what the option device asks for";
  if (why != NULL) {
    pass_over(s, name, why);
    return;
  }
  if (backend->device_count == OPENCL_MOST_DEVICES) return;
  opencl_found *found = &backend->devices[backend->device_count];
  found->platform = platform;
  found->id = id;
  memcpy(found->name, name, sizeof name);
  atomic_init(&found->broken_programs, 0);
  identify(s, found, platform_name, same_before(backend, platform, name));
  describe(s, found);
  backend->device_count++;
}

static void search_platform(search *s, opencl_platform platform) {
  const opencl_api *api = &s->backend->api;
  opencl_device_id ids[MOST_DEVICES_A_PLATFORM];
  char name[OPENCL_NAME_LENGTH] = "";
  uint32_t count = 0;
  if (api->GetPlatformInfo(platform, OPENCL_PLATFORM_NAME, sizeof name - 1, name, NULL) != OPENCL_SUCCESS) name[0] = '\0';
  if (!contains(name, s->filter->platform)) {
    pass_over(s, name, "is not what the option platform asks for");
    return;
  }
  const int32_t error = api->GetDeviceIDs(platform, OPENCL_DEVICE_TYPE_ALL, MOST_DEVICES_A_PLATFORM, ids, &count);
  if (error != OPENCL_SUCCESS) {
    pass_over(s, name, error == OPENCL_DEVICE_NOT_FOUND ? "has no device" : opencl_error_name(error));
    return;
  }
  for (uint32_t i = 0; i < count && i < MOST_DEVICES_A_PLATFORM; i++) consider(s, platform, name, ids[i]);
}

tm_status opencl_discover(tm_backend *backend, const opencl_filter *filter) {
  opencl_platform platforms[MOST_PLATFORMS];
  search s = { .backend = backend, .filter = filter };
  uint32_t count = 0;
  const int32_t error = backend->api.GetPlatformIDs(MOST_PLATFORMS, platforms, &count);
  if (error != OPENCL_SUCCESS && error != OPENCL_PLATFORM_NOT_FOUND)
    return opencl_fail(backend->host, TM_ERROR_NO_DEVICE, error, "clGetPlatformIDs: %s (%d)", opencl_error_name(error), (int)error);
  if (error != OPENCL_SUCCESS || count == 0)
    return opencl_fail(backend->host, TM_ERROR_NO_DEVICE, 0,
                       "the OpenCL loader knows no platform; install a driver (pocl-opencl-icd for "
                       "processors); loaders look for them in /etc/OpenCL/vendors");
  for (uint32_t i = 0; i < count && i < MOST_PLATFORMS; i++) search_platform(&s, platforms[i]);
  if (backend->device_count != 0) return TM_OK;
  return opencl_fail(backend->host, TM_ERROR_NO_DEVICE, 0, "no OpenCL device that fits: %s", s.passed_over);
}
