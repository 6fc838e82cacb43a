// The data plane's requests as operations of a CallQueue.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/block_range.h"
#include "client/call_queue.h"
#include "client/payload_codecs.h"
#include "common/blocks.h"
#include "common/mutex.h"
#include "common/update/rule.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Who speaks.
struct SenderIdentity {
  uint64_t job = 0;
  uint64_t generation = 0;
  uint32_t rank = 0;
  uint64_t incarnation = 0;
};

using BlockMethod = TransportRequest::Kind;
const char* MethodName(BlockMethod method);

// One call of ParameterClient's interface, as plain values. The vectors are flat and whole; one
// that the method does not use is empty.
struct BlockExchange {
  BlockMethod method;
  BlockRange blocks;
  uint64_t clock = 0;
  uint64_t examples = 0;
  // Of a pull.
  ReadKind reads = ReadKind::kAtClock;
  // Of a PushPull: the contribution is part of another worker's, and there is none here.
  bool combined = false;
  std::span<const float> contribution = {};
  std::span<float> weights = {};
  // Of the contribution.
  ContributionRates rates = nullptr;

  // It has values.
  bool sends() const { return method != BlockMethod::kPull && !combined; }
  bool receives() const { return method == BlockMethod::kPull || method == BlockMethod::kPushPull; }
};

// Attach, to every server.
class AttachOperation : public Operation {
 public:
  AttachOperation(const SenderIdentity& identity, uint32_t servers);

  uint32_t size() const override { return servers_; }
  uint32_t ServerOf(uint32_t call) const override { return call; }
  std::string Describe(uint32_t call) const override;
  TransportRequest Request(uint32_t call) const override;
  absl::Status TakeReply(uint32_t call, const TransportReply& reply) override;

  // The smallest of the answers; the largest uint64 if no server holds a block.
  uint64_t clock() const;
  bool needs_initialize() const;
  // The largest of the answers.
  uint64_t counted() const;

 private:
  const uint32_t servers_;
  TransportRequest request_;
  mutable Mutex mutex_;
  uint64_t clock_ GUARDED_BY(mutex_);
  bool needs_initialize_ GUARDED_BY(mutex_) = false;
  uint64_t counted_ GUARDED_BY(mutex_) = 0;
};

// One exchange, a call a block in ascending order. Contributions are encoded by the constructor,
// once for all attempts: doing it again would feed the residual back twice. `layout` and `codecs`
// outlive the calls.
class BlocksOperation : public Operation {
 public:
  BlocksOperation(const SenderIdentity& identity, const BlockLayout& layout,
                  const BlockExchange& exchange, PayloadCodecs& codecs);

  uint32_t size() const override { return exchange_.blocks.count; }
  uint32_t ServerOf(uint32_t call) const override { return layout_.ServerOf(BlockOf(call)); }
  // What the next forward pass needs first.
  uint32_t Priority(uint32_t call) const override { return BlockOf(call); }
  uint64_t Bytes(uint32_t call) const override;
  std::string Describe(uint32_t call) const override;
  TransportRequest Request(uint32_t call) const override;
  absl::Status TakeReply(uint32_t call, const TransportReply& reply) override;

  // Over the blocks read so far: the largest staleness, the smallest version.
  uint64_t staleness() const;
  uint64_t version() const;

 private:
  uint32_t BlockOf(uint32_t call) const { return exchange_.blocks.first + call; }
  void EncodeContributions();
  // Of the block's trained elements.
  void AddRates(uint32_t block, v1::ExchangeHeader& header) const;
  // The contribution updates nothing of the block, which then has no payload.
  bool Skips(uint32_t block) const;
  std::span<const float> ContributionOf(uint32_t block) const;
  std::span<float> WeightsOf(uint32_t block) const;

  const BlockLayout& layout_;
  const BlockExchange exchange_;
  PayloadCodecs& codecs_;
  // By call; nothing, or empty altogether: it is sent as it is.
  std::vector<std::optional<EncodedContribution>> encoded_;
  // But for the block.
  v1::ExchangeHeader header_;
  mutable Mutex mutex_;
  uint64_t staleness_ GUARDED_BY(mutex_) = 0;
  uint64_t version_ GUARDED_BY(mutex_);
};

}  // namespace leeway
