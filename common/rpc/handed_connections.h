// A gRPC server without a port of its own: other code accepts the connections and hands them over.
#pragma once

#include <memory>

#include <grpcpp/server_builder.h>

#include "common/rpc/channel.h"

namespace leeway {

// The value that gRPC sets for connections of its own ports (TCP_USER_TIMEOUT): a connection ends
// if data stay unacknowledged for this time.
inline constexpr int kUnansweredMsMax = 10'000;

// As PrepareServer, but nothing listens at `options.address`, which only selects the credentials.
// The returned acceptor takes connections while the server runs.
std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> PrepareForConnections(
    const ListenOptions& options, grpc::ServerBuilder& builder);

}  // namespace leeway
