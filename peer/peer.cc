#include "peer/peer.h"

#include <memory>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/environment.h"
#include "common/files/private_files.h"
#include "common/loopback.h"
#include "common/rpc/transport_security.h"
#include "common/security/role.h"
#include "common/status.h"
#include "config/topology.h"
#include "server/node/server_node.h"

namespace leeway {
namespace {

constexpr char kNeedsRank[] =
    "topology: the rank decides which blocks a worker holds, so each worker must know its own: set "
    "LEEWAY_RANK, or --rank of leeway-worker";

class Peer final : public BlockHolder {
 public:
  explicit Peer(std::unique_ptr<ServerNode> node) : node_(std::move(node)) {
    thread_ = std::thread([this] { Serve(); });
  }
  ~Peer() override {
    Leave();
    AwaitEnd();
  }

  void Leave() override { node_->Leave(); }
  void AwaitEnd() override {
    if (thread_.joinable()) thread_.join();
  }
  Outbox& outbox() override { return node_->pieces(); }
  MeetingPlace& meetings() override { return node_->meetings(); }

 private:
  void Serve() {
    const absl::Status joined = node_->Join();
    // The job may be over already.
    if (absl::IsAlreadyExists(joined) && node_->job_outcome() != v1::JOB_STARTING) return;
    if (!joined.ok()) {
      spdlog::error("this worker cannot hold blocks: {}", std::string(joined.message()));
      return;
    }
    switch (node_->WaitUntilOver()) {
      case ServerNode::Outcome::kCoordinatorLost:
        spdlog::error("this worker does not serve its blocks any more: the coordinator is gone");
        break;
      case ServerNode::Outcome::kReplaced:
        spdlog::error("this worker does not serve its blocks any more: another process does");
        break;
      case ServerNode::Outcome::kShutDown:
      case ServerNode::Outcome::kDrained:
        break;
    }
  }

  const std::unique_ptr<ServerNode> node_;
  std::thread thread_;
};

// Returns an error if the other workers would refuse this process's certificate.
absl::Status CheckMayAnswer(const SecuritySettings& security) {
  if (security.tls == v1::TLS_MODE_NONE) return absl::OkStatus();
  if (security.tls == v1::TLS_MODE_TLS) {
    return absl::InvalidArgumentError(
        "topology: each worker answers the others, so TLS must be mutual (mtls)");
  }
  const Caller& own = security.certificates->holder();
  if (!own.role || own.role == v1::ROLE_PEER) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("topology: this worker has ", Described(own),
                                                 ", but a worker that holds blocks needs a peer's "
                                                 "('leeway certificates DIR' makes DIR/peer)"));
}

std::string DefaultListen(const std::string& coordinator) {
  const auto address = SplitAddress(coordinator);
  const bool here = address.ok() && ReachOf(*address) == Reach::kOwnHost;
  return here ? LoopbackHost() + ":0" : "0.0.0.0:0";
}

}  // namespace

PeerListening CompletedFromEnvironment(PeerListening listening) {
  const auto complete = [](std::string& value, const char* name) {
    if (value.empty()) value = LookUpEnvironment(name).value_or("");
  };
  complete(listening.listen, "LEEWAY_LISTEN");
  complete(listening.advertise, "LEEWAY_ADVERTISE");
  listening.insecure |= LookUpEnvironment("LEEWAY_INSECURE").value_or("0") != "0";
  return listening;
}

absl::StatusOr<std::unique_ptr<BlockHolder>> StartPeer(const PeerListening& listening,
                                                       const HolderPlace& place) {
  if (!place.rank) return absl::InvalidArgumentError(kNeedsRank);
  const SecuritySettings& security = ProcessSecurity().settings();
  RETURN_IF_ERROR(CheckMayAnswer(security));
  NodeOptions options{.index = ServerOfRank(*place.rank),
                      .listen = listening.listen,
                      .of_worker = true,
                      .advertise = listening.advertise,
                      .coordinator = place.coordinator,
                      .start_within = place.start_within,
                      .on_job = [](const v1::TrainingJob& job) {
                        if (job.metadata().private_()) KeepFilesPrivate();
                      }};
  if (options.listen.empty()) options.listen = DefaultListen(place.coordinator);
  RETURN_IF_ERROR(CheckMayListen(options.listen, security.tls, listening.insecure));
  ASSIGN_OR_RETURN(auto node, ServerNode::Start(options));
  return std::make_unique<Peer>(std::move(node));
}

}  // namespace leeway
