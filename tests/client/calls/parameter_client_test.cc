#include "client/calls/parameter_client.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <numeric>

#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/client/fault_transport.h"

namespace leeway::parameter_client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeModel;
using testing::FakeRequest;

// 10 blocks of 16 elements, the last one shorter, on 3 servers.
constexpr uint64_t kTotal = 150;

ParameterClientOptions Options() {
  ParameterClientOptions options;
  options.servers = {"a:1", "b:2", "c:3"};
  options.job = 7;
  options.rank = 2;
  options.incarnation = 5;
  options.total = kTotal;
  options.block_elements = 16;
  return options;
}

std::shared_ptr<FakeModel> MakeModel(bool elastic = false) {
  return std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 3, 16), elastic, 0.5f);
}

std::unique_ptr<ParameterClient> OpenClient(const TransportFactory& transport,
                                            ParameterClientOptions options = Options()) {
  auto client = ParameterClient::Open(options, transport);
  REQUIRE(client.ok());
  return *std::move(client);
}

std::vector<float> Ramp(float start) {
  std::vector<float> values(kTotal);
  std::iota(values.begin(), values.end(), start);
  return values;
}

// Outlives every client.
const std::vector<float> kContribution = Ramp(0);

TEST_CASE("a combined contribution goes without values or examples, and reads the weights") {
  auto model = MakeModel();
  model->set_weights(Ramp(3));
  auto client = OpenClient(testing::Reach(model));
  std::vector<float> weights(kTotal);
  REQUIRE(client->Wait(client->PushPullCombined(9, weights, {2, 5})).ok());
  const auto requests = model->requests();
  REQUIRE(requests.size() == 5);
  for (const FakeRequest& request : requests) {
    CHECK(request.method == "PushPull");
    CHECK(request.header.combined());
    CHECK(request.header.clock() == 9);
    CHECK(request.header.rank() == 2);
    CHECK(request.header.examples() == 0);
    CHECK(request.payload.empty());
  }
  CHECK(weights[31] == 0);
  CHECK(weights[32] == 35);
  CHECK(client->traffic().sent < 5 * 64);
  std::vector<float> few(3);
  CHECK(
      absl::IsInvalidArgument(client->Wait(client->PushPullCombined(9, few, kAllBlocks)).status()));
}

TEST_CASE("Attach gives the smallest clock, and leaves out servers without blocks") {
  auto model = MakeModel();
  model->attach_clock = 17;
  model->needs_initialize = true;
  model->servers_without_blocks = {1};
  auto client = OpenClient(testing::Reach(model));
  const auto attachment = client->Attach();
  REQUIRE(attachment.ok());
  CHECK(attachment->clock == 17);
  CHECK(attachment->needs_initialize);
  CHECK(model->requests().size() == 3);
}

TEST_CASE("Attach without a block anywhere is an error") {
  auto model = MakeModel();
  model->servers_without_blocks = {0, 1, 2};
  auto client = OpenClient(testing::Reach(model));
  CHECK(client->Attach().status().code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("Initialize, PushPull, Push and Pull carry every element to and fro") {
  auto model = MakeModel();
  model->staleness = 3;
  auto client = OpenClient(testing::Reach(model));
  const std::vector<float> initial = Ramp(1000), contribution = Ramp(1);
  REQUIRE(client->Initialize(initial).ok());
  CHECK(model->weights() == initial);

  std::vector<float> weights(kTotal), latest(kTotal);
  const auto result = client->Wait(client->PushPull(4, 32, contribution, weights));
  REQUIRE(result.ok());
  CHECK(result->staleness == 3);
  CHECK(result->version == 5);
  CHECK(weights == std::vector<float>(kTotal, 999.0f));

  REQUIRE(client->Wait(client->Push(5, 32, contribution)).ok());
  REQUIRE(client->Wait(client->PullLatest(latest)).ok());
  CHECK(latest == model->weights());
  CHECK(latest[1] == 997.0f);
}

TEST_CASE("Requests carry the sender's identity and go to the block's server") {
  auto model = MakeModel();
  std::vector<float> weights(kTotal);
  auto client = OpenClient(testing::Reach(model));
  REQUIRE(client->Wait(client->PushPull(4, 32, Ramp(0), weights)).ok());
  const auto requests = model->requests();
  REQUIRE(requests.size() == 10);
  for (const FakeRequest& request : requests) {
    CHECK(request.header.job() == 7);
    CHECK(request.header.rank() == 2);
    CHECK(request.header.incarnation() == 5);
    CHECK(request.header.clock() == 4);
    CHECK(request.header.examples() == 32);
    CHECK(request.server == request.header.block() % 3);
  }
}

TEST_CASE("A block range touches its own elements only") {
  auto model = MakeModel();
  model->set_weights(Ramp(0));
  auto client = OpenClient(testing::Reach(model));
  std::vector<float> weights(kTotal, -1);
  REQUIRE(client->Wait(client->Pull(0, weights, {2, 3})).ok());
  for (size_t i = 0; i < kTotal; ++i) {
    const bool inside = i >= 32 && i < 80;
    CHECK(weights[i] == (inside ? static_cast<float>(i) : -1.0f));
  }
}

TEST_CASE("Wrong ranges and vectors are refused before anything is sent") {
  auto model = MakeModel();
  auto client = OpenClient(testing::Reach(model));
  std::vector<float> weights(kTotal), small(kTotal - 1);
  CHECK(client->Wait(client->Pull(0, small)).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(client->Wait(client->Push(0, 1, {})).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(client->Wait(client->Pull(0, weights, {9, 2})).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(client->Wait(ParameterClient::Ticket()).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(model->requests().empty());
  ParameterClientOptions none = Options();
  none.servers.clear();
  CHECK(!ParameterClient::Open(none, testing::Reach(model)).ok());
}

// Keeps the calls, which the test answers.
struct Kept {
  uint32_t block;
  std::shared_ptr<TransportCall> call;
  void Answer() { call->OnDone(absl::OkStatus(), {}); }
};
struct Keeper : Transport {
  explicit Keeper(std::map<uint32_t, std::vector<Kept>>& kept) : kept(kept) {}
  void Call(uint32_t server, const TransportRequest& request, Duration,
            std::shared_ptr<TransportCall> call) override {
    kept[server].push_back({request.header.block(), std::move(call)});
  }
  void CallAfter(Duration, std::function<void()>) override {}
  void Cancel() override {}
  void Close() override {}
  std::map<uint32_t, std::vector<Kept>>& kept;
};

TEST_CASE("Blocks go out ascending, with a window of them in flight per server") {
  std::map<uint32_t, std::vector<Kept>> kept;
  ParameterClientOptions options = Options();
  options.window = 2;
  auto client =
      OpenClient([&](const TransportOptions&) { return std::make_unique<Keeper>(kept); }, options);
  const std::vector<float> contribution = Ramp(0);
  const auto ticket = client->Push(0, 1, contribution);

  const auto blocks = [&](uint32_t server) {
    std::vector<uint32_t> result;
    for (const Kept& call : kept[server]) result.push_back(call.block);
    return result;
  };
  CHECK(blocks(0) == std::vector<uint32_t>{0, 3});
  CHECK(blocks(1) == std::vector<uint32_t>{1, 4});
  CHECK(blocks(2) == std::vector<uint32_t>{2, 5});
  // A server's second answer makes room just as the first does.
  kept[0][1].Answer();
  CHECK(blocks(0) == std::vector<uint32_t>{0, 3, 6});
  kept[0][0].Answer();
  CHECK(blocks(0) == std::vector<uint32_t>{0, 3, 6, 9});
  CHECK(blocks(1).size() == 2);
}

TEST_CASE("More of small blocks are in flight than of large ones, and never more than 64") {
  CHECK(WindowFor(64) == 64);
  CHECK(WindowFor(64 << 10) == 64);
  CHECK(WindowFor(128 << 10) == 32);
  CHECK(WindowFor(512 << 10) == 8);
  CHECK(WindowFor(64 << 20) == 8);

  std::map<uint32_t, std::vector<Kept>> kept;
  ParameterClientOptions options = Options();
  options.total = 300 * options.block_elements;
  const std::vector<float> contribution(options.total);
  auto client =
      OpenClient([&](const TransportOptions&) { return std::make_unique<Keeper>(kept); }, options);
  client->Push(0, 1, contribution);
  CHECK(kept[0].size() == 64);
}

TEST_CASE("An answer that tells to wait is asked again at once, and shown meanwhile") {
  auto model = MakeModel();
  std::string shown;
  ParameterClient* raw = nullptr;
  model->script = [&](const FakeRequest& request) {
    if (request.header.block() != 3) return absl::OkStatus();
    static int asked = 0;
    if (asked++ < 3) {
      shown = raw->Waiting();
      model->Advance(seconds(2));
      return absl::UnavailableError("block 3 clock 0: waiting for worker 1");
    }
    return absl::OkStatus();
  };
  std::vector<float> weights(kTotal);
  auto client = OpenClient(testing::Reach(model));
  raw = client.get();
  const Time began = model->Now();
  REQUIRE(client->Wait(client->PushPull(0, 1, kContribution, weights)).ok());
  CHECK(shown == "block 3 clock 0: waiting for worker 1");
  CHECK(client->Waiting().empty());
  CHECK(model->Now() - began == seconds(6));
}

TEST_CASE("A wait that lasts too long ends by naming the block and who was missing") {
  auto model = MakeModel();
  model->script = [&](const FakeRequest& request) {
    if (request.header.block() != 4) return absl::OkStatus();
    model->Advance(seconds(2));
    return absl::UnavailableError("block 4 clock 9: waiting for worker 1");
  };
  ParameterClientOptions options = Options();
  options.exchange_seconds = 11;
  std::vector<float> weights(kTotal);
  auto client = OpenClient(testing::Reach(model), options);
  const auto status = client->Wait(client->PushPull(9, 1, kContribution, weights)).status();
  CHECK(status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("PushPull of block 4 at clock 9 by worker 2 (server 1)") &&
                 Catch::Contains("waiting for worker 1") &&
                 Catch::Contains("limits.exchange_seconds"));
}

TEST_CASE("A final refusal ends the exchange at once with the server's text") {
  auto model = MakeModel();
  model->script = [&](const FakeRequest& request) {
    if (request.header.block() != 1) return absl::OkStatus();
    return absl::AbortedError("a newer life of worker 2 exists");
  };
  std::vector<float> weights(kTotal);
  auto client = OpenClient(testing::Reach(model));
  const auto status = client->Wait(client->PushPull(0, 1, kContribution, weights)).status();
  CHECK(status.code() == absl::StatusCode::kAborted);
  CHECK_THAT(std::string(status.message()), Catch::Contains("a newer life of worker 2"));
}

TEST_CASE("After a refusal Settle waits for what is under way, and the rest is never begun") {
  auto model = MakeModel();
  model->script = [](const FakeRequest& request) {
    const bool first = request.method == "PushPull" && request.header.block() == 0;
    return first ? absl::AlreadyExistsError("worker 2 is too late") : absl::OkStatus();
  };
  ParameterClientOptions options = Options();
  options.window = 1;
  auto client = OpenClient(testing::Reach(model), options);
  std::vector<float> weights(kTotal);
  const auto ticket = client->PushPull(3, 1, kContribution, weights);
  CHECK(absl::IsAlreadyExists(client->Wait(ticket).status()));
  client->Settle(ticket);
  const size_t requests = model->requests().size();
  CHECK(requests < 10);
  // The vectors are the caller's again: another clock may begin.
  CHECK(client->Wait(client->Pull(9, weights)).ok());
  CHECK(model->requests().size() == requests + 10);
  client->Cancel();
  const auto cancelled = client->Pull(10, weights);
  client->Settle(cancelled);
}

TEST_CASE("A waiter's own deadline ends the waiting, not the exchange") {
  auto model = MakeModel();
  std::promise<void> go;
  auto gate = go.get_future().share();
  model->script = [&](const FakeRequest&) {
    gate.wait();
    return absl::OkStatus();
  };
  std::vector<float> weights(kTotal);
  auto client = OpenClient(testing::Reach(model));
  const auto ticket = client->Pull(0, weights);
  CHECK(client->Wait(ticket, std::chrono::steady_clock::now()).status().code() ==
        absl::StatusCode::kDeadlineExceeded);
  go.set_value();
  CHECK(client->Wait(ticket).ok());
}

TEST_CASE("Cancel ends what is open, in flight or not, and what is begun later") {
  auto model = MakeModel();
  std::promise<void> go;
  auto gate = go.get_future().share();
  model->script = [&](const FakeRequest&) {
    gate.wait();
    return absl::UnavailableError("later");
  };
  ParameterClientOptions options = Options();
  options.window = 1;
  std::vector<float> weights(kTotal);
  auto client = OpenClient(testing::Reach(model), options);
  const auto ticket = client->Pull(0, weights);
  client->Cancel();
  CHECK(client->Wait(ticket).status().code() == absl::StatusCode::kCancelled);
  CHECK(client->Wait(client->Pull(0, weights)).status().code() == absl::StatusCode::kCancelled);
  go.set_value();
}

TEST_CASE("Doubled requests and lost replies change nothing of the result") {
  std::vector<std::vector<float>> finals;
  for (const testing::Faults faults :
       {testing::Faults{}, testing::Faults{.duplicate = true, .drop_reply_every = 3},
        testing::Faults{.drop_reply_every = 2, .drop_request_every = 5}}) {
    auto model = MakeModel();
    std::vector<float> weights(kTotal);
    auto client = OpenClient(testing::WithFaults(faults, testing::Reach(model)));
    REQUIRE(client->Initialize(Ramp(0)).ok());
    for (uint64_t clock = 0; clock < 20; ++clock) {
      REQUIRE(
          client->Wait(client->PushPull(clock, 1, Ramp(static_cast<float>(clock)), weights)).ok());
    }
    CHECK(weights == model->weights());
    finals.push_back(weights);
  }
  CHECK(finals[1] == finals[0]);
  CHECK(finals[2] == finals[0]);
}

TEST_CASE("An answer of the wrong block or size is an error, not memory overwritten") {
  struct Liar : Transport {
    void Call(uint32_t, const TransportRequest&, Duration,
              std::shared_ptr<TransportCall> call) override {
      thread = std::thread([call] {
        const std::vector<float> values(17);
        TransportReply reply;
        reply.payload = FloatPayload::Of(values);
        call->OnDone(absl::OkStatus(), reply);
      });
    }
    void CallAfter(Duration, std::function<void()>) override {}
    void Cancel() override {}
    void Close() override {
      if (thread.joinable()) thread.join();
    }
    std::thread thread;
  };
  ParameterClientOptions options = Options();
  std::vector<float> weights(kTotal);
  auto client =
      OpenClient([](const TransportOptions&) { return std::make_unique<Liar>(); }, options);
  const auto status = client->Wait(client->Pull(0, weights, {0, 1})).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains("17 values"));
}

}  // namespace
}  // namespace leeway::parameter_client
