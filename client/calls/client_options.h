// Builds a client's options from the coordinator's answers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/calls/parameter_client.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Returns the endpoints of the servers that the coordinator lists, by shard.
std::vector<ServerEndpoint> EndpointsOf(
    const google::protobuf::RepeatedPtrField<std::string>& servers,
    const google::protobuf::RepeatedPtrField<v1::LocalEndpoint>& local_servers);

// Returns INVALID_ARGUMENT if the model cannot be cut into blocks, or if the codecs do not fit the
// model.
absl::StatusOr<ParameterClientOptions> ClientOptionsOf(const v1::RegisterWorkerReply& registration);

}  // namespace leeway
