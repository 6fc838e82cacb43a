#include "worker/formats/model_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/files/safetensors_reader.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/data_folder.h"
#include "worker/formats/axis_order.h"
#include "worker/formats/file_tensors.h"
#include "worker/formats/match_tensors.h"

namespace leeway {
namespace {

// Returns true if the names are Leeway's, which have a '/'. The names of other programs have no
// '/'.
bool HasLeewayNames(const SafetensorsReader& file) {
  return std::any_of(file.tensors().begin(), file.tensors().end(), [](const StoredTensor& tensor) {
    return absl::StrContains(tensor.name, '/');
  });
}

absl::StatusOr<std::vector<FileTensor>> WantedOf(const SafetensorsReader& file,
                                                 const v1::Model& config, const Model& model) {
  if (HasLeewayNames(file)) return LeewayTensors(model);
  return TorchTensors(config, model);
}

}  // namespace

absl::StatusOr<FloatBuffer> ReadModelFile(const std::string& path, const v1::Model& config,
                                          const Model& model) {
  ASSIGN_OR_RETURN(const SafetensorsReader file, SafetensorsReader::Open(path));
  const std::string context = absl::StrCat("safetensors file '", path, "'");
  const auto wanted = WantedOf(file, config, model);
  RETURN_IF_ERROR(Annotate(wanted.status(), context));
  const auto matches = MatchTensors(file, *wanted);
  RETURN_IF_ERROR(Annotate(matches.status(), context));
  FloatBuffer weights(model.schema().total());
  std::vector<float> values;
  for (size_t i = 0; i < wanted->size(); ++i) {
    const FileTensor& tensor = (*wanted)[i];
    values.resize(tensor.axes.elements());
    RETURN_IF_ERROR(file.Read(*(*matches)[i], values));
    FromFile(tensor.axes, values, weights.span().subspan(tensor.offset, values.size()));
  }
  return weights;
}

absl::StatusOr<FloatBuffer> ReadInitialWeights(const v1::Model& config, const std::string& data_dir,
                                               const Model& model) {
  const auto path = PathOfData(data_dir, config.initial());
  const auto here = path.ok() ? PathHere(*path) : path;
  if (!here.ok()) return AtKey(here.status(), "model.initial");
  auto weights = ReadModelFile(*here, config, model);
  if (weights.ok()) return weights;
  const bool copied = *here != *path;
  return AtKey(copied ? Annotate(weights.status(), *path) : weights.status(), "model.initial");
}

absl::Status WriteTorchFile(const std::string& path, const v1::Model& config, const Model& model,
                            std::span<const float> weights,
                            const std::map<std::string, std::string>& metadata, WriteTo to) {
  ASSIGN_OR_RETURN(const std::vector<FileTensor> tensors, TorchTensors(config, model));
  v1::ModelSchema schema;
  schema.set_total(model.schema().total());
  std::vector<float> values(weights.size());
  uint64_t offset = 0;
  for (const FileTensor& tensor : tensors) {
    v1::TensorSpec& spec = *schema.add_tensors();
    spec.set_name(tensor.names.front());
    spec.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    spec.set_offset(offset);
    const uint64_t elements = tensor.axes.elements();
    ToFile(tensor.axes, weights.subspan(tensor.offset, elements),
           std::span(values).subspan(offset, elements));
    offset += elements;
  }
  return WriteSafetensors(path, schema, values, metadata, to);
}

}  // namespace leeway
