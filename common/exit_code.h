// The exit codes that `leeway`, `leeway-server` and `leeway-worker` promise to the launcher, to
// scripts and to orchestrators. docs/operations.md (Exit codes) has the table for each program.
#pragma once

namespace leeway {

// The job, or this process's part of it, has finished.
inline constexpr int kExitDone = 0;
// The process failed for a reason that may pass: start it again. Signals and other codes mean the
// same.
inline constexpr int kExitTemporary = 1;
// The arguments, the job file or the configuration are wrong. The process refused them before it
// did anything. Do not retry.
inline constexpr int kExitUsage = 2;
// The failure is permanent: bad data, training diverged, or the job has failed. The same command
// would fail again.
inline constexpr int kExitPermanent = 3;
// The process stopped in order, on request. --resume continues from the checkpoint.
inline constexpr int kExitStopped = 4;
// Another process has taken this one's place in the job. Do not restart this one: it would displace
// the other.
inline constexpr int kExitReplaced = 5;

// SIGTERM ended the process; the code is the shell's. Its machine is going away or is being
// drained. Start the process elsewhere.
inline constexpr int kExitTerminated = 128 + 15;

}  // namespace leeway
