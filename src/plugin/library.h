/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - from a file name to what its tm_plugin_query returns, without trusting the file: examined as data first,
 * then loaded in a process of its own, and only if that survives, here.
 */
#ifndef TM_PLUGIN_LIBRARY_H
#define TM_PLUGIN_LIBRARY_H

#include "base/dynamic_library.h"
#include "base/log.h"
#include "tensormorph/plugin.h"

/* Examines the file; runs none of it. */
tm_status tm_plugin_library_examine(const char *path, tm_file_identity *out_identity, tm_error *error);

/* Loads it for good and asks for its header, which is not checked yet.   TM_ERROR_CORRUPT, TM_ERROR_NOT_FOUND */
tm_status tm_plugin_library_open(const char *path, const tm_plugin_header **out_header, tm_error *error);

/* Probes it in another process, loads it for good and asks for its header, which is not checked yet.
   TM_ERROR_CORRUPT with the reason in words. */
tm_status tm_plugin_library_load(const char *path, const tm_log *log, const tm_plugin_header **out_header, tm_error *error);

#endif
