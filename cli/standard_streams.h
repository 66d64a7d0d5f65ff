/* SPDX-License-Identifier: Apache-2.0 */
/* standard_streams.h - numbers 0, 1 and 2 mean input, output and errors, whatever the caller closed. */
#ifndef TM_CLI_STANDARD_STREAMS_H
#define TM_CLI_STANDARD_STREAMS_H

#include <stdbool.h>
#include <stdio.h>

/* Call it before any file is opened: a file opened later must not get the number of a closed stream, or what is printed
   would land in it.  Writing to an output that was closed fails as before; messages for a closed error stream are lost. */
void tm_standard_streams_claim(void);

/* For a document that must hold nothing else: a copy of the output that no library knows.  What anybody prints from now on goes to
   the error stream.  NULL if there is none to be had, and then nothing has changed. */
FILE *tm_standard_streams_take_output(void);

/* Whether a path names or links to the standard output ("/dev/stdout", "/dev/fd/1", ...): after the above it would lead elsewhere, and
   what a command says lies there, too. */
bool tm_standard_streams_is_output(const char *path);

#endif
