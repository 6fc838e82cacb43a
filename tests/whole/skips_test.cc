// Data that need not be sent is not sent.
#include <atomic>

#include "client/transport/stream_transport.h"
#include "tests/client/fault_transport.h"
#include "tests/whole/job_rig.h"

namespace leeway::skips {
namespace {

using testing::DigitsJob;
using testing::JobRig;
using testing::MustTrain;

// Counts the answers to reads of the latest version.
struct LatestReads {
  std::atomic<uint64_t> answers{0}, bytes{0};
};

class CountedRead : public testing::ForwardingCall {
 public:
  CountedRead(LatestReads* reads, std::shared_ptr<TransportCall> call)
      : ForwardingCall(std::move(call)), reads_(reads) {}
  void OnDone(const absl::Status& status, const TransportReply& reply) override {
    if (status.ok()) ++reads_->answers;
    reads_->bytes += reply.payload.bytes();
    ForwardingCall::OnDone(status, reply);
  }

 private:
  LatestReads* const reads_;
};

class CountingTransport : public StreamTransport {
 public:
  CountingTransport(const TransportOptions& options, LatestReads* reads)
      : StreamTransport(options), reads_(reads) {}
  void Call(uint32_t server, const TransportRequest& request, Duration timeout,
            std::shared_ptr<TransportCall> call) override {
    if (request.reads == ReadKind::kLatest)
      call = std::make_shared<CountedRead>(reads_, std::move(call));
    StreamTransport::Call(server, request, timeout, std::move(call));
  }

 private:
  LatestReads* const reads_;
};

TEST_CASE("sync: the last read of weights that a worker already has brings no values") {
  const auto [exchange, sent] = GENERATE(table<const char*, bool>(
      {{"exchange={type: gradient}", false},
       {"exchange={type: delta, local_steps: 2, optimizer: {type: sgd, learning_rate: 0.05}}",
        false},
       // The exchange's answer is the centre before the contributions.
       {"exchange={type: elastic, alpha: 0.3, every: 2}", true}}));
  LatestReads reads;
  JobRig rig(DigitsJob({exchange, "stop.clocks=5"}));
  rig.transport = [&](const TransportOptions& options) {
    return std::make_unique<CountingTransport>(options, &reads);
  };
  MustTrain(rig);
  CHECK(reads.answers > 0);
  CHECK((reads.bytes > 0) == sent);
}

}  // namespace
}  // namespace leeway::skips
