#include "server/node/server_node.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/identity.h"
#include "common/rpc/host.h"
#include "common/status.h"
#include "config/topology.h"
#include "server/node/listening.h"

namespace leeway {

ServerNode::ServerNode(const NodeOptions& options)
    : options_(options),
      security_(options.security != nullptr ? *options.security : ProcessSecurity()) {
  if (options.of_worker) data_.ServePeers(RankOfServer(options.index));
}

absl::StatusOr<std::unique_ptr<ServerNode>> ServerNode::Start(
    const NodeOptions& options, std::vector<ServerPort::Services> more) {
  RETURN_IF_ERROR(CheckAddresses({.listen = options.listen,
                                  .advertise = options.advertise,
                                  .coordinator = options.index == 0 ? "" : options.coordinator}));
  RETURN_IF_ERROR(TryFor(options.start_within, options.pause,
                         [&options] { return TryToListen(options.listen); }));
  std::unique_ptr<ServerNode> node(new ServerNode(options));
  ServerNode& here = *node;
  more.insert(more.begin(), {.add =
                                 [&here](grpc::ServerBuilder& builder) {
                                   builder.RegisterService(&here.control_);
                                   builder.RegisterService(&here.data_);
                                 },
                             .await =
                                 [&here](ServerQueue* queue) {
                                   here.data_.Await(queue);
                                   here.control_.Await(queue);
                                 },
                             .close =
                                 [&here] {
                                   here.data_.Close();
                                   here.control_.Close();
                                 }});
  ASSIGN_OR_RETURN(here.port_, ServerPort::Open(options.listen, here.security_, std::move(more)));
  RETURN_IF_ERROR(TryFor(options.start_within, options.pause, [&here, &options] {
    const auto address =
        AddressForOthers({.listen = options.listen,
                          .port = here.port_->port(),
                          .advertise = options.advertise,
                          .coordinator = options.index == 0 ? "" : options.coordinator});
    here.advertised_ = address.value_or("");
    return address.status();
  }));
  spdlog::info("listening on {}", here.address());
  return node;
}

std::string ServerNode::address() const {
  return absl::StrCat(options_.listen.substr(0, options_.listen.rfind(':')), ":", port_->port());
}

std::string ServerNode::coordinator() const {
  return options_.index == 0 ? address() : options_.coordinator;
}

absl::Status ServerNode::Join() {
  RETURN_IF_ERROR(membership_.Join({.index = options_.index,
                                    .coordinator = coordinator(),
                                    .advertised = advertised_,
                                    .local_address = port_->local_address(),
                                    .host = HostIdentity(),
                                    .network = NetworkIdentity(),
                                    .nonce = RandomIdentity(),
                                    .pid = static_cast<uint32_t>(getpid()),
                                    .of_worker = options_.of_worker},
                                   security_, SteadyNow() + options_.start_within,
                                   options_.on_job));
  // The membership has set the job's limits on the services. The port's own limits are set here.
  port_->MakeRoom(data_.connections_of_job(), data_.received_bytes_max());
  return absl::OkStatus();
}

}  // namespace leeway
