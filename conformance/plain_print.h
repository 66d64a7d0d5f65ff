/* SPDX-License-Identifier: Apache-2.0 */
/* plain_print.h - what a plugin said, or a file is called, as lines in which nothing moves a cursor or hides what was printed. */
#ifndef CONFORMANCE_PLAIN_PRINT_H
#define CONFORMANCE_PLAIN_PRINT_H

#include <stddef.h>
#include <stdio.h>

/* Control characters but the newline, and bytes that are no UTF-8, as \xNN. */
void plain_write(const char *text, size_t length, FILE *to);
/* Likewise; what is longer than 8191 bytes is cut. */
void plain_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
