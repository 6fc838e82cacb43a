// Leased data, as workers and the coordinator speak of it.
#include "tests/catch.h"
#include "tests/server/coordinator/scenario.h"

namespace leeway {
namespace {

CoordinatorOptions Options(v1::ConsistencyMode mode, uint64_t cut_every = 0) {
  CoordinatorOptions options =
      TestOptions({.workers = 2, .mode = mode, .clocks = 10, .cut_every = cut_every});
  options.job.mutable_data()->set_assignment(v1::ASSIGNMENT_LEASED);
  options.job.mutable_workers()->set_on_worker_loss(v1::WORKER_LOSS_CONTINUE);
  return options;
}

struct Leases : Scenario {
  explicit Leases(CoordinatorOptions options) : Scenario(std::move(options)) {
    for (uint32_t i = 0; i < servers; ++i) Server(i).IgnoreError();
    for (uint32_t i = 0; i < workers; ++i) Register(i, 100 + i).IgnoreError();
    Configured();
    for (uint32_t i = 0; i < workers; ++i) REQUIRE(Register(i, 100 + i).ok());
  }
  absl::Status Register(uint32_t rank, uint32_t pid, uint64_t batches = 8) {
    v1::RegisterWorkerRequest request = WorkerRequest(rank, pid);
    request.set_batches_per_epoch(batches);
    return Remember(core.RegisterWorker(request, now)).status();
  }
  void Configured() {
    Seal();
    for (const ConfigureServer& command : Take<ConfigureServer>()) {
      core.ConfigureDone(command.server, command.round, absl::OkStatus(), now);
    }
  }
  // First batches of what the rank holds then, and how many; with what it reports.
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
  // Of 12, a quarter.
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
  // Both have the first contribution of worker 0, one the second.
  CHECK(job.ShardAt(0, 2, {2, 1}) == absl::OkStatus());
  CHECK(job.ShardAt(1, 2, {1, 1}) == absl::OkStatus());
  const auto written = job.Take<WriteManifest>();
  REQUIRE(written.size() == 1);
  CHECK(written[0].manifest.data().open(0).first() == 1);
  CHECK(written[0].manifest.shards(0).clocks().empty());
  job.core.ManifestWritten(2, absl::OkStatus(), job.now);
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
  Scenario without(JobShape{});
  without.Start();
  v1::LeaseDataRequest request;
  request.set_job(kJob);
  request.set_incarnation(without.incarnations.at(0));
  CHECK(absl::IsFailedPrecondition(without.core.LeaseData(request, without.now).status()));
  request.set_rank(77);
  CHECK_FALSE(without.core.LeaseData(request, without.now).ok());
}

}  // namespace
}  // namespace leeway
