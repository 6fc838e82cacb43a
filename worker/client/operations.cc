#include "worker/client/operations.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
}  // namespace

const char* MethodName(BlockMethod method) {
  switch (method) {
    case BlockMethod::kAttach:
      return "Attach";
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
    : servers_(servers), clock_(kLargest) {
  request_.kind = BlockMethod::kAttach;
  request_.header.set_job(identity.job);
  request_.header.set_rank(identity.rank);
  request_.header.set_incarnation(identity.incarnation);
}

std::string AttachOperation::Describe(uint32_t call) const {
  return absl::StrCat("Attach to server ", call);
}

absl::Status AttachOperation::TakeReply(uint32_t call, const TransportReply& reply) {
  MutexLock lock(mutex_);
  clock_ = std::min<uint64_t>(clock_, reply.attach.clock());
  needs_initialize_ |= reply.attach.needs_initialize();
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
    : layout_(layout), exchange_(exchange), version_(kLargest) {
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

uint64_t BlocksOperation::Bytes(uint32_t call) const {
  return exchange_.sends() ? layout_.Range(BlockOf(call)).count * sizeof(float) : 0;
}

TransportRequest BlocksOperation::Request(uint32_t call) const {
  TransportRequest request;
  request.kind = exchange_.method;
  request.header = header_;
  request.header.set_block(BlockOf(call));
  request.latest = exchange_.latest;
  if (exchange_.sends()) {
    const ElementRange range = layout_.Range(BlockOf(call));
    const std::span<const float> values = exchange_.contribution.subspan(range.offset, range.count);
    request.payload = {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
  }
  return request;
}

absl::Status BlocksOperation::TakeReply(uint32_t call, const TransportReply& reply) {
  if (!exchange_.receives()) return absl::OkStatus();
  const ElementRange range = layout_.Range(BlockOf(call));
  const v1::VersionHeader& version = reply.version;
  if (version.block() != BlockOf(call) || reply.payload.size() != range.count) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server answered ", reply.payload.size(), " values of block ",
                     version.block(), " instead of ", range.count, " of block ", BlockOf(call)));
  }
  reply.payload.CopyTo(exchange_.weights.subspan(range.offset, range.count));
  if (reply.still_stands && !reply.still_stands()) {
    return absl::UnavailableError("the server gave up this connection while its answer was read");
  }
  MutexLock lock(mutex_);
  staleness_ = std::max<uint64_t>(staleness_, version.staleness());
  version_ = std::min<uint64_t>(version_, version.version());
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
