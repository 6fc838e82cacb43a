# find_package(leeway): the targets leeway::client and leeway::job. What they stand on must be installed: Debian's
# libgrpc++-dev, libprotobuf-dev, protobuf-compiler, libabsl-dev, libspdlog-dev, nlohmann-json3-dev, zlib1g-dev,
# libssl-dev, libyaml-cpp-dev and libcli11-dev.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_dependency(Protobuf)
endif()
find_dependency(gRPC CONFIG)
find_dependency(absl CONFIG)
find_dependency(spdlog CONFIG)
find_dependency(nlohmann_json CONFIG)
find_dependency(ZLIB)
find_dependency(yaml-cpp CONFIG)
find_dependency(CLI11 CONFIG)
find_dependency(OpenSSL COMPONENTS Crypto)
include(${CMAKE_CURRENT_LIST_DIR}/leeway.cmake)
