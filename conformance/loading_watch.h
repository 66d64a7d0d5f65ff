/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loading_watch.h - what a library does to the process as it is loaded, by its constructors.  What it prints is kept out of
 * the report.
 */
#ifndef CONFORMANCE_LOADING_WATCH_H
#define CONFORMANCE_LOADING_WATCH_H

#include <stddef.h>

typedef struct loading_watch loading_watch;

/* NULL without memory: then nothing is watched. */
loading_watch *loading_watch_begin(void);
/* What it did, after "when it is loaded it "; "" if nothing.  Processes that it left running are ended. */
void loading_watch_end(loading_watch *w, char *text, size_t capacity);

#endif
