// A client's options as the coordinator gave them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calls/parameter_client.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The servers that a coordinator names, by shard.
std::vector<ServerEndpoint> EndpointsOf(
    const google::protobuf::RepeatedPtrField<std::string>& servers,
    const google::protobuf::RepeatedPtrField<v1::LocalEndpoint>& local_servers);

// INVALID_ARGUMENT for a model that makes no blocks, or codecs that do not fit it.
absl::StatusOr<ParameterClientOptions> ClientOptionsOf(const v1::RegisterWorkerReply& registration);

}  // namespace leeway
