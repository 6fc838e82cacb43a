// The methods with which a server tries out the object store of its job, while it sends heartbeats
// to the coordinator.
#include <chrono>
#include <thread>

#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "server/node/server_node.h"

namespace leeway {
namespace {

absl::Status PrepareStore(const std::string& run_dir) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(run_dir));
  return storage->Prepare(run_dir);
}

}  // namespace

absl::Status ServerNode::TryRunDir() {
  // A folder is made when the first file is written there, so it needs no trial. For an object
  // store this server's own settings may be wrong. Server 0 tried it out before it made the job.
  if (options_.index == 0 || !IsObjectLocation(run_dir_)) return absl::OkStatus();
  std::thread beats([this] { BeatWhileTrying(); });
  const absl::Status status = PrepareStore(run_dir_);
  {
    MutexLock lock(mutex_);
    tried_run_dir_ = true;
  }
  changed_.NotifyAll();
  beats.join();
  return status;
}

void ServerNode::BeatWhileTrying() {
  const Duration every = HeartbeatsApart();
  while (true) {
    // A coordinator that was killed and restarted knows no servers.
    if (absl::IsFailedPrecondition(Heartbeat({}))) RegisterAgain().IgnoreError();
    MutexLock lock(mutex_);
    const Time next = std::chrono::steady_clock::now() + every;
    while (!tried_run_dir_ && changed_.WaitUntil(mutex_, next)) {
    }
    if (tried_run_dir_) return;
  }
}

}  // namespace leeway
