#include "worker/client/client_options.h"

#include <utility>

#include "common/codec/plan.h"
#include "common/status.h"

namespace leeway {

absl::StatusOr<ParameterClientOptions> ClientOptionsOf(
    const v1::RegisterWorkerReply& registration) {
  ParameterClientOptions options;
  for (int i = 0; i < registration.servers_size(); ++i) {
    ServerEndpoint server(registration.servers(i));
    if (i < registration.local_servers_size()) {
      server.local_address = registration.local_servers(i).address();
      server.host = registration.local_servers(i).host();
    }
    options.servers.push_back(std::move(server));
  }
  options.transport = registration.job().transport().type();
  options.channels = registration.job().transport().channels();
  options.job = registration.job_id();
  options.rank = registration.rank();
  options.incarnation = registration.incarnation();
  options.generation = registration.generation();
  options.total = registration.schema().total();
  options.block_elements = registration.block_elements();
  options.exchange_seconds = registration.job().limits().exchange_seconds();
  ASSIGN_OR_RETURN(
      const BlockLayout layout,
      BlockLayout::FromWire(options.total, registration.servers_size(), options.block_elements));
  ASSIGN_OR_RETURN(options.codecs,
                   CodecPlan::Of(registration.job(), registration.schema(), layout));
  return options;
}

}  // namespace leeway
