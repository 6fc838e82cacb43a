// From one server's shard to another's replica, over gRPC.
#include "server/replica/replica_link.h"

#include <future>

#include <grpcpp/server.h>

#include "common/channel.h"
#include "server/parameter_service.h"
#include "server/store/shared_floats.h"
#include "tests/catch.h"

namespace leeway {
namespace {

constexpr uint64_t kJob = 7;
constexpr auto kLimit = std::chrono::seconds(30);

// A server that holds the replica of shard 0 of two blocks.
class Served {
 public:
  explicit Served(uint64_t generation = 0) {
    store = std::make_shared<ReplicaStore>(
        ReplicaStore::Options{*BlockLayout::FromWire(16, 1, 8), 0, 5, 1, true, nullptr});
    service.Serve({kJob, generation, {nullptr}, {store}, nullptr});
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    builder.RegisterService(&service);
    queue = std::make_unique<ServerQueue>(builder);
    server = builder.BuildAndStart();
    REQUIRE(port != 0);
    service.Await(queue.get());
    queue->Start();
  }
  ~Served() {
    service.Close();
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
  }
  std::shared_ptr<ReplicaLink> Link(uint64_t since_epoch = 5, uint64_t generation = 0) {
    return ReplicaLink::Make({.job = kJob,
                              .generation = generation,
                              .since_epoch = since_epoch,
                              .address = "127.0.0.1:" + std::to_string(port),
                              .queue = queue.get()});
  }

  int port = 0;
  ParameterService service;
  std::shared_ptr<ReplicaStore> store;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

HeldBlock Block(uint32_t number, uint64_t version, float value) {
  static const auto pool = FloatPool::Make(8);
  HeldBlock block;
  block.block = number;
  block.progress = {version, {version}};
  block.values.weights = pool->Take();
  std::fill_n(block.values.weights.mutable_data(), 8, value);
  block.values.slots.push_back(pool->Take());
  std::fill_n(block.values.slots[0].mutable_data(), 8, -value);
  return block;
}

absl::Status Send(ReplicaLink& link, HeldBlock block) {
  auto sent = std::make_shared<std::promise<absl::Status>>();
  auto result = sent->get_future();
  link.Send(std::move(block), [sent](const absl::Status& status) { sent->set_value(status); });
  REQUIRE(result.wait_for(kLimit) == std::future_status::ready);
  return result.get();
}

TEST_CASE("what is sent is what the replica has when it is acknowledged") {
  Served served;
  const auto link = served.Link();
  for (uint64_t version = 1; version <= 20; ++version) {
    const auto value = static_cast<float>(version);
    REQUIRE(Send(*link, Block(0, version, value)).ok());
    REQUIRE(Send(*link, Block(1, version, 100 + value)).ok());
  }
  const auto blocks = served.store->TakeOver();
  REQUIRE(blocks.ok());
  CHECK((*blocks)[0].progress.version == 20);
  CHECK((*blocks)[0].values.weights.span()[7] == 20);
  CHECK((*blocks)[0].values.slots[0].span()[0] == -20);
  CHECK((*blocks)[0].previous.span()[0] == 19);
  CHECK((*blocks)[1].values.weights.span()[0] == 120);
  CHECK(absl::IsFailedPrecondition(Send(*link, Block(0, 21, 1))));
  link->Close();
  CHECK(absl::IsCancelled(Send(*link, Block(0, 22, 1))));
}

TEST_CASE("a sender that is not meant is refused, and one ahead has to wait") {
  Served served(3);
  const auto wrong_epoch = served.Link(4, 3);
  CHECK(absl::IsFailedPrecondition(Send(*wrong_epoch, Block(0, 1, 1))));
  const auto older = served.Link(5, 2);
  CHECK(absl::IsFailedPrecondition(Send(*older, Block(0, 1, 1))));
  const auto ahead = served.Link(5, 4);
  CHECK(absl::IsUnavailable(Send(*ahead, Block(0, 1, 1))));
  const auto right = served.Link(5, 3);
  CHECK(Send(*right, Block(0, 1, 1)).ok());
  for (const auto& link : {wrong_epoch, older, ahead, right}) link->Close();
}

TEST_CASE("what cannot be delivered fails, and does not stay") {
  Served sender;
  std::shared_ptr<ReplicaLink> link;
  {
    Served gone;
    link = ReplicaLink::Make({.job = kJob,
                              .generation = 0,
                              .since_epoch = 5,
                              .address = "127.0.0.1:" + std::to_string(gone.port),
                              .queue = sender.queue.get()});
    REQUIRE(Send(*link, Block(0, 1, 1)).ok());
  }
  CHECK(absl::IsUnavailable(Send(*link, Block(0, 2, 1))));
  link->Close();
}

}  // namespace
}  // namespace leeway
