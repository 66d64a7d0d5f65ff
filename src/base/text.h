/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - bytes that may be anything, made fit for people: checking UTF-8, escaping, matching patterns, guessing names. */
#ifndef TM_BASE_TEXT_H
#define TM_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes (1..4) of the well-formed UTF-8 sequence that begins at `text`; 0 if there is none within `available` bytes. */
uint32_t tm_utf8_length(const char *text, uint64_t available);

/* Writes `text` with control characters, backslashes and malformed UTF-8 as \n, \t, \r, \\ or \xNN; always terminated.
   What does not fit is cut between characters and ends in "...".  Returns the length written; capacity is at least 8. */
uint64_t tm_text_escape(const char *text, uint64_t length, char *out_text, uint64_t capacity);

/* Whether it is well-formed UTF-8 without control characters. */
bool tm_text_is_clean(const char *text, uint64_t length);

/* Whether a name, or the last part of a path, is something and then the ending: ".gguf" is the name of a hidden file, and none
   with that ending. */
bool tm_text_has_ending(const char *text, const char *ending);

/* Does the whole of `text` match?  * any run, ? any byte, [abc] [a-z] [!a-z] one byte, \ takes the next byte as it is.
   A [ without its ] stands for itself. */
bool tm_glob_match(const char *pattern, uint64_t pattern_length, const char *text, uint64_t length);

/* The candidate closest to `name` by edit distance, ignoring case; NULL if none is close enough to be a slip. */
const char *tm_suggest(const char *name, const char *const *candidates, uint64_t count);

#endif
