/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builtin_plugins.h - the backends that are part of the library, as the build found them.  The list is generated; the
 * core learns of them here and treats them as it treats a loaded file.
 */
#ifndef TM_PLUGIN_BUILTIN_PLUGINS_H
#define TM_PLUGIN_BUILTIN_PLUGINS_H

#include <stdint.h>

#include "tensormorph/plugin.h"

typedef struct tm_builtin_plugin {
  const char        *name;      /* of the backend's folder; static */
  tm_plugin_query_fn query;     /* what tm_plugin_query is in a loaded file */
} tm_builtin_plugin;

/* tm_builtin_plugin_count rows (it may be 0), in the order of their names. */
extern const tm_builtin_plugin tm_builtin_plugins[];
extern const uint32_t          tm_builtin_plugin_count;

#endif
