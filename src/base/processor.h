/* SPDX-License-Identifier: Apache-2.0 */
/* processor.h - what this machine is, in the system's own words, so that nothing here has to know any of them. */
#ifndef TM_BASE_PROCESSOR_H
#define TM_BASE_PROCESSOR_H

#include <stdbool.h>

/* The name of the architecture that this library was built for, as `uname -m` prints it there. */
const char *tm_processor_architecture(void);

/* Whether the system lists the feature for its processors, by the system's name for it (/proc/cpuinfo).  Reads that file
   each time.  *out_known is false where there is no such list. */
bool tm_processor_has(const char *feature, bool *out_known);

#endif
