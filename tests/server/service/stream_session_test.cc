// The stream as a stock client sees it, over real gRPC.
#include "server/service/stream_session.h"

#include <chrono>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/server/service/stream_rig.h"
#include "tests/sockets.h"

namespace leeway::stream_session {
namespace {

using testing::Bytes;
using testing::Client;
using testing::kStreamBlock;
using testing::Memory;
using testing::Served;

TEST_CASE("a stream over a unix socket widens it, and one over TCP none") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  const bool local = GENERATE(false, true);
  const auto stub =
      v1::ParameterServer::NewStub(MakeChannel(local ? served.local_address : served.address));
  Client client(*stub);
  client.Initialize();
  CHECK((testing::WidenedSockets() > 0) == local);
  // Where the system's default does not pace there is nothing to see.
  if (testing::NewSocketsPace()) CHECK((testing::SocketsWith("reno") > 0) == !local);
}

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
  refused(5, absl::StatusCode::kInvalidArgument, "payload: 0 values, but the block has 512");
  refused(6, absl::StatusCode::kInvalidArgument, "method: 99");
  CHECK(client.payloads[replies[7].id()] == Bytes(10));
}

TEST_CASE("a frame whose payload breaks off ends its stream and no other") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  Client good(served);
  good.Initialize();
  {
    Client bad(served);
    // No request of such a frame is served.
    bad.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 0, 5);
    const bool large = GENERATE(false, true);
    bad.AddWithValues(v1::EXCHANGE_METHOD_PUSH, 1, 1)
        .set_payload_bytes(large ? uint64_t{1} << 63 : kStreamBlock * 8);
    bad.Send();
    const grpc::Status end = bad.End();
    CHECK(end.error_code() == grpc::StatusCode::DATA_LOSS);
    CHECK(end.error_message() == "RequestFrame: the payload is truncated");
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
  // The last request does not have to wait.
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

TEST_CASE("who waits on is told who is missing, again and again, and need not ask again") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  Client client(served);
  client.Initialize();
  const bool waits_on = GENERATE(true, false);
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 2).set_waits_on(waits_on);
  // This request comes after them, so both have been taken once it is answered.
  client.Add(v1::EXCHANGE_METHOD_PULL, 1).set_latest(true);
  client.Ask(1);
  auto tick = [&, since = std::chrono::steady_clock::now()]() mutable {
    since += std::chrono::seconds(10);
    served.shard->Tick(since);
    return client.Read(1)[0];
  };
  for (int i = 0; i < (waits_on ? 3 : 1); ++i) {
    const v1::StreamReply told = tick();
    CHECK(told.accepted() == waits_on);
    CHECK(told.code() == (waits_on ? 0 : static_cast<int>(absl::StatusCode::kUnavailable)));
    CHECK_THAT(told.message(), Catch::Contains("waiting for worker 1"));
  }
  client.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 4).mutable_header()->set_rank(1);
  for (const v1::StreamReply& reply : client.Ask(waits_on ? 2 : 1)) {
    CHECK(client.payloads[reply.id()] == Bytes(7));
  }
}

TEST_CASE("for whom nobody is there any more a block does not keep a place") {
  Served served(v1::CONSISTENCY_MODE_SYNC, 2);
  {
    Client gone(served);
    gone.Initialize();
    gone.AddWithValues(v1::EXCHANGE_METHOD_PUSH_PULL, 0, 2).set_waits_on(true);
    gone.Add(v1::EXCHANGE_METHOD_PULL, 1).set_latest(true);
    gone.Ask(1);
  }
  // The stream ends at some time. Then the waiting request is refused, and nothing holds the
  // stream.
  const Time later = std::chrono::steady_clock::now() + std::chrono::hours(1);
  const Time give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (served.service.streams().size() > 0) {
    REQUIRE(std::chrono::steady_clock::now() < give_up);
    std::this_thread::yield();
  }
  CHECK(served.shard->waiting() == 1);
  served.shard->Tick(later);
  CHECK(served.shard->waiting() == 0);
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
    CHECK(std::vector<float>(values->begin(), values->end()) ==
          std::vector<float>(kStreamBlock, 7));
    CHECK_FALSE(replies[1].has_shared());
    CHECK(versions->SessionStands(session));

    // Memory that is held is not written to: the next version is elsewhere. Once the memory is
    // released it is used again.
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 1));
    const auto held = client.Ask(1);
    CHECK(held[0].shared().offset() != replies[0].shared().offset());
    CHECK((*values)[0] == 7);
    client.frame.add_released(replies[0].id());
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 2));
    CHECK(client.Ask(1)[0].shared().offset() == replies[0].shared().offset());

    // The server finds it while it reads the value in place.
    mine.vector.data()[kStreamBlock - 1] = NAN;
    for (auto method : {v1::EXCHANGE_METHOD_PUSH, v1::EXCHANGE_METHOD_PUSH_PULL}) {
      mine.Share(client.Add(method, 1, 3));
      const v1::StreamReply bad = client.Ask(1)[0];
      CHECK(bad.code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
      CHECK_THAT(bad.message(), Catch::Contains("block 1, clock 3: payload: value 511 (element"));
    }
    mine.vector.data()[kStreamBlock - 1] = 3;
    mine.Share(client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 1, 3));
    const v1::StreamReply good = client.Ask(1)[0];
    CHECK(good.version().version() == 4);
    CHECK(versions->Floats(good.shared().offset(), good.shared().bytes())->back() == 10 - 4 * 3);
    CHECK(versions->SessionStands(session));
  }
  served.Stop();
  // Memory that was not released may have been written to since the stream ended.
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
  CHECK(replies[0].message() ==
        "worker 0, block 0, clock 0: shared: no memory was offered on this stream");
  CHECK(client.payloads[replies[1].id()] == Bytes(7));
}

TEST_CASE("a range larger than a message is refused before memory of its size is taken") {
  // In this mode the values would be copied.
  Served served(v1::CONSISTENCY_MODE_BOUNDED);
  const auto arena = *SharedArena::Create(uint64_t{1} << 39);
  Client client(served);
  *client.frame.mutable_offer() = arena->Offer();
  client.Initialize();
  REQUIRE(client.answer.mapped());
  auto& request = client.Add(v1::EXCHANGE_METHOD_PUSH, 0);
  request.mutable_shared()->set_offset(4096);
  request.mutable_shared()->set_bytes(uint64_t{1} << 38);
  const auto replies = client.Ask(1);
  CHECK(replies[0].code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
  CHECK_THAT(replies[0].message(), Catch::Contains("for a message"));
}

TEST_CASE("a range outside of the offered memory, or of another size, is refused") {
  Served served(v1::CONSISTENCY_MODE_ASYNC);
  const Memory mine(3);
  Client client(served);
  *client.frame.mutable_offer() = mine.arena->Offer();
  client.Initialize();
  const uint64_t offset = mine.arena->OffsetOf(mine.vector.data());
  for (const auto& [at, bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, kStreamBlock * 4},
                                                  {uint64_t{1} << 40, kStreamBlock * 4},
                                                  {~uint64_t{0} - 3, kStreamBlock * 4},
                                                  {offset, ~uint64_t{0} - 3},
                                                  {offset + 2, kStreamBlock * 4},
                                                  {offset, kStreamBlock * 4 - 4}}) {
    auto& request = client.Add(v1::EXCHANGE_METHOD_PUSH_PULL, 0);
    request.mutable_shared()->set_offset(at);
    request.mutable_shared()->set_bytes(bytes);
  }
  for (const v1::StreamReply& reply : client.Ask(6)) {
    CHECK(reply.code() == static_cast<int>(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace leeway::stream_session
