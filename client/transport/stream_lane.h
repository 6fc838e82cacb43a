// One connection to one server, with a long-lived stream on it. Requests go out in frames, and
// replies come back in any order. A stream that breaks fails the calls that it carried, and the
// next call begins another stream.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/container/flat_hash_map.h"
#include "client/transport/queue_driver.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/queue_event.h"
#include "common/shm/shared_memory.h"
#include "common/wire/wire.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Thread-safe. The completion queue's thread hands on the replies.
class StreamLane {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    // Outlives the lane.
    QueueDriver* driver = nullptr;
    // For messages: "server 0 (host:port)".
    std::string server = "a server";
    // Memory that is offered to the server, which is on this host. Null: payloads travel in frames.
    std::shared_ptr<SharedArena> arena;
    // The connection is a unix socket. Otherwise requests load a link, and the server is asked to
    // say when a request has arrived whose answer has to wait.
    bool local = false;
    // Called when a stream has ended, as the last thing that happens in it.
    std::function<void()> on_stream_end;
  };

  explicit StreamLane(Options options);
  ~StreamLane();

  // Not OK: the lane was closed for this reason, and takes no more calls.
  absl::Status Call(const TransportRequest& request, Time deadline,
                    std::shared_ptr<TransportCall> call);
  // Ends the calls whose deadline has passed with DEADLINE_EXCEEDED, unless the link brings
  // answers of other calls.
  void GiveUpLate(Time now);
  // Breaks off all calls for good: they end with `why`, which is not OK. The first reason stands.
  void Close(const absl::Status& why);

  const std::string& server() const { return options_.server; }
  // Payload bytes of the requests that have no answer yet.
  uint64_t unanswered_bytes() const;
  // True if a stream has begun and not ended. There is at most one.
  bool busy() const;
  // Closed, and never busy again.
  bool over() const;

 private:
  struct Pending {
    std::shared_ptr<TransportCall> call;
    Time deadline;
    uint64_t bytes = 0;
  };
  struct Outgoing {
    uint64_t id = 0;
    TransportRequest request;
  };
  // One gRPC stream. It is deleted when it has ended.
  class Stream;

  void Begin() REQUIRES(mutex_);
  // Sends a frame if there is something to send and no frame is being sent.
  void Flush();
  // The same, but requests that can wait for more are sent when the queue's thread has nothing else
  // to do. Runs on that thread.
  void FlushSoon();
  // Fills in what a frame says besides its requests.
  void FillHead(v1::RequestFrame& head) REQUIRES(mutex_);
  // True if the frame can take another request. `writer_` has its payloads, and `served_bytes` are
  // all the bytes that it asks for.
  bool HasRoom(const v1::RequestFrame& head, uint64_t served_bytes) const REQUIRES(mutex_);

  // Called by the stream, on the queue's thread.
  void OnStarted(bool ok);
  void OnWritten(bool ok);
  void OnRead(bool ok);
  void OnEnded(bool ok);
  // Ends a broken stream once none of its operations is in progress.
  void EndWhenIdle() REQUIRES(mutex_);
  void Break();
  // Reads what a frame says besides its replies, whose payloads have `payload_bytes` in all.
  void TakeHead(const v1::ReplyFrame& head, uint64_t payload_bytes);
  // Not OK: the server's message makes no sense.
  absl::Status TakeAcceptance(const v1::StreamReply& reply);
  absl::Status TakeReply(const v1::StreamReply& reply, FramePayload& frame);
  // The payload in the server's memory. UNAVAILABLE: this process cannot read it.
  absl::StatusOr<FloatPayload> SharedPayloadOf(const v1::StreamReply& reply,
                                               TransportReply& result);
  // A pending call is not answered yet (TransportCall::OnMissing). It waits on, or ends with `end`.
  void WaitOnOrEnd(uint64_t id, TransportCall& call, const std::string& missing,
                   const absl::Status& end);
  // Takes a pending call away. Null if it is not pending.
  std::shared_ptr<TransportCall> Remove(uint64_t id) REQUIRES(mutex_);
  void TakeAnswer(const v1::MemoryAnswer& answer);

  const Options options_;
  grpc::GenericStub stub_;

  mutable Mutex mutex_;
  std::unique_ptr<Stream> stream_ GUARDED_BY(mutex_);
  // Not OK: the lane is closed.
  absl::Status closed_ GUARDED_BY(mutex_);
  uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  std::deque<Outgoing> outgoing_ GUARDED_BY(mutex_);
  // Payload bytes of `outgoing_`.
  uint64_t outgoing_bytes_ GUARDED_BY(mutex_) = 0;
  bool flush_due_ GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint64_t, Pending> pending_ GUARDED_BY(mutex_);
  uint64_t unanswered_bytes_ GUARDED_BY(mutex_) = 0;
  // When values last came, on any stream.
  Time values_came_ GUARDED_BY(mutex_){};
  // Replies of the stream whose shared ranges have been read.
  std::vector<uint64_t> released_ GUARDED_BY(mutex_);
  // The arena is offered to the server, until it turns out that one side cannot read the other's
  // memory.
  bool offers_ GUARDED_BY(mutex_);
  // The server reads the arena.
  bool server_reads_arena_ GUARDED_BY(mutex_) = false;
  // Kept from frame to frame for its memory.
  FrameWriter writer_ GUARDED_BY(mutex_);

  // Used by the queue's thread only.
  std::shared_ptr<SharedMapping> server_memory_;
  SharedSession session_;
};

}  // namespace leeway
