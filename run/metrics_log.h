// metrics.jsonl: the events of a run, one JSON object per line, in the order in which the
// coordinator learnt of them. A resumed run appends. (In an object store the lines are in
// segments, docs/storage.md.) Every line has
//   event   the kind of event
//   time    seconds since 1970, UTC
// The other keys depend on the event:
//   step        A line covers the `steps` steps that the rank has completed since its previous
//               line, usually those of one heartbeat. clock, epoch and learning_rate are those of
//               the last step; seconds and bytes are sums.
//                 rank, clock (exchanges completed), epoch, steps, examples
//                 train_loss (mean over these examples, before each update)
//                 staleness (clocks, the largest seen)
//                 learning_rate
//                 data_seconds (batches), compute_seconds
//                 forward_seconds, backward_seconds (parts of compute_seconds)
//                 exchange_seconds (from the departure of the first block to the last answer)
//                 wait_seconds (the part of the exchange during which the worker stood still)
//                 bytes_sent, bytes_received (payloads and their headers, every attempt counted)
//               A step takes data + compute + wait; the share (exchange - wait) / exchange of the
//               exchange was hidden behind the compute.
//               A step is logged once its exchange is complete. A run that was resumed or has gone
//               back begins again at the clock of its job_started or went_back line. If two lines
//               have the same rank and clock, the later line counts.
//               Some keys are absent if they would be 0:
//                 dropped_steps, dropped_examples (where a sync clock can be complete without every
//                 worker): what the worker computed since its previous line, for clocks that
//                 were completed without the worker; no other figure includes these steps
//                 skipped_contributions, clipped_contributions (with exchange.on_bad_gradient)
//                 replaced_pictures (with data.train.damaged)
//               With workers.precision fp16 there are also overflowed_steps (steps that were left
//               out, but count among the steps) and loss_scale (the last step's).
//   dropped     the keys of step, with steps 0: everything that the worker has computed since its
//               previous line was dropped; clock is where the worker continues
//   evaluation  rank, clock, epoch, test_loss, test_accuracy (if labels are classes),
//               test_top5_accuracy (if there are more than ten classes), test_mae and test_r2 (if
//               labels are numbers), examples
//   codec_chosen             message: the codec chosen for `auto` compression, and why
//   update_brought           message: the update rule that an external program has supplied, and
//                            which process supplied it
//   job_started              clock (0, or the checkpoint's), message, workers, steps_per_clock,
//                            sync; goes_on (true) in place of clock, if server 0 was started again
//                            and the job goes on where it is
//   server_registered        server, message (its address)
//   server_lost              server, message
//   leases_extended          message: most processes fell silent together, and get one more lease
//   placement_changed        message (why, who owns which shard now)
//   replicas_synced          every block is on two servers again
//   resizing                 message: the old and the requested number of servers
//   resized                  message: the number of servers; every shard has reached its home
//   server_draining          server: the server that is leaving, whose shards other servers take
//                            over; message: its address
//   server_removed           server: a server that holds no shard any more, and ends
//   record_failed            message: coordinator.json cannot be written; all commands that depend
//                            on it wait, except lines of this file
//   going_back               message (what was lost: a server's blocks, a worker's state), clock
//                            (the newest checkpoint's)
//   went_back                clock (where everything continues), message
//   worker_registered        rank, incarnation, message (which process): a life of the rank begins
//   worker_lost              rank, incarnation, clock, message
//   worker_returned          rank, incarnation, clock: the worker had only been silent
//   worker_left              rank, incarnation, clock, state (finished, stopped, failed), message
//   epoch_done               message (which epochs are complete), if data are leased
//   stop_requested           message
//   early_stop               clock (of the last evaluation), message (which one was the best)
//   stop_fixed               rank (the first worker that asked; absent after early_stop, and where
//                            the coordinator says which contributions make a clock), clock (where
//                            all workers stop; sync mode)
//   job_failing              message: why the coordinator is ending the job
//   checkpoint               clock: complete and durable
//   checkpoint_failed        clock, message, server (if one server's part failed)
//   job_finished             state (finished, stopped, failed), message, clock (of the newest
//                            checkpoint): the last line of a run. A finished job has a message if
//                            it ended before its full length
// A number that is not finite is null.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "run/core/records.h"

namespace leeway {

// Return one line, without its newline. `time` is in seconds since 1970.
std::string MetricsLine(const StepRecord& record, double time);
std::string MetricsLine(const EvaluationRecord& record, double time);
std::string MetricsLine(const Event& event, double time);

// Not thread-safe.
class MetricsLog {
 public:
  // Opens the log of a run folder: RUN_DIR/metrics.jsonl, or in an object store the segments of
  // RUN_DIR/metrics. New lines go after the existing lines.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& run_dir);
  virtual ~MetricsLog() = default;

  // Appends `lines`, which are whole lines with their newlines. Returns NOT_FOUND if the run folder
  // was removed or moved.
  virtual absl::Status Append(const std::string& lines) = 0;
  // Call this function about once a second.
  virtual absl::Status Tick() = 0;
  // Makes sure that readers find all lines appended so far.
  virtual absl::Status Keep() = 0;
};

}  // namespace leeway
