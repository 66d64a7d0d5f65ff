/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shared_object.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#define OWN_MACHINE EM_NONE     /* not checked */
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define OWN_ORDER ELFDATA2MSB
#else
#define OWN_ORDER ELFDATA2LSB
#endif

#define MOST_SEGMENTS 256u
#define MOST_DYNAMIC_ENTRIES 4096u
#define MOST_SYMBOLS (1u << 20)
#define MOST_BUCKETS (1u << 20)
#define MOST_NEEDED 32u
#define LONGEST_NAME 256u

typedef struct object_reader {
  const tm_byte_source *source;
  const char           *path;
  const char           *entry;
  tm_error             *error;
  tm_shared_object     *object;
  Elf64_Ehdr            header;
  Elf64_Phdr            segments[MOST_SEGMENTS];
  /* Addresses and counts of the dynamic section; 0: not there. */
  uint64_t strings;
  uint64_t strings_bytes;
  uint64_t symbols;
  uint64_t symbol_bytes;
  uint64_t hash;
  uint64_t gnu_hash;
} object_reader;

static tm_status refuse(const object_reader *reader, const char *what) {
  return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: damaged shared object: %s", reader->path, what);
}

static bool read_at(const object_reader *reader, uint64_t offset, void *out_data, uint64_t bytes) {
  uint64_t end;
  return tm_checked_add(offset, bytes, &end) && end <= reader->source->size_bytes &&
         reader->source->read(reader->source->context, offset, out_data, bytes);
}

/* ---- the header and the segments ---- */

static tm_status read_header(object_reader *reader) {
  const uint64_t size = reader->source->size_bytes;
  Elf64_Ehdr *header = &reader->header;
  const uint64_t available = tm_min_u64(size, sizeof *header);
  if (available < SELFMAG || !read_at(reader, 0, header, available) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: not a shared object (no ELF header)", reader->path);
  if (available != sizeof *header)
    return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: truncated shared object: only %llu bytes", reader->path,
                   (unsigned long long)size);
  if (header->e_ident[EI_DATA] != OWN_ORDER)
    return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: shared object for another architecture (of the other order of bytes)",
                   reader->path);
  if (header->e_ident[EI_CLASS] != ELFCLASS64 ||
      (OWN_MACHINE != EM_NONE && header->e_machine != OWN_MACHINE))
    return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: shared object for another architecture (ELF machine %u, class %u)",
                   reader->path, header->e_machine, header->e_ident[EI_CLASS]);
  if (header->e_type != ET_DYN)
    return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: an ELF file, but no shared object (type %u)", reader->path,
                   header->e_type);
  return TM_OK;
}

/* Every loadable segment must lie inside the file: the dynamic loader would map what is missing, and touching it is a
   fatal signal. */
static tm_status read_segments(object_reader *reader) {
  const Elf64_Ehdr *header = &reader->header;
  const uint64_t size = reader->source->size_bytes;
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 || header->e_phnum > MOST_SEGMENTS)
    return tm_fail(reader->error, TM_ERROR_CORRUPT, "%s: damaged shared object (%u segments)", reader->path, header->e_phnum);
  const bool all = read_at(reader, header->e_phoff, reader->segments, header->e_phnum * sizeof(Elf64_Phdr));
  bool has_stack = false;
  for (unsigned i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr *segment = &reader->segments[i];
    const bool whole = all && (segment->p_type != PT_LOAD ||
                               (segment->p_offset <= size && segment->p_filesz <= size - segment->p_offset));
    if (!whole)
      return tm_fail(reader->error, TM_ERROR_CORRUPT,
                     "%s: truncated shared object: the file ends at %llu bytes, inside segment %u", reader->path,
                     (unsigned long long)size, i);
    if (segment->p_type != PT_GNU_STACK) continue;
    has_stack = true;
    if ((segment->p_flags & PF_X) != 0) reader->object->wants_executable_stack = true;
  }
  /* Without a word about it the dynamic loader makes the stack executable. */
  if (!has_stack) reader->object->wants_executable_stack = true;
  if (header->e_shnum != 0 &&
      (header->e_shoff > size || size - header->e_shoff < (uint64_t)header->e_shnum * header->e_shentsize))
    return tm_fail(reader->error, TM_ERROR_CORRUPT,
                   "%s: truncated shared object: the file ends at %llu bytes, before its section table", reader->path,
                   (unsigned long long)size);
  return TM_OK;
}

/* Reads what will lie at an address once it is loaded. */
static bool read_address(const object_reader *reader, uint64_t address, void *out_data, uint64_t bytes) {
  for (unsigned i = 0; i < reader->header.e_phnum; i++) {
    const Elf64_Phdr *segment = &reader->segments[i];
    if (segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
    const uint64_t into = address - segment->p_vaddr;
    if (into > segment->p_filesz || bytes > segment->p_filesz - into) continue;
    return read_at(reader, segment->p_offset + into, out_data, bytes);
  }
  return false;
}

/* ---- the dynamic section ---- */

static bool read_string(const object_reader *reader, uint64_t index, char text[LONGEST_NAME]) {
  if (index >= reader->strings_bytes) return false;
  const uint64_t bytes = tm_min_u64(LONGEST_NAME - 1, reader->strings_bytes - index);
  uint64_t address;
  if (!tm_checked_add(reader->strings, index, &address) || !read_address(reader, address, text, bytes)) return false;
  text[bytes] = '\0';
  return true;
}

static void add_needed(tm_shared_object *object, const char *name) {
  char clean[LONGEST_NAME];
  (void)tm_text_escape(name, strlen(name), clean, sizeof clean);
  const size_t used = strlen(object->needed), length = strlen(clean);
  if (used + length + 3 > sizeof object->needed) return;
  memcpy(object->needed + used, ", ", used == 0 ? 0 : 2);
  memcpy(object->needed + used + (used == 0 ? 0 : 2), clean, length + 1);
}

static void take_dynamic(object_reader *reader, const Elf64_Dyn *one) {
  switch (one->d_tag) {
    case DT_STRTAB: reader->strings = one->d_un.d_ptr; break;
    case DT_STRSZ: reader->strings_bytes = one->d_un.d_val; break;
    case DT_SYMTAB: reader->symbols = one->d_un.d_ptr; break;
    case DT_SYMENT: reader->symbol_bytes = one->d_un.d_val; break;
    case DT_HASH: reader->hash = one->d_un.d_ptr; break;
    case DT_GNU_HASH: reader->gnu_hash = one->d_un.d_ptr; break;
    default: break;
  }
}

static const Elf64_Phdr *find_dynamic(const object_reader *reader) {
  for (unsigned i = 0; i < reader->header.e_phnum; i++)
    if (reader->segments[i].p_type == PT_DYNAMIC) return &reader->segments[i];
  return NULL;
}

static tm_status read_dynamic(object_reader *reader) {
  const Elf64_Phdr *segment = find_dynamic(reader);
  if (segment == NULL) return refuse(reader, "it has no dynamic section");
  uint64_t needed[MOST_NEEDED];
  uint32_t needed_count = 0;
  Elf64_Dyn one = { .d_tag = DT_NULL + 1 };
  for (uint64_t i = 0; i < MOST_DYNAMIC_ENTRIES && one.d_tag != DT_NULL; i++) {
    uint64_t offset;
    if (!tm_checked_add(segment->p_offset, i * sizeof one, &offset) || !read_at(reader, offset, &one, sizeof one))
      return refuse(reader, "its dynamic section reaches beyond the file");
    take_dynamic(reader, &one);
    if (one.d_tag == DT_NEEDED && needed_count < MOST_NEEDED) needed[needed_count++] = one.d_un.d_val;
  }
  if (one.d_tag != DT_NULL) return refuse(reader, "its dynamic section has no end");
  if (reader->symbols == 0 || reader->strings == 0 || reader->symbol_bytes != sizeof(Elf64_Sym))
    return refuse(reader, "it has no table of symbols");
  for (uint32_t i = 0; i < needed_count; i++) {
    char name[LONGEST_NAME];
    if (read_string(reader, needed[i], name)) add_needed(reader->object, name);
  }
  return TM_OK;
}

/* ---- symbols ---- */

/* The highest symbol that a bucket's chain reaches, plus one; 0 where the chain has no sound end. */
static uint64_t chain_end(const object_reader *reader, uint64_t chains, uint32_t first, uint32_t offset) {
  for (uint64_t index = first; index < MOST_SYMBOLS; index++) {
    uint32_t hash;
    if (index < offset || !read_address(reader, chains + (index - offset) * sizeof hash, &hash, sizeof hash)) return 0;
    if ((hash & 1) != 0) return index + 1;
  }
  return 0;
}

/* The table by which symbols are found covers those that are defined; that tells how many symbols there are. */
static tm_status count_by_gnu_hash(const object_reader *reader, uint64_t *out_count) {
  uint32_t head[4];             /* buckets, index of the first symbol, words of the filter, shift */
  if (!read_address(reader, reader->gnu_hash, head, sizeof head)) return refuse(reader, "its hash table lies outside");
  if (head[0] > MOST_BUCKETS || head[1] > MOST_SYMBOLS || head[2] > MOST_BUCKETS)
    return refuse(reader, "its hash table is absurdly large");
  const uint64_t buckets = reader->gnu_hash + sizeof head + (uint64_t)head[2] * sizeof(uint64_t);
  const uint64_t chains = buckets + (uint64_t)head[0] * sizeof(uint32_t);
  uint64_t highest = 0;
  for (uint32_t i = 0; i < head[0]; i++) {
    uint32_t first;
    if (!read_address(reader, buckets + (uint64_t)i * sizeof first, &first, sizeof first))
      return refuse(reader, "its hash table reaches beyond the file");
    highest = tm_max_u64(highest, first);
  }
  *out_count = head[1];
  if (highest == 0) return TM_OK;
  *out_count = chain_end(reader, chains, (uint32_t)highest, head[1]);
  return *out_count == 0 ? refuse(reader, "its hash table has no end") : TM_OK;
}

static tm_status count_symbols(const object_reader *reader, uint64_t *out_count) {
  if (reader->hash == 0 && reader->gnu_hash != 0) return count_by_gnu_hash(reader, out_count);
  uint32_t head[2];             /* buckets, symbols */
  if (reader->hash == 0) return refuse(reader, "it has no hash table");
  if (!read_address(reader, reader->hash, head, sizeof head)) return refuse(reader, "its hash table lies outside");
  if (head[1] > MOST_SYMBOLS) return refuse(reader, "its table of symbols is absurdly large");
  *out_count = head[1];
  return TM_OK;
}

static uint32_t sanitizer_of(const char *import) {
  if (strcmp(import, "__asan_init") == 0) return TM_SHARED_OBJECT_ADDRESS_SANITIZER;
  if (strcmp(import, "__tsan_init") == 0) return TM_SHARED_OBJECT_THREAD_SANITIZER;
  return strcmp(import, "__msan_init") == 0 ? TM_SHARED_OBJECT_MEMORY_SANITIZER : 0;
}

static void take_symbol(const object_reader *reader, const Elf64_Sym *symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol->st_info);
  const unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
  char name[LONGEST_NAME];
  if (binding == STB_LOCAL || !read_string(reader, symbol->st_name, name)) return;
  if (symbol->st_shndx == SHN_UNDEF) {
    reader->object->sanitizers |= sanitizer_of(name);
    return;
  }
  if (visibility != STV_DEFAULT && visibility != STV_PROTECTED) return;
  reader->object->export_count++;
  if (strcmp(name, reader->entry) == 0) reader->object->entry_count++;
}

static tm_status read_symbols(const object_reader *reader) {
  uint64_t count = 0;
  TM_TRY(count_symbols(reader, &count));
  for (uint64_t i = 1; i < count; i++) {
    Elf64_Sym symbol;
    uint64_t address;
    if (!tm_checked_add(reader->symbols, i * sizeof symbol, &address) ||
        !read_address(reader, address, &symbol, sizeof symbol))
      return refuse(reader, "its table of symbols reaches beyond the file");
    take_symbol(reader, &symbol);
  }
  return TM_OK;
}

tm_status tm_shared_object_read(const tm_byte_source *source, const char *path, const char *entry,
                                tm_shared_object *out_object, tm_error *error) {
  tm_shared_object object;
  object_reader reader;
  memset(&object, 0, sizeof object);
  memset(&reader, 0, sizeof reader);
  reader.source = source;
  reader.path = path;
  reader.entry = entry;
  reader.error = error;
  reader.object = &object;
  TM_TRY(read_header(&reader));
  TM_TRY(read_segments(&reader));
  TM_TRY(read_dynamic(&reader));
  TM_TRY(read_symbols(&reader));
  *out_object = object;
  return TM_OK;
}
