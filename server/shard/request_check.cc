#include "server/shard/request_check.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/encoded.h"
#include "common/counted.h"
#include "common/element_name.h"
#include "common/status.h"
#include "common/update/combine.h"
#include "common/update/factors.h"

namespace leeway {
namespace {

absl::Status Wrong(uint32_t rank, uint32_t block, uint64_t clock, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("worker ", rank, ", block ", block, ", clock ", clock, ": ", what));
}

absl::Status Wrong(const v1::ExchangeHeader& header, absl::string_view field,
                   absl::string_view what) {
  return Wrong(header.rank(), header.block(), header.clock(), absl::StrCat(field, ": ", what));
}

struct RateDifference {
  size_t element;
  // The parts of the two lists at this element.
  UpdatePart one, other;

  // Returns the message about two workers. `name` is the element's name.
  std::string Text(uint32_t first, uint32_t second, absl::string_view name) const {
    if (one.skip != other.skip) {
      return absl::StrCat("workers ", first, " and ", second, " update different tensors: worker ",
                          one.skip ? second : first, " updates ", name, ", but worker ",
                          one.skip ? first : second,
                          " leaves it out; in sync mode all workers must update the same tensors "
                          "in a clock (see Several optimizers in docs/python.md)");
    }
    return absl::StrCat(
        "workers ", first, " and ", second,
        " have different learning rates: they multiply the rate of ", name, " by ", one.rate,
        " and ", other.rate,
        "; in sync mode all workers must have the same rates (see Schedulers in docs/python.md)");
  }
};

// Returns true if the parts have the same effect on an element. If a part is skipped, its rate has
// no effect.
bool Alike(const UpdatePart& one, const UpdatePart& other) {
  return one.skip == other.skip && (one.skip || one.rate == other.rate);
}

// Finds the first element at which the parts differ, if there is one.
std::optional<RateDifference> FirstDifference(std::span<const UpdatePart> one,
                                              std::span<const UpdatePart> other) {
  static constexpr UpdatePart kPlain = {.end = std::numeric_limits<size_t>::max()};
  if (one.empty()) one = {&kPlain, 1};
  if (other.empty()) other = {&kPlain, 1};
  size_t from = 0;
  while (!one.empty() && !other.empty()) {
    if (!Alike(one.front(), other.front())) {
      return RateDifference{from, one.front(), other.front()};
    }
    from = std::min(one.front().end, other.front().end);
    if (one.front().end == from) one = one.subspan(1);
    if (!other.empty() && other.front().end == from) other = other.subspan(1);
  }
  return std::nullopt;
}

absl::Status CheckExamples(const v1::ExchangeHeader& header) {
  if (header.examples() <= kExamplesMax) return absl::OkStatus();
  return Wrong(header, "header.examples",
               absl::StrCat(header.examples(), " is more than the maximum, ", kExamplesMax));
}

// Returns the index of the first value that is not finite in the result of `write`, either in the
// weights or in the optimizer state.
size_t FirstNonFinite(const BlockWrite& write) {
  size_t first = FloatPayload::Of(write.weights_out.span()).FirstNonFinite();
  for (const SharedFloats& slot : write.slots_out) {
    first = std::min(first, FloatPayload::Of(slot.span()).FirstNonFinite());
  }
  return first;
}

}  // namespace

absl::Status RequestCheck::WrongNames(const v1::ExchangeHeader& header) const {
  const uint32_t blocks = store_.layout().blocks();
  if (header.block() >= blocks) {
    return Wrong(
        header, "header.block",
        absl::StrCat("the block does not exist: the model has ", Counted(blocks, "block")));
  }
  if (!store_.Has(header.block())) {
    return Wrong(
        header, "header.block",
        absl::StrCat("the block belongs to shard ", store_.layout().ShardOf(header.block()),
                     ", but this is shard ", store_.server()));
  }
  return Wrong(
      header, "header.rank",
      absl::StrCat("the worker does not exist: the job has ", Counted(workers_, "worker")));
}

absl::StatusOr<std::vector<UpdatePart>> RequestCheck::Rates(
    const v1::ExchangeHeader& header) const {
  std::vector<UpdatePart> rates;
  if (header.rates().empty()) return rates;
  if (!rules_.has_rate) {
    return Wrong(header, "header.rates", "an elastic exchange has no learning rate");
  }
  for (const v1::RatePart& part : header.rates()) {
    rates.push_back({.end = part.end(), .rate = part.factor(), .skip = part.skip()});
  }
  const auto skipped =
      std::find_if(rates.begin(), rates.end(), [](const UpdatePart& part) { return part.skip; });
  if (skipped != rates.end() && !store_.may_skip()) {
    return Wrong(header, absl::StrCat("header.rates[", skipped - rates.begin(), "].skip"),
                 "the job's rule counts the updates of whole blocks: set update.steps_by_element: "
                 "true");
  }
  const absl::Status checked = CheckRates(rates, store_.TrainedIn(header.block()));
  if (checked.ok()) return rates;
  return Wrong(header.rank(), header.block(), header.clock(),
               absl::StrCat("header.", checked.message()));
}

absl::StatusOr<Contribution> RequestCheck::Open(const v1::ExchangeHeader& header,
                                                FloatPayload payload) const {
  if (!names(header)) return WrongNames(header);
  if (header.combined()) {
    return Wrong(header, "header.combined",
                 "the first version of a block must have its own values");
  }
  RETURN_IF_ERROR(CheckExamples(header));
  ASSIGN_OR_RETURN(std::vector<UpdatePart> rates, Rates(header));
  const uint64_t wanted = store_.Range(header.block()).count;
  Contribution contribution{header.rank(), header.clock(), header.examples(), {}};
  contribution.rates = std::move(rates);
  if (header.encoding() == v1::ENCODING_RAW) {
    if (payload.bytes() != wanted * sizeof(float)) {
      return Wrong(header, "payload",
                   absl::StrCat(payload.size(), " values, but the block has ", wanted));
    }
    contribution.payload = std::move(payload);
    return contribution;
  }
  auto values = EncodedValues::Open(header.encoding(), payload.owner(), payload.pieces(), wanted);
  if (!values.ok()) return Wrong(header, "header.encoding", values.status().message());
  contribution.payload = FloatPayload(*std::move(values));
  return contribution;
}

absl::StatusOr<Contribution> RequestCheck::OpenSkipping(const v1::ExchangeHeader& header,
                                                        FloatPayload payload) const {
  ASSIGN_OR_RETURN(std::vector<UpdatePart> rates, Rates(header));
  const bool all_trained = store_.TrainedIn(header.block()) == store_.Range(header.block()).count;
  if (!all_trained || !SkipsAll(rates)) return Open(header, std::move(payload));
  RETURN_IF_ERROR(CheckExamples(header));
  Contribution contribution{header.rank(), header.clock(), header.examples(), {}};
  contribution.rates = std::move(rates);
  contribution.skips_block = true;
  return contribution;
}

absl::StatusOr<Contribution> RequestCheck::OpenContribution(const v1::ExchangeHeader& header,
                                                            FloatPayload payload) const {
  if (!names(header)) return WrongNames(header);
  if (header.of_all() && !rules_.not_of_all.empty()) {
    return Wrong(header, "header.of_all", rules_.not_of_all);
  }
  if (header.of_all() && header.combined()) {
    return Wrong(header, "header.combined",
                 "the contribution of all workers is not part of another one (header.of_all)");
  }
  if (header.combined()) return OpenCombined(header, payload);
  const bool may_skip = payload.bytes() == 0 && !header.rates().empty();
  auto contribution =
      may_skip ? OpenSkipping(header, std::move(payload)) : Open(header, std::move(payload));
  if (contribution.ok()) contribution->of_all = header.of_all();
  return contribution;
}

absl::StatusOr<Contribution> RequestCheck::OpenCombined(const v1::ExchangeHeader& header,
                                                        const FloatPayload& payload) const {
  if (!rules_.combines) {
    return Wrong(
        header, "header.combined",
        "workers of this job do not combine contributions (workers.per_host is not combine)");
  }
  if (payload.bytes() > 0) {
    return Wrong(header, "payload",
                 absl::StrCat(payload.bytes(),
                              " bytes; a combined contribution has no payload, because its values "
                              "are in the contribution of another worker"));
  }
  if (header.examples() > 0) {
    return Wrong(header, "header.examples",
                 absl::StrCat(header.examples(),
                              " examples; a combined contribution has no examples, because they "
                              "are counted in the contribution of another worker"));
  }
  if (!header.rates().empty()) {
    return Wrong(header, "header.rates",
                 "a combined contribution has no rates, because they are in the contribution of "
                 "another worker");
  }
  absl::StatusOr<Contribution> contribution(absl::in_place);
  contribution->rank = header.rank();
  contribution->clock = header.clock();
  contribution->combined = true;
  return contribution;
}

absl::StatusOr<std::span<const UpdatePart>> RequestCheck::CommonRates(
    uint32_t block, std::span<const Contribution> contributions) const {
  const Contribution* first = nullptr;
  for (const Contribution& each : contributions) {
    if (each.combined || each.examples == 0) continue;
    if (first == nullptr) first = &each;
    if (first->rates.empty() && each.rates.empty()) continue;
    const auto difference = FirstDifference(first->rates, each.rates);
    if (!difference) continue;
    const std::string name = ElementName(schema_, store_.Range(block).offset + difference->element);
    return absl::InvalidArgumentError(
        absl::StrCat("block ", block, ", clock ", each.clock,
                     ": header.rates: ", difference->Text(first->rank, each.rank, name)));
  }
  return first == nullptr ? std::span<const UpdatePart>() : first->rates;
}

std::string RequestCheck::Element(uint32_t block, size_t index) const {
  const std::string name = ElementName(schema_, store_.Range(block).offset + index);
  return absl::StrCat("value ", index, " (", name, " of the model)");
}

absl::Status RequestCheck::Finite(uint32_t block, const Contribution& contribution) const {
  const size_t index = contribution.payload.FirstNonFinite();
  if (index == contribution.payload.size()) return absl::OkStatus();
  return Wrong(contribution.rank, block, contribution.clock,
               absl::StrCat("payload: ", Element(block, index),
                            " is not finite; has the training diverged?"));
}

absl::Status RequestCheck::Overflow(uint32_t block, const Contribution& contribution,
                                    const BlockWrite& write) const {
  return Wrong(contribution.rank, block, contribution.clock,
               absl::StrCat("payload: ", Element(block, FirstNonFinite(write)),
                            " is finite in every contribution, but would not be in the block after "
                            "the update; has the training diverged?"));
}

}  // namespace leeway
