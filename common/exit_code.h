// The exit codes that `leeway`, `leeway-server` and `leeway-worker` promise to whoever runs them:
// the launcher, a shell script, an orchestrator. docs/operations.md (Exit codes) has the table for
// each program.
#pragma once

namespace leeway {

// Finished: the job, or this process's part of it.
inline constexpr int kExitDone = 0;
// Failed for a reason that may pass: start it again. Signals, and codes that are not listed here,
// mean the same.
inline constexpr int kExitTemporary = 1;
// Wrong arguments, job file or configuration: refused before anything was done. Never retried.
inline constexpr int kExitUsage = 2;
// Failed for good: bad data, training diverged, the job has failed. The same command fails again.
inline constexpr int kExitPermanent = 3;
// Stopped in order, because somebody asked for it: --resume goes on from the checkpoint.
inline constexpr int kExitStopped = 4;
// Another process has this one's place in the job. Starting this one again would put that one out.
inline constexpr int kExitReplaced = 5;

// SIGTERM ended it, as a shell says it: the machine goes, or is drained. Start it again elsewhere.
inline constexpr int kExitTerminated = 128 + 15;

}  // namespace leeway
