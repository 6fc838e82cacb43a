// A server's stream as a stock client sees it, over real gRPC.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/server.h>

#include "common/rpc/channel.h"
#include "common/rpc/local_sockets.h"
#include "common/service/server_queue.h"
#include "common/shm/shared_memory.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "server/service/parameter_service.h"
#include "tests/catch.h"
#include "tests/server/shard/no_cuts.h"

namespace leeway::testing {

inline constexpr uint64_t kJob = 7;
inline constexpr uint64_t kStreamBlock = 512;
inline constexpr uint32_t kBlocks = 3;

inline std::string Bytes(float value) {
  const std::vector<float> values(kStreamBlock, value);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// One server of a job with learning rate 1 and every weight 10.
struct Served {
  // With `peer` the server is in the process of this worker.
  explicit Served(v1::ConsistencyMode mode, uint32_t workers = 1,
                  std::optional<uint32_t> peer = std::nullopt) {
    Shard::Options options;
    options.job.mutable_exchange()->mutable_gradient();
    options.job.mutable_consistency()->set_mode(mode);
    options.job.mutable_update()->mutable_sgd();
    options.job.mutable_update()->set_learning_rate(1);
    options.job.mutable_data()->set_batch_size(10);
    options.job.mutable_workers()->set_count(workers);
    options.job.mutable_servers()->set_count(1);
    options.schema.set_total(kStreamBlock * kBlocks);
    options.schema.set_trained(kStreamBlock * kBlocks);
    options.length.set_steps_per_clock(1);
    options.length.set_clocks(10);
    options.length.set_steps_per_epoch(10);
    options.block_elements = kStreamBlock;
    options.memory = *SharedArena::Create(1 << 20);
    shard = *Shard::Make(options, &cuts);
    service.table().Serve(kJob, 0, shard);
    if (peer) service.ServePeers(*peer);
    grpc::ServerBuilder builder;
    int port = 0;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    AddLocalPort(local_address, builder);
    builder.RegisterService(&service);
    queue = std::make_unique<ServerQueue>(builder);
    server = builder.BuildAndStart();
    REQUIRE(port != 0);
    service.Await(queue.get());
    queue->Start();
    address = "127.0.0.1:" + std::to_string(port);
    stub = v1::ParameterServer::NewStub(MakeChannel(address));
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
  std::shared_ptr<Shard> shard;
  ParameterService service;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::string address;
  const std::string local_address = NewLocalAddress();
  std::unique_ptr<v1::ParameterServer::Stub> stub;
};

// One stream to it.
class Client {
 public:
  explicit Client(Served& served) : Client(*served.stub) {}
  explicit Client(v1::ParameterServer::Stub& stub) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    stream_ = stub.Exchange(&context_);
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
    request.set_payload_bytes(kStreamBlock * sizeof(float));
    return request;
  }
  void Send() {
    REQUIRE(stream_->Write(frame));
    frame.Clear();
  }
  // Sends the frame and reads until there are `count` replies, which are returned in the order of
  // their ids. Their payloads are left in `payloads`.
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
  // Reads until the request has a reply. Returns false if the stream ends before.
  bool GetsReply(uint64_t id) {
    v1::ReplyFrame received;
    while (stream_->Read(&received)) {
      for (const v1::StreamReply& reply : received.replies()) {
        if (reply.id() == id) return true;
      }
    }
    return false;
  }
  void Initialize() {
    for (uint32_t block = 0; block < kBlocks; ++block) {
      AddWithValues(v1::EXCHANGE_METHOD_INITIALIZE, block, 10);
    }
    for (const v1::StreamReply& reply : Ask(kBlocks)) REQUIRE(reply.code() == 0);
  }
  // Returns the status with which the server ended the stream.
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
  explicit Memory(float value) : vector(MakeFloats(arena.get(), kStreamBlock)) {
    std::fill(vector.data(), vector.data() + kStreamBlock, value);
  }
  void Share(v1::StreamRequest& request) const {
    request.mutable_shared()->set_offset(arena->OffsetOf(vector.data()));
    request.mutable_shared()->set_bytes(kStreamBlock * sizeof(float));
  }

  std::shared_ptr<SharedArena> arena = *SharedArena::Create(1 << 20);
  FloatBuffer vector;
};

}  // namespace leeway::testing
