// A worker in C++: linear regression, y = w . x + b, on examples that each worker makes by itself.
// examples/c/linear.c is the same in C.
//
//   leeway train ../c/linear.yaml -- build/linear
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>

#include "common/exit_code.h"
#include "common/status.h"
#include "library/job.h"

namespace {

constexpr size_t kInputs = 8, kBatch = 32;
constexpr leeway::Time kForever = leeway::Time::max();

float Target(size_t i) { return static_cast<float>(i % 5) - 2; }

// The gradient of the mean of (w . x + b - y)^2 / 2 over a batch; the sum of the losses.
double Gradient(uint64_t rank, uint64_t clock, std::span<const float> weights,
                std::span<float> gradient) {
  std::seed_seq seed{rank, clock};
  std::minstd_rand draw(seed);
  std::uniform_real_distribution<float> input(-1, 1);
  std::fill(gradient.begin(), gradient.end(), 0.0f);
  double loss = 0;
  for (size_t example = 0; example < kBatch; ++example) {
    float x[kInputs + 1], error = 0;
    for (size_t i = 0; i <= kInputs; ++i) {
      x[i] = i < kInputs ? input(draw) : 1;
      error += (weights[i] - Target(i)) * x[i];
    }
    for (size_t i = 0; i <= kInputs; ++i) gradient[i] += error * x[i] / kBatch;
    loss += error * error / 2;
  }
  return loss;
}

absl::Status Train() {
  leeway::JobOptions options;
  options.tensors = {{.name = "w", .shape = {kInputs}},
                     {.name = "b", .kind = leeway::TensorKind::kBias}};
  options.initial.resize(kInputs + 1);
  ASSIGN_OR_RETURN(const auto job, leeway::Job::Join(options));
  RETURN_IF_ERROR(job->Joined(kForever).status());
  const std::span<const float> weights = job->weights();
  auto next = job->Begin(kForever);
  for (; next.ok() && *next == leeway::Job::Next::kClock; next = job->Begin(kForever)) {
    RETURN_IF_ERROR(job->Wait(0, weights.size(), kForever).status());
    const double loss = Gradient(job->info().rank, job->clock(), weights, job->contribution());
    RETURN_IF_ERROR(
        job->End({.steps = 1, .examples = kBatch, .loss_sum = loss}, kForever).status());
  }
  RETURN_IF_ERROR(next.status());
  float most = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    most = std::max(most, std::fabs(weights[i] - Target(i)));
  std::printf("worker %u: the largest error of a weight is %g\n", job->info().rank, most);
  const bool stopped = *next == leeway::Job::Next::kStopped;
  return job
      ->Leave(stopped ? leeway::Job::Reason::kStopped : leeway::Job::Reason::kFinished, "",
              kForever)
      .status();
}

}  // namespace

int main() {
  const absl::Status status = Train();
  if (!status.ok()) std::fprintf(stderr, "linear: %s\n", status.ToString().c_str());
  return status.ok() ? leeway::kExitDone : leeway::kExitTemporary;
}
