#include "server/replica/replica_link.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <grpcpp/client_context.h>
#include <spdlog/spdlog.h>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/local_sockets.h"
#include "common/rpc/queue_event.h"
#include "common/wire/wire.h"

namespace leeway {
namespace {

constexpr char kMethod[] = "/leeway.v1.ParameterServer/Exchange";
// The limits of a frame, the same as for a worker's stream. Large blocks are sent alone, and small
// blocks share a frame.
constexpr size_t kReplicaFrameBytes = 256 << 10;
constexpr int kFrameRequests = 512;
// The maximum size of a frame's head. Readers accept 1 MiB.
constexpr size_t kFrameHeadBytes = 256 << 10;

// The vectors of a block, in the order of ReplicatedBlock.
using Parts = absl::InlinedVector<const SharedFloats*, 4>;
Parts PartsOf(const HeldBlock& block) {
  Parts parts = {&block.values.weights};
  for (const SharedFloats& slot : block.values.slots) parts.push_back(&slot);
  if (block.values.shadow) parts.push_back(&block.values.shadow);
  if (block.previous) parts.push_back(&block.previous);
  return parts;
}

bool LieIn(const SharedArena& memory, const Parts& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const SharedFloats* part) {
    return memory.Contains(part->span().data());
  });
}

void NameParts(const Parts& parts, const SharedArena& memory, v1::ReplicatedBlock& replicated) {
  for (const SharedFloats* part : parts) {
    v1::SharedRange& range = *replicated.add_parts();
    range.set_offset(memory.OffsetOf(part->span().data()));
    range.set_bytes(part->span().size_bytes());
  }
}

// Appends the vectors to a frame and returns the number of bytes. The versions stay unchanged as
// long as the frame refers to them.
uint64_t Append(const Parts& parts, FrameWriter& writer) {
  uint64_t bytes = 0;
  for (const SharedFloats* part : parts) {
    const std::span<const float> span = part->span();
    bytes += span.size_bytes();
    writer.Append({reinterpret_cast<const uint8_t*>(span.data()), span.size_bytes()},
                  std::make_shared<SharedFloats>(*part));
  }
  return bytes;
}

}  // namespace

// The link's mutex guards all fields except `received` and `status`.
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
  // References that the stream holds until it has ended.
  std::shared_ptr<Stream> self;
  std::optional<ServerQueue::Guest> guest;
  MemberEvent<Stream> started, written, read, ended;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> calls;
  grpc::ByteBuffer received;
  grpc::Status status;
  // How this server's memory is offered to the replica.
  struct {
    bool offered = false;
    // The session that the replica checks after it has copied from the memory. Its number is 0 if
    // there is no session.
    SharedSession session;
    // True if the replica reads the memory.
    bool accepted = false;
  } memory;
  // What happens on the stream at present.
  struct {
    bool starting = true;
    bool writing = false;
    bool reading = false;
    bool broken = false;
    bool ending = false;
  } now;
};

std::shared_ptr<ReplicaLink> ReplicaLink::Make(Options options) {
  return std::shared_ptr<ReplicaLink>(new ReplicaLink(std::move(options)));
}

ReplicaLink::ReplicaLink(Options options)
    : options_(std::move(options)),
      stub_(MakeChannel(options_.address, *options_.security, Callee::kHolder)) {}

void ReplicaLink::Send(HeldBlock block, Done done) {
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (closed_) {
      status = absl::CancelledError("the link to the replica is closed");
    } else if (!refusal_.ok() && !pending_.empty()) {
      status = refusal_;
    } else {
      Enqueue(std::move(block), std::move(done));
    }
  }
  if (!status.ok()) return done(status);
  Flush();
}

void ReplicaLink::Enqueue(HeldBlock block, Done done) {
  const uint64_t id = next_id_++;
  pending_[id] = {std::move(block), std::move(done)};
  outgoing_.push_back(id);
  if (stream_ != nullptr) return;
  stream_ = std::make_shared<Stream>(shared_from_this());
  stream_->self = stream_;
  stream_->calls = stub_.PrepareCall(&stream_->context, kMethod, options_.queue->get());
  stream_->calls->StartCall(stream_->started.Tag());
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
    if (stream == nullptr || stream->now.starting || stream->now.writing || stream->now.broken ||
        outgoing_.empty()) {
      return;
    }
    frame = NextFrame();
    stream->now.writing = true;
  }
  // This runs without the lock, because it may write to the socket. The stream does not end during
  // a write.
  stream->calls->Write(frame, stream->written.Tag());
}

void ReplicaLink::Offer(v1::RequestFrame& head) {
  stream_->memory.offered = true;
  if (options_.memory == nullptr) return;
  const auto session = options_.memory->OpenSession();
  if (!session.ok()) return;
  stream_->memory.session = *session;
  *head.mutable_offer() = options_.memory->Offer();
  head.set_session_offset(session->offset);
  head.set_session(session->number);
}

grpc::ByteBuffer ReplicaLink::NextFrame() {
  v1::RequestFrame head;
  FrameWriter writer;
  // The size of the head. With many workers, the workers' clocks are most of it.
  size_t head_bytes = 0;
  if (!stream_->memory.offered) Offer(head);
  while (!outgoing_.empty() && head.requests_size() < kFrameRequests &&
         writer.bytes() < kReplicaFrameBytes && head_bytes < kFrameHeadBytes) {
    const uint64_t id = outgoing_.front();
    outgoing_.pop_front();
    const auto sent = pending_.find(id);
    // The block is gone if a faulty replica answered the block's request before the request was
    // sent.
    if (sent == pending_.end()) continue;
    const HeldBlock& block = sent->second.block;
    v1::StreamRequest& request = *head.add_requests();
    request.set_id(id);
    request.set_method(v1::EXCHANGE_METHOD_REPLICATE);
    request.mutable_header()->set_job(options_.job);
    request.mutable_header()->set_generation(options_.generation);
    request.mutable_header()->set_block(block.block);
    v1::ReplicatedBlock& replicated = *request.mutable_replicated();
    replicated.set_since_epoch(options_.since_epoch);
    replicated.set_version(block.progress.version);
    replicated.set_updates(block.progress.updates);
    for (const uint64_t clock : block.progress.clocks) replicated.add_clocks(clock);
    for (const uint64_t clock : block.progress.counted) replicated.add_counted(clock);
    replicated.set_has_previous(static_cast<bool>(block.previous));
    const Parts parts = PartsOf(block);
    if (stream_->memory.accepted && LieIn(*options_.memory, parts)) {
      NameParts(parts, *options_.memory, replicated);
    } else {
      request.set_payload_bytes(Append(parts, writer));
    }
    head_bytes += request.ByteSizeLong();
  }
  return writer.Finish(head);
}

// Another thread may end the stream as soon as that is possible. The stream may be the last
// owner of the link.
void ReplicaLink::OnStarted(Stream* stream, bool ok) {
  const auto self = shared_from_this();
  if (ok) TuneLocalSockets(stream->context.peer());
  {
    MutexLock lock(mutex_);
    stream->now.starting = false;
    if (!ok) stream->now.broken = true;
    ReadOn(stream);
    if (stream->now.broken) Break(stream);
  }
  Flush();
}

void ReplicaLink::OnWritten(Stream* stream, bool ok) {
  const auto self = shared_from_this();
  {
    MutexLock lock(mutex_);
    stream->now.writing = false;
    if (!ok || stream->now.broken) Break(stream);
  }
  Flush();
}

void ReplicaLink::OnRead(Stream* stream, bool ok) {
  const auto self = shared_from_this();
  v1::ReplyFrame replies;
  if (ok) ok = DecodeReplyFrame(stream->received, replies).ok();
  if (ok) TakeReplies(stream, replies);
  MutexLock lock(mutex_);
  stream->now.reading = false;
  stream->received.Clear();
  if (ok) ReadOn(stream);
  if (!ok || stream->now.broken) Break(stream);
}

void ReplicaLink::ReadOn(Stream* stream) {
  if (stream->now.broken) return;
  stream->now.reading = true;
  stream->calls->Read(&stream->received, stream->read.Tag());
}

void ReplicaLink::TakeReplies(Stream* stream, const v1::ReplyFrame& replies) {
  if (replies.has_answer()) {
    MutexLock lock(mutex_);
    stream->memory.accepted = replies.answer().mapped() && stream->memory.session.number != 0;
  }
  for (const v1::StreamReply& reply : replies.replies()) TakeReply(reply);
}

void ReplicaLink::TakeReply(const v1::StreamReply& reply) {
  const absl::Status status(static_cast<absl::StatusCode>(reply.code()), reply.message());
  std::vector<Sent> answered;
  {
    MutexLock lock(mutex_);
    auto found = pending_.extract(reply.id());
    if (found.empty()) return;
    if (refusal_.code() != status.code() && !status.ok()) {
      spdlog::warn("the replica at {} refuses: {}", options_.address, status.ToString());
    }
    refusal_ = status;
    if (status.ok()) told_broken_ = false;
    // The blocks that wait to be sent are dropped, because the replica would refuse them, too.
    if (!status.ok()) answered = TakeUnsent();
    answered.push_back(std::move(found.mapped()));
  }
  for (Sent& sent : answered) {
    sent.block = {};
    sent.done(status);
  }
}

std::vector<ReplicaLink::Sent> ReplicaLink::TakeUnsent() {
  std::vector<Sent> unsent;
  for (const uint64_t id : std::exchange(outgoing_, {})) {
    if (auto found = pending_.extract(id)) unsent.push_back(std::move(found.mapped()));
  }
  return unsent;
}

void ReplicaLink::Break(Stream* stream) {
  stream->now.broken = true;
  if (stream->now.ending) return;
  // Make the running operations fail at once, so that they do not wait for the peer.
  stream->context.TryCancel();
  if (stream->now.starting || stream->now.writing || stream->now.reading) return;
  stream->now.ending = true;
  stream->calls->Finish(&stream->status, stream->ended.Tag());
}

void ReplicaLink::OnEnded(Stream* stream) {
  std::map<uint64_t, Sent> failed;
  bool tells = false;
  {
    MutexLock lock(mutex_);
    // The session must be closed before its memory is released; see common/shm/shared_memory.h.
    if (stream->memory.session.number != 0) options_.memory->CloseSession(stream->memory.session);
    if (stream_.get() == stream) stream_.reset();
    failed.swap(pending_);
    outgoing_.clear();
    tells = !closed_ && !failed.empty() && !std::exchange(told_broken_, true);
  }
  const absl::Status why =
      absl::UnavailableError(absl::StrCat("the link to the replica at ", options_.address,
                                          " has broken: ", stream->status.error_message()));
  if (tells) {
    const HeldBlock& first = failed.begin()->second.block;
    spdlog::warn("{}; block {}, version {}{} not there yet and will be sent again",
                 std::string(why.message()), first.block, first.progress.version,
                 failed.size() > 1 ? absl::StrCat(" and ", failed.size() - 1, " more are") : " is");
  }
  for (auto& [id, sent] : failed) sent.done(why);
}

}  // namespace leeway
