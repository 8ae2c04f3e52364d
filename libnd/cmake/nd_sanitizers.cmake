# Link PRIVATE to every target of ours. ND_SANITIZE: "address,undefined" or "thread".
add_library(nd_sanitizers INTERFACE)
if(ND_SANITIZE)
  target_compile_options(nd_sanitizers INTERFACE -fsanitize=${ND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    # g++ 12 takes the moved-from parts of std::function inside std::regex for uninitialised once they are instrumented (GCC bug 105562).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(nd_sanitizers INTERFACE -fsanitize=${ND_SANITIZE})
endif()
