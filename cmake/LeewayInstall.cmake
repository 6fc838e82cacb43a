# What is installed beside the programs: the client for other programs to embed, as leeway::client and, with a worker's
# whole part in a job, leeway::job; and the .deb.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The client and what it stands on.
set(client_targets leeway_proto leeway_common leeway_run_core leeway_transport leeway_arithmetic leeway_config leeway_client leeway_exchange leeway_job)
set_target_properties(leeway_client PROPERTIES EXPORT_NAME client)
set_target_properties(leeway_job PROPERTIES EXPORT_NAME job)
install(TARGETS ${client_targets} EXPORT leeway ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/leeway)
install(EXPORT leeway NAMESPACE leeway:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/leeway)
foreach(folder client common config exchange library plugin)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway
    FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/run/core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway/run
  FILES_MATCHING PATTERN "*.h")
# What plugins are compiled with: #include "leeway/plugin.h".
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plugin/leeway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plugin/example DESTINATION share/leeway/plugin)
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/generated/leeway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leeway
  FILES_MATCHING PATTERN "*.pb.h")
write_basic_package_version_file(leeway-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/leeway-config.cmake ${PROJECT_BINARY_DIR}/leeway-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/leeway)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION share/doc/leeway)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The Leeway maintainers <maintainers@leeway.example>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# For lib/python3/dist-packages/leeway.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-numpy, python3-torch")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/package)
include(CPack)
