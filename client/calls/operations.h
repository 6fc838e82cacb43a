// The data plane's requests as operations of a CallQueue.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/calls/block_range.h"
#include "client/calls/call_queue.h"
#include "client/calls/payload_codecs.h"
#include "common/blocks.h"
#include "common/mutex.h"
#include "common/update/rule.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// The sender of a request.
struct SenderIdentity {
  uint64_t job = 0;
  uint64_t generation = 0;
  uint32_t rank = 0;
  uint64_t incarnation = 0;
};

using BlockMethod = TransportRequest::Kind;
const char* MethodName(BlockMethod method);

// One call of ParameterClient's interface, as plain values. Each vector is the whole flat vector. A
// vector that the method does not use is empty.
struct BlockExchange {
  BlockMethod method;
  BlockRange blocks;
  uint64_t clock = 0;
  uint64_t examples = 0;
  // For a pull: which weights it reads.
  ReadKind reads = ReadKind::kAtClock;
  // True for a PushPull whose contribution is part of another worker's contribution. The request
  // then has no values.
  bool combined = false;
  // True for a PushPull whose contribution is the mean of all workers' contributions.
  bool of_all = false;
  std::span<const float> contribution = {};
  std::span<float> weights = {};
  // The learning-rate factors of the contribution.
  ContributionRates rates = nullptr;
  // Called once, when no part of the call is in progress any more. May be empty.
  std::function<void(const absl::Status&)> over = {};

  // Returns true if the request carries values.
  bool sends() const { return method != BlockMethod::kPull && !combined; }
  bool receives() const { return method == BlockMethod::kPull || method == BlockMethod::kPushPull; }
};

// Sends Attach to every server.
class AttachOperation : public Operation {
 public:
  AttachOperation(const SenderIdentity& identity, uint32_t servers);

  uint32_t size() const override { return servers_; }
  uint32_t ServerOf(uint32_t call) const override { return call; }
  std::string Describe(uint32_t call) const override;
  TransportRequest Request(uint32_t call) const override;
  absl::Status TakeReply(uint32_t call, const TransportReply& reply) override;

  // Returns the smallest clock in the answers, or the largest uint64 if no server holds a block.
  uint64_t clock() const;
  bool needs_initialize() const;
  // Returns the largest `counted` in the answers.
  uint64_t counted() const;

 private:
  const uint32_t servers_;
  TransportRequest request_;
  mutable Mutex mutex_;
  uint64_t clock_ GUARDED_BY(mutex_);
  bool needs_initialize_ GUARDED_BY(mutex_) = false;
  uint64_t counted_ GUARDED_BY(mutex_) = 0;
};

// One exchange, with one call for each block in ascending order. The constructor encodes the
// contributions once for all attempts, because encoding them again would add the residual twice.
// `layout` and `codecs` outlive the calls.
class BlocksOperation : public Operation {
 public:
  BlocksOperation(const SenderIdentity& identity, const BlockLayout& layout,
                  const BlockExchange& exchange, PayloadCodecs& codecs);

  uint32_t size() const override { return exchange_.blocks.count; }
  uint32_t ServerOf(uint32_t call) const override { return layout_.ShardOf(BlockOf(call)); }
  // Returns the block's number, because the next forward pass needs the lowest blocks first.
  uint32_t Priority(uint32_t call) const override { return BlockOf(call); }
  uint64_t Bytes(uint32_t call) const override;
  std::string Describe(uint32_t call) const override;
  TransportRequest Request(uint32_t call) const override;
  absl::Status TakeReply(uint32_t call, const TransportReply& reply) override;
  void OnOver(const absl::Status& status) override {
    if (exchange_.over) exchange_.over(status);
  }

  // Return the largest staleness and the smallest version of the blocks read so far.
  uint64_t staleness() const;
  uint64_t version() const;

 private:
  uint32_t BlockOf(uint32_t call) const { return exchange_.blocks.first + call; }
  void EncodeContributions();
  // Adds the rates of the block's trained elements.
  void AddRates(uint32_t block, v1::ExchangeHeader& header) const;
  // Returns true if the contribution skips the whole block. The request for the block then has no
  // payload.
  bool Skips(uint32_t block) const;
  std::span<const float> ContributionOf(uint32_t block) const;
  std::span<float> WeightsOf(uint32_t block) const;

  const BlockLayout& layout_;
  const BlockExchange exchange_;
  PayloadCodecs& codecs_;
  // The encoded contributions by call. The vector or a call's entry is empty if the values are sent
  // as they are.
  std::vector<std::optional<EncodedContribution>> encoded_;
  // The header that all calls share. The block's number is added for each call.
  v1::ExchangeHeader header_;
  mutable Mutex mutex_;
  uint64_t staleness_ GUARDED_BY(mutex_) = 0;
  uint64_t version_ GUARDED_BY(mutex_);
};

}  // namespace leeway
