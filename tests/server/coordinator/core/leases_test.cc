// Leased data: the messages between workers and the coordinator.
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::leases {
namespace {

using Catch::Matchers::Contains;

CoordinatorOptions Options(v1::ConsistencyMode mode, uint64_t cut_every = 0) {
  CoordinatorOptions options =
      TestOptions({.workers = 2, .mode = mode, .clocks = 10, .cut_every = cut_every});
  options.job.mutable_data()->set_assignment(v1::ASSIGNMENT_LEASED);
  options.job.mutable_workers()->set_on_worker_loss(v1::WORKER_LOSS_CONTINUE);
  return options;
}

struct Leases : Scenario {
  struct Unstarted {};
  Leases(CoordinatorOptions options, Unstarted) : Scenario(std::move(options)) {}
  explicit Leases(CoordinatorOptions options) : Scenario(std::move(options)) {
    for (uint32_t i = 0; i < servers; ++i) Server(i).IgnoreError();
    for (uint32_t i = 0; i < workers; ++i) Register(i, 100 + i).IgnoreError();
    Configured();
    for (uint32_t i = 0; i < workers; ++i) REQUIRE(Register(i, 100 + i).ok());
  }
  absl::Status Register(uint32_t rank, uint32_t pid, uint64_t batches = 8, bool schema = true) {
    Carry();
    v1::RegisterWorkerRequest request = WorkerRequest(rank, pid);
    if (!schema) request.clear_schema();
    request.set_batches_per_epoch(batches);
    return Remember(core.RegisterWorker(request, now)).status();
  }
  void Configured() {
    for (const ConfigureServer& command : Take<ConfigureServer>()) {
      core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, now);
    }
  }
  // Asks, with what the rank reports. Returns the intervals that the rank then holds, each as first
  // batch and count.
  absl::StatusOr<v1::LeaseDataReply> Ask(uint32_t rank, uint64_t want,
                                         const std::vector<v1::DoneRange>& done = {}) {
    v1::LeaseDataRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(incarnations.at(rank));
    request.set_generation(generation);
    request.set_want(want);
    for (const v1::DoneRange& range : done) *request.add_done() = range;
    return core.LeaseData(request, now);
  }
  std::string Held(uint32_t rank, uint64_t want, const std::vector<v1::DoneRange>& done = {}) {
    const auto reply = Ask(rank, want, done);
    if (!reply.ok()) return reply.status().ToString();
    std::string text = reply->over() ? "over " : "";
    for (const v1::DataRange& range : reply->held()) {
      absl::StrAppend(&text, range.first(), "+", range.count(), " ");
    }
    return text;
  }
  absl::Status ShardAt(uint32_t server, uint64_t clock, const std::vector<uint64_t>& clocks) {
    v1::ShardSavedRequest request;
    request.set_job(kJob);
    request.set_index(server);
    request.set_clock(clock);
    request.set_generation(generation);
    *request.mutable_shard() = TestFile("shard-" + std::to_string(server));
    request.mutable_shard()->mutable_clocks()->Add(clocks.begin(), clocks.end());
    return core.ShardSaved(request, now);
  }
};

v1::DoneRange Done(uint64_t first, uint64_t count, uint64_t clock) {
  v1::DoneRange range;
  range.set_first(first);
  range.set_count(count);
  range.set_clock(clock);
  return range;
}

TEST_CASE("leases: a lost worker's batches go to the next one that asks, a new life's do too") {
  Leases job(Options(v1::CONSISTENCY_MODE_SYNC));
  CHECK(job.Held(0, 4) == "0+4 ");
  CHECK(job.Held(1, 4) == "4+4 ");
  job.Pass(11, {1});
  CHECK(job.Held(1, 8) == "0+8 ");
  CHECK(job.core.Status(job.now).data().taken_back() == 4);
  REQUIRE(job.Register(1, 300).ok());
  CHECK(job.Held(1, 2) == "0+2 ");
}

TEST_CASE("leases: an async job is over when the batches of its epochs are done") {
  CoordinatorOptions options = Options(v1::CONSISTENCY_MODE_ASYNC);
  options.job.mutable_stop()->set_epochs(1.5);
  Leases job(std::move(options));
  // A quarter of 12 batches.
  CHECK(job.Held(0, 100) == "0+3 ");
  CHECK(job.Held(1, 100) == "3+2 ");
  uint64_t clock = 0;
  while (true) {
    const auto held = job.Ask(0, 100);
    if (held->held().empty()) break;
    for (const v1::DataRange& range : held->held()) {
      job.Ask(0, 0, {Done(range.first(), range.count(), clock++)}).IgnoreError();
    }
  }
  CHECK(job.core.Status(job.now).message() == "the last 2 batches are with worker 1");
  CHECK(job.Held(0, 4) == "");
  CHECK(job.Held(1, 4, {Done(3, 2, 0)}) == "over ");
  CHECK(job.Held(0, 4) == "over ");
  CHECK(job.core.Status(job.now).data().done() == 12);
}

TEST_CASE("leases: after a server is lost what the newest cut has not is handed out again") {
  Leases job(Options(v1::CONSISTENCY_MODE_ASYNC, 2));
  job.Ask(0, 4).IgnoreError();
  job.Ask(1, 4).IgnoreError();
  CHECK(job.Held(0, 4, {Done(0, 1, 0), Done(1, 1, 1)}).substr(0, 3) == "2+2");
  // Both shards have the first contribution of worker 0, and one of them has the second.
  CHECK(job.ShardAt(0, 2, {2, 1}) == absl::OkStatus());
  CHECK(job.ShardAt(1, 2, {1, 1}) == absl::OkStatus());
  const auto written = job.Take<WriteManifest>();
  REQUIRE(written.size() == 1);
  CHECK(written[0].manifest.data().open(0).first() == 1);
  CHECK(written[0].manifest.shards(0).clocks().empty());
  job.core.Answered(ManifestWritten{2, absl::OkStatus()}, job.now);
  job.Ask(0, 4, {Done(2, 2, 2)}).IgnoreError();
  REQUIRE(job.Server(1, 2).ok());
  job.Configured();
  REQUIRE(job.Register(0, 100).ok());
  REQUIRE(job.Register(1, 101).ok());
  CHECK(job.Held(0, 3) == "1+3 ");
}

TEST_CASE("leases: who does not say how long a pass is, or another length, is refused") {
  Leases job(Options(v1::CONSISTENCY_MODE_SYNC));
  CHECK(absl::IsInvalidArgument(job.Register(1, 300, 0)));
  CHECK(absl::IsFailedPrecondition(job.Register(1, 300, 9)));
  // A worker that brings no model still has to report it.
  CHECK(absl::IsInvalidArgument(job.Register(1, 300, 0, false)));
  CHECK(absl::IsFailedPrecondition(job.Register(1, 300, 9, false)));
  Scenario without(JobShape{});
  without.Start();
  v1::LeaseDataRequest request;
  request.set_job(kJob);
  request.set_incarnation(without.incarnations.at(0));
  CHECK(absl::IsFailedPrecondition(without.core.LeaseData(request, without.now).status()));
  request.set_rank(77);
  CHECK_FALSE(without.core.LeaseData(request, without.now).ok());
}

// A job with leased data that is resumed from this manifest.
CoordinatorOptions From(v1::CheckpointManifest manifest, v1::ConsistencyMode mode) {
  CoordinatorOptions options = Options(mode, 2);
  manifest.set_clock(4);
  *manifest.mutable_schema() = TestSchema();
  options.resumed = {manifest, "/run/checkpoints/clock-000000004"};
  return options;
}

v1::CheckpointManifest With(uint64_t batches_per_epoch, uint64_t next) {
  v1::CheckpointManifest manifest;
  manifest.mutable_data()->set_batches_per_epoch(batches_per_epoch);
  manifest.mutable_data()->set_next(next);
  return manifest;
}

std::string WhyItFails(CoordinatorOptions options) {
  Leases job(std::move(options), Leases::Unstarted());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Server(i).ok());
  for (uint32_t i = 0; i < 2; ++i) job.Register(i, 100 + i).IgnoreError();
  CHECK(job.Take<ConfigureServer>().empty());
  CHECK(job.core.state() == v1::JOB_FAILED);
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  return records.back().record.message();
}

TEST_CASE("leases: a checkpoint of other batches is not gone on from, and the numbers are named") {
  const auto mode = GENERATE(v1::CONSISTENCY_MODE_SYNC, v1::CONSISTENCY_MODE_ASYNC);
  const std::string other = WhyItFails(From(With(9, 4), mode));
  CHECK_THAT(other, Contains("clock 4") && Contains("is 9,") && Contains("has 8 batches"));
  CHECK_THAT(other, Contains("data.batch_size"));
  CHECK_THAT(WhyItFails(From({}, mode)), Contains("static") && Contains("clock-000000004"));
  v1::CheckpointManifest broken = With(8, 4);
  broken.mutable_data()->add_open()->set_first(4);
  CHECK_THAT(WhyItFails(From(broken, mode)), Contains("MANIFEST.json, data: open[0]"));
  Leases job(From(With(8, 4), mode));
  CHECK(job.Held(0, 1) == "4+1 ");
}

TEST_CASE("leases: a cut says how many batches make a pass") {
  Leases job(Options(v1::CONSISTENCY_MODE_ASYNC, 2));
  for (uint32_t shard = 0; shard < 2; ++shard) REQUIRE(job.ShardAt(shard, 2, {2, 2}).ok());
  const auto written = job.Take<WriteManifest>();
  REQUIRE(written.size() == 1);
  CHECK(written[0].manifest.data().batches_per_epoch() == 8);
}

TEST_CASE("leases: a job that is taken up by workers without a model knows how long a pass is") {
  CoordinatorOptions options = From(With(8, 4), v1::CONSISTENCY_MODE_ASYNC);
  options.before.emplace().set_steps_per_epoch(10);
  Leases job(std::move(options), Leases::Unstarted());
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Server(i).ok());
  for (uint32_t i = 0; i < 2; ++i) job.Register(i, 100 + i, 8, false).IgnoreError();
  job.Configured();
  for (uint32_t i = 0; i < 2; ++i) REQUIRE(job.Register(i, 100 + i, 8, false).ok());
  CHECK(job.Held(0, 4, {Done(0, 4, 0)}) == "4+4 ");
}

TEST_CASE("leases: shares are of those who are there") {
  CoordinatorOptions options = Options(v1::CONSISTENCY_MODE_ASYNC);
  options.job.mutable_stop()->set_epochs(2);
  Leases job(std::move(options));
  job.Pass(11, {0});
  // Half of 16 batches.
  CHECK(job.Held(0, 100) == "0+8 ");
}

TEST_CASE("leases: a worker has as many clocks as it has batches in them") {
  CoordinatorOptions options = Options(v1::CONSISTENCY_MODE_ASYNC);
  options.job.mutable_exchange()->mutable_delta()->set_local_steps(500);
  options.job.mutable_stop()->set_epochs(100);
  Leases job(std::move(options));
  // 800 batches are done; counted by steps a clock it would be 2.
  CHECK(job.Beat(0, 700).ok());
}

}  // namespace
}  // namespace leeway::leases
