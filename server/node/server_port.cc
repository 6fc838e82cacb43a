#include "server/node/server_port.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <grpcpp/server.h>
#include <grpcpp/server_posix.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/machine.h"
#include "common/rpc/channel.h"
#include "common/rpc/handed_connections.h"
#include "common/rpc/host.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"

namespace leeway {
namespace {

// The maximum memory quota in bytes, which is more than any machine has.
constexpr uint64_t kQuotaBytesMax = uint64_t{1} << 50;

// Returns the quota for arriving and held bytes. In a small container it is half of the memory, so
// that the operating system does not kill the process. Above the quota gRPC ends streams; long
// before, it reduces the windows of connections.
size_t QuotaOf(uint64_t bytes) { return std::min(bytes, MachineMemoryBytes() / 2); }

}  // namespace

ServerPort::ServerPort(const TransportSecurity& security, std::vector<Services> services)
    : services_(std::move(services)),
      connections_({.most = ConnectionsMost(0, FilesMost())}, TcpSockets()),
      doorkeeper_(security.settings(), &connections_) {}

absl::StatusOr<std::unique_ptr<ServerPort>> ServerPort::Open(const std::string& listen,
                                                             const TransportSecurity& security,
                                                             std::vector<Services> services) {
  std::unique_ptr<ServerPort> port(new ServerPort(security, std::move(services)));
  RETURN_IF_ERROR(port->Start(listen, security));
  return port;
}

absl::Status ServerPort::Start(const std::string& listen, const TransportSecurity& security) {
  grpc::ServerBuilder builder;
  ASSIGN_OR_RETURN(tcp_, TcpPort::Listen(listen));
  gate_ = PrepareForConnections({.address = listen,
                                 .memory_bytes = QuotaOf(kArrivingBytes),
                                 .quota = &quota_,
                                 .security = &security},
                                builder);
  queue_ = std::make_unique<ServerQueue>(builder, &doorkeeper_);
  for (const Services& each : services_) each.add(builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError(absl::StrCat("cannot serve ", listen));
  ListenLocally();
  for (const Services& each : services_) each.await(queue_.get());
  queue_->Start();
  RETURN_IF_ERROR(tcp_->Start(gate_.get(), &connections_));
  guard_ = std::make_unique<ConnectionGuard>(SteadyNow, &connections_);
  return absl::OkStatus();
}

void ServerPort::ListenLocally() {
  if (HostIdentity().empty()) return;
  const std::string address = NewLocalAddress();
  auto listener = LocalListener::Start(address, geteuid(), [this](int connection) {
    grpc::AddInsecureChannelFromFd(server_.get(), connection);
  });
  if (!listener.ok()) {
    spdlog::warn("workers of this host use TCP: {}", listener.status().ToString());
    return;
  }
  local_ = *std::move(listener);
  local_address_ = address;
}

void ServerPort::MakeRoom(uint64_t connections_of_job, uint64_t received_bytes) {
  connections_.SetMost(ConnectionsMost(connections_of_job, FilesMost()));
  quota_.Resize(
      QuotaOf(kArrivingBytes + std::min(received_bytes, kQuotaBytesMax - kArrivingBytes)));
}

ServerPort::~ServerPort() {
  if (server_ == nullptr) return;
  tcp_.reset();
  local_.reset();
  for (const Services& each : services_) each.close();
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  queue_.reset();
}

}  // namespace leeway
