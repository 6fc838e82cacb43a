#include "server/replica/replica_link.h"

#include <optional>
#include <utility>

#include <grpcpp/client_context.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/grpc_status.h"
#include "common/queue_event.h"
#include "common/wire.h"

namespace leeway {
namespace {

constexpr char kMethod[] = "/leeway.v1.ParameterServer/Exchange";
// As of a worker's stream: large blocks go one by one, small ones share a frame.
constexpr size_t kFrameBytes = 256 << 10;
constexpr int kFrameRequests = 512;

}  // namespace

// Its fields but `received` and `status` are guarded by the link's mutex.
class ReplicaLink::Stream {
 public:
  explicit Stream(std::shared_ptr<ReplicaLink> owner)
      : link(std::move(owner)),
        guest(std::in_place, link->options_.queue),
        started(this, &Stream::OnStarted),
        written(this, &Stream::OnWritten),
        read(this, &Stream::OnRead),
        ended(this, &Stream::OnEnded) {}

  void OnStarted(bool ok) { link->OnStarted(this, ok); }
  void OnWritten(bool ok) { link->OnWritten(this, ok); }
  void OnRead(bool ok) { link->OnRead(this, ok); }
  void OnEnded(bool) {
    const std::shared_ptr<Stream> keep = std::move(self);
    guest.reset();
    link->OnEnded(this);
  }

  const std::shared_ptr<ReplicaLink> link;
  // Until it has ended.
  std::shared_ptr<Stream> self;
  std::optional<ServerQueue::Guest> guest;
  MemberEvent<Stream> started, written, read, ended;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> calls;
  grpc::ByteBuffer received;
  grpc::Status status;
  bool starting = true;
  bool writing = false;
  bool reading = false;
  bool broken = false;
  bool ending = false;
};

std::shared_ptr<ReplicaLink> ReplicaLink::Make(Options options) {
  return std::shared_ptr<ReplicaLink>(new ReplicaLink(std::move(options)));
}

ReplicaLink::ReplicaLink(Options options)
    : options_(std::move(options)), stub_(MakeChannel(options_.address)) {}

void ReplicaLink::Send(HeldBlock block, Done done) {
  {
    MutexLock lock(mutex_);
    if (!closed_) {
      const uint64_t id = next_id_++;
      pending_[id] = std::move(done);
      outgoing_.push_back({id, std::move(block)});
      done = nullptr;
      if (stream_ == nullptr) {
        stream_ = std::make_shared<Stream>(shared_from_this());
        stream_->self = stream_;
        stream_->calls = stub_.PrepareCall(&stream_->context, kMethod, options_.queue->get());
        stream_->calls->StartCall(&stream_->started);
      }
    }
  }
  if (done) return done(absl::CancelledError("the way to the replica is closed"));
  Flush();
}

void ReplicaLink::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  if (stream_ == nullptr) return;
  stream_->context.TryCancel();
  Break(stream_.get());
}

void ReplicaLink::Flush() {
  grpc::ByteBuffer frame;
  std::shared_ptr<Stream> stream;
  {
    MutexLock lock(mutex_);
    stream = stream_;
    if (stream == nullptr || stream->starting || stream->writing || stream->broken ||
        outgoing_.empty()) {
      return;
    }
    frame = NextFrame();
    stream->writing = true;
  }
  // Outside the lock: it may write to the socket. The stream does not end while writing.
  stream->calls->Write(frame, &stream->written);
}

grpc::ByteBuffer ReplicaLink::NextFrame() {
  v1::RequestFrame head;
  FrameWriter writer;
  while (!outgoing_.empty() && head.requests_size() < kFrameRequests &&
         writer.bytes() < kFrameBytes) {
    const HeldBlock& block = outgoing_.front().block;
    v1::StreamRequest& request = *head.add_requests();
    request.set_id(outgoing_.front().id);
    request.set_method(v1::EXCHANGE_METHOD_REPLICATE);
    request.mutable_header()->set_job(options_.job);
    request.mutable_header()->set_generation(options_.generation);
    request.mutable_header()->set_block(block.block);
    v1::ReplicatedBlock& replicated = *request.mutable_replicated();
    replicated.set_since_epoch(options_.since_epoch);
    replicated.set_version(block.progress.version);
    for (const uint64_t clock : block.progress.clocks) replicated.add_clocks(clock);
    uint64_t bytes = 0;
    // The version stays as it is for as long as the frame refers to it.
    const auto append = [&](const SharedFloats& values) {
      if (!values) return;
      const std::span<const float> span = values.span();
      bytes += span.size_bytes();
      writer.Append({reinterpret_cast<const uint8_t*>(span.data()), span.size_bytes()},
                    std::make_shared<SharedFloats>(values));
    };
    append(block.values.weights);
    for (const SharedFloats& slot : block.values.slots) append(slot);
    append(block.values.shadow);
    replicated.set_has_previous(static_cast<bool>(block.previous));
    append(block.previous);
    request.set_payload_bytes(bytes);
    outgoing_.pop_front();
  }
  return writer.Finish(head);
}

void ReplicaLink::OnStarted(Stream* stream, bool ok) {
  {
    MutexLock lock(mutex_);
    stream->starting = false;
    if (!ok) stream->broken = true;
    ReadOn(stream);
    if (stream->broken) Break(stream);
  }
  Flush();
}

void ReplicaLink::OnWritten(Stream* stream, bool ok) {
  {
    MutexLock lock(mutex_);
    stream->writing = false;
    if (!ok || stream->broken) Break(stream);
  }
  Flush();
}

void ReplicaLink::OnRead(Stream* stream, bool ok) {
  v1::ReplyFrame replies;
  if (ok) ok = DecodeReplyFrame(stream->received, replies).ok();
  if (ok) TakeReplies(replies);
  MutexLock lock(mutex_);
  stream->reading = false;
  stream->received.Clear();
  if (ok) ReadOn(stream);
  if (!ok || stream->broken) Break(stream);
}

void ReplicaLink::ReadOn(Stream* stream) {
  if (stream->broken) return;
  stream->reading = true;
  stream->calls->Read(&stream->received, &stream->read);
}

void ReplicaLink::TakeReplies(const v1::ReplyFrame& replies) {
  for (const v1::StreamReply& reply : replies.replies()) {
    Done done;
    {
      MutexLock lock(mutex_);
      auto found = pending_.extract(reply.id());
      if (found.empty()) continue;
      done = std::move(found.mapped());
    }
    done(absl::Status(static_cast<absl::StatusCode>(reply.code()), reply.message()));
  }
}

void ReplicaLink::Break(Stream* stream) {
  stream->broken = true;
  if (stream->ending || stream->starting || stream->writing || stream->reading) {
    // What is under way fails at once.
    if (!stream->ending) stream->context.TryCancel();
    return;
  }
  stream->ending = true;
  stream->calls->Finish(&stream->status, &stream->ended);
}

void ReplicaLink::OnEnded(Stream* stream) {
  std::map<uint64_t, Done> failed;
  {
    MutexLock lock(mutex_);
    if (stream_.get() == stream) stream_.reset();
    failed.swap(pending_);
    outgoing_.clear();
  }
  const absl::Status why =
      absl::UnavailableError(absl::StrCat("the way to the replica at ", options_.address,
                                          " has broken: ", stream->status.error_message()));
  for (auto& [id, done] : failed) done(why);
}

}  // namespace leeway
