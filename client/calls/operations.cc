#include "client/calls/operations.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/update/factors.h"

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
    case BlockMethod::kFetch:
      return "Fetch";
    case BlockMethod::kMeet:
      return "Meet";
  }
  return "";
}

AttachOperation::AttachOperation(const SenderIdentity& identity, uint32_t servers)
    : servers_(servers), clock_(kLargest) {
  request_.kind = BlockMethod::kAttach;
  request_.header.set_job(identity.job);
  request_.header.set_generation(identity.generation);
  request_.header.set_rank(identity.rank);
  request_.header.set_incarnation(identity.incarnation);
}

std::string AttachOperation::Describe(uint32_t call) const {
  return absl::StrCat("Attach to server ", call);
}

TransportRequest AttachOperation::Request(uint32_t call) const {
  TransportRequest request = request_;
  // The call's number is a shard's number, and also the number of that shard's first block. That
  // block stands for all blocks of the shard.
  request.header.set_block(call);
  return request;
}

absl::Status AttachOperation::TakeReply(uint32_t call, const TransportReply& reply) {
  MutexLock lock(mutex_);
  clock_ = std::min<uint64_t>(clock_, reply.attach.clock());
  needs_initialize_ |= reply.attach.needs_initialize();
  counted_ = std::max<uint64_t>(counted_, reply.attach.counted());
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

uint64_t AttachOperation::counted() const {
  MutexLock lock(mutex_);
  return counted_;
}

BlocksOperation::BlocksOperation(const SenderIdentity& identity, const BlockLayout& layout,
                                 const BlockExchange& exchange, PayloadCodecs& codecs)
    : layout_(layout), exchange_(exchange), codecs_(codecs), version_(kLargest) {
  header_.set_job(identity.job);
  header_.set_generation(identity.generation);
  header_.set_rank(identity.rank);
  header_.set_incarnation(identity.incarnation);
  header_.set_clock(exchange.clock);
  header_.set_examples(exchange.examples);
  header_.set_combined(exchange.combined);
  header_.set_of_all(exchange.of_all);
  if (codecs.encoder() != nullptr) EncodeContributions();
}

void BlocksOperation::EncodeContributions() {
  if (!exchange_.sends() || exchange_.method == BlockMethod::kInitialize) return;
  for (uint32_t call = 0; call < size(); ++call) {
    const uint32_t block = BlockOf(call);
    if (Skips(block)) {
      encoded_.emplace_back();
      continue;
    }
    encoded_.push_back(codecs_.EncodeContribution(block, exchange_.clock, exchange_.examples,
                                                  ContributionOf(block)));
  }
}

std::span<const float> BlocksOperation::ContributionOf(uint32_t block) const {
  const ElementRange range = layout_.Range(block);
  return exchange_.contribution.subspan(range.offset, range.count);
}

std::span<float> BlocksOperation::WeightsOf(uint32_t block) const {
  const ElementRange range = layout_.Range(block);
  return exchange_.weights.subspan(range.offset, range.count);
}

std::string BlocksOperation::Describe(uint32_t call) const {
  return absl::StrCat(MethodName(exchange_.method), " of block ", BlockOf(call), " at clock ",
                      exchange_.clock, " by worker ", header_.rank(), " (server ", ServerOf(call),
                      ")");
}

uint64_t BlocksOperation::Bytes(uint32_t call) const {
  if (!exchange_.sends() || Skips(BlockOf(call))) return 0;
  const bool encoded = !encoded_.empty() && encoded_[call].has_value();
  return encoded ? encoded_[call]->bytes.size()
                 : layout_.Range(BlockOf(call)).count * sizeof(float);
}

void BlocksOperation::AddRates(uint32_t block, v1::ExchangeHeader& header) const {
  if (exchange_.rates == nullptr) return;
  for (const UpdatePart& part : PartsWithin(*exchange_.rates, layout_.Range(block))) {
    v1::RatePart& rate = *header.add_rates();
    rate.set_end(part.end);
    rate.set_factor(part.rate);
    rate.set_skip(part.skip);
  }
}

bool BlocksOperation::Skips(uint32_t block) const {
  if (exchange_.rates == nullptr || exchange_.rates->empty()) return false;
  const ElementRange range = layout_.Range(block);
  return exchange_.rates->back().end >= range.end() &&
         SkipsAll(PartsWithin(*exchange_.rates, range));
}

TransportRequest BlocksOperation::Request(uint32_t call) const {
  TransportRequest request;
  request.kind = exchange_.method;
  request.header = header_;
  const uint32_t block = BlockOf(call);
  request.header.set_block(block);
  request.reads = exchange_.reads;
  AddRates(block, request.header);
  if (!encoded_.empty() && encoded_[call].has_value()) {
    request.header.set_encoding(codecs_.contribution_encoding(block));
    request.payload = encoded_[call]->bytes;
    request.payload_owner = encoded_[call]->owner;
  } else if (exchange_.sends() && !Skips(block)) {
    const std::span<const float> values = ContributionOf(block);
    request.payload = {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
  }
  if (exchange_.receives()) {
    request.reply_bytes = WeightsOf(block).size_bytes();
    codecs_.Ask(WeightsOf(block).data(), request);
  }
  codecs_.CountSent(request.payload.size() + request.header.ByteSizeLong());
  return request;
}

absl::Status BlocksOperation::TakeReply(uint32_t call, const TransportReply& reply) {
  const v1::VersionHeader& version = reply.version;
  codecs_.CountReceived(reply.payload.bytes() + version.ByteSizeLong());
  const uint32_t block = BlockOf(call);
  if (!exchange_.receives()) {
    MutexLock lock(mutex_);
    if (version.version() > 0) version_ = std::min<uint64_t>(version_, version.version());
    return absl::OkStatus();
  }
  if (version.block() != block) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server answered block ", version.block(), " instead of block ", block));
  }
  RETURN_IF_ERROR(codecs_.Take(reply, exchange_.reads, WeightsOf(block)));
  if (reply.still_stands && !reply.still_stands()) {
    codecs_.Forget(block);
    return absl::UnavailableError(
        "the server ended this connection while the worker was reading the answer");
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
