// One connection to one server and the long-lived stream on it: requests go out in frames, replies
// come back in any order. A stream that breaks fails what it carried; the next call begins another.
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

// Thread-safe. Replies are handed on by the completion queue's thread.
class StreamLane {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    // Outlives the lane.
    QueueDriver* driver = nullptr;
    // For messages: "server 0 (host:port)".
    std::string server = "a server";
    // Offered to the server, which is on this host; null: payloads travel in frames.
    std::shared_ptr<SharedArena> arena;
    // Over a unix socket. Else there is a link that what is under way loads: the server is asked to
    // say when a request has arrived whose answer has to wait.
    bool local = false;
    // A stream has ended; the last thing that happens in it.
    std::function<void()> on_stream_end;
  };

  explicit StreamLane(Options options);
  ~StreamLane();

  // Not OK: why the lane was closed; it takes no more.
  absl::Status Call(const TransportRequest& request, Time deadline,
                    std::shared_ptr<TransportCall> call);
  // Ends those with DEADLINE_EXCEEDED whose deadline has passed, unless the link brings others'
  // answers.
  void GiveUpLate(Time now);
  // Breaks off what is under way, for good: it ends with `why`, not OK. The first reason stands.
  void Close(const absl::Status& why);

  const std::string& server() const { return options_.server; }
  // Payload of the requests that have no answer yet.
  uint64_t unanswered_bytes() const;
  // Streams that have begun and not ended: at most one.
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
  // One gRPC stream. Deleted when it has ended.
  class Stream;

  void Begin() REQUIRES(mutex_);
  // Sends a frame if there is something to send and nothing being sent.
  void Flush();
  // The same; if what there is can wait for more, once nothing else is to be done. On the queue's
  // thread.
  void FlushSoon();
  // What a frame says beside its requests.
  void FillHead(v1::RequestFrame& head) REQUIRES(mutex_);
  // The frame, whose payloads `writer_` has, may take another request; `served_bytes`: of all that
  // it asks for.
  bool HasRoom(const v1::RequestFrame& head, uint64_t served_bytes) const REQUIRES(mutex_);

  // From the stream, on the queue's thread.
  void OnStarted(bool ok);
  void OnWritten(bool ok);
  void OnRead(bool ok);
  void OnEnded(bool ok);
  // Ends a broken stream once no operation of it is under way.
  void EndWhenIdle() REQUIRES(mutex_);
  void Break();
  // What a frame says beside its replies, whose payloads have so many bytes.
  void TakeHead(const v1::ReplyFrame& head, uint64_t payload_bytes);
  // Not OK: what the server says makes no sense.
  absl::Status TakeAcceptance(const v1::StreamReply& reply);
  absl::Status TakeReply(const v1::StreamReply& reply, FramePayload& frame);
  // Where it lies in the server's memory. UNAVAILABLE: that is not to be read here.
  absl::StatusOr<FloatPayload> SharedPayloadOf(const v1::StreamReply& reply,
                                               TransportReply& result);
  // A pending call is not answered yet (TransportCall::OnMissing): it waits on, or ends with `end`.
  void WaitOnOrEnd(uint64_t id, TransportCall& call, const std::string& missing,
                   const absl::Status& end);
  // Takes a pending call away; null: there is none.
  std::shared_ptr<TransportCall> Remove(uint64_t id) REQUIRES(mutex_);
  void TakeAnswer(const v1::MemoryAnswer& answer);

  const Options options_;
  grpc::GenericStub stub_;

  mutable Mutex mutex_;
  std::unique_ptr<Stream> stream_ GUARDED_BY(mutex_);
  // Not OK: closed.
  absl::Status closed_ GUARDED_BY(mutex_);
  uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  std::deque<Outgoing> outgoing_ GUARDED_BY(mutex_);
  // Payload of those.
  uint64_t outgoing_bytes_ GUARDED_BY(mutex_) = 0;
  bool flush_due_ GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint64_t, Pending> pending_ GUARDED_BY(mutex_);
  uint64_t unanswered_bytes_ GUARDED_BY(mutex_) = 0;
  // Values came last then, on whichever stream.
  Time values_came_ GUARDED_BY(mutex_){};
  // Replies of the stream whose shared ranges have been read.
  std::vector<uint64_t> released_ GUARDED_BY(mutex_);
  // The arena is offered to the server; until it turns out that one cannot read the other's.
  bool offers_ GUARDED_BY(mutex_);
  // The server reads the arena.
  bool server_reads_arena_ GUARDED_BY(mutex_) = false;
  // Kept from frame to frame for its memory.
  FrameWriter writer_ GUARDED_BY(mutex_);

  // Of the queue's thread.
  std::shared_ptr<SharedMapping> server_memory_;
  SharedSession session_;
};

}  // namespace leeway
