// Answers that wait for a worker that is slow or does not read.
#include "server/service/unread_answers.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tests/catch.h"

namespace leeway::unread_answers {
namespace {

constexpr int kExhausted = static_cast<int>(absl::StatusCode::kResourceExhausted);
constexpr uint64_t kMiB = uint64_t{1} << 20;

Time At(int seconds) { return Time(std::chrono::seconds(seconds)); }

struct Rig {
  Rig() { answers.SetRank(3); }
  // Adds a reply with a payload of this number of bytes. Returns false if it is refused.
  bool Add(uint64_t bytes, uint64_t limit) {
    auto memory = std::make_shared<std::string>(bytes, '\0');
    v1::StreamReply& reply = *answers.OpenFrame().add_replies();
    reply.set_id(++ids);
    const std::span<const uint8_t> span(reinterpret_cast<const uint8_t*>(memory->data()), bytes);
    const bool added = answers.AddPayload({span, memory}, limit, reply);
    last = reply;
    return added;
  }
  bool Hold(uint64_t floats, uint64_t limit) {
    if (!answers.may_hold(floats * sizeof(float), limit)) return false;
    answers.Hold(++ids, FloatPool::Make(floats)->Take());
    return true;
  }

  UnreadAnswers answers;
  uint64_t ids = 0;
  v1::StreamReply last;
};

TEST_CASE("answers are worth a frame when one is large, or many small ones have gathered") {
  Rig rig;
  CHECK_FALSE(rig.answers.worth_a_frame());
  const auto leave = [&] {
    while (!rig.answers.empty()) {
      rig.answers.BeginWrite(At(0));
      rig.answers.OnWritten();
    }
  };
  SECTION("one that is large, in the frame or in shared memory, until it leaves") {
    CHECK(rig.Add(16 << 10, kMiB));
    CHECK(rig.Hold((16 << 10) / sizeof(float), kMiB));
    CHECK_FALSE(rig.answers.worth_a_frame());
    CHECK((GENERATE(true, false) ? rig.Add((16 << 10) + 4, kMiB)
                                 : rig.Hold((16 << 10) / sizeof(float) + 1, kMiB)));
    CHECK(rig.answers.worth_a_frame());
  }
  SECTION("sixteen, however small") {
    for (int i = 0; i < 15; ++i) rig.Add(4, kMiB);
    CHECK_FALSE(rig.answers.worth_a_frame());
    rig.Add(4, kMiB);
    CHECK(rig.answers.worth_a_frame());
  }
  SECTION("64 KiB") {
    for (int i = 0; i < 4; ++i) {
      CHECK_FALSE(rig.answers.worth_a_frame());
      rig.Add(16 << 10, kMiB);
    }
    CHECK(rig.answers.worth_a_frame());
  }
  leave();
  CHECK_FALSE(rig.answers.worth_a_frame());
  // A reply that leaves does not count as waiting.
  rig.Add(64 << 10, kMiB);
  rig.answers.BeginWrite(At(0));
  rig.Add(4, kMiB);
  CHECK_FALSE(rig.answers.worth_a_frame());
}

TEST_CASE("a frame that is full is followed by another, and then more waits than one") {
  Rig rig;
  const auto [number, bytes] = GENERATE(table<int, uint64_t>({{512, 4}, {4, 64 << 10}}));
  CHECK_FALSE(rig.answers.crowded());
  for (int i = 0; i < number; ++i) rig.Add(bytes, kMiB);
  CHECK_FALSE(rig.answers.crowded());
  rig.Add(4, kMiB);
  CHECK(rig.answers.crowded());
  rig.answers.BeginWrite(At(0));
  CHECK_FALSE(rig.answers.crowded());
}

TEST_CASE("a large frame on a slow link is no frame that stands still") {
  Rig rig;
  for (int i = 0; i < 3; ++i) CHECK(rig.Add(64 * kMiB, kMiB));
  rig.answers.BeginWrite(At(0));
  // Over 10 Mbit/s it takes 54 s, and over half of that 107 s.
  CHECK(rig.answers.TakeBack(At(132), kMiB) == 0);
  CHECK(rig.Add(1000, kMiB));
  CHECK(rig.answers.TakeBack(At(133), kMiB) == 3);
  CHECK(rig.last.code() == 0);
  CHECK_FALSE(rig.Add(1000, kMiB));
  CHECK(rig.last.code() == kExhausted);
  CHECK(rig.last.message() ==
        "worker 3 does not read its answers, and more answers wait than the limit allows "
        "(limits.unread_bytes); "
        "send the request again");
  CHECK(rig.last.retry_after_ms() == 1000);
  rig.answers.OnWritten();
  CHECK(rig.Add(1000, kMiB));
}

TEST_CASE("a small frame stands still after seconds, what the bound leaves room for stays") {
  Rig rig;
  for (int i = 0; i < 4; ++i) CHECK(rig.Add(256 << 10, kMiB));
  rig.answers.BeginWrite(At(0));
  CHECK_FALSE(rig.answers.beyond(kMiB));
  CHECK(rig.Add(256 << 10, kMiB));
  CHECK(rig.answers.beyond(kMiB));
  CHECK(rig.answers.TakeBack(At(5), kMiB) == 0);
  CHECK(rig.answers.TakeBack(At(6), kMiB) == 1);
  CHECK_FALSE(rig.answers.beyond(kMiB));
  CHECK(rig.answers.TakeBack(At(7), kMiB) == 0);
}

TEST_CASE("versions that are not released are bounded, and the stream is read on") {
  Rig rig;
  CHECK(rig.Hold(1000, 8000));
  CHECK(rig.Hold(1000, 8000));
  CHECK_FALSE(rig.Hold(1000, 8000));
  CHECK_FALSE(rig.answers.beyond(8000));
  CHECK_FALSE(rig.answers.holds(3));
  rig.answers.Release(3);
  rig.answers.Release(2);
  CHECK(rig.Hold(1000, 8000));
  CHECK_FALSE(rig.Hold(1, 8000));
}

TEST_CASE("a bound below one block lets one be read") {
  Rig rig;
  CHECK(rig.Hold(1000, 10));
  CHECK_FALSE(rig.Hold(1, 10));
  rig.answers.Release(1);
  CHECK(rig.Hold(1000, 10));
}

}  // namespace
}  // namespace leeway::unread_answers
