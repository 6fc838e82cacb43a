# Compiler settings, dependencies, and the two functions by which every folder declares what it has.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The client's libraries become a part of libleeway-client.so.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# x86-64-v3 (AVX2, FMA) is three times plain x86-64 in matrix products; `native` is a choice.
set(LEEWAY_ARCH "x86-64-v3" CACHE STRING "Value of -march; 'native' for this machine only")
set(LEEWAY_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined or thread")
option(LEEWAY_WERROR "Warnings are errors" OFF)
option(LEEWAY_ONEDNN "Convolve on CPUs by oneDNN, where it is installed" ON)
option(LEEWAY_UNITY "Compile all files of a library at once; OFF to compile each by itself" ON)
set(LEEWAY_APART "" CACHE STRING "Libraries whose files are compiled each by itself all the same, such as leeway_core")

# Contraction would make a vector loop and its remainder round differently, and with it a block's bits
# depend on its length. errno would keep square roots from vectorising. Never -ffast-math: under it
# isfinite(NaN) is true.
add_compile_options(-pthread -march=${LEEWAY_ARCH} -mtune=generic -ffp-contract=off -fno-math-errno
                    -fno-trapping-math -fno-semantic-interposition -Wall -Wextra -Wno-unused-parameter
                    -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Werror=thread-safety -Wno-deprecated-declarations -Wno-overloaded-virtual)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Both are false alarms here: g++ 12 reports an empty std::optional or std::variant as uninitialised, and it treats a
  # file that is compiled with others as a header, whose classes may not have members of anonymous types.
  add_compile_options(-Wno-maybe-uninitialized -Wno-subobject-linkage)
endif()
if(LEEWAY_WERROR)
  add_compile_options(-Werror)
endif()
if(LEEWAY_SANITIZE)
  add_compile_options(-fsanitize=${LEEWAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LEEWAY_SANITIZE})
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Protobuf before gRPC: the distribution's gRPC config wants its targets. A newer protobuf brings a config, which names
# what it stands on; the distribution's has none, and CMake's module finds it.
find_package(Threads REQUIRED)
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf REQUIRED)
endif()
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Eigen3 3.4 CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(PNG REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
pkg_check_modules(ZIP REQUIRED IMPORTED_TARGET libzip)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(CURL 7.75 REQUIRED)
find_package(pugixml CONFIG REQUIRED)
# Not by its own config, which wants OpenCL's headers, too. libgomp is the OpenMP of Debian's oneDNN.
if(LEEWAY_ONEDNN)
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    set(LEEWAY_DNNL ${DNNL_LIBRARY} gomp)
  else()
    message(STATUS "oneDNN is not installed (libdnnl-dev): convolutions on CPUs will be slower")
  endif()
endif()

# leeway_compile_as_one(TARGET): its sources are one compilation, since a compilation costs its headers: 200,000 lines
# where gRPC is among them. So names in the anonymous namespaces of a target are distinct (tests/house/names.py).
function(leeway_compile_as_one target)
  if(LEEWAY_UNITY AND NOT target IN_LIST LEEWAY_APART)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# leeway_library(NAME SOURCES a.cc b.cc DEPENDS x y [COLD]): a static library leeway_NAME, which is one compilation;
# includes are written from the repository's root. COLD: no time of a run is spent in it, and it is compiled with -O1.
function(leeway_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(leeway_${name} STATIC ${ARG_SOURCES})
  leeway_compile_as_one(leeway_${name})
  if(ARG_COLD)
    target_compile_options(leeway_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  target_include_directories(leeway_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/leeway>)
  target_link_libraries(leeway_${name} PUBLIC ${ARG_DEPENDS})
endfunction()

# leeway_sources(OUT FOLDER... [EXCEPT FILE...]): the .cc files of these folders, not of those below them.
function(leeway_sources out)
  cmake_parse_arguments(ARG "" "" "EXCEPT" ${ARGN})
  set(found)
  foreach(folder IN LISTS ARG_UNPARSED_ARGUMENTS)
    file(GLOB files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
    list(APPEND found ${files})
  endforeach()
  list(REMOVE_ITEM found "" ${ARG_EXCEPT})
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# leeway_program(NAME SOURCES main.cc DEPENDS x y): build/*/bin/NAME, installed.
function(leeway_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} $<TARGET_OBJECTS:leeway_before_libraries>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()
