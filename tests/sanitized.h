/* SPDX-License-Identifier: Apache-2.0 */
/* sanitized.h - counts of what a sanitizer looks at in the same lines each time: it takes the part, all other runs the whole. */
#ifndef TM_TESTS_SANITIZED_H
#define TM_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TM_SANITIZED 1
#endif
#endif
#ifndef TM_SANITIZED
#define TM_SANITIZED 0
#endif

#define TM_WHOLE_OR_PART(whole, part) (TM_SANITIZED ? (part) : (whole))

/* The same of bytes: the thread sanitizer looks at each access. */
#ifdef __SANITIZE_THREAD__
#define TM_WHOLE_OR_THREADED(whole, threaded) (threaded)
#else
#define TM_WHOLE_OR_THREADED(whole, threaded) (whole)
#endif

#endif
