#include "tests/chaos/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway::testing {

Ledger::Ledger(const v1::RegisterWorkerReply& registration)
    : job_(registration.job()),
      rank_(registration.rank()),
      block_elements_(registration.block_elements()),
      places_(block_elements_ / job_.workers().count()) {}

v1::ModelSchema Ledger::Schema(uint64_t blocks, uint64_t block_elements) {
  v1::ModelSchema schema;
  v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name("ledger");
  tensor.add_shape(blocks);
  tensor.add_shape(block_elements);
  schema.set_trained(blocks * block_elements);
  schema.set_total(blocks * block_elements);
  return schema;
}

void Ledger::Write(uint64_t clock, std::span<float> contribution) const {
  std::fill(contribution.begin(), contribution.end(), 0.0F);
  WriteAgain(clock, contribution);
}

void Ledger::WriteAgain(uint64_t clock, std::span<float> contribution) const {
  for (uint64_t at = rank_ * places_ + clock; at < contribution.size(); at += block_elements_) {
    contribution[at] -= 1;
  }
}

std::string Ledger::Check(uint64_t clock, std::span<const float> weights) const {
  for (uint64_t block = 0; block < weights.size() / block_elements_; ++block) {
    for (uint32_t rank = 0; rank < job_.workers().count(); ++rank) {
      const auto row = weights.subspan(block * block_elements_ + rank * places_, places_);
      const std::string wrong = CheckRow(clock, rank, row);
      if (!wrong.empty()) {
        return absl::StrCat("clock ", clock, " block ", block, ": worker ", rank, "'s ", wrong);
      }
    }
  }
  return "";
}

std::string Ledger::CheckRow(uint64_t clock, uint32_t rank, std::span<const float> row) const {
  const auto is_one = [](float value) { return value == 1.0F; };
  const auto end = std::find_if_not(row.begin(), row.end(), is_one);
  const auto length = static_cast<uint64_t>(end - row.begin());
  const auto other = std::find_if(end, row.end(), [](float value) { return value != 0.0F; });
  if (other != row.end()) {
    return absl::StrCat("contribution of clock ", other - row.begin(), " counts ", *other,
                        " times, that of clock ", length, " ", *end, " times");
  }
  // The reader of this answer starts clock + 1.
  const uint64_t next = clock + 1;
  if (job_.consistency().mode() == v1::CONSISTENCY_MODE_SYNC && length != next) {
    return absl::StrCat("clocks are ", length, ", not ", next);
  }
  // A block may have more contributions of this rank than its reader knows: those of a life that
  // was killed in the middle of an exchange.
  if (rank == rank_ && length < next) {
    return absl::StrCat("clocks are ", length, ", the reader's own, that it was told of, ", next);
  }
  if (job_.consistency().mode() == v1::CONSISTENCY_MODE_BOUNDED) {
    const uint64_t staleness = job_.consistency().staleness();
    if (length + staleness < next) {
      return absl::StrCat("clocks are ", length, ", with staleness ", staleness, " at least ",
                          next - std::min(next, staleness));
    }
  }
  return "";
}

}  // namespace leeway::testing
