// The limits of a stream, its frames and its unread answers, and what is still let in when the
// server holds as much as it may.
#include <string>

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include "tests/catch.h"
#include "tests/server/service/stream_rig.h"

namespace leeway::stream_limits {
namespace {

using testing::Bytes;
using testing::Client;
using testing::kStreamBlock;
using testing::Memory;
using testing::Served;

v1::TrainingJob Limits(uint64_t held, uint64_t unread, uint32_t channels = 2) {
  v1::TrainingJob job;
  job.mutable_limits()->set_held_bytes(held);
  job.mutable_limits()->set_unread_bytes(unread);
  job.mutable_transport()->set_channels(channels);
  return job;
}

constexpr int kExhausted = static_cast<int>(absl::StatusCode::kResourceExhausted);

TEST_CASE(
    "a server that holds as much as it may refuses, with a hint, what the oldest block does "
    "not need") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  Client client(served);
  client.Initialize();
  // The limit is less than one contribution.
  served.service.SetLimits(Limits(1000, 1 << 20));
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 1, 3);
  const v1::StreamReply refused = client.Ask(1)[0];
  CHECK(refused.code() == kExhausted);
  CHECK(refused.retry_after_ms() == 20);
  CHECK(refused.message() ==
        "worker 0, block 1, clock 0: the server's memory for waiting contributions is full "
        "(limits.held_bytes); block 0 must be completed first; send the request again");

  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 0, 3).set_wants_acceptance(true);
  CHECK(client.Ask(1)[0].accepted());
  CHECK(served.service.table().budget().held() > 0);
  // A repeated contribution is a duplicate whatever is held. The other worker's contribution
  // completes the block.
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 0, 3).set_wants_acceptance(true);
  CHECK(client.Ask(1)[0].accepted());
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 5).mutable_header()->set_rank(1);
  const auto applied = client.Ask(3);
  CHECK_FALSE(applied[0].duplicate());
  CHECK(applied[1].duplicate());
  CHECK(client.payloads[applied[2].id()] == Bytes(6));
  // Then the next contribution is the oldest.
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 1, 3).set_wants_acceptance(true);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 2, 3);
  const auto replies = client.Ask(2);
  CHECK(replies[0].accepted());
  CHECK(replies[1].code() == kExhausted);
  CHECK(served.service.table().budget().load().refused_contributions == 2);
}

TEST_CASE("what is freed leaves room again, and memory of the worker's own costs nothing") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  const Memory mine(3);
  Client client(served);
  *client.frame.mutable_offer() = mine.arena->Offer();
  client.Initialize();
  served.service.SetLimits(Limits(100, 1 << 20));
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 0, 3).set_wants_acceptance(true);
  CHECK(client.Ask(1)[0].accepted());
  CHECK(served.service.table().budget().held() > 100);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 2, 3);
  CHECK(client.Ask(1)[0].code() == kExhausted);
  auto& shared = client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 2);
  mine.Share(shared);
  shared.set_wants_acceptance(true);
  CHECK(client.Ask(1)[0].accepted());
  // The other worker completes block 0, and there is room for block 1.
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 3).mutable_header()->set_rank(1);
  for (const v1::StreamReply& reply : client.Ask(2)) CHECK(reply.code() == 0);
  CHECK(served.service.table().budget().held() == 0);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 1, 3).set_wants_acceptance(true);
  CHECK(client.Ask(1)[0].accepted());
}

TEST_CASE("a unary call that is refused has the hint where gRPC's own retries look for it") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  Client client(served);
  client.Initialize();
  served.service.SetLimits(Limits(1000, 1 << 20));
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 1, 3);
  v1::PushRequest request;
  *request.mutable_header() = client.frame.requests(0).header();
  request.set_payload(client.frame.payload());
  grpc::ClientContext context;
  v1::PushReply reply;
  const grpc::Status status = served.stub->Push(&context, request, &reply);
  CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailing = context.GetServerTrailingMetadata();
  const auto hint = trailing.find("grpc-retry-pushback-ms");
  REQUIRE(hint != trailing.end());
  CHECK(std::string(hint->second.data(), hint->second.size()) == "20");
}

TEST_CASE("a frame of more than a frame may be ends its stream") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Client client(served);
  client.Initialize();
  const bool many = GENERATE(true, false);
  if (many) {
    for (int i = 0; i <= 4096; ++i) client.Add(v1::EXCHANGE_METHOD_PULL, 0).set_latest(true);
  } else {
    client.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 0, 1);
    client.frame.mutable_payload()->append(2 << 20, '\0');
  }
  client.Send();
  CHECK_FALSE(client.End().ok());
  CHECK(served.service.table().budget().held() == 0);
}

TEST_CASE("one stream more than a worker may have ends the one that was heard of longest ago") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  served.service.SetLimits(Limits(1 << 20, 1 << 20, 2));
  Client busy(served);
  busy.Initialize();
  const auto serves = [](Client& client, uint32_t block) {
    client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, block, 1);
    return client.Ask(1)[0].code() == 0;
  };
  Client idle(served);
  CHECK(serves(idle, 0));
  CHECK(serves(busy, 1));
  Client young(served);
  CHECK(serves(young, 2));
  CHECK_FALSE(idle.End().ok());
  CHECK(serves(busy, 2));
  CHECK(serves(young, 1));
}

TEST_CASE("the streams of a life that is replaced end, also while they wait for others") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  Client old(served);
  old.Initialize();
  old.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 1).set_wants_acceptance(true);
  CHECK(old.Ask(1)[0].accepted());
  v1::AttachRequest request;
  request.set_job(testing::kJob);
  request.set_incarnation(2);
  grpc::ClientContext context;
  v1::AttachReply reply;
  REQUIRE(served.stub->Attach(&context, request, &reply).ok());
  CHECK_FALSE(old.End().ok());
}

TEST_CASE(
    "beyond the bound of what a worker does not release of the server's memory values come in "
    "frames, and what is applied is answered") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  const Memory mine(3);
  Client client(served);
  *client.frame.mutable_offer() = mine.arena->Offer();
  client.Initialize();
  constexpr uint64_t kTwoBlocks = 2 * kStreamBlock * sizeof(float);
  served.service.SetLimits(Limits(1 << 20, kTwoBlocks));
  // Each version that this worker reads would otherwise be gone.
  const auto exchange = [&](uint64_t clock) {
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 0, clock));
    return client.Ask(1)[0];
  };
  const v1::StreamReply first = exchange(0);
  CHECK(first.has_shared());
  CHECK(exchange(1).has_shared());
  for (uint64_t clock = 2; clock < 1000; ++clock) {
    const v1::StreamReply reply = exchange(clock);
    REQUIRE(reply.code() == 0);
    REQUIRE_FALSE(reply.has_shared());
    REQUIRE(reply.payload_bytes() == kTwoBlocks / 2);
    REQUIRE(reply.version().version() == clock + 1);
  }
  CHECK(served.service.table().budget().load().refused_unread == 0);
  client.frame.add_released(first.id());
  CHECK(exchange(1000).has_shared());
}

// A client asks without reading, until the server reads no more from it. Then other clients are
// still answered.
TEST_CASE(
    "a worker that does not read is not read from, what waits beyond the limit is taken back, "
    "and the others do not notice") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Client good(served);
  good.Initialize();
  constexpr uint64_t kUnread = 64 << 10;
  served.service.SetLimits(Limits(1 << 20, kUnread));
  // The window stays fixed, so that gRPC does not buffer what the client does not read.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::ParameterServer::NewStub(
      grpc::CreateCustomChannel(served.address, grpc::InsecureChannelCredentials(), arguments));
  Client deaf(*stub);
  // The answers are far larger than that window, the requests smaller.
  constexpr int kAsked = 4;
  constexpr int kPulls = 400;
  for (int i = 0; i < kAsked; ++i) {
    for (int k = 0; k < kPulls; ++k) deaf.Add(v1::EXCHANGE_METHOD_PULL, 0).set_latest(true);
    deaf.Send();
    good.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 0, i);
    CHECK(good.Ask(1)[0].version().version() == static_cast<uint64_t>(i) + 1);
  }
  // As if a long time had passed.
  for (int i = 0; i < 100 && served.service.table().budget().load().refused_unread == 0; ++i) {
    served.service.streams().Tick(std::chrono::steady_clock::now() + std::chrono::hours(1));
    good.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 0, kAsked + i);
    CHECK(good.Ask(1)[0].code() == 0);
  }
  CHECK(served.service.table().budget().load().refused_unread > 0);
  // Once the client reads, it is told which requests to repeat.
  uint64_t answered = 0;
  uint64_t refused = 0;
  for (const v1::StreamReply& reply : deaf.Read(kAsked * kPulls)) {
    if (reply.code() == 0) {
      ++answered;
    } else {
      ++refused;
      CHECK(reply.code() == kExhausted);
      CHECK(reply.retry_after_ms() == 1000);
      CHECK_THAT(reply.message(), Catch::Contains("worker 0 does not read its answers"));
    }
  }
  CHECK(answered > 0);
  CHECK(refused == served.service.table().budget().load().refused_unread);
}

TEST_CASE(
    "an id that is in use ends the stream: its answers could not be told apart, nor counted") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  Client client(served);
  client.Initialize();
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 1).set_id(1000);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 1).set_id(1000);
  client.Send();
  const grpc::Status end = client.End();
  CHECK(end.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(end.error_message() == "id: 1000 is already used by an earlier request");
}

}  // namespace
}  // namespace leeway::stream_limits
