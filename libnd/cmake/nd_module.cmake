# nd_add_module(NAME SOURCES a.cpp ... [DEPENDS module ...] [LIBRARIES target ...])
# One OBJECT library per module, linked with exactly the modules it may include.
function(nd_add_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(nd_${name} OBJECT ${arg_SOURCES})
  target_include_directories(nd_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    PRIVATE ${PROJECT_SOURCE_DIR}/libnd)
  target_link_libraries(nd_${name} PRIVATE nd_warnings nd_sanitizers fmt::fmt ${arg_LIBRARIES})
  set_target_properties(nd_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(nd_${name} PUBLIC nd_${dependency})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY ND_MODULES ${name})
  set_property(GLOBAL PROPERTY ND_MODULE_DEPENDS_${name} "${arg_DEPENDS}")
endfunction()
