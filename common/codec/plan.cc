#include "common/codec/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include <google/protobuf/util/message_differencer.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/codec/lossless.h"
#include "common/element_name.h"
#include "common/status.h"

namespace leeway {
namespace {

using google::protobuf::util::MessageDifferencer;

// Returns how much precision a codec loses. A larger pair means a larger loss. The second number
// orders top_k codecs by their share.
std::pair<int, double> LossOf(const v1::Codec& codec) {
  switch (codec.type_case()) {
    case v1::Codec::kNone:
      return {0, 0};
    case v1::Codec::kFp16:
      return {1, 0};
    case v1::Codec::kBf16:
      return {2, 0};
    case v1::Codec::kInt8:
      return {3, 0};
    case v1::Codec::kSign:
      return {4, 0};
    default:
      return {5, -codec.top_k().share()};
  }
}

v1::Codec LessLossy(const v1::Codec& a, const v1::Codec& b) {
  return LossOf(a) <= LossOf(b) ? a : b;
}

// Returns the tensor's layer: LAYER for a tensor LAYER/weight.
std::string LayerOf(const v1::TensorSpec& tensor) {
  return tensor.name().substr(0, tensor.name().rfind('/'));
}

// Returns a tensor's codec for one direction: its layer's choice or the job's.
const v1::Codec& ChoiceOf(const v1::Compression& compression, const v1::TensorSpec& tensor,
                          bool contributions) {
  const std::string layer = LayerOf(tensor);
  for (const v1::LayerCompression& choice : compression.layers()) {
    if (!(contributions ? choice.has_contributions() : choice.has_weights())) continue;
    if (std::find(choice.names().begin(), choice.names().end(), layer) != choice.names().end()) {
      return contributions ? choice.contributions() : choice.weights();
    }
  }
  return contributions ? compression.contributions() : compression.weights();
}

// Returns the codec that averaged elements get for this choice.
v1::Codec ForAveraged(const v1::Codec& choice, bool contributions) {
  v1::Codec codec;
  if (contributions && choice.has_fp16()) {
    codec.mutable_none();
    return codec;
  }
  codec.mutable_bf16();
  return LessLossy(choice, codec);
}

std::vector<v1::Codec> Choices(const v1::Compression& compression, const v1::ModelSchema& schema,
                               const BlockLayout& layout, bool contributions) {
  std::vector<v1::Codec> choices(layout.blocks());
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    const uint64_t elements = ElementsOf(tensor);
    if (elements == 0) continue;
    v1::Codec choice = ChoiceOf(compression, tensor, contributions);
    if (tensor.offset() >= schema.trained()) choice = ForAveraged(choice, contributions);
    const uint32_t last = layout.BlockOf(tensor.offset() + elements - 1);
    for (uint32_t block = layout.BlockOf(tensor.offset()); block <= last; ++block) {
      const bool first = choices[block].type_case() == v1::Codec::TYPE_NOT_SET;
      choices[block] = first ? choice : LessLossy(choices[block], choice);
    }
  }
  // Blocks without a tensor use the job's choice. The vector of a benchmark has no tensors.
  for (v1::Codec& choice : choices) {
    if (choice.type_case() != v1::Codec::TYPE_NOT_SET) continue;
    choice = contributions ? compression.contributions() : compression.weights();
  }
  return choices;
}

bool LosesNothing(const v1::Compression& compression) {
  return IsLossless(compression.contributions()) && IsLossless(compression.weights()) &&
         std::all_of(compression.layers().begin(), compression.layers().end(),
                     [](const v1::LayerCompression& layers) {
                       return IsLossless(layers.contributions()) && IsLossless(layers.weights());
                     });
}

absl::Status CheckLayers(const v1::Compression& compression, const v1::ModelSchema& schema) {
  for (const v1::LayerCompression& choice : compression.layers()) {
    for (const std::string& name : choice.names()) {
      const bool found =
          std::any_of(schema.tensors().begin(), schema.tensors().end(),
                      [&](const v1::TensorSpec& tensor) { return LayerOf(tensor) == name; });
      if (!found) {
        return absl::InvalidArgumentError(
            absl::StrCat("compression.layers: the model has no layer '", name, "' with tensors"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint8_t> CodecPlan::IndexOf(const v1::Codec& config) {
  for (size_t i = 0; i < configs_.size(); ++i) {
    if (MessageDifferencer::Equals(configs_[i], config)) return static_cast<uint8_t>(i);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const Codec> codec, MakeCodec(config));
  if (configs_.size() > UINT8_MAX) {
    return absl::InvalidArgumentError("compression: the job has more than 256 different codecs");
  }
  configs_.push_back(config);
  codecs_.push_back(std::move(codec));
  return static_cast<uint8_t>(configs_.size() - 1);
}

absl::StatusOr<std::shared_ptr<const CodecPlan>> CodecPlan::Of(const v1::TrainingJob& job,
                                                               const v1::ModelSchema& schema,
                                                               const BlockLayout& layout) {
  if (LosesNothing(job.compression())) return nullptr;
  ASSIGN_OR_RETURN(CodecPlan plan, Make(job.compression(), schema, layout));
  if (!plan.compresses_contributions() && !plan.compresses_weights()) return nullptr;
  return std::make_shared<const CodecPlan>(std::move(plan));
}

absl::StatusOr<CodecPlan> CodecPlan::Make(const v1::Compression& compression,
                                          const v1::ModelSchema& schema,
                                          const BlockLayout& layout) {
  RETURN_IF_ERROR(CheckLayers(compression, schema));
  if (schema.total() != layout.total()) {
    return absl::InvalidArgumentError(absl::StrCat("compression: the model has ", schema.total(),
                                                   " elements, but its blocks have ",
                                                   layout.total()));
  }
  CodecPlan plan;
  for (const v1::Codec& choice : Choices(compression, schema, layout, true)) {
    ASSIGN_OR_RETURN(const uint8_t index, plan.IndexOf(choice));
    plan.contributions_.push_back(index);
    plan.compresses_contributions_ |= plan.codecs_[index]->encoding() != v1::ENCODING_RAW;
  }
  for (const v1::Codec& choice : Choices(compression, schema, layout, false)) {
    ASSIGN_OR_RETURN(const uint8_t index, plan.IndexOf(choice));
    plan.weights_.push_back(index);
    plan.compresses_weights_ |= plan.codecs_[index]->encoding() != v1::ENCODING_RAW;
  }
  return plan;
}

}  // namespace leeway
