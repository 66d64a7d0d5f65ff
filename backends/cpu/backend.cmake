# SPDX-License-Identifier: Apache-2.0
# Every cpu_<family>.c belongs to the backend.  All kernels so far use one machine's vector instructions, so elsewhere only
# the frame is built, and refuses everything.
file(GLOB cpu_sources RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cpu_*.c)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(cpu_sources cpu_backend.c cpu_features.c cpu_query.c cpu_rows.c)
endif()
tm_add_backend(SOURCES ${cpu_sources})
