// Shared by the tests of compute, layers and models.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>

#include "common/philox.h"
#include "leeway/v1/job.pb.h"
#include "tests/catch.h"
#include "worker/compute/backend.h"
#include "worker/compute/precision.h"
#include "worker/data/batch.h"
#include "worker/device/make_backend.h"
#include "worker/layers/layer.h"
#include "worker/layers/registry.h"
#include "worker/model/model.h"

namespace leeway::testing {

// Each program defines both of these: in cpu_backend.cc, or for a device (tests/worker/device).
std::unique_ptr<Backend> TestBackend(uint32_t threads = 1, Precision precision = Precision::kFp32);
// Factors in this precision may keep digits: even where TF32 is allowed, cuBLAS computes some
// shapes in fp32.
bool MayKeepDigits(Precision precision);

// Parses protobuf's text format, such as "layers { dense { units: 3 } } loss: LOSS_SQUARED".
inline v1::Model ParseModel(const std::string& text) {
  v1::Model model;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

inline std::unique_ptr<Model> BuildModel(const std::string& text, const ImageShape& input,
                                         uint32_t classes, Backend& backend) {
  absl::StatusOr<std::unique_ptr<Model>> model =
      Model::Build(ParseModel(text), input, classes, backend);
  INFO(model.status());
  REQUIRE(model.ok());
  return *std::move(model);
}

// Returns standard normal values times `scale`.
inline std::vector<float> RandomValues(size_t count, uint64_t seed, double scale = 1) {
  RandomStream stream(seed, RandomPurpose::kGenerate);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(scale * stream.Normal());
  return values;
}

// Returns a batch with labels 0 .. classes - 1.
inline Batch RandomBatch(size_t size, size_t elements, uint32_t classes, uint64_t seed) {
  Batch batch{size, RandomValues(size * elements, seed), std::vector<float>(size)};
  RandomStream stream(seed + 1, RandomPurpose::kGenerate);
  for (float& label : batch.labels) label = static_cast<float>(stream.Below(classes));
  return batch;
}

// Returns examples [begin, end) of a batch.
inline Batch Part(const Batch& batch, size_t begin, size_t end) {
  const size_t elements = batch.features.size() / batch.size;
  return {end - begin,
          {batch.features.begin() + begin * elements, batch.features.begin() + end * elements},
          {batch.labels.begin() + begin, batch.labels.begin() + end}};
}

inline std::vector<float> InitialWeights(const Model& model, uint64_t seed) {
  std::vector<float> weights(model.schema().total());
  model.Initialize(seed, weights);
  return weights;
}

inline double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Returns |a - b| / |b| in the Euclidean norm.
template <typename A, typename B>
double RelativeError(const A& actual, const B& expected) {
  REQUIRE(actual.size() == expected.size());
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double d = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    difference += d * d;
    size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(difference) / std::max(std::sqrt(size), 1e-30);
}

}  // namespace leeway::testing
