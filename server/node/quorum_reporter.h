// Reports to the coordinator which contributions a shard holds, if the coordinator decides which
// contributions count.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "server/core/held_book.h"
#include "server/shard/shard.h"

namespace leeway {

// Thread-safe. Its own thread sends one message at a time to the coordinator. The next message
// contains all changes since the last one. A message that does not arrive is sent again, until the
// coordinator says that the generation is over.
class QuorumReporter : public ContributionListener {
 public:
  struct Options {
    uint64_t job = 0;
    uint64_t generation = 0;
    uint32_t shard = 0;
    // The epoch in which the shard moved to this server.
    uint64_t epoch = 0;
    HeldBook::Rules rules;
  };
  QuorumReporter(const Options& options, std::shared_ptr<grpc::Channel> coordinator);
  // Cancels a running call.
  ~QuorumReporter() override;
  QuorumReporter(const QuorumReporter&) = delete;

  void OnLoaded(uint64_t version) override EXCLUDES(mutex_);
  void OnAccepted(uint32_t rank, uint64_t clock) override EXCLUDES(mutex_);
  void OnRefused(uint32_t rank, uint64_t clock) override EXCLUDES(mutex_);
  void OnLive(uint32_t rank, bool live) override EXCLUDES(mutex_);
  void OnCommitted(uint64_t clock) override EXCLUDES(mutex_);

 private:
  void Loop() EXCLUDES(mutex_);
  // Waits for the next report to send. Returns nullopt when the reporter ends.
  std::optional<HeldClock> Next() EXCLUDES(mutex_);
  absl::Status Send(const HeldClock& held) EXCLUDES(mutex_);
  // Waits after a message that did not arrive.
  void Pause() EXCLUDES(mutex_);

  const Options options_;
  const std::unique_ptr<v1::Coordinator::Stub> coordinator_;

  Mutex mutex_;
  CondVar changed_;
  HeldBook book_ GUARDED_BY(mutex_);
  // The context of the running call.
  std::unique_ptr<grpc::ClientContext> context_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
