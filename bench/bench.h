/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what the benchmarks share: the built-in backend by name, reading memory as fast as it goes for comparison, and
 * medians.  Whatever is compared runs in turns within one process, because the machine's own speed wanders.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "kernel_host.h"

#define BENCH_MAX_ROUNDS 101

/* The entry of a built-in backend; NULL if there is none of that name. */
tm_plugin_query_fn bench_builtin(const char *name);

/* The value of "--name=NUMBER" among the arguments, or `standard`. */
uint64_t bench_option(int argc, char **argv, const char *name, uint64_t standard);

/* A sum of all bytes as 64-bit words, vectors and software prefetch, over the host's lanes: the speed of memory. */
uint64_t bench_read_sum(kernel_host *host, const void *data, uint64_t bytes);
/* The traffic of a conversion without its arithmetic: reads all of `from` and fills all of `to`, aligned to 16 bytes, by
   streaming stores, in turns of a line. */
uint64_t bench_read_and_fill(kernel_host *host, const void *from, uint64_t from_bytes, void *to, uint64_t to_bytes);

double bench_median(const double *values, uint32_t count);

#endif
