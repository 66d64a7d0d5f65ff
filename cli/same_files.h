/* SPDX-License-Identifier: Apache-2.0 */
/* same_files.h - whether two checkpoints are one, by whatever names. */
#ifndef TM_CLI_SAME_FILES_H
#define TM_CLI_SAME_FILES_H

#include <stdbool.h>

#include "tensormorph/tensormorph.h"

/* They consist of the same files in the same order, through links, too. */
bool tm_same_files(const tm_checkpoint *a, const tm_checkpoint *b);

#endif
