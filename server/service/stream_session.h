// Serves the stream of one worker, or of another server. Requests arrive in frames and go to the
// shard. Answers leave in frames as soon as they are ready.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/container/flat_hash_set.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/queue_event.h"
#include "common/service/server_queue.h"
#include "common/wire/wire.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/service/parameter_service.h"
#include "server/service/peer_memory.h"
#include "server/service/unread_answers.h"
#include "server/shard/shard.h"

namespace leeway {

// Events of one kind come one after the other, from any of the queue's threads. Answers come from
// any thread. A session lives until the stream has ended and all answers under way have come.
class StreamSession : public StreamList::Stream,
                      public WaitingSender,
                      public std::enable_shared_from_this<StreamSession> {
 public:
  // Serves the streams of workers from now on until `queue` stops.
  static void Await(ParameterService* service, ServerQueue* queue);

  void TakeBackUnread(Time now) override;
  void End() override;
  Time last_heard() const override { return Time(Time::duration(last_heard_)); }
  bool gone() const override { return broken_; }
  void OnMissing(uint64_t id, const std::string& missing) override;

 private:
  using Event = MemberEvent<StreamSession>;
  using Asked = UnreadAnswers::Asked;

  // The call that carries the stream, as gRPC has it, and its operations.
  struct Call {
    explicit Call(StreamSession* session);
    grpc::ServerContext context;
    grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream;
    Event accepted, read, written, ended;
    // The last received frame.
    grpc::ByteBuffer received;
  };
  // The owner of the stream, as far as its requests have shown.
  struct Owner {
    // Takes the sender of the newest admitted request. The rank of the first request is the owner.
    // Returns true if the request shows the owner's first life here, or a newer one.
    bool Learn();

    // The peer of the stream. Constant once the stream has been accepted.
    Caller caller;
    ShardTable::Admitted admitted;
    // The sender that was learned last.
    std::optional<ShardTable::Sender> sender;
    std::optional<uint32_t> rank;
    // The owner's newest life.
    uint64_t incarnation = 0;
    // True if the stream carries another server's blocks.
    bool is_server = false;
  };
  // What happens on the stream at present.
  struct UnderWay {
    bool reading = false;
    bool writing = false;
    // True if the requests of a frame are being handed over, so that more answers may follow.
    bool taking = false;
    // True if a thread of the queue will flush when it has nothing else to do.
    bool flush_due = false;
    bool ending = false;
  };

  StreamSession(ParameterService* service, ServerQueue* queue);

  // Called when an operation of the stream has ended. `ok` is gRPC's result.
  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnEnded(bool ok);

  // Handles the fields of a frame other than its requests.
  void TakeHead(const v1::RequestFrame& head);
  // Ends the handling of a frame once all its requests have been handed over. If `status` is not
  // OK, the stream cannot be read any further.
  void EndFrame(absl::Status status);
  // Maps the peer's memory, and lets a worker map the server's.
  void TakeOffer(const v1::RequestFrame& head);
  // Hands a request to the shard. Returns an error if the request is malformed.
  absl::Status Ask(const v1::StreamRequest& request, FramePayload& frame, Time now);
  // Tells the list who owns the stream, once a request has named its sender.
  void LearnOwner();
  // Hands a fetch or a meeting to the worker in this process. Returns an error if the request is
  // malformed.
  absl::Status AskPeer(const v1::StreamRequest& request, FramePayload& frame, Time now);
  // Returns an error if the request's id is already used.
  absl::Status TakeId(uint64_t id);
  // Stores another server's block in the replica here.
  absl::Status TakeReplica(const v1::StreamRequest& request, FramePayload& frame);
  // Reports to the sender that the answer has to wait, if the request asks for such reports.
  void Acknowledge(const v1::StreamRequest& request);

  // May be called from any thread.
  void Answer(const Asked& asked, absl::StatusOr<BlockReading> reading);
  // Sends a frame if there is one and no other frame is being sent.
  void Flush();
  // Does the same, but if the answers can wait for more answers, sends them once the thread has
  // nothing else to do. (The last contribution to many small blocks releases all workers, block
  // after block.)
  void FlushSoon();
  // Continues to read from the stream, unless too many of the worker's answers wait.
  void ReadOn() REQUIRES(mutex_);
  // Ends a broken stream once all of its operations have ended.
  void EndWhenIdle() REQUIRES(mutex_);

  ShardTable& table() const { return service_->table(); }
  StreamList& streams() const { return service_->streams(); }

  ParameterService* const service_;
  ServerQueue* const queue_;
  // Held until the stream has ended.
  std::optional<ServerQueue::Guest> guest_;
  Call call_;
  // A reference to this session itself, until the stream has ended.
  std::shared_ptr<StreamSession> self_;

  // Used only at the end of a read, and only one read runs at a time.
  Owner owner_;
  PeerMemory peer_memory_;

  std::atomic<Time::rep> last_heard_{0};
  // Changes only under the lock.
  std::atomic<bool> broken_{false};

  Mutex mutex_;
  UnderWay under_way_ GUARDED_BY(mutex_);
  // The status with which the stream ends. The worker receives it.
  absl::Status end_ GUARDED_BY(mutex_);
  absl::flat_hash_set<uint64_t> unanswered_ GUARDED_BY(mutex_);
  UnreadAnswers answers_ GUARDED_BY(mutex_);
};

}  // namespace leeway
