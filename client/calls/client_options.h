// Builds a client's options from what the coordinator says.
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

// INVALID_ARGUMENT if the model makes no blocks, or if the codecs do not fit it.
absl::StatusOr<ParameterClientOptions> ClientOptionsOf(const v1::RegisterWorkerReply& registration);

}  // namespace leeway
