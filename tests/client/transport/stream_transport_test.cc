// The real transport against a server made of the stock generated stubs.
#include "client/transport/stream_transport.h"

#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <string>

#include "client/calls/parameter_client.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/client/fault_transport.h"
#include "tests/client/stock_server.h"
#include "tests/sockets.h"

namespace leeway::stream_transport {
namespace {

using testing::Ending;
using testing::FakeModel;
using testing::FakeRequest;
using testing::StockServer;

constexpr uint64_t kTotal = 1'000'003;
constexpr uint64_t kBlock = 1 << 16;

struct Rig {
  Rig() {
    options.servers = {first.endpoint(), second.endpoint()};
    options.total = kTotal;
    options.block_elements = kBlock;
  }
  std::shared_ptr<FakeModel> model =
      std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 2, kBlock));
  StockServer first{model, 0}, second{model, 1};
  ParameterClientOptions options;
};

std::vector<float> Ramp() {
  std::vector<float> values(kTotal);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST_CASE("Stock stubs and slices understand each other, with and without faults") {
  const bool faults = GENERATE(false, true);
  Rig rig;
  rig.options.transport =
      GENERATE(v1::TRANSPORT_TYPE_AUTO, v1::TRANSPORT_TYPE_TCP, v1::TRANSPORT_TYPE_UNIX);
  const std::vector<float> contribution = Ramp();
  std::vector<float> weights(kTotal, 9);
  auto client =
      faults ? ParameterClient::Open(rig.options, testing::WithFaults({.duplicate = true,
                                                                       .drop_reply_every = 10,
                                                                       .drop_request_every = 7}))
             : ParameterClient::Open(rig.options);
  REQUIRE(client.ok());
  rig.model->attach_clock = 3;
  CHECK((*client)->Attach()->clock == 3);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    REQUIRE((*client)->Wait((*client)->PushPull(clock, 1, contribution, weights)).ok());
  }
  CHECK(weights == rig.model->weights());
  const bool tcp = rig.options.transport == v1::TRANSPORT_TYPE_TCP;
  CHECK((testing::WidenedSockets() > 0) == !tcp);
  // Where the system's default does not pace there is nothing to see.
  if (testing::NewSocketsPace()) CHECK((testing::SocketsWith("reno") > 0) == tcp);
  CHECK(weights[kTotal - 1] == -3.0f * (kTotal - 1));
  std::fill(weights.begin(), weights.end(), 0.0f);
  REQUIRE((*client)->Wait((*client)->PullLatest(weights)).ok());
  CHECK(weights == rig.model->weights());
}

TEST_CASE("A server that is not there is tried until the limit, and named") {
  Rig rig;
  rig.options.exchange_seconds = 0.1;
  rig.options.servers[1] = "127.0.0.1:1";
  // Declared before the client: calls of a failed operation use it until the client is gone.
  std::vector<float> weights(kTotal);
  auto client = *ParameterClient::Open(rig.options);
  const auto status = client->Wait(client->Pull(0, weights)).status();
  CHECK(status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK_THAT(std::string(status.message()), Catch::Contains("(server 1)"));
}

TEST_CASE("Cancelling ends a call that a server holds, at once") {
  // Declared before the servers, whose threads use them to their end.
  std::promise<void> held, go;
  std::atomic<bool> first{true};
  auto gate = go.get_future().share();
  Rig rig;
  rig.model->script = [&](const FakeRequest&) {
    if (first.exchange(false)) held.set_value();
    gate.wait();
    return absl::OkStatus();
  };
  // Declared before the client: calls of a failed operation use it until the client is gone.
  std::vector<float> weights(kTotal);
  auto client = *ParameterClient::Open(rig.options);
  const auto ticket = client->Pull(0, weights);
  held.get_future().wait();
  client->Cancel();
  CHECK(client->Wait(ticket).status().code() == absl::StatusCode::kCancelled);
  // Its destructor does not wait for servers.
  client.reset();
  go.set_value();
}

TEST_CASE("Calls to a server that has moved go to where it is now, at once") {
  // Declared before the servers, whose threads use them to their end.
  std::promise<void> held, go;
  std::atomic<bool> first{true};
  auto gate = go.get_future().share();
  Rig rig;
  auto moved_model = std::make_shared<FakeModel>(rig.model->layout());
  moved_model->attach_clock = 5;
  rig.model->attach_clock = 9;
  rig.model->script = [&](const FakeRequest& request) {
    if (request.server != 0) return absl::OkStatus();
    if (first.exchange(false)) held.set_value();
    gate.wait();
    return absl::OkStatus();
  };
  StockServer moved(moved_model, 0);
  // Less than an attempt may take.
  rig.options.exchange_seconds = 15;
  std::vector<float> weights(kTotal);
  auto client = *ParameterClient::Open(rig.options);
  const auto move = [&] {
    held.get_future().wait();
    client->MoveServers({moved.endpoint(), rig.second.endpoint()});
  };
  SECTION("a stream's") {
    const auto ticket = client->Pull(0, weights);
    move();
    CHECK(client->Wait(ticket).ok());
  }
  SECTION("an Attach") {
    auto attached = std::async(std::launch::async, [&] { return client->Attach(); });
    move();
    const auto attachment = attached.get();
    REQUIRE(attachment.ok());
    CHECK(attachment->clock == 5);
  }
  go.set_value();
}

// Records how the call ended.
TEST_CASE("What a server's moving breaks off says where the server is") {
  // Declared before the servers, whose threads use them to their end.
  std::promise<void> held, go;
  auto gate = go.get_future().share();
  Rig rig;
  rig.model->script = [&](const FakeRequest&) {
    held.set_value();
    gate.wait();
    return absl::OkStatus();
  };
  auto transport = MakeStreamTransport({.servers = rig.options.servers});
  auto call = std::make_shared<Ending>();
  TransportRequest pull;
  pull.kind = TransportRequest::Kind::kPull;
  transport->Call(0, pull, std::chrono::seconds(60), call);
  held.get_future().wait();
  transport->MoveServer(0, rig.second.endpoint());
  const absl::Status status = call->ended.get_future().get();
  CHECK(status.code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("server 0 has moved to " + rig.second.endpoint().address));
  transport->Close();
  go.set_value();
}

// Waits for this number of further seconds whenever it is asked.
TEST_CASE("A stream that breaks is begun anew, and nothing is lost") {
  Rig rig;
  // A restart, a proxy, or gRPC's own memory bound may break it: none of these answers a call.
  rig.first.break_with = GENERATE(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::INTERNAL,
                                  grpc::StatusCode::RESOURCE_EXHAUSTED);
  rig.options.channels = 1;
  std::vector<float> weights(kTotal);
  const std::vector<float> contribution = Ramp();
  auto client = *ParameterClient::Open(rig.options);
  REQUIRE(client->Wait(client->PushPull(0, 1, contribution, weights)).ok());
  rig.first.break_next_stream = true;
  REQUIRE(client->Wait(client->PushPull(1, 1, contribution, weights)).ok());
  CHECK(weights == rig.model->weights());
  CHECK(weights[kTotal - 1] == -2.0f * (kTotal - 1));
  CHECK(rig.first.streams() == 2);
  CHECK(rig.second.streams() == 1);
}

TEST_CASE("An answer that makes no sense is asked for again, on another stream") {
  Rig rig;
  rig.options.channels = 1;
  std::vector<float> weights(kTotal);
  const std::vector<float> contribution = Ramp();
  auto client = *ParameterClient::Open(rig.options);
  rig.first.lie_once = true;
  const auto result = client->Wait(client->PushPull(0, 1, contribution, weights));
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  CHECK(weights == rig.model->weights());
  CHECK(rig.first.streams() == 2);
}

TEST_CASE("Small requests share frames") {
  Rig rig;
  rig.options.block_elements = 100;
  rig.options.total = 100 * 2000;
  rig.options.window = 512;
  rig.options.transport = v1::TRANSPORT_TYPE_UNIX;
  rig.model->script = nullptr;
  auto small = std::make_shared<FakeModel>(*BlockLayout::FromWire(200'000, 2, 100));
  StockServer first(small, 0), second(small, 1);
  rig.options.servers = {first.endpoint(), second.endpoint()};
  std::vector<float> weights(200'000), contribution(200'000, 1.0f);
  auto client = *ParameterClient::Open(rig.options);
  REQUIRE(client->Wait(client->PushPull(0, 1, contribution, weights)).ok());
  CHECK(weights == small->weights());
  CHECK(first.frames() < 500);
}

TEST_CASE(
    "Large blocks go few to a frame and over all channels, also where only answers are large") {
  constexpr uint64_t kMebibyte = (1 << 20) / sizeof(float), kBlocks = 16;
  const auto layout = BlockLayout::FromWire(kBlocks * kMebibyte, 1, kMebibyte);
  StockServer server(std::make_shared<FakeModel>(*layout), 0);
  ParameterClientOptions options;
  options.servers = {server.endpoint()};
  options.total = layout->total();
  options.block_elements = kMebibyte;
  options.channels = 2;
  std::vector<float> weights(layout->total());
  auto client = *ParameterClient::Open(options);
  REQUIRE(client->Wait(client->PullLatest(weights)).ok());
  CHECK(server.most_requests() <= 4);
  CHECK(server.streams() == 2);
}

TEST_CASE("A transport that does not reach the server is refused by name") {
  Rig rig;
  rig.options.servers[1].host = "another";
  rig.options.transport = GENERATE(v1::TRANSPORT_TYPE_UNIX, v1::TRANSPORT_TYPE_SHM);
  std::vector<float> weights(kTotal);
  auto client = *ParameterClient::Open(rig.options);
  const auto status = client->Wait(client->Pull(0, weights)).status();
  // The worker exits with a code that a new life cannot mend (worker/worker.h).
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("server 1") && Catch::Contains("transport.type"));
}

TEST_CASE("Timers of a closed transport run early, and every callback runs") {
  auto transport = MakeStreamTransport({.servers = {"127.0.0.1:1"}});
  std::atomic<int> runs{0};
  for (int i = 0; i < 10; ++i) transport->CallAfter(std::chrono::hours(1), [&] { ++runs; });
  transport->Cancel();
  transport->CallAfter(std::chrono::hours(1), [&] { ++runs; });
  transport->Close();
  CHECK(runs == 11);
}

}  // namespace
}  // namespace leeway::stream_transport
