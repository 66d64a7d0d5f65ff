/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary.h - tokens as text, by llama2.c's tokenizer file: int32 longest, then a token {f32 score, int32 length, bytes}. */
#ifndef LLAMA_VOCABULARY_H
#define LLAMA_VOCABULARY_H

#include <stdint.h>

typedef struct llama_vocabulary {
  char   **pieces;              /* NULL: tokens are printed as numbers */
  uint32_t count;
} llama_vocabulary;

/* path NULL: none.  Prints what is wrong and returns 0. */
int  llama_vocabulary_read(llama_vocabulary *vocabulary, const char *path, uint32_t count);
void llama_vocabulary_free(llama_vocabulary *vocabulary);
/* Prints a token to standard output, at once; 0 if that fails. */
int  llama_vocabulary_print(const llama_vocabulary *vocabulary, uint32_t before, uint32_t token);

#endif
