# Link PRIVATE to every target of ours.
add_library(nd_warnings INTERFACE)
target_compile_options(nd_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Woverloaded-virtual
  -Wnon-virtual-dtor -Wdouble-promotion -Wcast-align -Wimplicit-fallthrough -Wextra-semi -Wundef
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond;-Wduplicated-branches;-Wlogical-op;-Wuseless-cast;-Wsuggest-override>
  # g++ 12 sees overlaps in every "literal" + std::string at -O2 and up (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<BOOL:${ND_DEVELOPER_MODE}>:-Werror>
  # Same result on every compiler and level; no path of the build machine in the binaries.
  -ffp-contract=off -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
