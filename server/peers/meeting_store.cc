#include "server/peers/meeting_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {

void MeetingStore::Open(uint64_t job, uint64_t generation, const BlockLayout& layout,
                        std::span<const float> weights) {
  if (weights.size() != layout.total()) return;
  std::shared_ptr<MetWeights> met = std::make_shared<MetWeights>(rank_, layout, weights, memory_());
  MutexLock lock(mutex_);
  registered_.life = Registered::Life{job, generation};
  // The earlier weights are released without the lock, by `met`.
  weights_.swap(met);
}

absl::StatusOr<std::shared_ptr<MetWeights>> MeetingStore::WeightsFor(
    const v1::ExchangeHeader& header) const {
  MutexLock lock(mutex_);
  if (closed_) {
    return absl::UnavailableError(absl::StrCat("worker ", rank_, " ends; send the request again"));
  }
  const absl::Status status = registered_.Check(rank_, header.job(), header.generation());
  if (absl::IsUnavailable(status)) {
    return absl::FailedPreconditionError(absl::StrCat(status.message(), "; meet another worker"));
  }
  RETURN_IF_ERROR(status);
  return weights_;
}

std::shared_ptr<MetWeights> MeetingStore::weights() const {
  MutexLock lock(mutex_);
  return weights_;
}

void MeetingStore::Subtract(uint32_t block, std::span<const float> change,
                            std::span<float> weights) {
  const auto met = this->weights();
  if (met != nullptr && met->Has(block, change.size(), weights.size())) {
    met->Subtract(block, change, weights);
  }
}

void MeetingStore::End() {
  if (const auto met = weights()) met->End();
}

void MeetingStore::Meet(const v1::ExchangeHeader& header, FloatPayload payload, Done done) {
  const auto met = WeightsFor(header);
  if (!met.ok()) return done(met.status());
  (*met)->Meet(header, std::move(payload), std::move(done));
}

void MeetingStore::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

}  // namespace leeway
