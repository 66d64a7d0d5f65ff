/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_run.h - a plugin tried in a process of its own (libexec/probe.c), which may crash or hang instead of this one.  What it
 * gets to say is a record (enumeration.h); where it says nothing more, the last step that it journalled tells what it was
 * doing.
 */
#ifndef TM_PLUGIN_PROBE_RUN_H
#define TM_PLUGIN_PROBE_RUN_H

#include "base/fields.h"
#include "base/process.h"
#include "plugin/inventory.h"

#define TM_PROBE_LOAD "load"    /* load it and ask for its header */
#define TM_PROBE_LIST "list"    /* and init, and list its devices */
#define TM_PROBE_FULL "full"    /* and ask it about operations, and run one of each kind that it claims */

/* What a backend declares of its own slowness counts up to this, for each step. */
#define TM_PROBE_LONGEST_NS (UINT64_C(60) * 1000000000)

/* Fields of what the process says: the first four with a text each, any number of times, then one of the others. */
#define TM_PROBE_PATIENCE "patience"    /* nanoseconds that the next step may take longer than others */
#define TM_PROBE_STEP     "step"
#define TM_PROBE_VARIABLE "variable"    /* of the environment, that was asked for */
#define TM_PROBE_HEADER   "header"      /* a record (enumeration.h) of what it told before anything of it was started */
#define TM_PROBE_RECORD   "record"      /* 1 if it holds until something changes, and the record's fields */
#define TM_PROBE_ARGUMENT "argument"    /* text: the user's mistake */
#define TM_PROBE_REFUSAL  "refusal"     /* text: why it cannot be loaded */
#define TM_PROBE_TROUBLE  "trouble"     /* text: why it cannot be tried now */

/* After a record the process ends as any program does, with this code: destructors and exit handlers of the plugin run, and
   one that ends the process in its own way does so with another code. */
#define TM_PROBE_EXIT_CODE 47

typedef struct tm_probe_request {
  const char *path;                     /* of a file; NULL: the built-in of that name */
  const char *builtin;
  const char *depth;                    /* TM_PROBE_LOAD ... */
  const char *settings_name;            /* by which settings mean it; NULL: its own name */
  const tm_context_options *options;    /* its settings; NULL: none */
} tm_probe_request;

typedef struct tm_probe_result {
  tm_process_result process;
  tm_field_writer   variables;          /* names of those that it asked for; also where it came to nothing */
  tm_string record;                     /* part of its output; empty for TM_PROBE_LOAD */
  tm_string header;                     /* likewise; empty if it did not come so far */
  bool      is_final;                   /* found out for good: not for want of time, memory or anything else that may come */
} tm_probe_result;

/* TM_OK; TM_ERROR_CORRUPT: it did harm or is no plugin, with the reason in words; TM_ERROR_ARGUMENT: a setting that it does
   not take; TM_ERROR_NOT_FOUND: no process can be started here; TM_ERROR_IO: none can be started now; TM_ERROR_NO_MEMORY.
   *out_result is to be deinited, whatever is returned. */
tm_status tm_probe_run(tm_memory *memory, const tm_probe_request *request, tm_probe_result *out_result, tm_error *error);
void      tm_probe_deinit(tm_probe_result *result);

#endif
