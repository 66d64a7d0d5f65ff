/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - what the author of a plugin says of it in a file beside it, <name>.json beside <name>.so.  It is optional,
 * and read before any code of the plugin runs: it can only keep a plugin out that would do harm (another architecture, a
 * missing feature, other bytes than meant), never let one in.
 *
 *   { "schema": 1, "name": "adder", "version": "1.0", "file": "adder.so", "abi": "0.1", "architecture": "...",
 *     "processor_features": ["..."], "sha256": "64 hexadecimal digits", "watches": ["/etc/some-driver"] }
 *
 * schema and name are mandatory; what it does not know is ignored.  Paths in `watches` are looked at when deciding whether
 * what was found the last time still holds.
 */
#ifndef TM_PLUGIN_MANIFEST_H
#define TM_PLUGIN_MANIFEST_H

#include <stdbool.h>

#include "base/memory.h"
#include "tensormorph/plugin.h"

#define TM_MANIFEST_BYTES 65536u        /* a larger file is none */
#define TM_MANIFEST_FEATURES 64u
#define TM_MANIFEST_WATCHES 16u
#define TM_MANIFEST_NAME_BYTES 65u
#define TM_MANIFEST_TEXT_BYTES 257u

typedef struct tm_manifest {
  bool     exists;
  bool     has_abi;
  bool     has_digest;
  uint32_t feature_count;
  uint32_t watch_count;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint8_t  digest[32];
  char     name[TM_MANIFEST_NAME_BYTES];
  char     version[TM_MANIFEST_TEXT_BYTES];     /* "": it does not say; likewise below */
  char     file[TM_MANIFEST_TEXT_BYTES];
  char     architecture[TM_MANIFEST_NAME_BYTES];
  char     features[TM_MANIFEST_FEATURES][TM_MANIFEST_NAME_BYTES];
  char     watches[TM_MANIFEST_WATCHES][TM_MANIFEST_TEXT_BYTES];
} tm_manifest;

/* Reads a manifest's text; `path` is for messages.   TM_ERROR_CORRUPT with what is wrong, and where */
tm_status tm_manifest_parse(const char *text, uint64_t length, const char *path, tm_manifest *out_manifest, tm_error *error);

/* Finds and reads the manifest of the plugin at `plugin_path`; where there is none, exists is false.
   TM_ERROR_CORRUPT, TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_manifest_load(tm_memory *memory, const char *plugin_path, tm_manifest *out_manifest, tm_error *error);

/* Does it speak of this file, and can this machine and library run it?   TM_ERROR_CORRUPT with the difference in words */
tm_status tm_manifest_check(const tm_manifest *manifest, tm_memory *memory, const char *plugin_path, tm_error *error);

/* Does the plugin say of itself what its manifest says of it?   TM_ERROR_CORRUPT */
tm_status tm_manifest_compare(const tm_manifest *manifest, const char *name, const char *version, tm_error *error);

#endif
