// One worker's stream: requests come in frames, go to the shard, and are answered in frames as they
// are done.
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

// Its events come one after the other of a kind, from any of the queue's threads; answers come from
// any thread. Lives until the stream has ended and every answer under way has come.
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

  // The operations' ends.
  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnEnded(bool ok);

  // What a frame says beside its requests.
  void TakeHead(const v1::RequestFrame& head);
  // All its requests have been handed over. Not OK: the stream cannot be read on.
  void EndFrame(absl::Status status);
  void TakeOffer(const v1::RequestFrame& head);
  // Hands a request to the shard. Not OK: it is wrong in itself.
  absl::Status Ask(const v1::StreamRequest& request, FramePayload& frame, Time now);
  absl::StatusOr<FloatPayload> SharedPayloadOf(const v1::StreamRequest& request);
  // A request says who sends it: `admitted_.sender`.
  void LearnOwner();
  // Floats in the peer's memory.
  absl::StatusOr<std::span<const float>> SharedFloatsOf(const v1::SharedRange& range) const;
  absl::StatusOr<FloatPayload> PartsOf(const v1::ReplicatedBlock& replicated) const;
  // Another server's block, for the replica here.
  absl::Status TakeReplica(const v1::StreamRequest& request, FramePayload& frame);
  // The answer has to wait: says so, if it was asked to.
  void Acknowledge(const v1::StreamRequest& request);

  // From any thread.
  void Answer(const Asked& asked, absl::StatusOr<BlockReading> reading);
  // Sends a frame if there is one and nothing is being sent.
  void Flush();
  // The same; if what there is can wait for more, once nothing else is to be done (the last
  // contribution to many small blocks releases all workers block after block).
  void FlushSoon();
  // Reads on, unless the worker asks for more than it lets be answered.
  void ReadOn() REQUIRES(mutex_);
  // Ends a broken stream once no operation of it is under way.
  void EndWhenIdle() REQUIRES(mutex_);

  ParameterService* const service_;
  ShardTable& table_;
  StreamList& streams_;
  ServerQueue* const queue_;
  // Until the stream has ended.
  std::optional<ServerQueue::Guest> guest_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_;
  Event accepted_, read_, written_, ended_;
  // Itself, until the stream has ended.
  std::shared_ptr<StreamSession> self_;

  // Constant once it was accepted.
  Caller caller_;

  // Of the read's end, and there is but one read at a time.
  grpc::ByteBuffer received_;
  ShardTable::Admitted admitted_;
  // The sender that was last looked at for whose the stream is.
  std::optional<ShardTable::Sender> sender_;
  // The owner's newest life.
  uint64_t incarnation_ = 0;
  // It carries another server's blocks.
  bool of_server_ = false;
  std::shared_ptr<SharedMapping> peer_memory_;
  // Of another server's memory; number 0: the peer is a worker.
  SharedSession peer_session_;

  std::atomic<Time::rep> last_heard_{0};
  // Changes under the lock only.
  std::atomic<bool> broken_{false};

  Mutex mutex_;
  bool reading_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  // A frame's requests are being handed over: what they are answered is not alone.
  bool taking_ GUARDED_BY(mutex_) = false;
  // Will be flushed when a thread of the queue has nothing else to do.
  bool flush_due_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  // Why; what the worker is told.
  absl::Status end_ GUARDED_BY(mutex_);
  // Whose it is, by its first request.
  std::optional<uint32_t> rank_ GUARDED_BY(mutex_);
  absl::flat_hash_set<uint64_t> unanswered_ GUARDED_BY(mutex_);
  UnreadAnswers answers_ GUARDED_BY(mutex_);
  // In the server's memory that replies refer to, where the worker maps it.
  SharedSession session_ GUARDED_BY(mutex_);
};

}  // namespace leeway
