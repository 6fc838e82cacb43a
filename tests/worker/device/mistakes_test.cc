// Mistakes that other programs make with devices, made on purpose in correct code: each is found,
// wherever it is made. fake_device_test.cc has the mistakes that a model cannot make: memory freed
// while it is in use, and a kernel on the host's memory.
#include <vector>

#include "tests/worker/device/device_steps.h"

namespace leeway::testing::mistakes {
namespace {

constexpr uint64_t kSeeds = 10;

bool IsFound(const Outcome& outcome, const Outcome& expected, const FakeDevice& device) {
  return !outcome.status.ok() || !device.status().ok() || !Same(outcome, expected);
}

struct Listed {
  const char* name;
  Mistake mistake;
  // It shows only if the awaited work is not done already.
  bool lazy = false;
  // It does not show in an evaluation, which records one more event before it waits.
  bool in_training = false;
  // In how many copies of a step the missing data is never read. Running statistics are copied to
  // the device, but training does not read them; the last word of the losses is a count that only
  // an evaluation reads.
  uint64_t unread = 0;
};

constexpr Listed kListed[] = {
    {"a missing event", Mistake::kMissingEvent},
    {"a wait before the record", Mistake::kWaitBeforeRecord},
    {"an event that is used again", Mistake::kEventReused, true, true},
    {"a stale counter", Mistake::kStaleCounter, true},
    {"a flag before its data", Mistake::kFlagBeforeData, true, true},
    {"a read of the host's that is early", Mistake::kEarlyHostRead, true},
    {"scratch that a copy still reads", Mistake::kSharedScratch, true},
    {"a pin that is late", Mistake::kLatePin},
    {"an unpin in flight", Mistake::kUnpinInFlight},
    {"a wrong stream", Mistake::kWrongStream, true, false, 2},
    {"a partial tail", Mistake::kPartialTail, false, false, 3},
    {"a frozen step", Mistake::kFrozenStep},
};

TEST_CASE("Each mistake of the list is found wherever it is made, on every seed") {
  for (const Listed& listed : kListed) {
    const Job job{.evaluates = !listed.in_training};
    const Outcome expected = OnCpu(job);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      FakeDeviceOptions options{.seed = seed};
      if (listed.lazy) options.eagerness = 0;
      const auto right = Device(options);
      REQUIRE(Train(job, *right).status.ok());
      const uint64_t occasions = right->occasions(listed.mistake);
      CAPTURE(listed.name, seed, occasions);
      REQUIRE(occasions > 0);
      options.mistake = listed.mistake;
      std::vector<uint64_t> unseen;
      for (uint64_t at = 0; at < occasions; ++at) {
        options.occasion = at;
        const auto wrong = Device(options);
        if (!IsFound(Train(job, *wrong), expected, *wrong)) unseen.push_back(at);
      }
      CAPTURE(unseen);
      CHECK(unseen.size() == listed.unread * job.steps);
    }
  }
}

TEST_CASE("A failure that nobody is told of shows, whatever has failed") {
  const Job job;
  const Outcome expected = OnCpu(job);
  const auto right = Device({});
  REQUIRE(Train(job, *right).status.ok());
  for (uint64_t at = 0; at < right->queued(); ++at) {
    const auto wrong = Device({.mistake = Mistake::kLostError, .fail = at});
    CAPTURE(at);
    CHECK(IsFound(Train(job, *wrong), expected, *wrong));
  }
}

TEST_CASE("A host that takes memory which is in use is found on every seed") {
  const Job job;
  const auto [mistake, why] =
      GENERATE(std::pair(HostMistake::kNextCopyBeforeWait, "what the host still"),
               std::pair(HostMistake::kWeightsOverwritten, "the host begins to write"),
               std::pair(HostMistake::kBatchBufferReused, "the host begins to write"));
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto device = Device({.seed = seed});
    const absl::Status status = Train(job, *device, mistake).status;
    CAPTURE(seed, static_cast<int>(mistake), status);
    REQUIRE(absl::IsInternal(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(why));
  }
}

}  // namespace
}  // namespace leeway::testing::mistakes
