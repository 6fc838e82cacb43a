#include <deque>
#include <utility>

#include "client/calls/parameter_client.h"
#include "exchange/carriers/host_group_carrier.h"
#include "tests/catch.h"

namespace leeway::server_carrier {
namespace {

// Two blocks on a server that answers one request each time the client waits. The first answer is
// that the clock has gone on without this worker; the second has its values, late.
class LateTransport : public Transport {
 public:
  explicit LateTransport(int* answered) : answered_(answered) {}
  void Call(uint32_t, const TransportRequest& request, Duration,
            std::shared_ptr<TransportCall> call) override {
    sent_.emplace_back(request.header.block(), std::move(call));
  }
  void CallAfter(Duration, std::function<void()> callback) override { callback(); }
  void Drive(const std::function<bool()>&, Time) override {
    if (sent_.empty()) return;
    auto [block, call] = std::exchange(sent_.front(), {});
    sent_.pop_front();
    if (block == 0) return call->OnDone(absl::AlreadyExistsError("clock 3 is complete"), {});
    const std::vector<float> values(4, 1.0f);
    TransportReply reply;
    reply.version.set_block(block);
    reply.payload = FloatPayload::Of(values);
    ++*answered_;
    call->OnDone(absl::OkStatus(), reply);
  }
  void Cancel() override { sent_.clear(); }
  void Close() override {}

 private:
  int* const answered_;
  std::deque<std::pair<uint32_t, std::shared_ptr<TransportCall>>> sent_;
};

TEST_CASE("after ALREADY_EXISTS nothing of the read still writes into the weights") {
  int answered = 0;
  std::vector<float> weights(8);
  ParameterClientOptions options;
  options.servers = {"a:1"};
  options.total = 8;
  options.block_elements = 4;
  auto client = *ParameterClient::Open(
      options, [&](const TransportOptions&) { return std::make_unique<LateTransport>(&answered); });
  CHECK(absl::IsAlreadyExists(
      ReadWeights(*MakeServerCarrier(*client, nullptr), 3, weights).status()));
  CHECK(answered == 1);
}

}  // namespace
}  // namespace leeway::server_carrier
