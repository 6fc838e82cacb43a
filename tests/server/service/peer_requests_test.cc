// Requests between workers on a stream: what a stock client sees, over real gRPC.
#include <algorithm>
#include <vector>

#include "server/service/stream_session.h"
#include "tests/absurd.h"
#include "tests/catch.h"
#include "tests/server/service/stream_rig.h"

namespace leeway::peer_requests {
namespace {

using Catch::Contains;
using testing::Bytes;
using testing::Client;
using testing::kBlocks;
using testing::kJob;
using testing::kStreamBlock;
using testing::Memory;
using testing::Served;

// The worker in the server's process; the client is worker 0.
constexpr uint32_t kAsked = 1;

struct Peer {
  Peer() : served(v1::CONSISTENCY_MODE_ASYNC, 2, kAsked) {
    service().peers()->pieces.Open(kJob, 0, layout());
    service().peers()->meetings.Open(kJob, 0, layout(), std::vector<float>(layout().total(), 10));
  }
  const BlockLayout& layout() { return served.shard->store().layout(); }
  ParameterService& service() { return served.service; }
  void Publish(const PieceName& name, float value) {
    const std::span<float> values = service().peers()->pieces.Prepare(name);
    std::fill(values.begin(), values.end(), value);
    service().peers()->pieces.Publish(name, 30, 0);
  }
  float Weight(uint32_t block) {
    std::vector<float> none(kStreamBlock), weights(kStreamBlock);
    service().peers()->meetings.Subtract(block, none, weights);
    return weights[0];
  }

  Served served;
};

TEST_CASE("a fetch is answered when its piece is there, with its examples") {
  Peer peer;
  Client client(peer.served);
  peer.Publish({v1::PIECE_WEIGHTS, 4, 1}, 6);
  v1::StreamRequest& sum = client.Add(v1::EXCHANGE_METHOD_FETCH, 1, 4);
  sum.set_wants_acceptance(true);
  client.Add(v1::EXCHANGE_METHOD_FETCH, 1, 4).set_piece(v1::PIECE_WEIGHTS);
  const auto first = client.Ask(2);
  CHECK(first[0].accepted());
  CHECK(first[1].version().version() == 4);
  CHECK(client.payloads[first[1].id()] == Bytes(6));
  peer.Publish({v1::PIECE_SUM, 4, 1}, 5);
  const auto second = client.Read(1);
  CHECK(second[0].id() == first[0].id());
  CHECK(second[0].version().examples() == 30);
  CHECK(client.payloads[second[0].id()] == Bytes(5));
}

TEST_CASE("a peer of the same host reads a piece where it lies") {
  Peer peer;
  Client client(peer.served);
  const Memory memory(0);
  *client.frame.mutable_offer() = memory.arena->Offer();
  client.Send();
  peer.Publish({v1::PIECE_SUM, 0, 2}, 5);
  client.Add(v1::EXCHANGE_METHOD_FETCH, 2);
  const auto replies = client.Ask(1);
  REQUIRE(client.answer.mapped());
  REQUIRE(replies[0].has_shared());
  const auto mapping = SharedMapping::Map(client.answer.offer());
  REQUIRE(mapping.ok());
  const auto values = (*mapping)->Floats(replies[0].shared().offset(), replies[0].shared().bytes());
  REQUIRE(values.ok());
  CHECK(values->size() == kStreamBlock);
  CHECK(values->front() == 5);
}

TEST_CASE("a meeting answers the block as it was, again when it is repeated, until it is taken") {
  Peer peer;
  Client client(peer.served);
  const bool shared = GENERATE(false, true);
  const Memory memory(20);
  if (shared) {
    *client.frame.mutable_offer() = memory.arena->Offer();
    client.Send();
  }
  const auto meet = [&] {
    if (shared) {
      memory.Share(client.Add(v1::EXCHANGE_METHOD_MEET, 1, 4));
    } else {
      client.AddWithValues(v1::EXCHANGE_METHOD_MEET, 1, 20, 4);
    }
    return client.Ask(1).front();
  };
  const auto checked = [&](const v1::StreamReply& reply) {
    CHECK(reply.code() == 0);
    CHECK(reply.has_shared() == shared);
    if (!shared) CHECK(client.payloads[reply.id()] == Bytes(10));
    return reply.duplicate();
  };
  CHECK_FALSE(checked(meet()));
  CHECK(checked(meet()));
  CHECK(peer.Weight(1) == 15);
  client.Add(v1::EXCHANGE_METHOD_MEET, 1, 4).mutable_header()->set_examples(0);
  const v1::StreamReply taken = client.Ask(1).front();
  CHECK(taken.code() == 0);
  CHECK(taken.payload_bytes() == 0);
  CHECK_FALSE(taken.has_version());
  CHECK(meet().code() == static_cast<int>(absl::StatusCode::kFailedPrecondition));
  CHECK(peer.Weight(1) == 15);
}

TEST_CASE("a process without a worker answers no other worker") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Client client(served);
  client.Initialize();
  client.Add(v1::EXCHANGE_METHOD_FETCH, 0);
  client.AddWithValues(v1::EXCHANGE_METHOD_MEET, 0, 1);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 1);
  const auto replies = client.Ask(3);
  for (const int i : {0, 1}) {
    CHECK(replies[i].code() == static_cast<int>(absl::StatusCode::kUnimplemented));
    CHECK_THAT(replies[i].message(), Contains("this process has no worker"));
  }
  CHECK(client.payloads[replies[2].id()] == Bytes(9));
}

TEST_CASE("only the newest life of a rank of the job is answered, and only during the lease") {
  Peer peer;
  v1::TrainingJob job;
  job.mutable_workers()->set_count(2);
  job.mutable_limits()->set_unread_bytes(1 << 20);
  job.mutable_limits()->set_held_bytes(1 << 20);
  job.mutable_transport()->set_channels(1);
  peer.service().SetLimits(job);
  peer.service().table().lives().Expect(2, [] {});
  peer.service().table().lives().Learn({2, 5});
  peer.Publish({v1::PIECE_SUM, 0, 0}, 5);
  Client client(peer.served);
  const auto code = [&](uint32_t rank, uint64_t incarnation) {
    v1::StreamRequest& request = client.Add(v1::EXCHANGE_METHOD_FETCH, 0);
    request.mutable_header()->set_rank(rank);
    request.mutable_header()->set_incarnation(incarnation);
    return static_cast<absl::StatusCode>(client.Ask(1).front().code());
  };
  CHECK(code(0, 1) == absl::StatusCode::kAborted);
  CHECK(code(0, 3) == absl::StatusCode::kUnavailable);
  CHECK(code(2, 1) == absl::StatusCode::kInvalidArgument);
  CHECK(code(0, 2) == absl::StatusCode::kOk);
  peer.service().table().SetLease(BootTime::min());
  CHECK(code(0, 2) == absl::StatusCode::kUnavailable);
}

TEST_CASE("absurd requests of workers are refused or wait, and end no process") {
  Peer peer;
  const bool meets = GENERATE(false, true);
  v1::StreamRequest whole;
  {
    Client model(peer.served);
    whole = meets ? model.AddWithValues(v1::EXCHANGE_METHOD_MEET, 0, 10)
                  : model.Add(v1::EXCHANGE_METHOD_FETCH, 0);
  }
  whole.set_id(7);
  peer.Publish({v1::PIECE_SUM, 3, 0}, 5);
  uint64_t served = 0, ended = 0;
  for (const testing::Absurd& absurd : testing::AbsurdMaker(whole).Make()) {
    INFO(absurd.name);
    Client client(peer.served);
    client.frame.add_requests()->CopyFrom(*absurd.message);
    if (meets) client.frame.set_payload(Bytes(10));
    // A request after it on the same stream, unless the absurd one ends the stream.
    const uint64_t next = client.Add(v1::EXCHANGE_METHOD_FETCH, 0, 3).id();
    client.Send();
    ++(client.GetsReply(next) ? served : ended);
  }
  CHECK(served > 30);
  CHECK(ended > 0);
  Client good(peer.served);
  good.Add(v1::EXCHANGE_METHOD_FETCH, 0, 3);
  CHECK(good.Ask(1).front().code() == 0);
  // All values were those of the block, so no meeting has moved it.
  for (uint32_t block = 0; block < kBlocks; ++block) CHECK(peer.Weight(block) == 10);
}

TEST_CASE("a payload that is not finite or has another size changes nothing") {
  Peer peer;
  Client client(peer.served);
  client.AddWithValues(v1::EXCHANGE_METHOD_MEET, 0, std::numeric_limits<float>::infinity());
  client.Add(v1::EXCHANGE_METHOD_MEET, 0).set_payload_bytes(8);
  client.frame.mutable_payload()->append(8, '\0');
  client.AddWithValues(v1::EXCHANGE_METHOD_MEET, kBlocks, 1);
  const auto replies = client.Ask(3);
  for (const v1::StreamReply& reply : replies) {
    CHECK(reply.code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
  }
  CHECK_THAT(replies[0].message(), Contains("value 0 (element 0 of the model) is not finite"));
  CHECK_THAT(replies[1].message(), Contains("8 bytes, but the block has 512 values"));
  CHECK_THAT(replies[2].message(), Contains("header.block"));
  CHECK(peer.Weight(0) == 10);
}

TEST_CASE("the memory of a meeting counts in the budget while it is used, and no longer") {
  Peer peer;
  Client client(peer.served);
  client.AddWithValues(v1::EXCHANGE_METHOD_MEET, 0, 20);
  REQUIRE(client.Ask(1).front().code() == 0);
  const ByteBudget::Load load = peer.service().table().budget().load();
  CHECK(load.held_bytes_max >= kStreamBlock * sizeof(float));
  CHECK(load.held_bytes == 0);
}

TEST_CASE("the end answers the fetches that wait") {
  Peer peer;
  Client client(peer.served);
  client.Add(v1::EXCHANGE_METHOD_FETCH, 0).set_wants_acceptance(true);
  CHECK(client.Ask(1).front().accepted());
  peer.service().Close();
  const v1::StreamReply reply = client.Read(1).front();
  CHECK(reply.code() == static_cast<int>(absl::StatusCode::kUnavailable));
  CHECK_THAT(reply.message(), Contains("worker 1 ends"));
}

}  // namespace
}  // namespace leeway::peer_requests
