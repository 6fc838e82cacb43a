#include "client/transport/stream_lane.h"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/transport/queue_driver.h"
#include "common/rpc/channel.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/client/stock_server.h"

namespace leeway::stream_lane {
namespace {

using testing::Ending;
using testing::FakeModel;
using testing::FakeRequest;
using testing::StockServer;

constexpr uint64_t kTotal = 1000;
constexpr uint64_t kBlock = 256;

// If it is asked, waits for longer than it was given time.
class Patient : public Ending {
 public:
  std::optional<Duration> OnMissing(const std::string& missing) override {
    CHECK(missing.empty());
    ++asked;
    return std::chrono::seconds(50);
  }
  int asked = 0;
};

TEST_CASE("What is late while others are answered stays in its place, and is not sent again") {
  // Declared before the server, whose threads use it to their end.
  std::promise<void> go;
  auto gate = go.get_future().share();
  const auto model = std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 1, kBlock));
  StockServer server(model, 0);
  model->script = [&](const FakeRequest& request) {
    if (request.header.block() == 2) gate.wait();
    return absl::OkStatus();
  };
  QueueDriver driver;
  driver.Start();
  std::promise<void> ended;
  StreamLane::Options options;
  options.channel = MakeChannel(server.endpoint().address);
  options.driver = &driver;
  options.on_stream_end = [&] { ended.set_value(); };
  StreamLane lane(std::move(options));
  const auto ask = [&](uint32_t block, std::shared_ptr<TransportCall> call) {
    TransportRequest pull;
    pull.kind = TransportRequest::Kind::kPull;
    pull.header.set_block(block);
    REQUIRE(lane.Call(pull, std::chrono::steady_clock::now(), std::move(call)).ok());
  };
  const auto answered = std::make_shared<Ending>();
  ask(0, answered);
  REQUIRE(answered->ended.get_future().get().ok());
  const Time now = std::chrono::steady_clock::now();
  const auto slow = std::make_shared<Patient>();
  ask(2, slow);
  lane.GiveUpLate(now + std::chrono::seconds(10));
  CHECK(slow->asked == 1);
  // Its time was extended.
  lane.GiveUpLate(now + std::chrono::seconds(15));
  CHECK(slow->asked == 1);
  // Nothing has come for a long time.
  lane.GiveUpLate(now + std::chrono::seconds(100));
  CHECK(slow->asked == 1);
  CHECK(absl::IsDeadlineExceeded(slow->ended.get_future().get()));
  go.set_value();
  lane.Close(absl::CancelledError("the test is over"));
  ended.get_future().wait();
  driver.Stop();
}

}  // namespace
}  // namespace leeway::stream_lane
