#include "worker/data/normalizer.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "common/job_key.h"
#include "common/status.h"

namespace leeway {
namespace {

// Returns one number for each element, or a single number for all elements.
absl::StatusOr<std::vector<double>> Spread(const char* name, std::span<const double> given,
                                           double otherwise, const ImageShape& shape) {
  if (given.empty()) return std::vector<double>{otherwise};
  const size_t elements = shape.elements();
  if (given.size() == 1 || given.size() == elements) {
    return std::vector<double>(given.begin(), given.end());
  }
  if (given.size() != shape.channels) {
    return AtKey(absl::InvalidArgumentError(
                     absl::StrCat(given.size(), " numbers for examples of ", DescribeShape(shape),
                                  "; give one number, one for each channel (", shape.channels,
                                  ") or one for each element (", elements, ")")),
                 absl::StrCat("data.normalize.", name));
  }
  std::vector<double> all(elements);
  for (size_t i = 0; i < elements; ++i) all[i] = given[i % given.size()];
  return all;
}

// Normalises an example. `at` returns shift and scale of element i, so that a single number for all
// elements costs no memory traffic.
template <typename At>
void ApplyTo(const uint8_t* in, size_t elements, At at, float* __restrict out) {
  for (size_t i = 0; i < elements; ++i) {
    const auto [shift, scale] = at(i);
    out[i] = (static_cast<float>(in[i]) - shift) * scale;
  }
}

template <typename At>
void ApplyTo(const float* in, size_t elements, At at, float* __restrict out) {
  for (size_t i = 0; i < elements; ++i) {
    const auto [shift, scale] = at(i);
    const float value = (in[i] - shift) * scale;
    out[i] = in[i] == in[i] ? value : 0.0f;
  }
}

template <typename T>
void ApplyEither(const T* in, size_t elements, const std::vector<float>& shift,
                 const std::vector<float>& scale, float* out) {
  if (shift.size() == 1) {
    const std::pair<float, float> all(shift[0], scale[0]);
    ApplyTo(
        in, elements, [all](size_t) { return all; }, out);
  } else {
    const float* shifts = shift.data();
    const float* scales = scale.data();
    ApplyTo(
        in, elements, [=](size_t i) { return std::pair(shifts[i], scales[i]); }, out);
  }
}

}  // namespace

absl::StatusOr<Normalizer> Normalizer::Create(const v1::Normalize& options,
                                              const Examples& examples) {
  const auto given = [](const auto& field) {
    return std::span<const double>(field.data(), static_cast<size_t>(field.size()));
  };
  ASSIGN_OR_RETURN(const std::vector<double> mean,
                   Spread("mean", given(options.mean()), 0, examples.shape));
  ASSIGN_OR_RETURN(const std::vector<double> std,
                   Spread("std", given(options.std()), 1, examples.shape));
  const double unit = std::holds_alternative<std::vector<uint8_t>>(examples.values) ? 255 : 1;
  Normalizer normalizer(examples.shape.elements());
  for (size_t i = 0; i < std::max(mean.size(), std.size()); ++i) {
    const double m = mean[mean.size() == 1 ? 0 : i];
    const double s = std[std.size() == 1 ? 0 : i];
    normalizer.shift_.push_back(static_cast<float>(unit * m));
    normalizer.scale_.push_back(static_cast<float>(1 / (unit * s)));
    if (!(s > 0) || !std::isfinite(normalizer.shift_[i]) || !std::isfinite(normalizer.scale_[i])) {
      return AtKey(
          absl::InvalidArgumentError(absl::StrCat(
              "mean ", m, " and std ", s, ": a number is not finite, or std is not above 0")),
          "data.normalize");
    }
  }
  RETURN_IF_ERROR(normalizer.CheckFinite(examples));
  return normalizer;
}

absl::Status Normalizer::CheckFinite(const Examples& examples) const {
  std::vector<float> out(elements_);
  const auto check = [&](const auto* in, absl::string_view what) {
    Apply(in, out.data());
    for (size_t k = 0; k < elements_; ++k) {
      if (std::isfinite(out[k])) continue;
      return AtKey(absl::InvalidArgumentError(
                       absl::StrCat(what, ", element ", k, " (", static_cast<double>(in[k]),
                                    ") becomes ", out[k], "; choose another mean and std")),
                   "data.normalize");
    }
    return absl::OkStatus();
  };
  if (std::holds_alternative<std::vector<uint8_t>>(examples.values)) {
    RETURN_IF_ERROR(check(std::vector<uint8_t>(elements_, 0).data(), "byte 0"));
    return check(std::vector<uint8_t>(elements_, 255).data(), "byte 255");
  }
  const float* values = std::get<std::vector<float>>(examples.values).data();
  for (size_t i = 0; i < examples.size(); ++i) {
    RETURN_IF_ERROR(check(values + i * elements_, absl::StrCat("example ", i)));
  }
  return absl::OkStatus();
}

void Normalizer::Apply(const uint8_t* in, float* out) const {
  ApplyEither(in, elements_, shift_, scale_, out);
}

void Normalizer::Apply(const float* in, float* out) const {
  ApplyEither(in, elements_, shift_, scale_, out);
}

}  // namespace leeway
