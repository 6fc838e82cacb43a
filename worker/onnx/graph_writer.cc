#include "worker/onnx/graph_writer.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway {

namespace {

static_assert(std::endian::native == std::endian::little);

void Describe(const OnnxValue& value, onnx::ValueInfoProto& info) {
  info.set_name(value.name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  onnx::TensorShapeProto& shape = *type.mutable_shape();
  shape.add_dim()->set_dim_param("N");
  shape.add_dim()->set_dim_value(value.shape.channels);
  if (!value.image) return;
  shape.add_dim()->set_dim_value(value.shape.height);
  shape.add_dim()->set_dim_value(value.shape.width);
}

}  // namespace

onnx::AttributeProto IntAttribute(const std::string& name, int64_t value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

onnx::AttributeProto IntsAttribute(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
  return attribute;
}

onnx::AttributeProto FloatAttribute(const std::string& name, float value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
  return attribute;
}

std::string GraphWriter::Add(const std::string& name, const std::string& op,
                             const std::vector<std::string>& inputs,
                             const std::vector<onnx::AttributeProto>& attributes) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_name(Fresh(name));
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(node.name());
  for (const onnx::AttributeProto& attribute : attributes) *node.add_attribute() = attribute;
  return node.name();
}

std::string GraphWriter::AddFloats(const std::string& name, const std::vector<int64_t>& dims,
                                   std::span<const float> values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Fresh(name));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.mutable_dims()->Add(dims.begin(), dims.end());
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string GraphWriter::AddInts(const std::string& name, const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Fresh(name));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor.name();
}

OnnxValue GraphWriter::Flat(const std::string& name, const OnnxValue& value) {
  if (!value.image) return value;
  const ImageShape flat{1, 1, static_cast<uint32_t>(value.shape.elements())};
  return {Add(name, "Flatten", {value.name}, {IntAttribute("axis", 1)}), flat, false};
}

OnnxValue GraphWriter::Image(const std::string& name, const OnnxValue& value) {
  if (value.image) return value;
  // 0: as many as the input has.
  const std::string shape = AddInts(absl::StrCat(name, ".shape"), {0, value.shape.channels, 1, 1});
  return {Add(name, "Reshape", {value.name, shape}), value.shape, true};
}

std::string GraphWriter::Fresh(std::string name) {
  while (!taken_.insert(name).second) name += "_";
  return name;
}

OnnxValue GraphWriter::Begin(const ImageShape& input) {
  OnnxValue value{kInput, input, !input.flat()};
  Describe(value, *graph_.add_input());
  return value;
}

void GraphWriter::End(OnnxValue scores) {
  if (scores.shape.flat()) scores = Flat("scores.flat", scores);
  onnx::NodeProto& node = *graph_.add_node();
  node.set_name(kScores);
  node.set_op_type("Identity");
  node.add_input(scores.name);
  node.add_output(kScores);
  scores.name = kScores;
  Describe(scores, *graph_.add_output());
}

}  // namespace leeway
