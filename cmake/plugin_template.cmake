# SPDX-License-Identifier: Apache-2.0
# What `tensormorph plugin new` copies: the files of cmake/plugin-template, and as the backend one of plugins/: the smallest
# one there is, or that with a memory and a queue of its own.
function(tm_make_plugin_template folder_name backend)
  set(template_folder ${PROJECT_BINARY_DIR}/share/tensormorph/${folder_name})
  set(backend_file ${PROJECT_SOURCE_DIR}/plugins/${backend}/${backend}.c)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${backend_file})
  file(COPY ${PROJECT_SOURCE_DIR}/cmake/plugin-template/ DESTINATION ${template_folder}
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
    DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  # Its functions begin with its name and a word that keeps them apart from those of libraries (pthread_cancel); the table must
  # not be called like anything else.
  file(READ ${backend_file} backend_source)
  string(REPLACE "\"${backend}\"" "\"@NAME@\"" backend_source "${backend_source}")
  string(REPLACE "${backend}_" "@NAME@_backend_" backend_source "${backend_source}")
  string(REGEX REPLACE "([^a-zA-Z@_])${backend}([^a-zA-Z_])" "\\1@NAME@_backend\\2" backend_source "${backend_source}")
  file(WRITE ${template_folder}/backend.c "${backend_source}")
  install(DIRECTORY ${template_folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/tensormorph)
endfunction()
tm_make_plugin_template(plugin-template minimal)
tm_make_plugin_template(queue-template queued)
