// Serves the stream of one worker, or of another server. Requests arrive in frames and go to the
// shard. Answers leave in frames as soon as they are ready.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/container/flat_hash_set.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/queue_event.h"
#include "common/service/server_queue.h"
#include "common/shm/shared_memory.h"
#include "common/wire/wire.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/service/parameter_service.h"
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
  void TakeOffer(const v1::RequestFrame& head);
  // Hands a request to the shard. Returns an error if the request itself is malformed.
  absl::Status Ask(const v1::StreamRequest& request, FramePayload& frame, Time now);
  absl::StatusOr<FloatPayload> SharedPayloadOf(const v1::StreamRequest& request);
  // Sets the owner of the stream once a request has named its sender (`admitted_.sender`).
  void LearnOwner();
  // Returns the floats of a range in the peer's memory.
  absl::StatusOr<std::span<const float>> SharedFloatsOf(const v1::SharedRange& range) const;
  absl::StatusOr<FloatPayload> PartsOf(const v1::ReplicatedBlock& replicated) const;
  // Stores another server's block in the replica here.
  absl::Status TakeReplica(const v1::StreamRequest& request, FramePayload& frame);
  // Reports to the sender that the answer has to wait, if the request asks for such reports.
  void Acknowledge(const v1::StreamRequest& request);

  // May be called from any thread.
  void Answer(const Asked& asked, absl::StatusOr<BlockReading> reading);
  // Sends a frame if there is one and no other frame is being sent.
  void Flush();
  // The same, but answers that can wait for more answers are sent once the thread has nothing else
  // to do. (The last contribution to many small blocks releases all workers, block after block.)
  void FlushSoon();
  // Continues to read from the stream, unless too many of the worker's answers wait.
  void ReadOn() REQUIRES(mutex_);
  // Ends a broken stream once none of its operations is under way.
  void EndWhenIdle() REQUIRES(mutex_);

  ParameterService* const service_;
  ShardTable& table_;
  StreamList& streams_;
  ServerQueue* const queue_;
  // Held until the stream has ended.
  std::optional<ServerQueue::Guest> guest_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_;
  Event accepted_, read_, written_, ended_;
  // A reference to this session itself, until the stream has ended.
  std::shared_ptr<StreamSession> self_;

  // The peer of the stream. Constant once the stream has been accepted.
  Caller caller_;

  // The last received frame. Used only at the end of a read, and only one read runs at a time.
  grpc::ByteBuffer received_;
  ShardTable::Admitted admitted_;
  // The sender that was last used to find the stream's owner.
  std::optional<ShardTable::Sender> sender_;
  // The owner's newest life.
  uint64_t incarnation_ = 0;
  // Whether the stream carries another server's blocks.
  bool of_server_ = false;
  std::shared_ptr<SharedMapping> peer_memory_;
  // The session in another server's memory. Its number is 0 if the peer is a worker.
  SharedSession peer_session_;

  std::atomic<Time::rep> last_heard_{0};
  // Changes only under the lock.
  std::atomic<bool> broken_{false};

  Mutex mutex_;
  bool reading_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  // Whether the requests of a frame are being handed over, so that more answers may follow.
  bool taking_ GUARDED_BY(mutex_) = false;
  // Whether a thread of the queue will flush when it has nothing else to do.
  bool flush_due_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  // The status with which the stream ends. The worker receives it.
  absl::Status end_ GUARDED_BY(mutex_);
  // The rank of the owner, as the first request names it.
  std::optional<uint32_t> rank_ GUARDED_BY(mutex_);
  absl::flat_hash_set<uint64_t> unanswered_ GUARDED_BY(mutex_);
  UnreadAnswers answers_ GUARDED_BY(mutex_);
  // The session in the server's memory that replies refer to, if the worker maps it.
  SharedSession session_ GUARDED_BY(mutex_);
};

}  // namespace leeway
