#include "tests/bench/growth/light_worker.h"

#include <algorithm>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/strings/str_cat.h"
#include "common/philox.h"
#include "common/protocol.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/wire/wire.h"
#include "leeway/v1/coordinator.grpc.pb.h"
#include "leeway/v1/parameter_server.grpc.pb.h"

namespace leeway {
namespace {

// A worker pauses as long between attempts to register.
constexpr Duration kBackoffMax = std::chrono::seconds(1);
constexpr Duration kCallWithin = std::chrono::seconds(60);

Time Now() { return std::chrono::steady_clock::now(); }

gpr_timespec In(Duration delay) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(delay).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

class Later : public QueueEvent {
 public:
  explicit Later(std::function<void()> what) : what_(std::move(what)) {}
  void Set(grpc::CompletionQueue* queue, Duration delay) { alarm_.Set(queue, In(delay), Tag()); }
  void Run(bool) override {
    what_();
    delete this;
  }

 private:
  grpc::Alarm alarm_;
  const std::function<void()> what_;
};

}  // namespace

void CallOn(grpc::CompletionQueue* queue, Duration delay, std::function<void()> what) {
  (new Later(std::move(what)))->Set(queue, delay);
}

// A call that deletes itself once it is answered.
template <typename Reply>
class LightWorker::Unary : public QueueEvent {
 public:
  using Then = std::function<void(const absl::Status&, const Reply&)>;
  explicit Unary(Then then) : then_(std::move(then)) { context.set_deadline(In(kCallWithin)); }

  void Await(std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader) {
    reader_ = std::move(reader);
    reader_->Finish(&reply_, &status_, Tag());
  }
  void Run(bool) override {
    then_(ResultOf(status_, context), reply_);
    delete this;
  }

  grpc::ClientContext context;

 private:
  const Then then_;
  Reply reply_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader_;
};

// A connection to one server and the stream on it.
class LightWorker::Link {
 public:
  Link(LightWorker* worker, const std::string& address)
      : worker_(worker),
        channel_(MakeChannel(address)),
        stub_(channel_),
        started_(this, &Link::OnStarted),
        read_(this, &Link::OnRead),
        written_(this, &Link::OnWritten) {}

  void Start() {
    static const std::string method = "/leeway.v1.ParameterServer/Exchange";
    stream_ = stub_.PrepareCall(&context_, method, worker_->queue_);
    stream_->StartCall(&started_);
  }

  void Add(v1::StreamRequest request, std::span<const float> values) {
    request.set_payload_bytes(values.size_bytes());
    *head_.add_requests() = std::move(request);
    payload_.Append({reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()},
                    nullptr);
  }

  // Sends what was added as one frame.
  void Flush() {
    if (writing_ || head_.requests().empty()) return;
    writing_ = true;
    const grpc::ByteBuffer frame = payload_.Finish(head_);
    head_.Clear();
    stream_->Write(frame, &written_);
  }

 private:
  using Event = MemberEvent<Link>;

  void OnStarted(bool ok) {
    if (!ok) return Break();
    stream_->Read(&received_, &read_);
    if (--worker_->missing_ == 0) worker_->all_->Done(absl::OkStatus());
  }
  void OnWritten(bool ok) {
    writing_ = false;
    if (ok) Flush();
  }
  void OnRead(bool ok) {
    if (!ok) return Break();
    v1::ReplyFrame head;
    const auto payload = DecodeReplyFrame(received_, head);
    received_.Clear();
    if (!payload.ok()) return worker_->all_->Done(payload.status());
    stream_->Read(&received_, &read_);
    for (const v1::StreamReply& reply : head.replies()) worker_->OnReply(reply);
  }
  void Break() {
    worker_->all_->Done(
        absl::UnavailableError(absl::StrCat("worker ", worker_->rank_, ": a stream broke")));
  }

  LightWorker* const worker_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  Event started_, read_, written_;
  grpc::ByteBuffer received_;
  v1::RequestFrame head_;
  FrameWriter payload_;
  bool writing_ = false;
};

LightWorker::LightWorker(LightWorkers* all, uint32_t number, grpc::CompletionQueue* queue)
    : all_(all), number_(number), queue_(queue) {}

LightWorker::~LightWorker() = default;

void LightWorker::Register() {
  v1::RegisterWorkerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_host("growth");
  request.set_pid(number_ + 1);
  request.set_nonce(number_ + 1);
  request.set_steps_per_epoch(1);
  v1::ModelSchema& schema = *request.mutable_schema();
  schema.set_total(all_->values().size());
  schema.set_trained(schema.total());
  v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name("growth/weight");
  tensor.add_shape(schema.total());
  auto* call = new Unary<v1::RegisterWorkerReply>(
      [this](const absl::Status& status, const v1::RegisterWorkerReply& reply) {
        OnRegistered(status, reply);
      });
  call->Await(all_->coordinator(number_).AsyncRegisterWorker(&call->context, request, queue_));
}

void LightWorker::OnRegistered(const absl::Status& status, const v1::RegisterWorkerReply& reply) {
  if (absl::IsUnavailable(status)) {
    RandomStream random(number_, RandomPurpose::kRetry, {static_cast<uint64_t>(backoff_.count())});
    const double share = 0.5 + 0.5 * random.Uniform();
    CallOn(queue_, FromSeconds(Seconds(backoff_) * share), [this] { Register(); });
    backoff_ = std::min(2 * backoff_, kBackoffMax);
    return;
  }
  if (!status.ok()) return all_->Done(status);
  job_ = reply.job_id();
  rank_ = reply.rank();
  incarnation_ = reply.incarnation();
  servers_.assign(reply.servers().begin(), reply.servers().end());
  const auto layout =
      BlockLayout::FromWire(reply.schema().total(), servers_.size(), reply.block_elements());
  if (layout.ok()) layout_ = *layout;
  all_->Done(layout.status());
}

void LightWorker::Connect() {
  missing_ = servers_.size();
  for (const std::string& address : servers_) {
    links_.push_back(std::make_unique<Link>(this, address));
    links_.back()->Start();
  }
}

v1::StreamRequest LightWorker::RequestFor(uint32_t block) const {
  v1::StreamRequest request;
  request.set_id(block);
  request.set_method(method_);
  v1::ExchangeHeader& header = *request.mutable_header();
  header.set_job(job_);
  header.set_rank(rank_);
  header.set_incarnation(incarnation_);
  header.set_clock(clock_);
  header.set_block(block);
  header.set_examples(1);
  return request;
}

void LightWorker::SendAll() {
  missing_ = layout_->blocks();
  for (uint32_t block = 0; block < layout_->blocks(); ++block) {
    const ElementRange range = layout_->Range(block);
    links_[layout_->ShardOf(block)]->Add(
        RequestFor(block), std::span(all_->values()).subspan(range.offset, range.count));
  }
  for (const auto& link : links_) link->Flush();
  sent_.push_back(Now());
}

void LightWorker::Initialize() {
  method_ = v1::EXCHANGE_METHOD_INITIALIZE;
  SendAll();
}

void LightWorker::Exchange() {
  method_ = v1::EXCHANGE_METHOD_PUSH_PULL;
  sent_.clear();
  received_.clear();
  repeated_ = 0;
  SendAll();
}

void LightWorker::OnReply(const v1::StreamReply& reply) {
  const auto code = static_cast<absl::StatusCode>(reply.code());
  if (code == absl::StatusCode::kUnavailable) {
    ++repeated_;
    const auto block = static_cast<uint32_t>(reply.id());
    const ElementRange range = layout_->Range(block);
    Link& link = *links_[layout_->ShardOf(block)];
    link.Add(RequestFor(block), std::span(all_->values()).subspan(range.offset, range.count));
    return link.Flush();
  }
  if (code != absl::StatusCode::kOk) return all_->Done(absl::Status(code, reply.message()));
  if (--missing_ > 0) return;
  if (method_ == v1::EXCHANGE_METHOD_INITIALIZE) return all_->Done(absl::OkStatus());
  received_.push_back(Now());
  ++clock_;
  if (received_.size() == clocks_) return all_->Done(absl::OkStatus());
  SendAll();
}

void LightWorker::Beat() {
  if (incarnation_ == 0) return;
  v1::HeartbeatRequest request;
  request.set_job(job_);
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_clock(clock_);
  auto* call = new Unary<v1::HeartbeatReply>([](const absl::Status&, const v1::HeartbeatReply&) {});
  call->Await(all_->coordinator(number_).AsyncHeartbeat(&call->context, request, queue_));
}

void LightWorker::Leave() {
  v1::LeaveRequest request;
  request.set_job(job_);
  request.set_rank(rank_);
  request.set_incarnation(incarnation_);
  request.set_clock(clock_);
  request.set_reason(v1::LEAVE_STOPPED);
  auto* call = new Unary<v1::LeaveReply>(
      [this](const absl::Status& status, const v1::LeaveReply&) { all_->Done(status); });
  call->Await(all_->coordinator(number_).AsyncLeave(&call->context, request, queue_));
}

}  // namespace leeway
