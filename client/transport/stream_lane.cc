#include "client/transport/stream_lane.h"

#include <memory>
#include <string>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"
#include "common/wire/frame_head.h"

namespace leeway {
namespace {

constexpr char kMethod[] = "/leeway.v1.ParameterServer/Exchange";
// A frame of this size gets no more requests. Large payloads are sent one by one, so that the
// server can process the first while the second is in flight. Small payloads share the cost of a
// frame.
constexpr uint64_t kFrameBytes = 256 << 10;
constexpr int kFrameRequests = 512;
// A frame also gets no more requests once the payloads of its requests and their answers have this
// size, in the frame or in shared memory. If they are in shared memory, the server processes the
// whole frame before it reads from this stream again.
constexpr uint64_t kFrameServedBytes = 4 << 20;

v1::ExchangeMethod MethodOf(TransportRequest::Kind kind) {
  switch (kind) {
    case TransportRequest::Kind::kInitialize:
      return v1::EXCHANGE_METHOD_INITIALIZE;
    case TransportRequest::Kind::kPush:
      return v1::EXCHANGE_METHOD_PUSH;
    case TransportRequest::Kind::kPushPull:
      return v1::EXCHANGE_METHOD_PUSH_PULL;
    case TransportRequest::Kind::kFetch:
      return v1::EXCHANGE_METHOD_FETCH;
    case TransportRequest::Kind::kMeet:
      return v1::EXCHANGE_METHOD_MEET;
    default:
      return v1::EXCHANGE_METHOD_PULL;
  }
}

}  // namespace

class StreamLane::Stream {
 public:
  explicit Stream(StreamLane* lane)
      : started(lane, &StreamLane::OnStarted),
        written(lane, &StreamLane::OnWritten),
        read(lane, &StreamLane::OnRead),
        ended(lane, &StreamLane::OnEnded) {}

  MemberEvent<StreamLane> started, written, read, ended;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> calls;
  grpc::ByteBuffer received;
  grpc::Status status;
  // Guarded by the lane's mutex.
  bool ready = false;
  bool writing = false;
  bool reading = false;
  bool broken = false;
  bool ending = false;
  bool offered = false;
  // True while replies are being passed on. Replies lead to new requests, so sending waits until
  // all replies were passed on.
  bool dispatching = false;

  bool writable() const { return ready && !writing && !broken && !dispatching; }
};

StreamLane::StreamLane(Options options)
    : options_(std::move(options)), stub_(options_.channel), offers_(options_.arena != nullptr) {}

StreamLane::~StreamLane() = default;

absl::Status StreamLane::Call(const TransportRequest& request, Time deadline,
                              std::shared_ptr<TransportCall> call) {
  {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(closed_);
    const uint64_t id = next_id_++;
    pending_[id] = {std::move(call), deadline, request.bytes()};
    options_.driver->CallBegan(request.bytes());
    unanswered_bytes_ += request.bytes();
    outgoing_.push_back({id, request});
    outgoing_bytes_ += request.payload.size();
    if (stream_ == nullptr) Begin();
  }
  Flush();
  return absl::OkStatus();
}

void StreamLane::Begin() {
  stream_ = std::make_unique<Stream>(this);
  server_reads_arena_ = false;
  released_.clear();
  stream_->calls = stub_.PrepareCall(&stream_->context, kMethod, options_.driver->queue());
  // This only starts the call. The thread of the queue connects and sends.
  stream_->calls->StartCall(stream_->started.Tag());
}

void StreamLane::Flush() {
  grpc::ByteBuffer frame;
  Stream* stream;
  {
    MutexLock lock(mutex_);
    flush_due_ = false;
    stream = stream_.get();
    if (stream == nullptr || !stream->writable()) return;
    const FrameHead<v1::RequestFrame> head;
    FillHead(*head);
    for (uint64_t served = 0; !outgoing_.empty() && HasRoom(*head, served); outgoing_.pop_front()) {
      const auto& [id, request] = outgoing_.front();
      outgoing_bytes_ -= request.payload.size();
      // A call that was given up meanwhile is not sent.
      if (!pending_.contains(id)) continue;
      served += request.bytes();
      v1::StreamRequest& entry = *head->add_requests();
      entry.set_id(id);
      entry.set_method(MethodOf(request.kind));
      *entry.mutable_header() = request.header;
      entry.set_latest(request.reads != ReadKind::kAtClock);
      entry.set_average(request.reads == ReadKind::kAverage);
      entry.set_piece(request.piece);
      entry.set_wants_acceptance(!options_.local && request.sends());
      entry.set_waits_on(true);
      if (request.payload.empty()) continue;
      if (server_reads_arena_ && options_.arena->Contains(request.payload.data())) {
        entry.mutable_shared()->set_offset(options_.arena->OffsetOf(request.payload.data()));
        entry.mutable_shared()->set_bytes(request.payload.size());
      } else {
        entry.set_payload_bytes(request.payload.size());
        writer_.Append(request.payload, request.payload_owner);
      }
    }
    if (head->requests_size() == 0 && head->released_size() == 0 && !head->has_offer()) return;
    frame = writer_.Finish(*head);
    stream->writing = true;
  }
  // Write without the lock, because the call may write to the socket. The stream stays valid,
  // because a stream does not end while it is writing.
  stream->calls->Write(frame, stream->written.Tag());
}

void StreamLane::FlushSoon() {
  bool waits;
  {
    MutexLock lock(mutex_);
    waits = outgoing_bytes_ < QueuePoller::kSmallBytes;
    if (waits && std::exchange(flush_due_, true)) return;
  }
  if (waits) return options_.driver->AtRest([this] { Flush(); });
  Flush();
}

void StreamLane::FillHead(v1::RequestFrame& head) {
  if (offers_ && !stream_->offered) {
    *head.mutable_offer() = options_.arena->Offer();
    stream_->offered = true;
  }
  for (uint64_t id : released_) head.add_released(id);
  released_.clear();
}

bool StreamLane::HasRoom(const v1::RequestFrame& head, uint64_t served_bytes) const {
  return head.requests_size() < kFrameRequests && writer_.bytes() < kFrameBytes &&
         served_bytes < kFrameServedBytes;
}

void StreamLane::OnStarted(bool ok) {
  std::string peer;
  {
    MutexLock lock(mutex_);
    if (!ok) {
      stream_->broken = true;
      EndWhenIdle();
      return;
    }
    peer = stream_->context.peer();
  }
  TuneLocalSockets(peer);
  {
    MutexLock lock(mutex_);
    stream_->ready = stream_->reading = true;
    stream_->calls->Read(&stream_->received, stream_->read.Tag());
  }
  Flush();
}

void StreamLane::OnWritten(bool ok) {
  {
    MutexLock lock(mutex_);
    stream_->writing = false;
    if (!ok) stream_->broken = true;
    EndWhenIdle();
  }
  FlushSoon();
}

void StreamLane::OnRead(bool ok) {
  grpc::ByteBuffer bytes;
  {
    MutexLock lock(mutex_);
    if (!ok) {
      stream_->reading = false;
      stream_->broken = true;
      EndWhenIdle();
      return;
    }
    bytes.Swap(&stream_->received);
    stream_->dispatching = true;
    stream_->calls->Read(&stream_->received, stream_->read.Tag());
  }
  const FrameHead<v1::ReplyFrame> head;
  auto frame = DecodeReplyFrame(bytes, *head);
  absl::Status sane = frame.status();
  if (sane.ok()) TakeHead(*head, frame->left());
  for (int i = 0; sane.ok() && i < head->replies_size(); ++i) {
    const v1::StreamReply& reply = head->replies(i);
    sane = reply.accepted() ? TakeAcceptance(reply) : TakeReply(reply, *frame);
  }
  if (!sane.ok()) {
    spdlog::warn("{} sent an invalid frame: {}; connecting again", options_.server,
                 std::string(sane.message()));
    Break();
  }
  {
    MutexLock lock(mutex_);
    stream_->dispatching = false;
  }
  FlushSoon();
}

// A stream is over when its read or write has failed. The other operation then fails by itself.
void StreamLane::EndWhenIdle() {
  if (!stream_->broken || stream_->ending || stream_->writing || stream_->reading) return;
  stream_->ending = true;
  stream_->calls->Finish(&stream_->status, stream_->ended.Tag());
}

void StreamLane::Break() {
  MutexLock lock(mutex_);
  stream_->broken = true;
  stream_->context.TryCancel();
}

void StreamLane::OnEnded(bool) {
  absl::Status status;
  absl::flat_hash_map<uint64_t, Pending> failed;
  {
    MutexLock lock(mutex_);
    // The end of a stream is never the answer to a call, because answers come in replies. So all
    // calls end with UNAVAILABLE.
    status = absl::UnavailableError(
        stream_->status.ok()
            ? "the server ended the connection"
            : absl::StrCat("the connection ended: ", stream_->status.error_message()));
    if (!closed_.ok()) status = closed_;
    failed.swap(pending_);
    outgoing_.clear();
    outgoing_bytes_ = 0;
    options_.driver->CallsEnded(failed.size(), std::exchange(unanswered_bytes_, 0));
    server_memory_ = nullptr;
    stream_.reset();
  }
  for (auto& [id, pending] : failed) pending.call->OnDone(status, {});
  options_.on_stream_end();
}

void StreamLane::Close(const absl::Status& why) {
  MutexLock lock(mutex_);
  closed_.Update(why);
  if (stream_ != nullptr) stream_->context.TryCancel();
}

uint64_t StreamLane::unanswered_bytes() const {
  MutexLock lock(mutex_);
  return unanswered_bytes_;
}

bool StreamLane::busy() const {
  MutexLock lock(mutex_);
  return stream_ != nullptr;
}

bool StreamLane::over() const {
  MutexLock lock(mutex_);
  return !closed_.ok() && stream_ == nullptr;
}

}  // namespace leeway
