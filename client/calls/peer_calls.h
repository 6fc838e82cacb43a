// The calls of one worker to the others, in jobs whose workers exchange with each other (ring,
// tree, gossip). docs/protocol.md describes FETCH and MEET. Each call is repeated until it is
// answered, as the calls to the servers are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/calls/call_queue.h"
#include "client/calls/operations.h"
#include "client/transport/transport.h"
#include "common/mutex.h"
#include "common/peers/outbox.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// Thread-safe.
class PeerCalls {
 public:
  struct Options {
    // The addresses of the workers by rank, including this worker's own.
    v1::Peers peers;
    SenderIdentity identity;
    v1::TransportType transport = v1::TRANSPORT_TYPE_AUTO;
    // The number of elements of the flat vector.
    uint64_t total = 0;
    // As in ParameterClientOptions.
    double exchange_seconds = 600;
    std::function<void()> on_unreached = {};
    std::function<bool()> goes_on = {};
  };
  // Takes the answer to a call. If it returns UNAVAILABLE, the call is made again. Any other error
  // ends the call. Runs on a thread of the transport.
  using Take = std::function<absl::Status(const TransportReply&)>;
  // Called once, when the call is over. Runs on a thread of the transport, without locks, perhaps
  // before the function that has begun the call returns.
  using Over = std::function<void(const absl::Status&)>;

  // If `transport` is null, it is gRPC.
  PeerCalls(const Options& options, const TransportFactory& transport = nullptr);
  // Calls Cancel, and returns when no callback is running any more.
  ~PeerCalls();

  // Makes a zeroed vector for weights that are sent, if possible in memory that workers of this
  // host can read.
  FloatBuffer MakeVector() { return queue_.transport().MakeVector(total_); }

  // Reads what worker `rank` has published under `name`, a block of `floats` values. Waits until it
  // has. OUT_OF_RANGE means that it is not kept any more.
  void Fetch(uint32_t rank, const PieceName& name, uint64_t floats, Take take, Over over);
  // Sends a block of this worker's weights to worker `rank`, and takes that worker's weights as
  // they were. The weights stay unchanged until the call is over. Without weights, says that this
  // worker has the answer for this block and clock.
  void Meet(uint32_t rank, uint64_t clock, uint32_t block, std::span<const float> weights,
            Take take, Over over);

  // Takes newer addresses of the workers. Calls to a worker that has lost its address end with
  // UNAVAILABLE if they are meetings. Fetches wait for the worker's next life.
  void Move(const v1::Peers& peers) EXCLUDES(mutex_);
  // Returns true if the worker has an address.
  bool IsThere(uint32_t rank) const EXCLUDES(mutex_);

  // Returns the bytes of all attempts of calls so far.
  Traffic traffic() const { return {sent_.load(), received_.load()}; }
  // Returns what the earliest postponed call waits for, or an empty string.
  std::string Waiting() const { return queue_.Waiting(); }
  // Ends all calls with CANCELLED, and those that begin later.
  void Cancel() { queue_.Cancel(); }

 private:
  class PeerOperation;

  void Start(uint32_t rank, TransportRequest request, Take take, Over over);
  TransportRequest RequestFor(TransportRequest::Kind kind, const PieceName& name) const;

  const SenderIdentity identity_;
  const uint64_t total_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};
  mutable Mutex mutex_;
  std::vector<ServerEndpoint> peers_ GUARDED_BY(mutex_);
  // Declared last: its calls use the rest until it is destroyed.
  CallQueue queue_;
};

}  // namespace leeway
