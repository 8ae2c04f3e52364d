include(CMakePackageConfigHelpers)
install(TARGETS nd EXPORT ndTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/nd" "${PROJECT_BINARY_DIR}/include/nd" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/data/" DESTINATION ${CMAKE_INSTALL_DATADIR}/nd)
install(EXPORT ndTargets NAMESPACE nd:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nd)
configure_package_config_file("${PROJECT_SOURCE_DIR}/libnd/cmake/ndConfig.cmake.in" "${PROJECT_BINARY_DIR}/ndConfig.cmake"
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nd)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ndConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ndConfig.cmake" "${PROJECT_BINARY_DIR}/ndConfigVersion.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nd)
