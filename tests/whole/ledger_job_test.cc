// Compares what workers were told with what is in the weights, while servers die, leave and come,
// and a worker's next life begins. tests/chaos/ledger.py does the same with real processes and
// random kills.
#include <optional>
#include <set>
#include <utility>

#include "common/identity.h"
#include "tests/chaos/ledger_life.h"
#include "tests/whole/trouble_rig.h"

namespace leeway::ledger_job {
namespace {

using testing::DigitsJob;
using testing::InTrouble;
using testing::JobResult;
using testing::LedgerWorker;
using testing::TroubleRig;

constexpr uint64_t kBlocks = 4;
constexpr uint64_t kClocks = 300;

// Contributions by (rank, clock).
using Contributions = std::set<std::pair<uint32_t, uint64_t>>;
struct Verdict {
  // Lost: acknowledged, but not exactly once in each block, or acknowledged more than once. Twice:
  // more than once in a block.
  Contributions lost, twice;
  // In some block, but the worker's life ended before it was told.
  Contributions untold;
};

// Workers with a ledger. Once the trouble is over their steps take no time.
class LedgerRig : public TroubleRig {
 public:
  explicit LedgerRig(const v1::TrainingJob& job) : TroubleRig(job) {
    run_worker = [this](const WorkerOptions& options) { return Live(options); };
  }

  std::optional<uint64_t> forget_at, repeat_at;
  std::atomic<bool> over = false;

  Verdict Judge(const std::vector<float>& book) const {
    Verdict verdict;
    const uint64_t block = book.size() / kBlocks, places = block / job_.workers().count();
    for (uint32_t rank = 0; rank < job_.workers().count(); ++rank) {
      for (uint64_t clock = 0; clock < places; ++clock) {
        const auto told = told_.find({rank, clock});
        for (uint64_t at = rank * places + clock; at < book.size(); at += block) {
          if (book[at] > 1) verdict.twice.emplace(rank, clock);
          if (told != told_.end() && book[at] < 1) verdict.lost.emplace(rank, clock);
          if (told == told_.end() && book[at] > 0) verdict.untold.emplace(rank, clock);
        }
        if (told != told_.end() && told->second > 1) verdict.lost.emplace(rank, clock);
      }
    }
    return verdict;
  }
  size_t told() const { return told_.size(); }

 private:
  WorkerEnd Live(const WorkerOptions& options) {
    LedgerWorker worker{.coordinator = options.coordinator,
                        .rank = *options.rank,
                        .blocks = kBlocks,
                        .push_every = 1,
                        .unary = true,
                        .forget_at = forget_at,
                        .repeat_at = repeat_at};
    // The job must outlast every trouble.
    worker.compute = [this](uint64_t clock) {
      if (!over) Step();
      if (!over && clock > kClocks / 3) Pause(std::chrono::milliseconds(100));
    };
    worker.tell = [this, &options](const v1::RegisterWorkerReply&, uint64_t clock) {
      MutexLock lock(mutex_);
      ++told_[{*options.rank, clock}];
      return absl::OkStatus();
    };
    while (true) {
      worker.nonce = RandomIdentity();
      const absl::Status ended = RunLedgerWorker(worker);
      if (ended.ok()) return {};
      if (absl::IsAborted(ended)) return {WorkerExit::kReplaced, ended};
      if (absl::IsDataLoss(ended)) return {WorkerExit::kPermanent, ended};
    }
  }

  Mutex mutex_;
  // How often each contribution was acknowledged. Not guarded once the workers have ended.
  std::map<std::pair<uint32_t, uint64_t>, int> told_;
};

v1::TrainingJob Job(const std::string& mode) {
  return DigitsJob(InTrouble(
      {"consistency=" + mode, "update={type: sgd, learning_rate: 1, scaling: linear}",
       "data.batch_size=1", "servers={count: 2, replicas: 2, shards: 4, block_bytes: 8192}",
       "stop={clocks: " + std::to_string(kClocks) + "}"}));
}

void CheckEnds(const JobResult& result) {
  for (const auto& server : result.servers) CHECK(server == absl::OkStatus());
  for (const auto& worker : result.workers) {
    INFO(worker.status.ToString());
    // When two lives of a rank run, the one that registers last stays.
    CHECK((worker.exit == WorkerExit::kDone || worker.exit == WorkerExit::kReplaced));
  }
}

// Before each kill every block has two holders.
void Trouble(TroubleRig& rig) {
  rig.Kill(1);
  rig.StartAgain(1);
  rig.Resize(3);
  rig.Start(2);
  rig.WaitForEvents("resized", 1);
  rig.Drain(1);
  rig.StartAgain(1);
  const int registered = rig.Events("worker_registered");
  rig.ReplaceWorker(1);
  rig.WaitForEvents("worker_registered", registered + 1);
  rig.Kill(0);
  rig.StartAgain(0);
  rig.Resize(2);
  rig.WaitForEvents("resized", 2);
}

TEST_CASE("Whatever is told is in the weights, once, through kills, drains, moves and new lives") {
  const auto mode = GENERATE(as<std::string>(), "{mode: async}", "{mode: bounded, staleness: 3}");
  CAPTURE(mode);
  LedgerRig rig(Job(mode));
  rig.meanwhile = [&rig](const std::string&) {
    rig.Forward();
    Trouble(rig);
    rig.over = true;
  };
  const JobResult result = rig.Run();
  CheckEnds(result);
  CHECK(rig.Events("went_back") == 0);
  const Verdict verdict = rig.Judge(result.weights);
  CHECK(rig.told() > kClocks);
  CHECK(verdict.lost == Contributions());
  CHECK(verdict.twice == Contributions());
  CHECK(verdict.untold.size() <= static_cast<size_t>(rig.Events("worker_registered") - 2));
}

TEST_CASE("The book shows what was told and is not there, and what is there twice") {
  LedgerRig rig(Job("{mode: async}"));
  rig.over = true;
  const bool forgets = GENERATE(true, false);
  (forgets ? rig.forget_at : rig.repeat_at) = 50;
  const JobResult result = rig.Run();
  CheckEnds(result);
  const Verdict verdict = rig.Judge(result.weights);
  const Contributions none;
  CHECK(verdict.lost == (forgets ? Contributions{{0, 50}, {1, 50}} : none));
  CHECK(verdict.twice == (forgets ? none : Contributions{{0, 49}, {1, 49}}));
}

}  // namespace
}  // namespace leeway::ledger_job
