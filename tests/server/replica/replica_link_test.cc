// The link from one server's shard to another server's replica, over gRPC.
#include "server/replica/replica_link.h"

#include <future>

#include <grpcpp/server.h>

#include "common/rpc/channel.h"
#include "common/shm/shared_memory.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/service/parameter_service.h"
#include "server/store/shared_floats.h"
#include "tests/catch.h"
#include "tests/log_capture.h"

namespace leeway::replica_link {
namespace {

constexpr uint64_t kJob = 7;
constexpr auto kLimit = std::chrono::seconds(30);

// A server that holds the replica of shard 0, which has two blocks.
class Served {
 public:
  explicit Served(uint64_t generation = 0) {
    store = std::make_shared<ReplicaStore>(
        ReplicaStore::Options{*BlockLayout::FromWire(16, 1, 8), 0, 5, 1, true, nullptr});
    service.table().Serve({kJob, generation, {nullptr}, {store}, nullptr});
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
  std::string address() const { return "127.0.0.1:" + std::to_string(port); }
  std::shared_ptr<ReplicaLink> Link(uint64_t since_epoch = 5, uint64_t generation = 0) {
    return ReplicaLink::Make({.job = kJob,
                              .generation = generation,
                              .since_epoch = since_epoch,
                              .address = address(),
                              .memory = nullptr,
                              .queue = queue.get()});
  }

  int port = 0;
  ParameterService service;
  std::shared_ptr<ReplicaStore> store;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

HeldBlock Block(uint32_t number, uint64_t version, float value,
                const std::shared_ptr<SharedArena>& memory = nullptr) {
  const auto pool = FloatPool::Make(8, memory);
  HeldBlock block;
  block.block = number;
  block.progress = {.version = version, .clocks = {version}, .updates = 3 * version};
  block.values.weights = pool->Take();
  std::fill_n(block.values.weights.mutable_data(), 8, value);
  block.values.slots.push_back(pool->Take());
  std::fill_n(block.values.slots[0].mutable_data(), 8, -value);
  return block;
}

std::future<absl::Status> Begin(ReplicaLink& link, HeldBlock block) {
  auto sent = std::make_shared<std::promise<absl::Status>>();
  auto result = sent->get_future();
  link.Send(std::move(block), [sent](const absl::Status& status) { sent->set_value(status); });
  return result;
}

absl::Status Send(ReplicaLink& link, HeldBlock block) {
  auto result = Begin(link, std::move(block));
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
  CHECK((*blocks)[0].progress.updates == 60);
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
                              .address = gone.address(),
                              .memory = nullptr,
                              .queue = sender.queue.get()});
    REQUIRE(Send(*link, Block(0, 1, 1)).ok());
  }
  CHECK(absl::IsUnavailable(Send(*link, Block(0, 2, 1))));
  link->Close();
}

// A peer that records what it is sent, and answers what it is told to answer.
class Noting final : public v1::ParameterServer::Service {
 public:
  struct Answers {
    // It reads nothing, and what was read waits.
    bool hold = false;
    // It holds after one more frame.
    bool then_hold = false;
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message;
  };

  explicit Noting(bool maps) : maps_(maps) {
    grpc::ServerBuilder builder;
    int port = 0;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(port != 0);
    address = "127.0.0.1:" + std::to_string(port);
  }
  ~Noting() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::shared_ptr<ReplicaLink> Link(Served& sender, std::shared_ptr<SharedArena> memory = nullptr) {
    return ReplicaLink::Make({.job = kJob,
                              .generation = 0,
                              .since_epoch = 5,
                              .address = address,
                              .memory = std::move(memory),
                              .queue = sender.queue.get()});
  }
  void Answer(Answers answers) {
    MutexLock lock(mutex);
    answers_ = std::move(answers);
    changed_.NotifyAll();
  }

  grpc::Status Exchange(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ReplyFrame, v1::RequestFrame>* stream) override {
    v1::RequestFrame frame;
    while (WaitOpen() && stream->Read(&frame)) stream->Write(AnswerTo(frame));
    return grpc::Status::OK;
  }

  std::string address;
  Mutex mutex;
  std::vector<v1::RequestFrame> frames GUARDED_BY(mutex);

 private:
  bool WaitOpen() {
    MutexLock lock(mutex);
    while (answers_.hold) changed_.Wait(mutex);
    return true;
  }
  v1::ReplyFrame AnswerTo(const v1::RequestFrame& frame) {
    v1::ReplyFrame replies;
    if (frame.has_offer()) replies.mutable_answer()->set_mapped(maps_);
    MutexLock lock(mutex);
    frames.push_back(frame);
    while (answers_.hold) changed_.Wait(mutex);
    for (const v1::StreamRequest& request : frame.requests()) {
      v1::StreamReply& reply = *replies.add_replies();
      reply.set_id(request.id());
      reply.set_code(static_cast<int32_t>(answers_.code));
      reply.set_message(answers_.message);
    }
    answers_.hold = answers_.then_hold;
    return replies;
  }

  CondVar changed_;
  Answers answers_ GUARDED_BY(mutex);
  const bool maps_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("on one host only places travel, once the replica has said that it can read there") {
  const bool maps = GENERATE(true, false);
  Served sender;
  const auto memory = *SharedArena::Create(1 << 20);
  Noting noting(maps);
  const auto link = noting.Link(sender, memory);
  REQUIRE(Send(*link, Block(0, 1, 1, memory)).ok());
  REQUIRE(Send(*link, Block(0, 2, 2, memory)).ok());
  // Its slot is where the replica cannot see it.
  HeldBlock elsewhere = Block(0, 3, 3, memory);
  elsewhere.values.slots = Block(0, 3, 3).values.slots;
  REQUIRE(Send(*link, std::move(elsewhere)).ok());
  link->Close();
  MutexLock lock(noting.mutex);
  REQUIRE(noting.frames.size() == 3);
  CHECK(noting.frames[0].session() != 0);
  CHECK(noting.frames[0].payload().size() == 64);
  const auto& second = noting.frames[1];
  CHECK(second.payload().size() == (maps ? 0 : 64));
  CHECK(second.requests(0).replicated().parts_size() == (maps ? 2 : 0));
  CHECK(noting.frames[2].payload().size() == 64);
}

TEST_CASE("what the replica copies out of the owner's memory is what was sent") {
  Served served;
  const auto memory = *SharedArena::Create(1 << 20);
  const auto link = ReplicaLink::Make({.job = kJob,
                                       .generation = 0,
                                       .since_epoch = 5,
                                       .address = served.address(),
                                       .memory = memory,
                                       .queue = served.queue.get()});
  for (uint64_t version = 1; version <= 20; ++version) {
    const auto value = static_cast<float>(version);
    REQUIRE(Send(*link, Block(0, version, value, memory)).ok());
    REQUIRE(Send(*link, Block(1, version, 100 + value, memory)).ok());
  }
  const auto blocks = served.store->TakeOver();
  REQUIRE(blocks.ok());
  CHECK((*blocks)[0].values.weights.span()[7] == 20);
  CHECK((*blocks)[0].values.slots[0].span()[7] == -20);
  CHECK((*blocks)[0].previous.span()[0] == 19);
  CHECK((*blocks)[1].values.weights.span()[0] == 120);
  CHECK_FALSE(memory->Contains((*blocks)[1].values.weights.span().data()));
  link->Close();
}

// Sends one frame to a replica by hand: block 0 in `memory`, with `session` as its session.
absl::Status SendParts(Served& served, const SharedArena& memory, const HeldBlock& block,
                       const SharedSession& session) {
  v1::RequestFrame frame;
  *frame.mutable_offer() = memory.Offer();
  frame.set_session_offset(session.offset);
  frame.set_session(session.number);
  v1::StreamRequest& request = *frame.add_requests();
  request.set_method(v1::EXCHANGE_METHOD_REPLICATE);
  request.mutable_header()->set_job(kJob);
  request.mutable_replicated()->set_since_epoch(5);
  request.mutable_replicated()->set_version(block.progress.version);
  for (const SharedFloats& part : {block.values.weights, block.values.slots[0]}) {
    v1::SharedRange& range = *request.mutable_replicated()->add_parts();
    range.set_offset(memory.OffsetOf(part.span().data()));
    range.set_bytes(part.span().size_bytes());
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  const auto stub = v1::ParameterServer::NewStub(MakeChannel(served.address()));
  const auto stream = stub->Exchange(&context);
  REQUIRE(stream->Write(frame));
  v1::ReplyFrame replies;
  while (replies.replies().empty()) REQUIRE(stream->Read(&replies));
  context.TryCancel();
  stream->Finish();
  return {static_cast<absl::StatusCode>(replies.replies(0).code()), replies.replies(0).message()};
}

TEST_CASE("what an owner took back while it was read leaves the replica as it was") {
  Served served;
  const auto memory = *SharedArena::Create(1 << 20);
  const SharedSession session = *memory->OpenSession();
  REQUIRE(SendParts(served, *memory, Block(0, 1, 1, memory), session).ok());
  CHECK(absl::IsInvalidArgument(SendParts(served, *memory, Block(0, 2, 2, memory), {})));
  memory->CloseSession(session);
  const absl::Status void_of_it = SendParts(served, *memory, Block(0, 2, 2, memory), session);
  CHECK(absl::IsUnavailable(void_of_it));
  CHECK_THAT(std::string(void_of_it.message()), Catch::Contains("took its memory back"));
  const auto link = served.Link();
  REQUIRE(Send(*link, Block(1, 1, 1)).ok());
  link->Close();
  const auto blocks = served.store->TakeOver();
  REQUIRE(blocks.ok());
  CHECK((*blocks)[0].progress.version == 1);
  CHECK((*blocks)[0].values.weights.span()[0] == 1);
}

TEST_CASE("a replica that refuses is asked with one block at a time") {
  Served sender;
  Noting noting(false);
  const auto link = noting.Link(sender);
  noting.Answer({.code = absl::StatusCode::kFailedPrecondition, .message = "not here yet"});
  CHECK(absl::IsFailedPrecondition(Send(*link, Block(0, 1, 1))));
  noting.Answer({.hold = true, .message = ""});
  auto asked = Begin(*link, Block(0, 1, 1));
  // The block is not sent: the same answer comes at once.
  const absl::Status second = Send(*link, Block(1, 1, 1));
  CHECK(second == absl::FailedPreconditionError("not here yet"));
  noting.Answer({});
  REQUIRE(asked.wait_for(kLimit) == std::future_status::ready);
  CHECK(asked.get().ok());
  CHECK(Send(*link, Block(1, 1, 1)).ok());
  link->Close();
  MutexLock lock(noting.mutex);
  CHECK(noting.frames.size() == 3);
}

TEST_CASE("what waits behind a block that is refused is not sent, and fails at once") {
  Served sender;
  Noting noting(false);
  const auto link = noting.Link(sender);
  noting.Answer({.hold = true, .message = ""});
  auto first = Begin(*link, Block(0, 1, 1));
  // Larger than what can be in flight while the peer does not read.
  HeldBlock large = Block(0, 2, 2);
  large.values.weights = FloatPool::Make(8 << 20)->Take();
  auto second = Begin(*link, std::move(large));
  auto third = Begin(*link, Block(1, 1, 1));
  noting.Answer({.then_hold = true,
                 .code = absl::StatusCode::kFailedPrecondition,
                 .message = "not here yet"});
  for (auto* refused : {&first, &third}) {
    REQUIRE(refused->wait_for(kLimit) == std::future_status::ready);
    CHECK(absl::IsFailedPrecondition(refused->get()));
  }
  noting.Answer({});
  REQUIRE(second.wait_for(kLimit) == std::future_status::ready);
  CHECK(second.get().ok());
  CHECK(Send(*link, Block(1, 1, 1)).ok());
  link->Close();
  MutexLock lock(noting.mutex);
  CHECK(noting.frames.size() == 3);
}

TEST_CASE("that the way to a replica breaks under a block is said, once until it is whole again") {
  testing::LogCapture log;
  Served sender;
  std::shared_ptr<ReplicaLink> link;
  {
    Noting noting(false);
    link = noting.Link(sender);
    REQUIRE(Send(*link, Block(0, 1, 1)).ok());
  }
  CHECK(absl::IsUnavailable(Send(*link, Block(1, 7, 2))));
  CHECK(absl::IsUnavailable(Send(*link, Block(1, 7, 2))));
  link->Close();
  CHECK_THAT(log.text(), Catch::Contains("block 1, version 7 is not there yet"));
  CHECK(log.text().find("has broken") == log.text().rfind("has broken"));
}

TEST_CASE("what is no answer ends the stream, and the next one begins anew") {
  Served sender;
  Noting noting(false);
  const auto link = noting.Link(sender);
  noting.Answer({.message = "\xff, which is not UTF-8"});
  CHECK(absl::IsUnavailable(Send(*link, Block(0, 1, 1))));
  noting.Answer({});
  CHECK(Send(*link, Block(0, 1, 1)).ok());
  link->Close();
}

}  // namespace
}  // namespace leeway::replica_link
