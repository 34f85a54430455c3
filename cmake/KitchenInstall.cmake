# cmake --install, and find_package(kitchen) for users of the installed library.
include(CMakePackageConfigHelpers)
install(TARGETS kitchen EXPORT kitchenTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET kitchen_mpi)
  install(TARGETS kitchen_mpi EXPORT kitchenTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET kitchen_cuda)
  set_target_properties(kitchen_cuda PROPERTIES EXPORT_NAME cuda INSTALL_RPATH "$ORIGIN")
  install(TARGETS kitchen_cuda EXPORT kitchenTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${CMAKE_SOURCE_DIR}/cuda/base/cuda_backend.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cuda/base)
endif()
if(TARGET kitchen_program)
  install(TARGETS kitchen_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/kitchen DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "app" EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/kitchen
  FILES_MATCHING PATTERN "*.yaml")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/kitchen)
install(EXPORT kitchenTargets NAMESPACE kitchen:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kitchen)
# The libraries behind libkitchen are private to it, so the package finds none of them for its user.
file(WRITE ${CMAKE_BINARY_DIR}/kitchenConfig.cmake.in
  "@PACKAGE_INIT@\ninclude(\${CMAKE_CURRENT_LIST_DIR}/kitchenTargets.cmake)\ncheck_required_components(kitchen)\n")
configure_package_config_file(${CMAKE_BINARY_DIR}/kitchenConfig.cmake.in
  ${CMAKE_BINARY_DIR}/kitchenConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kitchen)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kitchenConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kitchenConfig.cmake ${CMAKE_BINARY_DIR}/kitchenConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kitchen)
