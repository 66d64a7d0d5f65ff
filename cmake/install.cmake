# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where.  The package files are relocatable: they find their prefix from their own place.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tensormorph)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS tensormorph_static EXPORT tensormorph)
if(TM_BUILD_SHARED)
  install(TARGETS tensormorph_shared EXPORT tensormorph)
endif()
install(DIRECTORY include/tensormorph DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY DESTINATION ${TM_PLUGIN_FOLDER})
# Plugins that run the shared kernels compile these sources themselves (docs/decisions/010-kernel-dialect.md).
set(TM_KERNEL_FOLDER ${CMAKE_INSTALL_DATADIR}/tensormorph/kernels)
install(DIRECTORY backends/common/ DESTINATION ${TM_KERNEL_FOLDER} FILES_MATCHING PATTERN "kernel_*")

install(EXPORT tensormorph NAMESPACE tensormorph:: DESTINATION ${package_folder} FILE tensormorphTargets.cmake)
configure_package_config_file(cmake/tensormorphConfig.cmake.in ${PROJECT_BINARY_DIR}/generated/tensormorphConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS TM_PLUGIN_FOLDER TM_KERNEL_FOLDER CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/tensormorphConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/tensormorphConfig.cmake
  ${PROJECT_BINARY_DIR}/generated/tensormorphConfigVersion.cmake cmake/tensormorphKernels.cmake
  cmake/tensormorphEmbed.cmake DESTINATION ${package_folder})

file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_folder} /)
configure_file(cmake/tensormorph.pc.in ${PROJECT_BINARY_DIR}/generated/tensormorph.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/tensormorph.pc DESTINATION ${pkgconfig_folder})

install(FILES man/tensormorph.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES completions/tensormorph.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME tensormorph)
install(FILES completions/_tensormorph DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/tensormorph.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE README.md ARCHITECTURE.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.c" PATTERN "*.cpp" PATTERN "*.json")

if(TARGET tensormorph)
  file(RELATIVE_PATH library_from_command /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(tensormorph PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_command}")
  install(TARGETS tensormorph)
endif()
