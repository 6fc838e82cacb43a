// The link to the server that holds a shard's replica. It is one long-lived stream of the data
// plane, which carries blocks as REPLICATE requests. If both servers are on one host, the link
// sends only the positions of the values in this server's memory, and the replica copies the values
// from there.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include "common/mutex.h"
#include "common/rpc/transport_security.h"
#include "common/service/server_queue.h"
#include "common/shm/shared_memory.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/shard/shard.h"

namespace leeway {

// Thread-safe. When a stream breaks, its requests fail, and the next Send begins another stream.
class ReplicaLink final : public ReplicaSink, public std::enable_shared_from_this<ReplicaLink> {
 public:
  struct Options {
    uint64_t job = 0;
    uint64_t generation = 0;
    // The epoch in which the replica began (ShardPlace.since_epoch).
    uint64_t since_epoch = 0;
    // The address of the replica's server.
    std::string address;
    // The memory of the shard's values, if the replica is on this host and may be able to read that
    // memory. If null, values are sent in frames.
    std::shared_ptr<SharedArena> memory;
    // The credentials of the channel.
    const TransportSecurity* security = &ProcessSecurity();
    // The queue of the link's operations. It must outlive the link's streams.
    ServerQueue* queue = nullptr;
  };
  static std::shared_ptr<ReplicaLink> Make(Options options);

  void Send(HeldBlock block, Done done) override;
  // Stops sending. Requests in flight fail, and their callbacks run on the queue's threads.
  void Close();

 private:
  // A block in flight. Values that the replica reads in shared memory stay unchanged until the
  // replica has answered.
  struct Sent {
    HeldBlock block;
    Done done;
  };
  // One gRPC stream. It lives until its last operation is over.
  class Stream;

  explicit ReplicaLink(Options options);
  void Enqueue(HeldBlock block, Done done) REQUIRES(mutex_);
  void Flush() EXCLUDES(mutex_);
  void Offer(v1::RequestFrame& head) REQUIRES(mutex_);
  grpc::ByteBuffer NextFrame() REQUIRES(mutex_);
  // The stream calls these functions in the queue's threads.
  void OnStarted(Stream* stream, bool ok) EXCLUDES(mutex_);
  void OnWritten(Stream* stream, bool ok) EXCLUDES(mutex_);
  void OnRead(Stream* stream, bool ok) EXCLUDES(mutex_);
  void OnEnded(Stream* stream) EXCLUDES(mutex_);
  void ReadOn(Stream* stream) REQUIRES(mutex_);
  // Call this function after a failure. Ends the stream once all of its operations have ended.
  void Break(Stream* stream) REQUIRES(mutex_);
  void TakeReplies(Stream* stream, const v1::ReplyFrame& replies) EXCLUDES(mutex_);
  void TakeReply(const v1::StreamReply& reply) EXCLUDES(mutex_);
  // Removes and returns the blocks that have not been sent yet.
  std::vector<Sent> TakeUnsent() REQUIRES(mutex_);

  const Options options_;
  grpc::GenericStub stub_;
  Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<Stream> stream_ GUARDED_BY(mutex_);
  uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  // The replica's last answer. A server refuses if it does not have the replica yet, or if this
  // server has lost the shard. While it refuses, the link sends only one block at a time, as a
  // trial.
  absl::Status refusal_ GUARDED_BY(mutex_);
  // True if a broken stream was logged and the replica has accepted no block since.
  bool told_broken_ GUARDED_BY(mutex_) = false;
  // The requests in pending_ that have not been sent yet.
  std::deque<uint64_t> outgoing_ GUARDED_BY(mutex_);
  std::map<uint64_t, Sent> pending_ GUARDED_BY(mutex_);
};

}  // namespace leeway
