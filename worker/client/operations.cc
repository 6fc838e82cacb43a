#include "worker/client/operations.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/wire.h"

namespace leeway {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
constexpr char kService[] = "/leeway.v1.ParameterServer/";

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status Parse(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite& message) {
  grpc::ByteBuffer copy(buffer);
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok() || !message.ParseFromZeroCopyStream(&reader)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server's answer is no ", message.GetTypeName()));
  }
  return absl::OkStatus();
}

}  // namespace

const char* MethodName(BlockMethod method) {
  switch (method) {
    case BlockMethod::kInitialize:
      return "Initialize";
    case BlockMethod::kPush:
      return "Push";
    case BlockMethod::kPull:
      return "Pull";
    case BlockMethod::kPushPull:
      return "PushPull";
  }
  return "";
}

AttachOperation::AttachOperation(const SenderIdentity& identity, uint32_t servers)
    : method_(absl::StrCat(kService, "Attach")), servers_(servers), clock_(kLargest) {
  v1::AttachRequest request;
  request.set_job(identity.job);
  request.set_rank(identity.rank);
  request.set_incarnation(identity.incarnation);
  request_ = Serialize(request);
}

std::string AttachOperation::Describe(uint32_t call) const {
  return absl::StrCat("Attach to server ", call);
}

absl::Status AttachOperation::TakeReply(uint32_t call, const grpc::ByteBuffer& reply) {
  v1::AttachReply answer;
  RETURN_IF_ERROR(Parse(reply, answer));
  MutexLock lock(mutex_);
  clock_ = std::min<uint64_t>(clock_, answer.clock());
  needs_initialize_ |= answer.needs_initialize();
  return absl::OkStatus();
}

uint64_t AttachOperation::clock() const {
  MutexLock lock(mutex_);
  return clock_;
}

bool AttachOperation::needs_initialize() const {
  MutexLock lock(mutex_);
  return needs_initialize_;
}

BlocksOperation::BlocksOperation(const SenderIdentity& identity, const BlockLayout& layout,
                                 const BlockExchange& exchange)
    : method_(absl::StrCat(kService, MethodName(exchange.method))),
      layout_(layout),
      exchange_(exchange),
      version_(kLargest) {
  header_.set_job(identity.job);
  header_.set_rank(identity.rank);
  header_.set_incarnation(identity.incarnation);
  header_.set_clock(exchange.clock);
  header_.set_examples(exchange.examples);
}

std::string BlocksOperation::Describe(uint32_t call) const {
  return absl::StrCat(MethodName(exchange_.method), " of block ", BlockOf(call), " at clock ",
                      exchange_.clock, " by worker ", header_.rank(), " (server ", ServerOf(call),
                      ")");
}

grpc::ByteBuffer BlocksOperation::Request(uint32_t call) const {
  v1::ExchangeHeader header = header_;
  header.set_block(BlockOf(call));
  if (!exchange_.sends()) {
    v1::PullRequest request;
    *request.mutable_header() = std::move(header);
    request.set_latest(exchange_.latest);
    return Serialize(request);
  }
  const ElementRange range = layout_.Range(BlockOf(call));
  return EncodePush(header, exchange_.contribution.subspan(range.offset, range.count), nullptr);
}

absl::Status BlocksOperation::TakeReply(uint32_t call, const grpc::ByteBuffer& reply) {
  if (!exchange_.receives()) {
    v1::PushReply answer;
    return Parse(reply, answer);
  }
  v1::VersionHeader header;
  ASSIGN_OR_RETURN(const FloatPayload values, DecodePullReply(reply, header));
  const ElementRange range = layout_.Range(BlockOf(call));
  if (header.block() != BlockOf(call) || values.size() != range.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server answered ", values.size(), " values of block ", header.block(),
                     " instead of ", range.count, " of block ", BlockOf(call)));
  }
  values.CopyTo(exchange_.weights.subspan(range.offset, range.count));
  MutexLock lock(mutex_);
  staleness_ = std::max<uint64_t>(staleness_, header.staleness());
  version_ = std::min<uint64_t>(version_, header.version());
  return absl::OkStatus();
}

uint64_t BlocksOperation::staleness() const {
  MutexLock lock(mutex_);
  return staleness_;
}

uint64_t BlocksOperation::version() const {
  MutexLock lock(mutex_);
  return version_;
}

}  // namespace leeway
