# Link PRIVATE to every target of ours. ND_SANITIZE: "address,undefined" or "thread".
add_library(nd_sanitizers INTERFACE)
if(ND_SANITIZE)
  target_compile_options(nd_sanitizers INTERFACE -fsanitize=${ND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(nd_sanitizers INTERFACE -fsanitize=${ND_SANITIZE})
endif()
