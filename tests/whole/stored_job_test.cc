// A run folder in an object store whose writes fail while the job trains. The same with real
// processes and requests: tests/chaos/stores.py.
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
      if (!fails_ || !writes || (!manifest && ++writes_ % 7 != 0)) return absl::OkStatus();
      return absl::UnavailableError("the test loses " + operation + " of " + location);
    };
    MountStorage("s3://stored-job/", storage_);
  }

  const std::string& folder() const override { return folder_; }
  std::string Metrics() const override {
    std::string lines;
    for (const auto& [location, content] : storage_->files()) {
      if (absl::StartsWith(location, folder_ + "/metrics/")) lines += content;
    }
    return lines;
  }
  // Of what is written, every seventh operation, and each manifest: no checkpoint is complete.
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
  CheckSameBits(rig, sets, [&](TroubleRig&) {
    rig.WaitForEvents("checkpoint", 1);
    rig.Fail(true);
    rig.WaitForEvents("checkpoint_failed", 1);
    rig.Kill(1);
    rig.Start(1);
    rig.WaitForEvents("went_back", 1);
    rig.Fail(false);
    const int checkpoints = rig.Events("checkpoint");
    rig.WaitForEvents("checkpoint", checkpoints + 1);
    const int started = rig.Events("job_started");
    rig.Kill(0);
    rig.Start(0);
    rig.WaitForEvents("job_started", started + 1);
  });
}

}  // namespace
}  // namespace leeway::stored_job
