// Implements the functions of client.h: they call Job, and turn its errors into codes.

#include "library/client.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/protocol.h"
#include "common/status.h"
#include "library/codes.h"
#include "library/guard.h"
#include "library/health.h"
#include "library/job.h"
#include "library/schema.h"
#include "peer/peer.h"

namespace {

using leeway::CheckSize;
using leeway::ClockMeasures;
using leeway::CodeOf;
using leeway::DeadlineOf;
using leeway::Fail;
using leeway::Job;
using leeway::JobEvaluation;
using leeway::JobInfo;
using leeway::JobOptions;
using leeway::JobTensor;
using leeway::NullArgument;

}  // namespace

struct leeway_job {
  std::unique_ptr<Job> job;
  leeway::OpenHandle open;
  bool joined = false;
  // These two hold the memory to which the results of leeway_load_state and leeway_tensor_of point.
  std::string loaded;
  std::vector<JobTensor> tensors;
};

namespace {

// Runs `work` if this process may use the job. Turns C++ exceptions into errors.
template <typename Work>
leeway_code Guarded(leeway_job* job, bool joined, Work work) {
  if (job == nullptr) return Fail(LEEWAY_MISUSE, "the job is null");
  if (!job->open.here()) return leeway::Forked();
  if (joined && !job->joined) {
    return Fail(LEEWAY_MISUSE, "the worker has not joined yet: call leeway_joined first");
  }
  return leeway::WithoutExceptions(work);
}

absl::StatusOr<std::vector<JobTensor>> TensorsFrom(const leeway_join_options& options) {
  std::vector<JobTensor> tensors;
  if (options.tensor_count > 0 && options.tensors == nullptr) {
    return absl::InvalidArgumentError("tensors is null");
  }
  for (size_t i = 0; i < options.tensor_count; ++i) {
    const leeway_tensor& from = options.tensors[i];
    if (from.name == nullptr || (from.dimensions > 0 && from.shape == nullptr)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", i, " has no name or no shape"));
    }
    JobTensor& tensor = tensors.emplace_back();
    tensor.name = from.name;
    tensor.shape.assign(from.shape, from.shape + from.dimensions);
    if (from.kind < LEEWAY_WEIGHT || from.kind > LEEWAY_EMBEDDING) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' has an invalid kind"));
    }
    tensor.kind = static_cast<leeway::TensorKind>(from.kind);
    tensor.averaged = from.averaged != 0;
    if (tensor.averaged) tensor.momentum = from.momentum;
    tensor.learning_rate_factor = from.learning_rate_factor;
    tensor.weight_decay_factor = from.weight_decay_factor;
  }
  if (options.begins_block_count > 0 && options.begins_block == nullptr) {
    return absl::InvalidArgumentError("begins_block is null");
  }
  for (size_t i = 0; i < options.begins_block_count; ++i) {
    const size_t place = options.begins_block[i];
    if (place >= tensors.size()) {
      return absl::InvalidArgumentError(absl::StrCat("begins_block[", i, "]: tensor ", place,
                                                     " does not exist; the worker has ",
                                                     leeway::Counted(tensors.size(), "tensor")));
    }
    tensors[place].begins_block = true;
  }
  return tensors;
}

absl::StatusOr<JobOptions> OptionsFrom(const leeway_join_options& from) {
  JobOptions options;
  options.hold_blocks = [](const leeway::HolderPlace& place) {
    return leeway::StartPeer(leeway::CompletedFromEnvironment({}), place);
  };
  if (from.coordinator != nullptr) options.coordinator = from.coordinator;
  if (from.rank >= 0) {
    if (from.rank > UINT32_MAX) return absl::InvalidArgumentError("rank is too large");
    options.rank = static_cast<uint32_t>(from.rank);
  }
  ASSIGN_OR_RETURN(options.tensors, TensorsFrom(from));
  // The tensors are checked first, because their sizes decide how much of `initial` is read.
  ASSIGN_OR_RETURN(const auto schema, leeway::SchemaOf(options.tensors));
  if (from.initial != nullptr) {
    options.initial.assign(from.initial, from.initial + schema.total());
  }
  if (from.update != nullptr) options.update = from.update;
  options.start_seconds = leeway::LimitOf(from.start_seconds, options.start_seconds);
  return options;
}

void Fill(const JobInfo& from, leeway_info& info) {
  info.rank = from.rank;
  info.workers = from.workers;
  info.exchange = static_cast<leeway_exchange>(from.exchange);
  info.total = from.total;
  info.trained = from.trained;
  info.clocks = from.clocks;
  info.steps_per_clock = from.steps_per_clock;
  info.steps_per_epoch = from.steps_per_epoch;
  info.seed = from.seed;
  info.batch_size = from.batch_size;
  info.examples = from.examples;
  info.batches_per_epoch = from.batches_per_epoch;
  info.evaluate_every = from.evaluate_every;
  info.has_update = from.has_update ? 1 : 0;
  info.first_clock = from.first_clock;
  info.first_step = from.first_step;
  info.has_schedule = from.has_schedule ? 1 : 0;
}

leeway_code CodeOf(Job::Next next) {
  switch (next) {
    case Job::Next::kClock:
      return LEEWAY_OK;
    case Job::Next::kFinished:
      return LEEWAY_FINISHED;
    case Job::Next::kStopped:
      return LEEWAY_STOPPED;
    case Job::Next::kNotYet:
      break;
  }
  return LEEWAY_AGAIN;
}

}  // namespace

extern "C" {

const char* leeway_version(void) { return leeway::kVersion; }

leeway_code leeway_join(const leeway_join_options* options, leeway_job** job) {
  if (options == nullptr || job == nullptr) return NullArgument("options or job");
  *job = nullptr;
  if (const leeway_code code = CheckSize("options", options->size, sizeof(*options)); code != 0) {
    return code;
  }
  if (leeway::IsForkOfUser()) return leeway::Forked();
  auto joining = std::make_unique<leeway_job>();
  const leeway_code code = Guarded(joining.get(), false, [&] {
    // The health port opens first, so that a probe need not wait for the other workers.
    if (const absl::Status open = leeway::OpenHealthPort(); !open.ok()) return CodeOf(open);
    auto made = OptionsFrom(*options);
    if (!made.ok()) return CodeOf(made.status());
    auto joined = Job::Join(*std::move(made));
    if (!joined.ok()) return CodeOf(joined.status());
    joining->job = *std::move(joined);
    return LEEWAY_OK;
  });
  if (code == LEEWAY_OK) *job = joining.release();
  return code;
}

leeway_code leeway_joined(leeway_job* job, double timeout) {
  return Guarded(job, false, [&] {
    const leeway_code code = CodeOf(job->job->Joined(DeadlineOf(timeout)));
    if (code == LEEWAY_OK) job->joined = true;
    return code;
  });
}

leeway_code leeway_info_of(leeway_job* job, leeway_info* info) {
  return Guarded(job, true, [&] {
    if (info == nullptr) return NullArgument("info");
    const leeway_code code = CheckSize("info", info->size, sizeof(*info));
    if (code == LEEWAY_OK) Fill(job->job->info(), *info);
    return code;
  });
}

leeway_code leeway_tensor_of(leeway_job* job, size_t index, leeway_tensor* tensor) {
  return Guarded(job, true, [&] {
    if (tensor == nullptr) return NullArgument("tensor");
    if (job->tensors.empty()) job->tensors = job->job->tensors();
    if (index >= job->tensors.size()) return Fail(LEEWAY_NOT_FOUND, "no tensor has this index");
    *tensor = leeway::TensorFor(job->tensors[index]);
    return LEEWAY_OK;
  });
}

float* leeway_weights(leeway_job* job) {
  float* weights = nullptr;
  Guarded(job, true, [&] {
    weights = job->job->weights().data();
    return LEEWAY_OK;
  });
  return weights;
}

float* leeway_contribution(leeway_job* job) {
  float* contribution = nullptr;
  Guarded(job, true, [&] {
    contribution = job->job->contribution().data();
    return LEEWAY_OK;
  });
  return contribution;
}

leeway_code leeway_begin(leeway_job* job, double timeout, uint64_t* clock) {
  return Guarded(job, true, [&] {
    const auto next = job->job->Begin(DeadlineOf(timeout));
    if (!next.ok()) return CodeOf(next.status());
    if (clock != nullptr && *next != Job::Next::kNotYet) *clock = job->job->clock();
    return CodeOf(*next);
  });
}

leeway_code leeway_wait(leeway_job* job, uint64_t first, uint64_t count, double timeout) {
  return Guarded(job, true,
                 [&] { return CodeOf(job->job->Wait(first, count, DeadlineOf(timeout))); });
}

leeway_code leeway_next_batch(leeway_job* job, double timeout, uint64_t* batch) {
  return Guarded(job, true, [&] {
    if (batch == nullptr) return NullArgument("batch");
    std::optional<uint64_t> next;
    const auto found = job->job->NextBatch(DeadlineOf(timeout), next);
    if (found.ok() && *found && !next) {
      return Fail(LEEWAY_NOT_FOUND, "the clock has no more batches");
    }
    if (next) *batch = *next;
    return CodeOf(found);
  });
}

leeway_code leeway_upcoming_batches(leeway_job* job, uint64_t* batches, size_t size,
                                    size_t* count) {
  return Guarded(job, true, [&] {
    if (count == nullptr || (batches == nullptr && size > 0)) {
      return NullArgument("batches or count");
    }
    const std::vector<uint64_t> upcoming = job->job->UpcomingBatches(size);
    std::copy(upcoming.begin(), upcoming.end(), batches);
    *count = upcoming.size();
    return LEEWAY_OK;
  });
}

leeway_code leeway_examples(leeway_job* job, uint64_t examples) {
  return Guarded(job, true, [&] { return CodeOf(job->job->SetExamples(examples)); });
}

leeway_code leeway_rates(leeway_job* job, const leeway_rate* rates, size_t count) {
  return Guarded(job, true, [&] {
    if (rates == nullptr && count > 0) return NullArgument("rates");
    std::vector<leeway::JobRate> parts;
    for (size_t i = 0; i < count; ++i) {
      parts.push_back({rates[i].end, rates[i].factor, rates[i].factor == LEEWAY_SKIP});
    }
    return CodeOf(job->job->SetRates(parts));
  });
}

leeway_code leeway_final(leeway_job* job, uint64_t first, uint64_t count) {
  return Guarded(job, true, [&] { return CodeOf(job->job->Final(first, count)); });
}

leeway_code leeway_end(leeway_job* job, const leeway_report* report, double timeout) {
  return Guarded(job, true, [&] {
    if (report == nullptr) return NullArgument("report");
    if (const leeway_code code = CheckSize("report", report->size, sizeof(*report)); code != 0) {
      return code;
    }
    const ClockMeasures measures = {report->steps,           report->examples,
                                    report->loss_sum,        report->learning_rate,
                                    report->data_seconds,    report->forward_seconds,
                                    report->backward_seconds};
    return CodeOf(job->job->End(measures, DeadlineOf(timeout)));
  });
}

leeway_code leeway_settle(leeway_job* job, double timeout) {
  return Guarded(job, true, [&] { return CodeOf(job->job->Settle(DeadlineOf(timeout))); });
}

leeway_code leeway_read_again(leeway_job* job, double timeout, const float** weights) {
  return Guarded(job, true, [&] {
    if (weights == nullptr) return NullArgument("weights");
    std::span<const float> read;
    const auto done = job->job->ReadAgain(DeadlineOf(timeout), read);
    if (done.ok() && *done) *weights = read.data();
    return CodeOf(done);
  });
}

leeway_code leeway_evaluated(leeway_job* job, const leeway_evaluation* evaluation) {
  return Guarded(job, true, [&] {
    if (evaluation == nullptr) return NullArgument("evaluation");
    const leeway_code code = CheckSize("evaluation", evaluation->size, sizeof(*evaluation));
    if (code != LEEWAY_OK) return code;
    JobEvaluation shown{.loss = evaluation->loss, .examples = evaluation->examples};
    if (evaluation->accuracy >= 0) shown.accuracy = evaluation->accuracy;
    return CodeOf(job->job->Evaluated(shown));
  });
}

leeway_code leeway_state_wanted(leeway_job* job, int* wanted) {
  return Guarded(job, true, [&] {
    if (wanted == nullptr) return NullArgument("wanted");
    const auto is = job->job->StateWanted();
    *wanted = is.ok() && *is ? 1 : 0;
    return CodeOf(is.status());
  });
}

leeway_code leeway_save_state(leeway_job* job, const void* bytes, size_t count) {
  return Guarded(job, true, [&] {
    if (bytes == nullptr && count > 0) return NullArgument("bytes");
    return CodeOf(job->job->SaveState(std::string(static_cast<const char*>(bytes), count)));
  });
}

leeway_code leeway_load_state(leeway_job* job, const void** bytes, size_t* count) {
  return Guarded(job, true, [&] {
    if (bytes == nullptr || count == nullptr) return NullArgument("bytes or count");
    auto state = job->job->LoadState();
    if (!state.ok()) return CodeOf(state.status());
    job->loaded = *std::move(state);
    *bytes = job->loaded.data();
    *count = job->loaded.size();
    return LEEWAY_OK;
  });
}

void leeway_waiting(leeway_job* job, char* text, size_t size) {
  if (text == nullptr || size == 0) return;
  text[0] = 0;
  Guarded(job, false, [&] {
    const std::string waiting = job->job->Waiting();
    const size_t count = std::min(waiting.size(), size - 1);
    std::memcpy(text, waiting.data(), count);
    text[count] = 0;
    return LEEWAY_OK;
  });
}

leeway_code leeway_leave(leeway_job* job, leeway_code reason, const char* message, double timeout) {
  return Guarded(job, false, [&] {
    if (reason != LEEWAY_FINISHED && reason != LEEWAY_STOPPED && reason != LEEWAY_FAILED) {
      return Fail(LEEWAY_MISUSE,
                  "the reason must be LEEWAY_FINISHED, LEEWAY_STOPPED or LEEWAY_FAILED");
    }
    const Job::Reason why = reason == LEEWAY_FINISHED  ? Job::Reason::kFinished
                            : reason == LEEWAY_STOPPED ? Job::Reason::kStopped
                                                       : Job::Reason::kFailed;
    return CodeOf(job->job->Leave(why, message != nullptr ? message : "", DeadlineOf(timeout)));
  });
}

void leeway_free(leeway_job* job) {
  // The job's threads stayed in the parent process.
  if (job == nullptr || !job->open.here()) return;
  delete job;
}

}  // extern "C"
