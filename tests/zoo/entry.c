/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that give no usable header: each build puts one wrong value into one field. */
#include <stdlib.h>

#include "zoo.h"

#ifndef ZOO_MAGIC
#define ZOO_MAGIC TM_PLUGIN_MAGIC
#endif
#ifndef ZOO_SIZE
#define ZOO_SIZE sizeof(tm_plugin_header)
#endif
#ifndef ZOO_MAJOR
#define ZOO_MAJOR TM_ABI_MAJOR
#endif
#ifndef ZOO_MINOR
#define ZOO_MINOR TM_ABI_MINOR
#endif
#ifndef ZOO_FLAGS
#define ZOO_FLAGS TM_BUILD_FLAGS
#endif
#ifndef ZOO_FINGERPRINT
#define ZOO_FINGERPRINT TM_LAYOUT_FINGERPRINT
#endif
#ifndef ZOO_NAME
#define ZOO_NAME TM_STRING("zoo_entry")
#endif
#ifndef ZOO_VERSION
#define ZOO_VERSION TM_STRING("1")
#endif
#ifndef ZOO_TRAITS
#define ZOO_TRAITS 1
#endif
#ifndef ZOO_TRAIT
#define ZOO_TRAIT TM_STRING(TM_TRAIT_ACCELERATOR_BACKEND)
#endif
#ifndef ZOO_LAUNCH
#define ZOO_LAUNCH zoo_launch
#endif
#ifndef ZOO_TABLE_SIZE
#define ZOO_TABLE_SIZE sizeof(tm_accelerator_backend_plugin)
#endif
#ifndef ZOO_OPTION_SIZE
#define ZOO_OPTION_SIZE sizeof(tm_option)
#endif
#ifndef ZOO_ENTER
#define ZOO_ENTER()
#endif
#ifndef ZOO_HEADER
#define ZOO_HEADER (&zoo_entry_header)
#endif

/* A function of another library. */
#define OUTSIDE_LAUNCH ((tm_status (*)(tm_device *, const tm_launch *, tm_ticket *))abort)

static const tm_option option = {
  .struct_size = ZOO_OPTION_SIZE, .type = TM_OPTION_SWITCH, .name = TM_STRING("gear"), .default_value = TM_STRING("0"),
  .help = TM_STRING("Does nothing."),
};
static const tm_option *const options[] = { &option };

static const tm_accelerator_backend_plugin table = {
  .struct_size = ZOO_TABLE_SIZE, .option_count = 1, .options = options, .init = zoo_init, .shutdown = zoo_shutdown, .device_info = zoo_device_info,
  .query = zoo_query, .prepare = zoo_prepare, .release = zoo_release, .launch = ZOO_LAUNCH,
};

static const tm_trait traits[] = { { ZOO_TRAIT, TM_TRAIT_ACCELERATOR_BACKEND_REVISION, 0, &table } };

extern const tm_plugin_header zoo_entry_header;
const tm_plugin_header zoo_entry_header = {
  ZOO_MAGIC, ZOO_SIZE, ZOO_MAJOR, ZOO_MINOR, ZOO_FLAGS, ZOO_FINGERPRINT, ZOO_NAME, ZOO_VERSION, TM_STRING("zoo"),
  TM_STRING("zoo"), ZOO_TRAITS, traits,
};

TM_PLUGIN_EXPORT const tm_plugin_header *tm_plugin_query(uint32_t host_abi_major, uint32_t host_abi_minor);
const tm_plugin_header *tm_plugin_query(uint32_t host_abi_major, uint32_t host_abi_minor) {
  (void)host_abi_major, (void)host_abi_minor;
  ZOO_ENTER();
  return ZOO_HEADER;
}
