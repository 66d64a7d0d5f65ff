/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plugin. */
#include "zoo.h"

extern int zoo_nothing;
int zoo_nothing;
