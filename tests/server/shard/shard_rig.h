// A shard of one server, and what workers do to it, without gRPC.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/shard/shard.h"
#include "tests/catch.h"

namespace leeway::testing {

inline constexpr uint64_t kTotal = 100;
inline constexpr uint64_t kBlock = 48;  // three blocks, the last of 4 elements

class KeptCuts : public CutListener {
 public:
  void OnHeld(uint64_t cut, HeldBlock block) override { held.emplace_back(cut, std::move(block)); }
  std::vector<std::pair<uint64_t, HeldBlock>> held;
};

inline Shard::Options SgdOptions(v1::ConsistencyMode mode, uint32_t workers,
                                 double learning_rate = 1) {
  Shard::Options options;
  options.job.mutable_exchange()->mutable_gradient();
  options.job.mutable_consistency()->set_mode(mode);
  options.job.mutable_update()->mutable_sgd();
  options.job.mutable_update()->set_learning_rate(learning_rate);
  options.job.mutable_data()->set_batch_size(10);
  options.job.mutable_workers()->set_count(workers);
  options.job.mutable_servers()->set_count(1);
  options.schema.set_total(kTotal);
  options.schema.set_trained(kTotal);
  options.length.set_steps_per_clock(1);
  options.length.set_clocks(10);
  options.length.set_steps_per_epoch(10);
  options.block_elements = kBlock;
  return options;
}

struct Reply {
  std::optional<absl::StatusOr<BlockReading>> result;
  Shard::Done Done() {
    return [this](absl::StatusOr<BlockReading> reading) {
      REQUIRE_FALSE(result.has_value());
      result = std::move(reading);
    };
  }
  bool answered() const { return result.has_value(); }
  absl::Status status() const { return result->status(); }
  float first() const { return (*result)->values.span()[0]; }
};

// A shard and what workers do to it. All values of a contribution are equal.
class World {
 public:
  explicit World(const Shard::Options& options) : shard(*Shard::Make(options, &cuts)) {}

  void Initialize(float value) {
    for (uint32_t block = 0; block < 3; ++block) {
      Reply reply;
      shard->Initialize(Header(0, 0, block), Values(block, value), reply.Done());
      REQUIRE(reply.result->ok());
    }
  }
  v1::ExchangeHeader Header(uint32_t rank, uint64_t clock, uint32_t block, uint64_t examples = 10) {
    v1::ExchangeHeader header;
    header.set_rank(rank);
    header.set_incarnation(1);
    header.set_clock(clock);
    header.set_block(block);
    header.set_examples(examples);
    return header;
  }
  FloatPayload Values(uint32_t block, float value) {
    auto values = std::make_shared<std::vector<float>>(block == 2 ? 4 : kBlock, value);
    return FloatPayload::Of(*values, values);
  }
  void PushPull(uint32_t rank, uint64_t clock, float value, Reply& reply, uint64_t examples = 10) {
    shard->Contribute(Header(rank, clock, 0, examples), Values(0, value), true, now, reply.Done());
  }

  KeptCuts cuts;
  std::unique_ptr<Shard> shard;
  Time now{};
};

}  // namespace leeway::testing
