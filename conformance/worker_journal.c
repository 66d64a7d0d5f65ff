/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/worker_journal.h"

#include <stddef.h>
#include <sys/mman.h>

static size_t bytes_of(uint32_t entry_count) { return sizeof(journal) + (size_t)entry_count * sizeof(journal_entry); }

journal *journal_create(uint32_t entry_count) {
  void *memory = mmap(NULL, bytes_of(entry_count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  journal *j = memory;
  j->entry_count = entry_count;
  return j;
}

void journal_destroy(journal *j) {
  if (j != NULL) munmap(j, bytes_of(j->entry_count));
}

void journal_note(journal *j, uint32_t item, uint32_t combination, uint32_t number) {
  last_call_end_copy(&j->calls);
  atomic_store(&j->item, item);
  atomic_store(&j->combination, combination);
  atomic_store(&j->number, number);
  atomic_fetch_add(&j->beat, 1);
}
