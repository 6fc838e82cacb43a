// Exchanges with the parameter servers: each block goes to the server that holds it, and the answer
// is the block's next weights.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "client/calls/parameter_client.h"
#include "exchange/carriers/carrier.h"

namespace leeway {

class ServerCarrier : public Carrier {
 public:
  // The client outlives the carrier.
  ServerCarrier(ParameterClient& client, std::function<Time()> now);

  const BlockLayout& layout() const override { return client_.layout(); }
  FloatBuffer MakeVector() override { return client_.MakeVector(); }

  absl::StatusOr<std::optional<uint64_t>> Read(uint64_t clock, std::span<float> weights,
                                               Time deadline) override;
  absl::Status ReadLatest(std::span<float> weights) override;

  void Begin(uint64_t clock) override;
  void Contribute(BlockRange blocks, uint64_t examples, const ContributionRates& rates,
                  std::span<float> contribution, std::span<float> weights) override;
  absl::Status Finish() override { return absl::OkStatus(); }
  absl::StatusOr<bool> Await(std::span<const ElementRange> elements, Time deadline) override;
  absl::StatusOr<bool> AwaitAll(Time deadline) override;
  void Poll() override;
  bool Abandon() override;
  ExchangeReport End() override;

  bool under_way() const override { return under_way_; }
  uint64_t clock() const override { return report_.clock; }

  ContributionEncoder* encoder() const override { return client_.encoder(); }
  const CodecPlan* codec_plan() const override { return client_.codec_plan(); }
  void EncodeBy(ContributionEncoder& encoder) override { client_.EncodeContributionsBy(encoder); }

 protected:
  ParameterClient& client() { return client_; }
  Time now() const { return now_(); }
  // Call this when the clock's first block is handed in.
  void NoteFirst();
  void NoteWait(Duration waited) { waited_ += waited; }
  // Adds a call that is under way for these blocks.
  void Add(BlockRange blocks, ParameterClient::Ticket ticket);

 private:
  struct Part {
    BlockRange blocks;
    ParameterClient::Ticket ticket;
  };
  // Waits for the wanted parts. Returns false if the deadline came first.
  absl::StatusOr<bool> WaitWhere(const std::function<bool(const Part&)>& wanted, Time deadline);
  void Take(const Part& part, const ParameterClient::Result& result);
  bool answered() const { return blocks_answered_ == client_.layout().blocks(); }
  void StopReading();

  ParameterClient& client_;
  const std::function<Time()> now_;
  bool under_way_ = false;
  // The calls that were sent and not answered yet, in the order of sending.
  std::vector<Part> parts_;
  uint32_t blocks_answered_ = 0;
  bool handed_in_ = false;
  Time began_, ended_;
  Duration waited_ = Duration::zero();
  ExchangeReport report_;
  // A Read whose deadline came first.
  std::optional<ParameterClient::Ticket> reading_;
};

}  // namespace leeway
