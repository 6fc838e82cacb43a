// A checkpoint exists once all its parts exist.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::cut {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a manifest is written when every server has reported its part") {
  Scenario job({.cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10).ok());
  REQUIRE(job.Shard(0, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
  REQUIRE(job.Shard(1, 10).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.clock() == 10);
  CHECK(write[0].manifest.schema().total() == 10'000);
  CHECK(write[0].manifest.shards(1).file() == "shard-1");
  CHECK_FALSE(job.core.Status(job.now).has_checkpoint_clock());
  REQUIRE(job.Shard(1, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
  job.core.Answered(ManifestWritten{10, absl::OkStatus()}, job.now);
  CHECK(job.core.Status(job.now).checkpoint_clock() == 10);
}

TEST_CASE("the states of workers that keep some belong to the cut") {
  Scenario job({.cut_every = 10, .elastic = true});
  job.Start();
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  REQUIRE(job.State(0, 10).ok());
  REQUIRE(job.State(0, 20).ok());
  CHECK(job.Take<WriteManifest>().empty());
  REQUIRE(job.State(1, 10).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.worker_states_size() == 2);
  CHECK(write[0].adopt.empty());
}

TEST_CASE("outside of sync a cut takes what each worker has handed in last, and waits for none") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .cut_every = 10, .elastic = true});
  job.Start();
  REQUIRE(job.State(0, 20).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  REQUIRE(write[0].manifest.worker_states_size() == 1);
  CHECK(write[0].manifest.worker_states(0).rank() == 0);
  CHECK(write[0].adopt.size() == 1);
}

TEST_CASE("of two states at one clock the first counts: a new life has nothing better") {
  Scenario job({.cut_every = 10, .elastic = true});
  job.Start();
  REQUIRE(job.State(0, 10, "first").ok());
  REQUIRE(job.State(0, 10, "second").ok());
  REQUIRE(job.State(1, 10).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.worker_states(0).file().file() == "first");
}

TEST_CASE("a worker that has left is in later cuts with its last state") {
  Scenario job({.mode = v1::CONSISTENCY_MODE_ASYNC, .cut_every = 10, .elastic = true});
  job.Start();
  job.core.StopJob("", job.now);
  REQUIRE(job.State(0, 15).ok());
  REQUIRE(job.Leave(0, 15, v1::LEAVE_STOPPED).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  REQUIRE(job.State(1, 20).ok());
  auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  REQUIRE(write[0].adopt.size() == 1);
  CHECK(write[0].adopt[0].from_clock == 15);
  job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
  // The folder of clock 15 may be removed now: the next cut takes the state from the folder of
  // clock 20.
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 30).ok());
  REQUIRE(job.State(1, 30).ok());
  write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].adopt.at(0).from_clock == 20);
}

// Saves both servers' parts. Returns the manifest's state of rank 1, and whether it is in another
// folder.
std::pair<std::string, bool> StateIn(Scenario& job, uint64_t clock) {
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, clock).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  for (const v1::SavedWorkerState& state : write[0].manifest.worker_states()) {
    if (state.rank() == 1) return {state.file().file(), !write[0].adopt.empty()};
  }
  return {};
}

const JobShape kAsync{.mode = v1::CONSISTENCY_MODE_ASYNC, .cut_every = 10, .elastic = true};

void GoBack(Scenario& job) {
  REQUIRE(job.Server(1, 2).ok());
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Worker(i, 100 + i).ok());
}

TEST_CASE(
    "outside of sync only what is in the newest cut survives going back, whatever its clock") {
  Scenario job(kAsync);
  job.Start();
  SECTION("what was saved before the cut, but is not in it, does not") {
    CHECK(StateIn(job, 20).first.empty());
    // The worker was at clock 8 when the mean was 20.
    REQUIRE(job.State(1, 10, "dead").ok());
    job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
    GoBack(job);
    CHECK(StateIn(job, 30) == std::pair<std::string, bool>("", false));
  }
  SECTION("what is in it does, and not what came later") {
    REQUIRE(job.State(1, 30, "in it").ok());
    CHECK(StateIn(job, 20) == std::pair<std::string, bool>("in it", true));
    job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
    REQUIRE(job.State(1, 40, "later").ok());
    GoBack(job);
    CHECK(StateIn(job, 30) == std::pair<std::string, bool>("in it", true));
    job.core.Answered(ManifestWritten{30, absl::OkStatus()}, job.now);
    // A state of the new generation, although its clock is not later.
    REQUIRE(job.State(1, 30, "again").ok());
    CHECK(StateIn(job, 40).first == "again");
  }
}

TEST_CASE("a state that comes while a cut is written with the one before it lies where it came") {
  Scenario job(kAsync);
  job.Start();
  REQUIRE(job.State(1, 10, "old").ok());
  CHECK(StateIn(job, 20).first == "old");
  REQUIRE(job.State(1, 30, "new").ok());
  job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 40).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.worker_states(0).file().file() == "new");
  CHECK(write[0].adopt.at(0).from_clock == 30);
}

TEST_CASE("outside of sync a resumed job's first cut has the states of the one it goes on from") {
  CoordinatorOptions options = TestOptions(kAsync);
  options.resumed.emplace();
  options.resumed->manifest.set_clock(20);
  *options.resumed->manifest.mutable_schema() = TestSchema();
  v1::SavedWorkerState* state = options.resumed->manifest.add_worker_states();
  state->set_rank(1);
  *state->mutable_file() = TestFile("worker-1-life-1.lwck");
  Scenario job(options);
  job.Start();
  CHECK(StateIn(job, 30) == std::pair<std::string, bool>("worker-1-life-1.lwck", true));
}

TEST_CASE("a cut older than one in writing is not begun any more, unless that one fails") {
  Scenario job({.cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  CHECK(job.Take<WriteManifest>().size() == 1);
  REQUIRE(job.Shard(1, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
  job.core.Answered(ManifestWritten{20, absl::UnavailableError("full")}, job.now);
  CHECK(job.Take<WriteManifest>().size() == 1);
}

TEST_CASE("a cut with an error never completes") {
  Scenario job({.cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10, "no space left").ok());
  CHECK(job.EventNames().back() == "checkpoint_failed");
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
  CHECK(job.EventNames().empty());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  CHECK(job.Take<WriteManifest>().size() == 1);
}

TEST_CASE("two different parts of one server spoil the cut") {
  Scenario job({.cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10).ok());
  CHECK(absl::IsFailedPrecondition(job.Shard(0, 10, "", "other")));
  REQUIRE(job.Shard(1, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
}

TEST_CASE("a newer complete cut retires older ones") {
  Scenario job({.cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
  job.Take<WriteManifest>();
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
}

TEST_CASE("a worker that has left is in earlier cuts only with its state of then") {
  Scenario job({.cut_every = 10, .elastic = true});
  job.Start();
  job.core.StopJob("", job.now);
  REQUIRE(job.State(0, 25).ok());
  REQUIRE(job.Leave(0, 25, v1::LEAVE_STOPPED).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  REQUIRE(job.State(1, 20).ok());
  CHECK(job.Take<WriteManifest>().empty());
  REQUIRE(job.State(0, 20).ok());
  CHECK(job.Take<WriteManifest>().size() == 1);
}

TEST_CASE("a cut whose parts do not come is given up in time, naming them") {
  Scenario job({.cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 10).ok());
  job.Pass(301, {0, 1});
  const auto events = job.Take<Event>();
  CHECK(events.back().name == "checkpoint_failed");
  CHECK_THAT(events.back().message, Contains("shard 1 (server 1)"));
  REQUIRE(job.Shard(1, 10).ok());
  CHECK(job.Take<WriteManifest>().empty());
}

TEST_CASE("parts of cuts that cannot be are refused") {
  Scenario job({.clocks = 100, .cut_every = 10});
  job.Start();
  CHECK(absl::IsInvalidArgument(job.Shard(0, 15)));
  CHECK(absl::IsInvalidArgument(job.Shard(0, 0)));
  CHECK(absl::IsInvalidArgument(job.Shard(0, 110)));
  CHECK(absl::IsInvalidArgument(job.Shard(2, 10)));
  CHECK(absl::IsInvalidArgument(job.State(0, 101)));
}

TEST_CASE("a last cut that is there already is not written again") {
  Scenario job({.clocks = 20, .cut_every = 10});
  job.Start();
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  SECTION("complete") {
    job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
    for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
    CHECK(job.Take<SaveAll>().empty());
    CHECK(job.core.state() == v1::JOB_FINISHED);
  }
  SECTION("its manifest in writing") {
    for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
    CHECK(job.Take<SaveAll>().empty());
    CHECK(job.core.state() == v1::JOB_STOPPING);
    job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
    CHECK(job.core.state() == v1::JOB_FINISHED);
  }
}

TEST_CASE("of a periodic cut at the last clock, half reported, all parts are asked for again") {
  Scenario job({.clocks = 20, .cut_every = 10});
  job.Start();
  REQUIRE(job.Shard(0, 20).ok());
  for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
  CHECK(job.Take<SaveAll>().size() == 1);
  REQUIRE(job.Shard(1, 20).ok());
  CHECK(job.Take<WriteManifest>().empty());
  for (uint32_t i = 0; i < 2; ++i)
    job.core.Answered(SaveDone{i, 0, 20, TestFile("again")}, job.now);
  CHECK(job.Take<WriteManifest>().size() == 1);
}

TEST_CASE("a last cut that fails fails the job, and says so") {
  Scenario job({.clocks = 20, .elastic = true});
  job.Start();
  SECTION("a server cannot write") {
    for (const uint32_t rank : {0u, 1u}) {
      REQUIRE(job.State(rank, 20).ok());
      REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
    }
    job.core.Answered(SaveDone{0, 0, 20, absl::UnavailableError("no space left")}, job.now);
  }
  SECTION("a worker left without its state") {
    REQUIRE(job.State(0, 20).ok());
    for (const uint32_t rank : {0u, 1u}) REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
    for (uint32_t i = 0; i < 2; ++i) job.core.Answered(SaveDone{i, 0, 20, TestFile("s")}, job.now);
    CHECK_THAT(job.core.Status(job.now).message(), Contains("the state of worker 1"));
  }
  SECTION("it takes too long") {
    for (const uint32_t rank : {0u, 1u}) {
      REQUIRE(job.State(rank, 20).ok());
      REQUIRE(job.Leave(rank, 20, v1::LEAVE_FINISHED).ok());
    }
    job.core.Answered(SaveDone{0, 0, 20, TestFile("s")}, job.now);
    job.Pass(301);
  }
  CHECK(job.core.state() == v1::JOB_FAILED);
  CHECK_THAT(job.core.Status(job.now).message(), Contains("last checkpoint, at clock 20"));
  CHECK(job.Take<ShutdownServers>().size() == 1);
  CHECK(job.Take<WriteManifest>().empty());
}

// A coordinator that hears nobody loses a worker between the worker's last exchange and its state.
TEST_CASE("the last cut waits for a lost worker that is at the stop clock and keeps a state") {
  Scenario job({.elastic = true});
  job.Start();
  job.core.StopJob("", job.now);
  REQUIRE(job.StopAt(0, 4).value() == 5);
  REQUIRE(job.Beat(1, 5).ok());
  REQUIRE(job.State(0, 5).ok());
  REQUIRE(job.Leave(0, 5, v1::LEAVE_STOPPED).ok());
  job.Pass(31);
  CHECK(job.Take<SaveAll>().empty());
  SECTION("back, it hands its state in") {
    REQUIRE(job.State(1, 5).ok());
    REQUIRE(job.Leave(1, 5, v1::LEAVE_STOPPED).ok());
    REQUIRE(job.Take<SaveAll>().size() == 1);
    for (uint32_t i = 0; i < 2; ++i) job.core.Answered(SaveDone{i, 0, 5, TestFile("s")}, job.now);
    CHECK(job.Take<WriteManifest>().at(0).manifest.worker_states_size() == 2);
  }
  SECTION("it never comes back: the others' work is saved without") {
    job.Pass(121);
    CHECK(job.Take<SaveAll>().size() == 1);
  }
}

TEST_CASE("while a manifest is written no other is begun, and after it the newest whole one is") {
  Scenario job(kAsync);
  job.Start();
  REQUIRE(job.State(1, 5).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].adopt.at(0).from_clock == 5);
  for (const uint64_t clock : {30, 40}) {
    for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, clock).ok());
  }
  // The folder may be removed together with that of clock 20.
  CHECK(job.Take<WriteManifest>().empty());
  const absl::Status status =
      GENERATE(absl::OkStatus(), absl::ResourceExhaustedError("no space left"));
  job.core.Answered(ManifestWritten{20, status}, job.now);
  write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].manifest.clock() == 40);
  CHECK(write[0].adopt.at(0).from_clock == (status.ok() ? 20 : 5));
}

TEST_CASE("the folder of a state that a manifest in writing names is needed, though a newer came") {
  Scenario job(kAsync);
  job.Start();
  REQUIRE(job.State(0, 30).ok());
  REQUIRE(job.State(1, 5).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  REQUIRE(job.Take<WriteManifest>().size() == 1);
  REQUIRE(job.State(1, 12).ok());
  CHECK(job.core.StateFolders() == std::set<uint64_t>{5, 12, 30});
  job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
  CHECK(job.core.StateFolders() == std::set<uint64_t>{12, 20});
}

TEST_CASE("the folder of a slow worker's newest state is needed, however old it is") {
  Scenario job(kAsync);
  job.Start();
  REQUIRE(job.State(0, 30).ok());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 20).ok());
  job.Take<WriteManifest>();
  // The state comes while the manifest is being written.
  REQUIRE(job.State(1, 12).ok());
  job.core.Answered(ManifestWritten{20, absl::OkStatus()}, job.now);
  CHECK(job.core.StateFolders() == std::set<uint64_t>{12, 20});
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Shard(i, 30).ok());
  const auto write = job.Take<WriteManifest>();
  REQUIRE(write.size() == 1);
  CHECK(write[0].adopt.at(0).from_clock == 12);
  job.core.Answered(ManifestWritten{30, absl::OkStatus()}, job.now);
  CHECK(job.core.StateFolders() == std::set<uint64_t>{30});
}

}  // namespace
}  // namespace leeway::cut
