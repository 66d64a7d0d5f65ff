/* SPDX-License-Identifier: Apache-2.0 */
/* staging.h - running a kernel on a device with memory of its own: operands are copied there, results back. */
#ifndef TM_EXECUTE_STAGING_H
#define TM_EXECUTE_STAGING_H

#include "execute/launcher.h"

/* As tm_launcher_run; what is resident is used and stays where it is. */
tm_status tm_staging_run(const tm_launch_site *site, tm_device_use *use, tm_copy_times *out_copies, tm_error *error);

#endif
