/* SPDX-License-Identifier: Apache-2.0 */
/* The one that keeps its word; ZOO_NAME lets it be built under a name that is taken. */
#include "zoo.h"

static const tm_option gear = {
  .struct_size = sizeof gear,
  .type = TM_OPTION_INTEGER,
  .name = TM_STRING("gear"),
  .default_value = TM_STRING("1"),
  .help = TM_STRING("A number that nothing depends on."),
};
static const tm_option lights = {
  .struct_size = sizeof lights,
  .type = TM_OPTION_SWITCH,
  .name = TM_STRING("lights"),
  .default_value = TM_STRING("0"),
  .help = TM_STRING("A switch that nothing depends on."),
};
static const tm_option *const options[] = { &gear, &lights };

static const tm_accelerator_backend_plugin table = {
  ZOO_TABLE(zoo_device_info, zoo_query, zoo_prepare, zoo_launch),
  .option_count = 2,
  .options = options,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
