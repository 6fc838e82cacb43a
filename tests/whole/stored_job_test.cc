// A run folder in an object store whose writes fail while the job trains. tests/chaos/stores.py
// does the same with real processes and requests.
#include "absl/strings/match.h"
#include "server/checkpoint/manifest.h"
#include "tests/common/storage/memory_storage.h"
#include "tests/whole/trouble_rig.h"

namespace leeway::stored_job {
namespace {

using testing::CheckSameBits;
using testing::DigitsJob;
using testing::InTrouble;
using testing::TroubleRig;

class StoredRig : public TroubleRig {
 public:
  explicit StoredRig(const v1::TrainingJob& job) : TroubleRig(job) {
    storage_->fault = [this](const std::string& operation, const std::string& location) {
      const bool writes = operation == "create" || operation == "append" || operation == "finish";
      const bool manifest = operation == "finish" && absl::EndsWith(location, kManifestName);
      if (!fails_ || !writes || (!manifest && ++writes_ % 40 != 0)) return absl::OkStatus();
      return absl::UnavailableError("the test loses " + operation + " of " + location);
    };
    MountStorage("s3://stored-job/", storage_);
  }

  const std::string& folder() const override { return folder_; }
  // While `fails` is set, every 40th write operation fails, and so does each manifest: no
  // checkpoint is completed.
  void Fail(bool fails) { fails_ = fails; }

 private:
  const std::string folder_ = "s3://stored-job/run";
  const std::shared_ptr<MemoryStorage> storage_ = std::make_shared<MemoryStorage>();
  std::atomic<bool> fails_ = false;
  std::atomic<int> writes_ = 0;
};

TEST_CASE("A store that loses writes costs checkpoints and no bits, and the job goes back by it") {
  const std::vector<std::string> sets = {"servers={count: 2, shards: 4, block_bytes: 1024}",
                                         "checkpoint={every: {clocks: 10}}"};
  StoredRig rig(DigitsJob(InTrouble(sets)));
  // Uses the job's status, because lines of metrics reach a store seconds later.
  const auto newest = [&rig] { return rig.Status().checkpoint_clock(); };
  const auto went_back = [&rig](uint64_t times) {
    rig.WaitFor("going back", [&] { return rig.Status().generation() >= times; });
    rig.Forward();
  };
  CheckSameBits(rig, sets, [&](TroubleRig&) {
    rig.WaitFor("a checkpoint", [&] { return newest() > 0; });
    rig.Fail(true);
    // A checkpoint that was under way may be complete.
    rig.Forward(40);
    const uint64_t last = newest();
    rig.Forward(80);
    CHECK(newest() == last);
    rig.Kill(1);
    rig.Start(1);
    went_back(1);
    rig.Fail(false);
    rig.WaitFor("a checkpoint after the trouble", [&] { return newest() > last; });
    rig.Kill(0);
    rig.Start(0);
    went_back(2);
  });
}

}  // namespace
}  // namespace leeway::stored_job
