# SPDX-License-Identifier: Apache-2.0
# What `tensormorph plugin new` copies: the files of cmake/plugin-template, and as the backend the smallest one there is.
set(template_folder ${PROJECT_BINARY_DIR}/share/tensormorph/plugin-template)
set(smallest_backend ${PROJECT_SOURCE_DIR}/plugins/minimal/minimal.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${smallest_backend})
file(COPY ${PROJECT_SOURCE_DIR}/cmake/plugin-template/ DESTINATION ${template_folder})
# Its functions begin with its name; the table must not be called like anything else.
file(READ ${smallest_backend} backend_source)
string(REPLACE "\"minimal\"" "\"@NAME@\"" backend_source "${backend_source}")
string(REPLACE "minimal_" "@NAME@_" backend_source "${backend_source}")
string(REGEX REPLACE "([^a-zA-Z@_])minimal([^a-zA-Z_])" "\\1@NAME@_backend\\2" backend_source "${backend_source}")
file(WRITE ${template_folder}/backend.c "${backend_source}")
install(DIRECTORY ${template_folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/tensormorph)
