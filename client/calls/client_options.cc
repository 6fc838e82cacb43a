#include "client/calls/client_options.h"

#include <utility>

#include "common/block_cuts.h"
#include "common/codec/plan.h"
#include "common/status.h"

namespace leeway {

std::vector<ServerEndpoint> EndpointsOf(
    const google::protobuf::RepeatedPtrField<std::string>& servers,
    const google::protobuf::RepeatedPtrField<v1::LocalEndpoint>& local_servers) {
  std::vector<ServerEndpoint> endpoints;
  for (int i = 0; i < servers.size(); ++i) {
    ServerEndpoint& server = endpoints.emplace_back(servers[i]);
    if (i >= local_servers.size()) continue;
    server.local_address = local_servers[i].address();
    server.host = local_servers[i].host();
  }
  return endpoints;
}

absl::StatusOr<ParameterClientOptions> ClientOptionsOf(
    const v1::RegisterWorkerReply& registration) {
  ParameterClientOptions options;
  options.servers = EndpointsOf(registration.servers(), registration.local_servers());
  options.transport = registration.job().transport().type();
  options.channels = registration.job().transport().channels();
  options.job = registration.job_id();
  options.rank = registration.rank();
  options.incarnation = registration.incarnation();
  options.generation = registration.generation();
  options.total = registration.schema().total();
  options.block_elements = registration.block_elements();
  options.cuts = BlockCutsOf(registration.schema());
  options.exchange_seconds = registration.job().limits().exchange_seconds();
  ASSIGN_OR_RETURN(const BlockLayout layout,
                   BlockLayout::FromWire(options.total, registration.servers_size(),
                                         options.block_elements, options.cuts));
  ASSIGN_OR_RETURN(options.codecs,
                   CodecPlan::Of(registration.job(), registration.schema(), layout));
  return options;
}

}  // namespace leeway
