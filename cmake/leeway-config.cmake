# find_package(leeway): the target leeway::client. What the client stands on must be installed: Debian's libgrpc++-dev,
# libprotobuf-dev, protobuf-compiler, libabsl-dev, libspdlog-dev, nlohmann-json3-dev, zlib1g-dev and libssl-dev.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(Protobuf)
find_dependency(gRPC CONFIG)
find_dependency(absl CONFIG)
find_dependency(spdlog CONFIG)
find_dependency(nlohmann_json CONFIG)
find_dependency(ZLIB)
find_dependency(OpenSSL COMPONENTS Crypto)
include(${CMAKE_CURRENT_LIST_DIR}/leeway.cmake)
