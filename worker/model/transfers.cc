#include "worker/model/transfers.h"

#include <algorithm>

#include "worker/model/deliveries.h"

namespace leeway {

Transfers::Transfers(Backend& backend, size_t finite_cells) : backend_(backend) {
  page_pinned_ =
      backend.Pin({reinterpret_cast<float*>(page_.get()), sizeof(LossPage) / sizeof(float)});
  if (backend.shares_host_memory()) return;
  // The buffer has at least one page of its own, so that it can be pinned.
  finite_ = FloatBuffer(std::max(finite_cells, FloatBuffer::kPageFloats));
  finite_pinned_ = backend.Pin(finite_.span());
}

void Transfers::Begin(std::span<const float> weights, std::span<float> contribution, Home home) {
  travels_ = home == Home::kHost && !backend_.shares_host_memory();
  host_weights_ = weights;
  host_contribution_ = contribution;
}

void Transfers::Up(std::span<const float> host, float* device) {
  backend_.CopyToDevice(Stream::kUp, host, device);
  going_up_ = true;
}

void Transfers::WeightsUp(std::span<const ElementRange> elements, float* device) {
  if (!travels_) return;
  for (const ElementRange& range : elements) {
    Up(host_weights_.subspan(range.offset, range.count), device + range.offset);
  }
}

void Transfers::AwaitUp() {
  if (going_up_) backend_.Wait(Stream::kCompute, backend_.Record(Stream::kUp));
  going_up_ = false;
  computing_ = true;
}

void Transfers::AwaitKernels() {
  if (computing_) backend_.Wait(Stream::kDown, backend_.Record(Stream::kCompute));
  computing_ = false;
}

void Transfers::ContributionDown(std::span<const ElementRange> elements, const float* device) {
  for (const ElementRange& range : elements) {
    backend_.CopyToHost(Stream::kDown, device + range.offset,
                        host_contribution_.subspan(range.offset, range.count));
  }
}

const float* Transfers::FiniteDown(size_t cell, const float* device) {
  AwaitKernels();
  const std::span answer = finite_.span().subspan(cell, 1);
  answer[0] = kNoAnswer;
  backend_.CopyToHost(Stream::kDown, device, answer);
  return answer.data();
}

StreamEvent Transfers::LossDown(const LossSum* sums, float share, bool mixed) {
  static_assert(sizeof(LossSum) % sizeof(float) == 0);
  AwaitKernels();
  BatchLoss& loss = page_->loss;
  loss.share = share;
  const size_t count = (mixed ? 2 : 1) * sizeof(LossSum) / sizeof(float);
  backend_.CopyToHost(Stream::kDown, reinterpret_cast<const float*>(sums),
                      {reinterpret_cast<float*>(loss.sums.data()), count});
  return backend_.Record(Stream::kDown);
}

void Transfers::Drain() {
  for (const Stream stream : {Stream::kUp, Stream::kCompute, Stream::kDown}) {
    backend_.Await(backend_.Record(stream)).IgnoreError();
  }
}

}  // namespace leeway
