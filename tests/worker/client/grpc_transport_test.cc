// The real transport against a server made of the stock generated stubs.
#include "worker/client/grpc_transport.h"

#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <string>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "common/channel.h"
#include "common/grpc_status.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "tests/catch.h"
#include "tests/worker/client/fake_servers.h"
#include "tests/worker/client/fault_transport.h"
#include "worker/client/parameter_client.h"

namespace leeway {
namespace {

using testing::FakeModel;
using testing::FakeRequest;

constexpr uint64_t kTotal = 1'000'003;
constexpr uint64_t kBlock = 1 << 16;

// Serves a FakeModel through protobuf's own messages.
class StockServer final : public v1::ParameterServer::Service {
 public:
  StockServer(std::shared_ptr<FakeModel> model, uint32_t index)
      : model_(std::move(model)), index_(index) {
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~StockServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Attach(grpc::ServerContext*, const v1::AttachRequest* request,
                      v1::AttachReply* reply) override {
    return Answer("Attach", *request, *reply);
  }
  grpc::Status Push(grpc::ServerContext*, const v1::PushRequest* request,
                    v1::PushReply* reply) override {
    return Answer("Push", *request, *reply);
  }
  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request,
                    v1::PullReply* reply) override {
    return Answer("Pull", *request, *reply);
  }
  grpc::Status PushPull(grpc::ServerContext*, const v1::PushRequest* request,
                        v1::PullReply* reply) override {
    return Answer("PushPull", *request, *reply);
  }

 private:
  template <typename Request, typename Reply>
  grpc::Status Answer(const std::string& method, const Request& request, Reply& reply) {
    const grpc::Slice slice(request.SerializeAsString());
    auto [status, bytes] = model_->Answer(index_, "/" + method, grpc::ByteBuffer(&slice, 1));
    if (!status.ok()) return ToGrpc(status);
    grpc::ProtoBufferReader reader(&bytes);
    if (reply.ParseFromZeroCopyStream(&reader)) return grpc::Status::OK;
    return {grpc::StatusCode::INTERNAL, "the fake's answer is malformed"};
  }

  const std::shared_ptr<FakeModel> model_;
  const uint32_t index_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Rig {
  Rig() {
    options.servers = {first.address(), second.address()};
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
  CHECK(weights[kTotal - 1] == -3.0f * (kTotal - 1));
  std::fill(weights.begin(), weights.end(), 0.0f);
  REQUIRE((*client)->Wait((*client)->PullLatest(weights)).ok());
  CHECK(weights == rig.model->weights());
}

TEST_CASE("A server that is not there is tried until the limit, and named") {
  Rig rig;
  rig.options.exchange_seconds = 0.1;
  rig.options.servers[1] = "127.0.0.1:1";
  // Before the client: calls of an operation that failed use it until the client is gone.
  std::vector<float> weights(kTotal);
  auto client = *ParameterClient::Open(rig.options);
  const auto status = client->Wait(client->Pull(0, weights)).status();
  CHECK(status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK_THAT(std::string(status.message()), Catch::Contains("(server 1)"));
}

TEST_CASE("Cancelling ends a call that a server holds, at once") {
  // Before the servers, whose threads use it to their end.
  std::promise<void> held, go;
  std::atomic<bool> first{true};
  auto gate = go.get_future().share();
  Rig rig;
  rig.model->script = [&](const FakeRequest&) {
    if (first.exchange(false)) held.set_value();
    gate.wait();
    return absl::OkStatus();
  };
  // Before the client: calls of an operation that failed use it until the client is gone.
  std::vector<float> weights(kTotal);
  auto client = *ParameterClient::Open(rig.options);
  const auto ticket = client->Pull(0, weights);
  held.get_future().wait();
  client->Cancel();
  CHECK(client->Wait(ticket).status().code() == absl::StatusCode::kCancelled);
  // Its destructor waits for no server.
  client.reset();
  go.set_value();
}

TEST_CASE("Timers of a closed transport run early, and every callback runs") {
  auto transport = MakeGrpcTransport({"127.0.0.1:1"});
  std::atomic<int> runs{0};
  for (int i = 0; i < 10; ++i) transport->CallAfter(std::chrono::hours(1), [&] { ++runs; });
  transport->Cancel();
  transport->CallAfter(std::chrono::hours(1), [&] { ++runs; });
  transport->Close();
  CHECK(runs == 11);
}

}  // namespace
}  // namespace leeway
