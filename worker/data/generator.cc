#include "worker/data/generator.h"

#include "common/philox.h"
#include "common/status.h"
#include "worker/data/labels.h"

namespace leeway {
namespace {

constexpr uint64_t kCentres = 0;
constexpr uint64_t kExamples = 1;
constexpr char kPlace[] = "data generator";

absl::StatusOr<ImageShape> CheckedShape(const v1::Generator& options) {
  ASSIGN_OR_RETURN(const ImageShape shape,
                   MakeShape({options.shape().data(), static_cast<size_t>(options.shape_size())}));
  if (options.examples() == 0) return absl::InvalidArgumentError("examples: is 0");
  if (options.classes() == 0) return absl::InvalidArgumentError("classes: is 0");
  RETURN_IF_ERROR(CheckSize(options.examples(), shape.elements(), sizeof(float), kPlace));
  RETURN_IF_ERROR(CheckSize(options.classes(), shape.elements(), sizeof(float), kPlace));
  return shape;
}

}  // namespace

absl::StatusOr<Examples> Generate(const v1::Generator& options, uint64_t seed,
                                  const LabelRule& rule) {
  absl::StatusOr<ImageShape> shape = CheckedShape(options);
  if (!shape.ok()) return Annotate(shape.status(), kPlace);
  const size_t elements = shape->elements();
  std::vector<float> centres(options.classes() * elements);
  RandomStream centre_draws(seed, RandomPurpose::kGenerate, {0, kCentres});
  for (float& centre : centres) centre = static_cast<float>(centre_draws.Normal());

  Examples examples{*shape, {}, {}};
  std::vector<float> values(options.examples() * elements);
  RandomStream draws(seed, RandomPurpose::kGenerate, {options.split(), kExamples});
  for (size_t i = 0; i < options.examples(); ++i) {
    const size_t label = i % options.classes();
    absl::StatusOr<float> checked = CheckLabel(static_cast<double>(label), rule);
    if (!checked.ok()) return Annotate(checked.status(), kPlace);
    examples.labels.push_back(*checked);
    for (size_t k = 0; k < elements; ++k) {
      const double offset = options.noise() * draws.Normal();
      values[i * elements + k] = static_cast<float>(centres[label * elements + k] + offset);
    }
  }
  examples.values = std::move(values);
  return examples;
}

}  // namespace leeway
