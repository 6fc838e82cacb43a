// A server whose host was suspended does not rely on its lease.
#include <atomic>
#include <thread>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/match.h"
#include "common/mutex.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "server/node/server_membership.h"
#include "tests/catch.h"

namespace leeway::suspended {
namespace {

constexpr double kLease = 30;

// The time since boot, which the test moves on; the steady clock does not follow.
class Boot {
 public:
  BootTime now() const { return BootTime(Duration(passed_.load())); }
  void Suspend(double seconds) { passed_ += FromSeconds(seconds).count(); }

 private:
  std::atomic<Duration::rep> passed_{FromSeconds(1000).count()};
};

// Answers registrations and heartbeats. It may be suspended together with the server in between.
class Coordinator final : public v1::Coordinator::Service {
 public:
  explicit Coordinator(Boot& boot) : boot_(boot) {
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Coordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // How long both are suspended while a call is under way.
  std::atomic<double> suspend_for{0};
  std::atomic<bool> over{false};

  grpc::Status RegisterServer(grpc::ServerContext*, const v1::RegisterServerRequest*,
                              v1::RegisterServerReply* reply) override {
    boot_.Suspend(suspend_for);
    reply->set_job_id(1);
    reply->mutable_job()->mutable_limits()->set_lease_seconds(kLease);
    reply->mutable_job()->mutable_limits()->set_start_seconds(60);
    return grpc::Status::OK;
  }
  grpc::Status ServerHeartbeat(grpc::ServerContext* context, const v1::ServerHeartbeatRequest*,
                               v1::ServerHeartbeatReply*) override {
    boot_.Suspend(suspend_for);
    MutexLock lock(mutex_);
    ++heartbeats_;
    changed_.NotifyAll();
    if (over) return Refuse(absl::AlreadyExistsError("the job is over"), *context);
    return grpc::Status::OK;
  }
  // Waits until this number of further heartbeats has come.
  void AwaitHeartbeats(int count) {
    MutexLock lock(mutex_);
    for (const int until = heartbeats_ + count; heartbeats_ < until;) changed_.Wait(mutex_);
  }

 private:
  Boot& boot_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int heartbeats_ GUARDED_BY(mutex_) = 0;
};

struct Rig {
  absl::Status Join() {
    return member.Join({.index = 1, .coordinator = coordinator.address(), .advertised = "a:1"},
                       ProcessSecurity(),
                       std::chrono::steady_clock::now() + std::chrono::seconds(60));
  }
  // Whether the lease is valid, as far as the server knows.
  bool Serves() { return service.table().leased(); }

  Boot boot;
  Coordinator coordinator{boot};
  ParameterService service{[this] { return boot.now(); }};
  ServerMembership member{[this] { return boot.now(); }, service};
};

TEST_CASE("a lease that the host has slept through is over") {
  Rig rig;
  REQUIRE(rig.Join().ok());
  CHECK(rig.Serves());
  rig.boot.Suspend(0.85 * kLease);
  CHECK(rig.Serves());
  rig.boot.Suspend(0.1 * kLease);
  CHECK_FALSE(rig.Serves());
  v1::ExchangeHeader header;
  const auto found = rig.service.table().Find(header);
  CHECK(absl::IsUnavailable(found.status()));
  CHECK(absl::StrContains(found.status().message(), "lease"));
}

TEST_CASE("a lease counts from before it was asked for, though the host slept meanwhile") {
  Rig rig;
  rig.coordinator.suspend_for = kLease;
  REQUIRE(rig.Join().ok());
  CHECK_FALSE(rig.Serves());
}

TEST_CASE("heartbeats renew the lease, unless the host slept through one") {
  Rig rig;
  REQUIRE(rig.Join().ok());
  std::thread beats([&] { rig.member.WaitUntilOver(); });
  rig.boot.Suspend(kLease);
  // The second heartbeat was sent after the suspension.
  rig.coordinator.AwaitHeartbeats(3);
  CHECK(rig.Serves());
  rig.coordinator.suspend_for = kLease;
  rig.coordinator.AwaitHeartbeats(3);
  CHECK_FALSE(rig.Serves());
  rig.coordinator.over = true;
  beats.join();
}

}  // namespace
}  // namespace leeway::suspended
