// Short names for requests between workers, without gRPC.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/blocks.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/shard/shard.h"
#include "tests/catch.h"

namespace leeway::testing {

inline constexpr uint64_t kPeersJob = 7;
// Three blocks, of 16, 16 and 8 elements.
inline const BlockLayout kPeersLayout = *BlockLayout::FromWire(40, 1, 16);
// The worker that is asked.
inline constexpr uint32_t kAsked = 3;

inline v1::ExchangeHeader HeaderOf(uint32_t rank, uint64_t clock, uint32_t block,
                                   uint64_t incarnation = 1, uint64_t generation = 0) {
  v1::ExchangeHeader header;
  header.set_job(kPeersJob);
  header.set_generation(generation);
  header.set_rank(rank);
  header.set_incarnation(incarnation);
  header.set_clock(clock);
  header.set_block(block);
  return header;
}

// The answer to one request.
class PeerReply {
 public:
  Shard::Done Done() {
    return [this](absl::StatusOr<BlockReading> reading) {
      REQUIRE_FALSE(result_.has_value());
      result_ = std::move(reading);
    };
  }
  bool answered() const { return result_.has_value(); }
  const BlockReading& reading() const {
    REQUIRE(answered());
    INFO(result_->status().ToString());
    REQUIRE(result_->ok());
    return **result_;
  }
  std::vector<float> values() const {
    const auto span = reading().values.span();
    return {span.begin(), span.end()};
  }
  // Returns the text of an error, which has this code.
  std::string refusal(absl::StatusCode code) const {
    REQUIRE(answered());
    CHECK(result_->status().code() == code);
    return std::string(result_->status().message());
  }

 private:
  std::optional<absl::StatusOr<BlockReading>> result_;
};

}  // namespace leeway::testing
