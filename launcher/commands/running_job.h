// Finds the coordinator of a running job, and asks it with patience.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/security/settings.h"

namespace leeway {

// Returns the folder on this machine in which a running job's launcher leaves files for other
// commands. It is `target` if that is a folder, or the default folder for s3://BUCKET/PREFIX
// (PlaceOfRun).
absl::StatusOr<std::string> FolderHere(const std::string& target);
// Returns the address of the coordinator. If `target` is HOST:PORT, this is `target`. If `target`
// is a run folder (FolderHere), the address is in a file there while the job runs. Returns
// NOT_FOUND if no job that leeway train started runs there. Returns INVALID_ARGUMENT if `target` is
// neither a folder nor an address, or if its host is not known.
absl::StatusOr<std::string> FindCoordinator(const std::string& target);

// Returns an ending for the error that `target` does not exist. The ending suggests a run in
// ./runs: one with a similar name, or else the latest. Returns an empty string if there are no
// runs.
std::string RunsHere(const std::string& target);

// Calls `ask` until the coordinator answers or `deadline` is near, because the coordinator may be
// restarting. Prints once that there is no answer yet. `address` is the result of FindCoordinator
// for `target`. Returns UNAVAILABLE at once if `target` is a run folder whose launcher has ended,
// because then nothing restarts the coordinator.
absl::Status AskUntilHeard(const std::string& target, const std::string& address, Time deadline,
                           const std::function<absl::Status()>& ask);
// Returns the error for a coordinator that does not answer at `address`, the address in the run
// folder `target`.
absl::Status NobodyAnswers(const std::string& target, const std::string& address);
// Returns whether `status` means that the coordinator did not answer.
bool IsSilence(const absl::Status& status);

// Calls FindCoordinator and sets this process's token and certificates for the coordinator. They
// come from `flags`. If `flags` do not set them and `target` is a run folder, they come from the
// launcher's files in that folder.
absl::StatusOr<std::string> ReachCoordinator(const std::string& target, SecurityFlags flags);

}  // namespace leeway
