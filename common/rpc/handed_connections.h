// A gRPC server without a port of its own: connections are accepted elsewhere, and handed to it.
#pragma once

#include <memory>

#include <grpcpp/server_builder.h>

#include "common/rpc/channel.h"

namespace leeway {

// As gRPC sets it for the connections of its own ports: what is sent and not acknowledged for so
// long ends a connection (TCP_USER_TIMEOUT).
inline constexpr int kUnansweredMsMax = 10'000;

// PrepareServer, but nothing listens at `options.address`, by which only the credentials are
// chosen. What is returned takes connections while the server runs.
std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> PrepareForConnections(
    const ListenOptions& options, grpc::ServerBuilder& builder);

}  // namespace leeway
