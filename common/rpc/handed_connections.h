// A gRPC server without a port of its own. Other code accepts the connections and passes them to
// the server.
#pragma once

#include <memory>

#include <grpcpp/server_builder.h>

#include "common/rpc/channel.h"

namespace leeway {

// The value of TCP_USER_TIMEOUT: a connection ends if sent data is not acknowledged for this time.
// gRPC sets the same value for connections of its own ports.
inline constexpr int kUnansweredMsMax = 10'000;

// Does the same as PrepareServer, but nothing listens on `options.address`, which only selects the
// credentials. Pass connections to the returned acceptor while the server runs.
std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> PrepareForConnections(
    const ListenOptions& options, grpc::ServerBuilder& builder);

}  // namespace leeway
