// The exit codes that `leeway`, `leeway-server` and `leeway-worker` promise to the launcher, to
// scripts and to orchestrators. docs/operations.md (Exit codes) has the table for each program.
#pragma once

namespace leeway {

// The job, or this process's part of it, has finished.
inline constexpr int kExitDone = 0;
// The process failed, but the reason may be temporary, so start the process again. Signals and all
// other codes mean the same.
inline constexpr int kExitTemporary = 1;
// The arguments, the job file or the configuration are wrong. The process refused them before it
// did anything. Do not retry.
inline constexpr int kExitUsage = 2;
// The failure is permanent: bad data, training diverged, or the job has failed. The same command
// would fail again.
inline constexpr int kExitPermanent = 3;
// The process stopped in an orderly way, on request. A start with --resume continues from the
// checkpoint.
inline constexpr int kExitStopped = 4;
// Another process has taken the place of this process in the job. Do not restart this process,
// because it would displace the other process.
inline constexpr int kExitReplaced = 5;

// SIGTERM ended the process, because its machine is going away or is being drained. A shell reports
// the same code. Start the process elsewhere.
inline constexpr int kExitTerminated = 128 + 15;

}  // namespace leeway
