// The stream as a stock client sees it, over real gRPC.
#include "server/stream_session.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/server.h>

#include "common/channel.h"
#include "common/shared_memory.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/parameter_service.h"
#include "server/rpc/server_queue.h"
#include "tests/catch.h"

namespace leeway {
namespace {

constexpr uint64_t kJob = 7;
constexpr uint64_t kBlock = 512;
constexpr uint32_t kBlocks = 3;

class NoCuts : public CutListener {
 public:
  void OnHeld(uint64_t, HeldBlock) override {}
};

std::string Bytes(float value) {
  const std::vector<float> values(kBlock, value);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// One server of a job with learning rate 1 and every weight 10.
struct Served {
  explicit Served(v1::ConsistencyMode mode, uint32_t workers = 1) {
    Shard::Options options;
    options.job.mutable_exchange()->mutable_gradient();
    options.job.mutable_consistency()->set_mode(mode);
    options.job.mutable_update()->mutable_sgd();
    options.job.mutable_update()->set_learning_rate(1);
    options.job.mutable_data()->set_batch_size(10);
    options.job.mutable_workers()->set_count(workers);
    options.job.mutable_servers()->set_count(1);
    options.schema.set_total(kBlock * kBlocks);
    options.schema.set_trained(kBlock * kBlocks);
    options.length.set_steps_per_clock(1);
    options.length.set_clocks(10);
    options.length.set_steps_per_epoch(10);
    options.block_elements = kBlock;
    options.memory = *SharedArena::Create(1 << 20);
    service.Serve(kJob, 0, std::shared_ptr<Shard>(*Shard::Make(options, &cuts)));
    grpc::ServerBuilder builder;
    int port = 0;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    builder.RegisterService(&service);
    queue = std::make_unique<ServerQueue>(builder);
    server = builder.BuildAndStart();
    REQUIRE(port != 0);
    service.Await(queue.get());
    queue->Start();
    stub = v1::ParameterServer::NewStub(MakeChannel("127.0.0.1:" + std::to_string(port)));
  }
  ~Served() { Stop(); }
  void Stop() {
    if (server == nullptr) return;
    service.Close();
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
    server.reset();
  }

  NoCuts cuts;
  ParameterService service;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::ParameterServer::Stub> stub;
};

// One stream to it.
class Client {
 public:
  explicit Client(Served& served) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    stream_ = served.stub->Exchange(&context_);
  }
  ~Client() {
    context_.TryCancel();
    if (stream_ != nullptr) stream_->Finish();
  }

  v1::StreamRequest& Add(v1::ExchangeMethod method, uint32_t block, uint64_t clock = 0) {
    v1::StreamRequest& request = *frame.add_requests();
    request.set_id(++ids_);
    request.set_method(method);
    request.mutable_header()->set_job(kJob);
    request.mutable_header()->set_incarnation(1);
    request.mutable_header()->set_clock(clock);
    request.mutable_header()->set_block(block);
    request.mutable_header()->set_examples(10);
    return request;
  }
  v1::StreamRequest& AddWithValues(v1::ExchangeMethod method, uint32_t block, float value,
                                   uint64_t clock = 0) {
    v1::StreamRequest& request = Add(method, block, clock);
    frame.mutable_payload()->append(Bytes(value));
    request.set_payload_bytes(kBlock * sizeof(float));
    return request;
  }
  void Send() {
    REQUIRE(stream_->Write(frame));
    frame.Clear();
  }
  // Sends, and reads until there are `count` replies, in the order of their ids; their payloads are
  // left in `payloads`.
  std::vector<v1::StreamReply> Ask(size_t count) {
    Send();
    return Read(count);
  }
  std::vector<v1::StreamReply> Read(size_t count) {
    std::vector<v1::StreamReply> replies;
    payloads.clear();
    while (replies.size() < count) {
      v1::ReplyFrame received;
      REQUIRE(stream_->Read(&received));
      if (received.has_answer()) answer = received.answer();
      size_t at = 0;
      for (const v1::StreamReply& reply : received.replies()) {
        payloads[reply.id()] = received.payload().substr(at, reply.payload_bytes());
        at += reply.payload_bytes();
        replies.push_back(reply);
      }
      CHECK(at == received.payload().size());
    }
    CHECK(replies.size() == count);
    std::sort(replies.begin(), replies.end(),
              [](const auto& a, const auto& b) { return a.id() < b.id(); });
    return replies;
  }
  void Initialize() {
    for (uint32_t block = 0; block < kBlocks; ++block) {
      AddWithValues(v1::EXCHANGE_METHOD_INITIALIZE, block, 10);
    }
    for (const v1::StreamReply& reply : Ask(kBlocks)) REQUIRE(reply.code() == 0);
  }
  // The stream's end, as the server told it.
  grpc::Status End() {
    v1::ReplyFrame rest;
    while (stream_->Read(&rest)) {
    }
    const auto ended = std::move(stream_);
    return ended->Finish();
  }

  v1::RequestFrame frame;
  v1::MemoryAnswer answer;
  std::map<uint64_t, std::string> payloads;

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RequestFrame, v1::ReplyFrame>> stream_;
  uint64_t ids_ = 0;
};

// A client's own memory: a vector of one block at `value`, offered to the server.
struct Memory {
  explicit Memory(float value) : vector(MakeFloats(arena.get(), kBlock)) {
    std::fill(vector.data(), vector.data() + kBlock, value);
  }
  void Share(v1::StreamRequest& request) const {
    request.mutable_shared()->set_offset(arena->OffsetOf(vector.data()));
    request.mutable_shared()->set_bytes(kBlock * sizeof(float));
  }

  std::shared_ptr<SharedArena> arena = *SharedArena::Create(1 << 20);
  FloatBuffer vector;
};

TEST_CASE("requests of one frame are answered each for itself, with its own error") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Client client(served);
  client.Initialize();
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 3);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 1, 4);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 2, 1).mutable_header()->set_rank(9);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 2, 1).mutable_header()->set_job(8);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 2, NAN);
  client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 2);
  client.Add(static_cast<v1::ExchangeMethod>(99), 2);
  client.Add(v1::EXCHANGE_METHOD_PULL, 2).set_latest(true);
  const auto replies = client.Ask(8);
  CHECK(replies[0].version().version() == 1);
  CHECK(client.payloads[replies[0].id()] == Bytes(7));
  CHECK(replies[1].code() == 0);
  CHECK(client.payloads[replies[1].id()].empty());
  const auto refused = [&](size_t reply, absl::StatusCode code, const char* text) {
    CHECK(replies[reply].code() == static_cast<int>(code));
    CHECK_THAT(replies[reply].message(), Catch::Contains(text));
  };
  refused(2, absl::StatusCode::kInvalidArgument, "header.rank");
  refused(3, absl::StatusCode::kFailedPrecondition, "header.job");
  refused(4, absl::StatusCode::kInvalidArgument, "not finite");
  refused(5, absl::StatusCode::kInvalidArgument, "payload: 0 values, the block has 512");
  refused(6, absl::StatusCode::kInvalidArgument, "method: 99");
  CHECK(client.payloads[replies[7].id()] == Bytes(10));
}

TEST_CASE("a frame whose payload breaks off ends its stream and no other") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Client good(served);
  good.Initialize();
  {
    Client bad(served);
    bad.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 0, 1).set_payload_bytes(kBlock * 8);
    bad.Send();
    CHECK_FALSE(bad.End().ok());
  }
  good.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 1);
  CHECK(good.Ask(1)[0].version().version() == 1);
  CHECK(good.payloads.begin()->second == Bytes(9));
}

TEST_CASE("who has to wait is told that the request has arrived, where it asks for that") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  Client client(served);
  client.Initialize();
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 2).set_wants_acceptance(true);
  const auto accepted = client.Ask(1);
  CHECK(accepted[0].accepted());
  // The last one has nothing to wait for.
  auto& second = client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 4);
  second.mutable_header()->set_rank(1);
  second.set_wants_acceptance(true);
  const auto replies = client.Ask(2);
  CHECK(replies[0].id() == accepted[0].id());
  for (const v1::StreamReply& reply : replies) {
    CHECK_FALSE(reply.accepted());
    CHECK(client.payloads[reply.id()] == Bytes(7));
  }
}

TEST_CASE("memory that both sides offer carries contributions and versions in place") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Memory mine(3);
  SharedSession session;
  std::shared_ptr<SharedMapping> versions;
  {
    Client client(served);
    *client.frame.mutable_offer() = mine.arena->Offer();
    client.Initialize();
    REQUIRE(client.answer.mapped());
    versions = *SharedMapping::Map(client.answer.offer());
    session = {client.answer.session_offset(), client.answer.session()};

    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1));
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH, 2));
    const auto replies = client.Ask(2);
    REQUIRE(replies[0].has_shared());
    CHECK(client.payloads[replies[0].id()].empty());
    const auto values = versions->Floats(replies[0].shared().offset(), replies[0].shared().bytes());
    REQUIRE(values.ok());
    CHECK(std::vector<float>(values->begin(), values->end()) == std::vector<float>(kBlock, 7));
    CHECK_FALSE(replies[1].has_shared());
    CHECK(versions->SessionStands(session));

    // What is held is not written to: the next version lies elsewhere, and once it is released its
    // memory serves again.
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 1));
    const auto held = client.Ask(1);
    CHECK(held[0].shared().offset() != replies[0].shared().offset());
    CHECK((*values)[0] == 7);
    client.frame.add_released(replies[0].id());
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 2));
    CHECK(client.Ask(1)[0].shared().offset() == replies[0].shared().offset());

    // Found while it is read in place.
    mine.vector.data()[kBlock - 1] = NAN;
    for (auto method : {v1::EXCHANGE_METHOD_PUSH, v1::EXCHANGE_METHOD_PUSH_PULL}) {
      mine.Share(client.Add(method, 1, 3));
      const v1::StreamReply bad = client.Ask(1)[0];
      CHECK(bad.code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
      CHECK_THAT(bad.message(), Catch::Contains("block 1, clock 3: payload: value 511 (element"));
    }
    mine.vector.data()[kBlock - 1] = 3;
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 3));
    const v1::StreamReply good = client.Ask(1)[0];
    CHECK(good.version().version() == 4);
    CHECK(versions->Floats(good.shared().offset(), good.shared().bytes())->back() == 10 - 4 * 3);
    CHECK(versions->SessionStands(session));
  }
  served.Stop();
  // What was not released may have been written to since the stream ended.
  CHECK_FALSE(versions->SessionStands(session));
}

TEST_CASE("an offer that cannot be mapped is refused in words, and payloads go on in frames") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  const Memory mine(3);
  Client client(served);
  *client.frame.mutable_offer() = mine.arena->Offer();
  client.frame.mutable_offer()->set_nonce(1);
  client.Initialize();
  CHECK_FALSE(client.answer.mapped());
  CHECK_FALSE(client.answer.refusal().empty());
  CHECK_FALSE(client.answer.has_offer());
  mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 0));
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 3);
  const auto replies = client.Ask(2);
  CHECK(replies[0].code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
  CHECK(replies[0].message() == "shared: no memory was offered on this stream");
  CHECK(client.payloads[replies[1].id()] == Bytes(7));
}

TEST_CASE("a range outside of the offered memory, or of another size, is refused") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  const Memory mine(3);
  Client client(served);
  *client.frame.mutable_offer() = mine.arena->Offer();
  client.Initialize();
  const uint64_t offset = mine.arena->OffsetOf(mine.vector.data());
  for (const auto& [at, bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, kBlock * 4},
                                                  {uint64_t{1} << 40, kBlock * 4},
                                                  {~uint64_t{0} - 3, kBlock * 4},
                                                  {offset, ~uint64_t{0} - 3},
                                                  {offset + 2, kBlock * 4},
                                                  {offset, kBlock * 4 - 4}}) {
    auto& request = client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 0);
    request.mutable_shared()->set_offset(at);
    request.mutable_shared()->set_bytes(bytes);
  }
  for (const v1::StreamReply& reply : client.Ask(6)) {
    CHECK(reply.code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace leeway
