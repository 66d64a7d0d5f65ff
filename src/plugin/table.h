/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - is this a plugin that we can use?  Checks what tm_plugin_query returned and makes a complete table of it: a
 * copy with every gap filled, so that no call site ever tests for NULL.
 */
#ifndef TM_PLUGIN_TABLE_H
#define TM_PLUGIN_TABLE_H

#include <stdbool.h>

#include "tensormorph/plugin.h"

/* `path` is the file that every function must come from, or NULL for a built-in.  *out_table is complete on success.
   TM_ERROR_CORRUPT with the reason in words. */
tm_status tm_plugin_table_accept(const tm_plugin_header *header, const char *path, tm_accelerator_backend_plugin *out_table,
                                 tm_error *error);

/* Whether the backend has a cancel of its own. */
bool tm_plugin_table_has_cancel(const tm_accelerator_backend_plugin *table);
/* Whether the table manages buffers itself; if not, the host does it on spaces that are host memory. */
bool tm_plugin_table_has_buffers(const tm_accelerator_backend_plugin *table);
/* Whether it copies between buffers itself; the default is of use in the host's memory only. */
bool tm_plugin_table_has_copy(const tm_accelerator_backend_plugin *table);

#endif
