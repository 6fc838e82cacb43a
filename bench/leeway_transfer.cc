#include "bench/leeway_transfer.h"

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/base/contribution.h"
#include "bench/base/latency.h"
#include "common/status.h"

namespace leeway {
namespace {

// A single worker does not wait for others, so a longer wait means that it is stuck.
constexpr Duration kStuckAfter = std::chrono::seconds(30);

class Client {
 public:
  Client(std::unique_ptr<ParameterClient> client, const TransferPlan& plan)
      : plan_(plan),
        client_(std::move(client)),
        contribution_(client_->MakeVector()),
        weights_(client_->MakeVector()) {
    FillContribution(0, contribution_.span());
  }

  absl::StatusOr<Json> Round(Duration lasting) {
    LatencyLog latency(lasting);
    uint64_t messages = 0;
    const uint64_t bytes_before = BytesSoFar();
    while (!latency.over() || !open_.empty()) {
      if (!latency.over() && open_.size() < plan_.open_calls) {
        Begin();
        continue;
      }
      Call& call = open_.front();
      const Time deadline = std::chrono::steady_clock::now() + kStuckAfter;
      const absl::Status waited = client_->Wait(call.ticket, deadline).status();
      if (!waited.ok()) return Annotate(waited, client_->Waiting());
      RETURN_IF_ERROR(CheckArrived(call.blocks));
      latency.Add(call.began);
      messages += call.blocks.count;
      open_.pop_front();
    }
    Json answer = latency.Answer(messages);
    answer["travelled_bytes"] = BytesSoFar() - bytes_before;
    return answer;
  }

 private:
  struct Call {
    ParameterClient::Ticket ticket;
    BlockRange blocks;
    Time began;
  };

  uint64_t BytesSoFar() const {
    const Traffic traffic = client_->traffic();
    return traffic.sent + traffic.received;
  }

  void Begin() {
    const BlockRange blocks{next_, plan_.call_blocks};
    MarkMissing(blocks);
    const Time began = std::chrono::steady_clock::now();
    open_.push_back({Start(blocks), blocks, began});
    next_ = (next_ + plan_.call_blocks) % plan_.blocks;
    if (next_ == 0) ++clock_;
  }

  ParameterClient::Ticket Start(BlockRange blocks) {
    switch (plan_.method) {
      case TransferMethod::kPush:
        return client_->Push(clock_, 1, contribution_.span(), blocks);
      case TransferMethod::kPull:
        // Read at a clock, as a worker does, because a read of the latest weights is never encoded.
        // The clock is always 0, because without contributions no later clock begins.
        return client_->Pull(0, weights_.span(), blocks);
      case TransferMethod::kPushPull:
        break;
    }
    return client_->PushPull(clock_, 1, contribution_.span(), weights_.span(), blocks);
  }

  // Returns the last float of a block. A pull that brings values overwrites it.
  float& LastOf(uint32_t block) {
    return weights_.data()[client_->layout().Range(block).end() - 1];
  }
  void MarkMissing(BlockRange blocks) {
    if (plan_.method == TransferMethod::kPush) return;
    for (uint32_t i = 0; i < blocks.count; ++i) {
      LastOf(blocks.first + i) = std::numeric_limits<float>::quiet_NaN();
    }
  }
  absl::Status CheckArrived(BlockRange blocks) {
    if (plan_.method == TransferMethod::kPush) return absl::OkStatus();
    for (uint32_t i = 0; i < blocks.count; ++i) {
      if (!std::isnan(LastOf(blocks.first + i))) continue;
      return absl::DataLossError(
          absl::StrCat("block ", blocks.first + i, " was answered without values"));
    }
    return absl::OkStatus();
  }

  const TransferPlan plan_;
  const std::unique_ptr<ParameterClient> client_;
  FloatBuffer contribution_;
  FloatBuffer weights_;
  std::deque<Call> open_;
  uint32_t next_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace

absl::StatusOr<BenchService> LeewayServer(const v1::TrainingJob& job, const TransferPlan& plan) {
  ASSIGN_OR_RETURN(auto started, StartBenchServer(job, plan));
  std::shared_ptr<BenchServer> server = std::move(started);
  const BenchServerAddress address = server->address();
  return BenchService{
      .hello = {{"tcp", address.tcp}, {"local", address.local}},
      .handle = [server](const Json&) -> absl::StatusOr<Json> { return Json::object(); }};
}

BenchServerAddress AddressFrom(const Json& hello) {
  return {.tcp = hello.value("tcp", ""), .local = hello.value("local", "")};
}

absl::StatusOr<BenchService> LeewayClient(const v1::TrainingJob& job, const TransferPlan& plan,
                                          const BenchServerAddress& server) {
  ASSIGN_OR_RETURN(auto opened, OpenBenchClient(job, plan, server));
  auto client = std::make_shared<Client>(std::move(opened), plan);
  return BenchService{.hello = Json::object(),
                      .handle = [client](const Json& request) -> absl::StatusOr<Json> {
                        return client->Round(FromSeconds(request.value("round", 0.0)));
                      }};
}

}  // namespace leeway
