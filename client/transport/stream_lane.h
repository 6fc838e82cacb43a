// One connection to one server, with a long-lived stream on it. Requests go out in frames, and
// replies come back in any order. If a stream breaks, the calls that it carried fail, and the next
// call begins another stream.
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

// Thread-safe. The completion queue's thread passes on the replies.
class StreamLane {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    // Outlives the lane.
    QueueDriver* driver = nullptr;
    // The server's name in messages: "server 0 (host:port)".
    std::string server = "a server";
    // Memory that is offered to the server, which is on this host. If null, payloads travel in
    // frames.
    std::shared_ptr<SharedArena> arena;
    // True if the connection is a unix socket. Otherwise requests load a link, and the lane asks
    // the server to report the arrival of each request whose answer has to wait.
    bool local = false;
    // Called when a stream has ended. The stream does nothing after this.
    std::function<void()> on_stream_end;
  };

  explicit StreamLane(Options options);
  ~StreamLane();

  // Sends the request. Returns an error if the lane is closed, with the reason given to Close().
  absl::Status Call(const TransportRequest& request, Time deadline,
                    std::shared_ptr<TransportCall> call);
  // Ends calls with DEADLINE_EXCEEDED if their deadlines have passed. A call may wait longer while
  // the link is bringing answers of other calls.
  void GiveUpLate(Time now);
  // Closes the lane for good. All calls end with `why`, which is not OK. If called again, the first
  // reason stays.
  void Close(const absl::Status& why);

  const std::string& server() const { return options_.server; }
  // Payload bytes of the requests that have no answer yet.
  uint64_t unanswered_bytes() const;
  // Returns true if a stream has begun and not ended. There is at most one.
  bool busy() const;
  // True if the lane is closed and will never be busy again.
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
  // Sends a frame, unless there is nothing to send or a frame is being sent.
  void Flush();
  // Does the same as Flush, but sends small requests only when the queue's thread has nothing else
  // to do, so that more of them share a frame. Runs on that thread.
  void FlushSoon();
  // Fills in the parts of a frame's head that do not belong to a request.
  void FillHead(v1::RequestFrame& head) REQUIRES(mutex_);
  // Returns true if the frame can take another request. `writer_` has the frame's payloads.
  // `served_bytes` counts the bytes of all requests of the frame and of their answers.
  bool HasRoom(const v1::RequestFrame& head, uint64_t served_bytes) const REQUIRES(mutex_);

  // The stream calls these four functions on the queue's thread.
  void OnStarted(bool ok);
  void OnWritten(bool ok);
  void OnRead(bool ok);
  void OnEnded(bool ok);
  // Ends a broken stream once all of its operations have ended.
  void EndWhenIdle() REQUIRES(mutex_);
  void Break();
  // Reads the parts of a frame's head that do not belong to a reply. `payload_bytes` is the size of
  // all payloads in the frame.
  void TakeHead(const v1::ReplyFrame& head, uint64_t payload_bytes);
  // Handle one reply of a frame. Return an error if the server's message is invalid.
  absl::Status TakeAcceptance(const v1::StreamReply& reply);
  absl::Status TakeReply(const v1::StreamReply& reply, FramePayload& frame);
  // Returns the reply's payload, which is in the server's memory. Returns UNAVAILABLE if this
  // process cannot read that memory.
  absl::StatusOr<FloatPayload> SharedPayloadOf(const v1::StreamReply& reply,
                                               TransportReply& result);
  // Asks a pending call whether it waits longer for its answer (TransportCall::OnMissing). If the
  // call does not wait, ends the call with `end`.
  void WaitOnOrEnd(uint64_t id, TransportCall& call, const std::string& missing,
                   const absl::Status& end);
  // Removes a pending call, and returns it. Returns null if it is not pending.
  std::shared_ptr<TransportCall> Remove(uint64_t id) REQUIRES(mutex_);
  void TakeAnswer(const v1::MemoryAnswer& answer);

  const Options options_;
  grpc::GenericStub stub_;

  mutable Mutex mutex_;
  std::unique_ptr<Stream> stream_ GUARDED_BY(mutex_);
  // The reason why the lane was closed. OK if it is open.
  absl::Status closed_ GUARDED_BY(mutex_);
  uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  std::deque<Outgoing> outgoing_ GUARDED_BY(mutex_);
  // Payload bytes of `outgoing_`.
  uint64_t outgoing_bytes_ GUARDED_BY(mutex_) = 0;
  bool flush_due_ GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint64_t, Pending> pending_ GUARDED_BY(mutex_);
  uint64_t unanswered_bytes_ GUARDED_BY(mutex_) = 0;
  // The time at which values last came, on any stream.
  Time values_came_ GUARDED_BY(mutex_){};
  // The numbers of the stream's replies whose ranges in shared memory have been read.
  std::vector<uint64_t> released_ GUARDED_BY(mutex_);
  // True if the lane offers the arena to the server. It stops offering when the server cannot read
  // the arena, or this process cannot read the server's memory.
  bool offers_ GUARDED_BY(mutex_);
  bool server_reads_arena_ GUARDED_BY(mutex_) = false;
  // The writer is kept from one frame to the next, to reuse its memory.
  FrameWriter writer_ GUARDED_BY(mutex_);

  // Only the queue's thread uses these fields.
  std::shared_ptr<SharedMapping> server_memory_;
  SharedSession session_;
};

}  // namespace leeway
