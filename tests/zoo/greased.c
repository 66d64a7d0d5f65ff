/* SPDX-License-Identifier: Apache-2.0 */
/* From a later minor: every struct is longer, its new fields zero, and it offers traits that nobody knows. */
#include "zoo.h"

typedef struct later_table {
  tm_accelerator_backend_plugin known;
  void *later[8];
} later_table;

typedef struct later_memory {
  tm_memory_space known;
  uint64_t later[8];
} later_memory;

typedef struct later_option {
  tm_option known;
  uint64_t  later[4];
} later_option;

static const later_memory memory = { .known = {
  .struct_size = sizeof memory, .flags = TM_MEMORY_HOST_POINTER | 0xff00u, .identity = TM_HOST_MEMORY,
  .name = TM_STRING("host memory"), .alignment = 1, .offset_granule = 1, .store_granule = 1,
} };
static const tm_memory_space *const memories[] = { &memory.known };

static const later_option option = { .known = {
  .struct_size = sizeof option, .type = 99, .name = TM_STRING("later"), .default_value = TM_STRING("x"),
  .help = TM_STRING("Of a type that is not known yet."),
} };
static const tm_option *const options[] = { &option.known };

static tm_status later_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const tm_status status = zoo_device_info(backend, index, out_info);
  if (TM_HAS_MEMBER(out_info, tm_device_info, memories)) out_info->memories = memories;
  return status;
}

static const later_table table = { .known = {
  .struct_size = sizeof table, .option_count = 1, .options = options, .init = zoo_init, .shutdown = zoo_shutdown,
  .device_info = later_info, .query = zoo_query, .prepare = zoo_prepare, .release = zoo_release, .launch = zoo_launch,
} };

static const tm_trait traits[] = {
  { TM_STRING("tensormorph.file-format"), 1, 0, NULL },
  { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), 2, 0, NULL },
  { { NULL, 0 }, 0, 0, NULL },
  { TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND), TM_TRAIT_ACCELERATOR_BACKEND_REVISION, 0, &table },
};
static const tm_plugin_header header = {
  TM_PLUGIN_MAGIC, sizeof(tm_plugin_header), TM_ABI_MAJOR, TM_ABI_MINOR + 1, TM_BUILD_FLAGS, UINT64_C(0x1234),
  TM_STRING("zoo_greased"), TM_STRING("1"), TM_STRING("zoo"), TM_STRING("zoo"), sizeof traits / sizeof traits[0], traits,
};

TM_PLUGIN_EXPORT const tm_plugin_header *tm_plugin_query(uint32_t host_abi_major, uint32_t host_abi_minor);
const tm_plugin_header *tm_plugin_query(uint32_t host_abi_major, uint32_t host_abi_minor) {
  (void)host_abi_minor;
  return host_abi_major == TM_ABI_MAJOR ? &header : NULL;
}
