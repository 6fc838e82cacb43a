#include "exchange/gradient_guard.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_format.h"
#include "exchange/finite.h"

namespace leeway {
namespace {

// The number of parallel sums, so that the loop vectorises. It never changes, so the order of the
// additions is always the same.
constexpr size_t kSums = 8;

double SumOfSquares(std::span<const float> values) {
  std::array<double, kSums> sums{};
  size_t i = 0;
  for (; i + kSums <= values.size(); i += kSums) {
    for (size_t k = 0; k < kSums; ++k) {
      const double value = values[i + k];
      sums[k] += value * value;
    }
  }
  for (size_t k = 0; i < values.size(); ++i, ++k) {
    sums[k] += static_cast<double>(values[i]) * values[i];
  }
  double all = 0;
  for (const double sum : sums) all += sum;
  return all;
}

// Names the tensor that contributes most to the norm.
std::string Largest(const v1::ModelSchema& schema, std::span<const float> trained) {
  std::string name;
  double largest = -1;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    uint64_t elements = 1;
    for (const uint64_t size : tensor.shape()) elements *= size;
    if (tensor.offset() + elements > trained.size()) continue;
    const double squares = SumOfSquares(trained.subspan(tensor.offset(), elements));
    if (squares <= largest) continue;
    largest = squares;
    name = tensor.name();
  }
  return absl::StrFormat("most of it is in %s (%.3g)", name, std::sqrt(largest));
}

}  // namespace

GuardedGradient LeaveOut(std::span<float> contribution, std::string why) {
  std::fill(contribution.begin(), contribution.end(), 0.0f);
  return {GuardedGradient::kLeftOut, std::move(why)};
}

bool GuardsGradients(const v1::Exchange& exchange) {
  return exchange.on_bad_gradient() != v1::BAD_GRADIENT_REJECT || exchange.has_max_norm();
}

absl::StatusOr<GuardedGradient> GuardGradient(const v1::Exchange& exchange,
                                              const v1::ModelSchema& schema,
                                              std::span<float> contribution) {
  const v1::BadGradient choice = exchange.on_bad_gradient();
  const absl::Status finite = CheckFinite(schema, "the gradient", 0, contribution);
  if (!finite.ok()) {
    if (choice == v1::BAD_GRADIENT_REJECT) return finite;
    return LeaveOut(contribution, std::string(finite.message()));
  }
  if (!exchange.has_max_norm()) return GuardedGradient();
  const std::span<float> trained = contribution.first(schema.trained());
  const double norm = std::sqrt(SumOfSquares(trained));
  if (norm <= exchange.max_norm()) return GuardedGradient();
  std::string why = absl::StrFormat("the gradient's norm is %.6g, but exchange.max_norm is %g; %s",
                                    norm, exchange.max_norm(), Largest(schema, trained));
  if (choice == v1::BAD_GRADIENT_REJECT) return absl::OutOfRangeError(why);
  if (choice == v1::BAD_GRADIENT_SKIP) return LeaveOut(contribution, std::move(why));
  const auto scale = static_cast<float>(exchange.max_norm() / norm);
  for (float& value : trained) value *= scale;
  return GuardedGradient{GuardedGradient::kClipped, std::move(why)};
}

}  // namespace leeway
