// metrics.jsonl: the events of a run, one JSON object a line, in the order in which the coordinator
// learnt of them. A resumed run appends. (In an object store: segments, docs/storage.md.) Every
// line has
//   event   what it is
//   time    seconds since 1970, UTC
// and by event:
//   step        rank, clock (exchanges completed), epoch, steps, examples, train_loss (mean over
//               these examples, before each update), staleness (clocks, largest seen),
//               learning_rate, data_seconds (batches), compute_seconds, forward_seconds and
//               backward_seconds (of the compute), exchange_seconds (from the first block's
//               departure to the last one's answer), wait_seconds (of the exchange: what the worker
//               stood still), bytes_sent and bytes_received (payloads and their headers, every
//               attempt counted). A step takes data + compute + wait; of the exchange, (exchange -
//               wait) / exchange was hidden behind the compute. A line is of the `steps` steps that
//               the rank has completed since its last one, usually those of a heartbeat: clock,
//               epoch and learning_rate are the last one's, seconds and bytes are sums. A step is
//               in one line, once its exchange is complete; a run that was resumed, or that has
//               gone back, begins again at the clock of its job_started or went_back line, so of
//               two lines for the same rank and clock the later one counts. Where a sync clock need
//               not be everybody's also, if there are some: dropped_steps and dropped_examples,
//               computed since the line before for clocks that were completed without this worker;
//               in none of the other figures. With exchange.on_bad_gradient, where there are some:
//               skipped_contributions, clipped_contributions. With data.train.damaged:
//               replaced_pictures. With workers.precision fp16: overflowed_steps (left out; they
//               count among the steps) and loss_scale (the last one's).
//   dropped     as step, with 0 steps: all that the worker has computed since was dropped; clock is
//               where it continues
//   evaluation  rank, clock, epoch, test_loss, test_accuracy (if labels are classes),
//               test_top5_accuracy (if there are more than ten), test_mae and test_r2 (if they are
//               numbers), examples
//   codec_chosen             message: what `auto` compression stands for, and by what it was chosen
//   update_brought           message: the update rule that an external program has brought, and
//                            which process that was
//   job_started              clock (0, or the checkpoint's), message, workers, steps_per_clock,
//                            sync
//   server_registered        server, message (its address)
//   server_lost              server, message
//   leases_extended          message: most processes fell silent together, and have one more lease
//   placement_changed        message (why, who owns which shard now)
//   replicas_synced          every block has two holders again
//   resizing                 message: the old and the requested number of servers
//   resized                  message: the number of servers; every shard has reached its place
//   server_draining          server: it is to leave, and others take over what it holds; message:
//                            its address
//   server_removed           server: it holds nothing any more, and ends
//   record_failed            message: coordinator.json cannot be written; everything that follows
//                            waits, except lines of this file
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
//   stop_fixed               rank (who asked first; absent where the coordinator says which
//                            contributions count, and after early_stop), clock (where all stop;
//                            sync mode)
//   job_failing              message: the job is brought to an end because of this
//   checkpoint               clock: complete and durable
//   checkpoint_failed        clock, message, server (whose part failed, if one's did)
//   job_finished             state (finished, stopped, failed), message, clock (of the newest
//                            checkpoint): the last line of a run. A finished one has a message if
//                            it ended before its length
// A number that is not finite is null.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/coordinator/core/command.h"

namespace leeway {

// One line, without its end. `time`: seconds since 1970.
std::string MetricsLine(const StepRecord& record, double time);
std::string MetricsLine(const EvaluationRecord& record, double time);
std::string MetricsLine(const Event& event, double time);

// Not thread-safe.
class MetricsLog {
 public:
  // Of a run folder: RUN_DIR/metrics.jsonl, or in an object store the segments of RUN_DIR/metrics.
  // Goes on behind what is there.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& run_dir);
  virtual ~MetricsLog() = default;

  // `lines`: whole lines, with their ends. NOT_FOUND once the run folder was removed or moved.
  virtual absl::Status Append(const std::string& lines) = 0;
  // Called about once a second.
  virtual absl::Status Tick() = 0;
  // On return all lines so far are where others read them.
  virtual absl::Status Keep() = 0;
};

}  // namespace leeway
