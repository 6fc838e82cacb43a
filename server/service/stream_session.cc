#include "server/service/stream_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/local_sockets.h"
#include "common/status.h"
#include "common/wire/frame_head.h"

namespace leeway {
namespace {

// The number of requests of one stream that may wait for their answers. While more requests wait,
// the server does not read from the stream.
constexpr size_t kUnansweredMax = 4096;

// Returns the total size of the values of all requests, in the frame or in shared memory.
uint64_t BytesOf(const v1::RequestFrame& head) {
  uint64_t bytes = 0;
  for (const v1::StreamRequest& request : head.requests()) {
    bytes += request.payload_bytes() + request.shared().bytes();
  }
  return bytes;
}

bool IsForWorker(v1::ExchangeMethod method) {
  return method == v1::EXCHANGE_METHOD_FETCH || method == v1::EXCHANGE_METHOD_MEET;
}

bool Reads(v1::ExchangeMethod method) {
  return method == v1::EXCHANGE_METHOD_PUSH_PULL || method == v1::EXCHANGE_METHOD_PULL;
}

bool Contributes(v1::ExchangeMethod method) {
  return method == v1::EXCHANGE_METHOD_PUSH_PULL || method == v1::EXCHANGE_METHOD_PUSH;
}

ShardTable::Want WantOf(const v1::StreamRequest& request) {
  // Values in the worker's memory cost nothing here, because they stay there until the answer.
  if (Contributes(request.method()) && !request.has_shared()) return ShardTable::Want::kHold;
  const bool latest = request.method() == v1::EXCHANGE_METHOD_PULL && request.latest();
  return latest ? ShardTable::Want::kLatest : ShardTable::Want::kAnswer;
}

absl::Status IsTaken(uint64_t id) {
  return absl::InvalidArgumentError(
      absl::StrCat("id: ", id, " is already used by an earlier request"));
}

}  // namespace

StreamSession::Call::Call(StreamSession* session)
    : stream(&context),
      accepted(session, &StreamSession::OnAccepted),
      read(session, &StreamSession::OnRead),
      written(session, &StreamSession::OnWritten),
      ended(session, &StreamSession::OnEnded) {}

StreamSession::StreamSession(ParameterService* service, ServerQueue* queue)
    : service_(service), queue_(queue), guest_(std::in_place, queue), call_(this) {}

void StreamSession::Await(ParameterService* service, ServerQueue* queue) {
  queue->IfRunning([&] {
    std::shared_ptr<StreamSession> session(new StreamSession(service, queue));
    session->self_ = session;
    service->RequestExchange(&session->call_.context, &session->call_.stream, queue->get(),
                             queue->get(), session->call_.accepted.Tag());
  });
}

void StreamSession::OnAccepted(bool ok) {
  // If `ok` is false, the queue is stopping and no stream will come.
  if (!ok) return OnEnded(true);
  const auto self = shared_from_this();
  Await(service_, queue_);
  static const CalledMethod kMethod("leeway.v1.ParameterServer.Exchange");
  if (auto caller = queue_->Admit(call_.context, kMethod); caller.ok()) {
    owner_.caller = *caller;
  } else {
    MutexLock lock(mutex_);
    broken_ = true;
    end_ = std::move(caller).status();
    return EndWhenIdle();
  }
  TuneLocalSockets(call_.context.peer(), /*sole=*/true);
  last_heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
  streams().Add(shared_from_this());
  MutexLock lock(mutex_);
  ReadOn();
}

void StreamSession::OnRead(bool ok) {
  const auto self = shared_from_this();
  grpc::ByteBuffer bytes;
  {
    MutexLock lock(mutex_);
    under_way_.reading = false;
    if (!ok) broken_ = true;
    if (broken_) return EndWhenIdle();
    under_way_.taking = true;
    bytes.Swap(&call_.received);
  }
  const Time now = std::chrono::steady_clock::now();
  last_heard_ = now.time_since_epoch().count();
  const FrameHead<v1::RequestFrame> head;
  auto frame = DecodeRequestFrame(bytes, *head);
  absl::Status status = frame.status();
  if (status.ok()) {
    if (frame->left() > 0) {
      frame->SetOwner(table().budget().Hold(bytes.Length(), frame->owner()));
    }
    TakeHead(*head);
    for (const v1::StreamRequest& request : head->requests()) {
      status = Ask(request, *frame, now);
      if (!status.ok()) break;
    }
  }
  EndFrame(std::move(status));
  FlushSoon();
}

void StreamSession::EndFrame(absl::Status status) {
  MutexLock lock(mutex_);
  under_way_.taking = false;
  // This stream cannot be read any further. Its worker begins another one.
  if (!status.ok()) {
    spdlog::warn("the stream from {} ends: {}", call_.context.peer(),
                 std::string(status.message()));
    broken_ = true;
    end_ = std::move(status);
    // Cancelling is necessary, because the status would wait behind a frame that the worker may
    // never read.
    if (under_way_.writing) call_.context.TryCancel();
  }
  ReadOn();
  EndWhenIdle();
}

void StreamSession::OnWritten(bool ok) {
  // Another thread may end the stream as soon as that is possible.
  const auto self = shared_from_this();
  {
    MutexLock lock(mutex_);
    under_way_.writing = false;
    answers_.OnWritten();
    if (!ok) broken_ = true;
    // A waiting worker sends nothing, but it reads the server's messages. So a frame that was
    // written also shows that the worker is alive.
    if (ok) last_heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
    if (!under_way_.taking) ReadOn();
    EndWhenIdle();
  }
  FlushSoon();
}

void StreamSession::ReadOn() {
  if (under_way_.reading || broken_ || unanswered_.size() > kUnansweredMax) return;
  if (answers_.beyond(streams().unread_bytes_max())) return;
  under_way_.reading = true;
  call_.stream.Read(&call_.received, call_.read.Tag());
}

void StreamSession::TakeHead(const v1::RequestFrame& head) {
  ServerQueue::Took(BytesOf(head));
  if (head.has_offer()) TakeOffer(head);
  if (head.released().empty()) return;
  MutexLock lock(mutex_);
  for (uint64_t id : head.released()) answers_.Release(id);
}

void StreamSession::TakeOffer(const v1::RequestFrame& head) {
  const absl::Status mapped = peer_memory_.Map(head);
  v1::MemoryAnswer answer;
  answer.set_mapped(mapped.ok());
  if (!mapped.ok()) answer.set_refusal(std::string(mapped.message()));
  // Another server does not read values from this server, so it need not map the memory.
  const bool reads = mapped.ok() && !peer_memory_.has_session();
  const auto memory = reads ? table().memory() : nullptr;
  MutexLock lock(mutex_);
  if (memory != nullptr) answers_.ShareMemory(memory, answer);
  *answers_.OpenFrame().mutable_answer() = std::move(answer);
}

bool StreamSession::Owner::Learn() {
  sender = admitted.sender;
  const bool first = !rank.has_value();
  if (first) rank = sender->rank;
  if (*rank != sender->rank) return false;
  const uint64_t before = std::exchange(incarnation, std::max(incarnation, sender->incarnation));
  return first || sender->incarnation > before;
}

void StreamSession::LearnOwner() {
  if (!owner_.Learn()) return;
  {
    MutexLock lock(mutex_);
    answers_.SetRank(*owner_.rank);
  }
  streams().Belongs(*owner_.rank, owner_.sender->incarnation, shared_from_this());
}

absl::Status StreamSession::Ask(const v1::StreamRequest& request, FramePayload& frame, Time now) {
  const v1::ExchangeMethod method = request.method();
  if (method == v1::EXCHANGE_METHOD_REPLICATE) return TakeReplica(request, frame);
  if (IsForWorker(method)) return AskPeer(request, frame, now);
  RETURN_IF_ERROR(CheckRank(owner_.caller, request.header().rank()));
  const Asked asked{request.id(), Reads(method)};
  const auto shard = table().Admit(request.header(), WantOf(request), &owner_.admitted);
  if (owner_.admitted.sender != owner_.sender) LearnOwner();
  auto payload =
      request.has_shared() ? peer_memory_.PayloadOf(request) : frame.Take(request.payload_bytes());
  RETURN_IF_ERROR(TakeId(asked.id));
  if (!payload.ok() || !shard.ok()) {
    Answer(asked, payload.ok() ? shard.status() : payload.status());
    return absl::OkStatus();
  }
  Shard::Done done = [self = shared_from_this(), asked](absl::StatusOr<BlockReading> reading) {
    if (reading.ok() && !self->table().leased()) reading = ShardTable::LeaseIsOver();
    self->Answer(asked, std::move(reading));
  };
  Patience patience;
  if (request.waits_on()) patience = {shared_from_this(), request.id()};
  if (Contributes(method)) {
    (*shard)->Contribute(request.header(), *std::move(payload), asked.wants_values, now,
                         std::move(done), std::move(patience));
  } else if (method == v1::EXCHANGE_METHOD_PULL) {
    (*shard)->Read(request.header(), ReadKindOf(request), now, std::move(done),
                   std::move(patience));
  } else if (method == v1::EXCHANGE_METHOD_INITIALIZE) {
    (*shard)->Initialize(request.header(), *payload, std::move(done));
  } else {
    done(absl::InvalidArgumentError(
        absl::StrCat("method: ", method, " is not known to this server")));
  }
  if (request.wants_acceptance()) Acknowledge(request);
  return absl::OkStatus();
}

absl::Status StreamSession::AskPeer(const v1::StreamRequest& request, FramePayload& frame,
                                    Time now) {
  const v1::ExchangeHeader& header = request.header();
  RETURN_IF_ERROR(CheckRank(owner_.caller, header.rank()));
  if (owner_.caller.role == v1::ROLE_SERVER) {
    return absl::PermissionDeniedError(
        "the caller's role is server, but only workers fetch from each other and meet");
  }
  auto payload =
      request.has_shared() ? peer_memory_.PayloadOf(request) : frame.Take(request.payload_bytes());
  RETURN_IF_ERROR(TakeId(request.id()));
  absl::Status admitted = service_->AdmitPeer(header);
  if (admitted.ok()) {
    owner_.admitted.sender = {header.rank(), header.incarnation()};
    if (owner_.admitted.sender != owner_.sender) LearnOwner();
    admitted = payload.status();
  }
  const bool meets = request.method() == v1::EXCHANGE_METHOD_MEET;
  // A worker that says only that it has an answer gets no values.
  const Asked asked{request.id(), !meets || (payload.ok() && payload->bytes() > 0)};
  if (!admitted.ok()) {
    Answer(asked, std::move(admitted));
    return absl::OkStatus();
  }
  Shard::Done done = [self = shared_from_this(), asked](absl::StatusOr<BlockReading> reading) {
    self->Answer(asked, std::move(reading));
  };
  if (meets) {
    service_->peers()->meetings.Meet(header, *std::move(payload), std::move(done));
  } else {
    Patience patience;
    if (request.waits_on()) patience = {shared_from_this(), request.id()};
    service_->peers()->pieces.Fetch(header, request.piece(), now, std::move(done),
                                    std::move(patience));
  }
  if (request.wants_acceptance()) Acknowledge(request);
  return absl::OkStatus();
}

absl::Status StreamSession::TakeId(uint64_t id) {
  MutexLock lock(mutex_);
  const bool fresh = unanswered_.insert(id).second && !answers_.holds(id);
  return fresh ? absl::OkStatus() : IsTaken(id);
}

absl::Status StreamSession::TakeReplica(const v1::StreamRequest& request, FramePayload& frame) {
  const std::optional<v1::Role> role = owner_.caller.role;
  if (role && role != v1::ROLE_SERVER && !(role == v1::ROLE_PEER && table().peers_replicate())) {
    return absl::PermissionDeniedError(
        absl::StrCat("only servers replicate blocks here; the caller's role is ", RoleName(*role)));
  }
  if (!std::exchange(owner_.is_server, true)) streams().BelongsToServer(shared_from_this());
  absl::StatusOr<FloatPayload> payload;
  std::function<bool()> stands;
  if (request.replicated().parts().empty()) {
    ASSIGN_OR_RETURN(payload, frame.Take(request.payload_bytes()));
  } else {
    payload = peer_memory_.PartsOf(request.replicated());
    stands = [this] { return peer_memory_.SessionStands(); };
  }
  absl::Status status = payload.status();
  const auto store = table().FindReplica(request.header());
  if (status.ok()) status = store.status();
  if (status.ok()) {
    status = (*store)->Take(request.header(), request.replicated(), *payload, stands);
  }
  Answer({request.id(), false}, status.ok() ? absl::StatusOr<BlockReading>(BlockReading())
                                            : absl::StatusOr<BlockReading>(status));
  return absl::OkStatus();
}

void StreamSession::Acknowledge(const v1::StreamRequest& request) {
  MutexLock lock(mutex_);
  if (!unanswered_.contains(request.id())) return;
  v1::StreamReply& reply = *answers_.OpenFrame().add_replies();
  reply.set_id(request.id());
  reply.set_accepted(true);
}

void StreamSession::OnMissing(uint64_t id, const std::string& missing) {
  {
    MutexLock lock(mutex_);
    // A client that does not read is not reminded repeatedly.
    if (broken_ || answers_.crowded() || !unanswered_.contains(id)) return;
    v1::StreamReply& reply = *answers_.OpenFrame().add_replies();
    reply.set_id(id);
    reply.set_accepted(true);
    reply.set_message(Printable(missing));
  }
  FlushSoon();
}

void StreamSession::Answer(const Asked& asked, absl::StatusOr<BlockReading> reading) {
  {
    MutexLock lock(mutex_);
    unanswered_.erase(asked.id);
    if (broken_) return;
    const uint64_t limit = streams().unread_bytes_max();
    if (!answers_.Add(asked, std::move(reading), limit)) table().budget().CountUnread(1);
    if (!under_way_.taking) ReadOn();
    if (under_way_.taking && !answers_.worth_a_frame()) return;
  }
  FlushSoon();
}

void StreamSession::FlushSoon() {
  {
    MutexLock lock(mutex_);
    if (!answers_.worth_a_frame()) {
      if (under_way_.flush_due) return;
      under_way_.flush_due = ServerQueue::AtRest([self = shared_from_this()] { self->Flush(); });
      if (under_way_.flush_due) return;
    }
  }
  Flush();
}

void StreamSession::TakeBackUnread(Time now) {
  MutexLock lock(mutex_);
  const uint64_t answers = answers_.TakeBack(now, streams().unread_bytes_max());
  if (answers > 0) table().budget().CountUnread(answers);
}

void StreamSession::End() {
  MutexLock lock(mutex_);
  if (under_way_.ending) return;
  broken_ = true;
  call_.context.TryCancel();
  EndWhenIdle();
}

void StreamSession::Flush() {
  grpc::ByteBuffer bytes;
  {
    MutexLock lock(mutex_);
    under_way_.flush_due = false;
    if (under_way_.writing || broken_ || answers_.empty()) return;
    bytes = answers_.BeginWrite(std::chrono::steady_clock::now());
    under_way_.writing = true;
  }
  // This runs without the lock, because it may write to the socket. The stream does not end during
  // a write.
  call_.stream.Write(bytes, call_.written.Tag());
}

void StreamSession::EndWhenIdle() {
  if (!broken_ || under_way_.ending || under_way_.reading || under_way_.writing ||
      under_way_.taking)
    return;
  under_way_.ending = true;
  call_.stream.Finish(ToGrpc(end_), call_.ended.Tag());
}

void StreamSession::OnEnded(bool) {
  streams().Remove(this);
  {
    MutexLock lock(mutex_);
    broken_ = true;
    answers_.Clear();
  }
  guest_.reset();
  // Answers that are still to come keep the session alive, too.
  self_.reset();
}

}  // namespace leeway
