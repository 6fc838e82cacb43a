#include "worker/onnx/graph_writer.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway {

namespace {

static_assert(std::endian::native == std::endian::little);

std::vector<int64_t> DimensionsOf(const OnnxValue& value) {
  const ImageShape& shape = value.shape;
  switch (value.layout) {
    case OnnxLayout::kFlat:
      return {shape.channels};
    case OnnxLayout::kImage:
      return {shape.channels, shape.height, shape.width};
    case OnnxLayout::kRows:
      return {value.positions(), shape.channels};
    case OnnxLayout::kTokens:
      return {static_cast<int64_t>(shape.elements())};
  }
  return {};
}

void Describe(const OnnxValue& value, onnx::ValueInfoProto& info) {
  info.set_name(value.name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(value.tokens() ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  onnx::TensorShapeProto& shape = *type.mutable_shape();
  shape.add_dim()->set_dim_param("N");
  for (const int64_t side : DimensionsOf(value)) shape.add_dim()->set_dim_value(side);
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

std::string GraphWriter::AddInt64(const std::string& name, std::span<const int64_t> values,
                                  bool scalar) {
  onnx::TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(Fresh(name));
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size_bytes());
  return tensor.name();
}

std::string GraphWriter::AddInts(const std::string& name, const std::vector<int64_t>& values) {
  return AddInt64(name, values, false);
}

std::string GraphWriter::AddInt(const std::string& name, int64_t value) {
  return AddInt64(name, std::span(&value, 1), true);
}

std::string GraphWriter::Shared(const std::string& name, const std::function<std::string()>& add) {
  std::string& known = shared_[name];
  if (known.empty()) known = add();
  return known;
}

std::string GraphWriter::Reshape(const std::string& name, const std::string& x,
                                 const std::vector<int64_t>& dims) {
  const std::string shape = AddInts(absl::StrCat(name, ".shape"), dims);
  return Add(name, "Reshape", {x, shape});
}

OnnxValue GraphWriter::Flat(const std::string& name, const OnnxValue& value) {
  if (value.rows()) return Flat(name, Image(absl::StrCat(name, ".image"), value));
  if (!value.image()) return value;
  const ImageShape flat{1, 1, static_cast<uint32_t>(value.shape.elements())};
  return {Add(name, "Flatten", {value.name}, {IntAttribute("axis", 1)}), flat, OnnxLayout::kFlat};
}

OnnxValue GraphWriter::Image(const std::string& name, const OnnxValue& value) {
  if (value.image()) return value;
  const ImageShape& shape = value.shape;
  std::string x = value.name;
  if (value.rows()) {
    x = Add(absl::StrCat(name, ".channels"), "Transpose", {x}, {IntsAttribute("perm", {0, 2, 1})});
  }
  return {Reshape(name, x, {0, shape.channels, shape.height, shape.width}), shape,
          OnnxLayout::kImage};
}

OnnxValue GraphWriter::Rows(const std::string& name, const OnnxValue& value) {
  if (value.rows()) return value;
  const ImageShape& shape = value.shape;
  if (!value.image())
    return {Reshape(name, value.name, {0, 1, shape.channels}), shape, OnnxLayout::kRows};
  const std::string pixels =
      Reshape(absl::StrCat(name, ".pixels"), value.name, {0, shape.channels, value.positions()});
  return {Add(name, "Transpose", {pixels}, {IntsAttribute("perm", {0, 2, 1})}), shape,
          OnnxLayout::kRows};
}

std::string GraphWriter::Fresh(std::string name) {
  while (!taken_.insert(name).second) name += "_";
  return name;
}

OnnxValue GraphWriter::Begin(const ImageShape& input, bool tokens) {
  const OnnxLayout numbers = input.flat() ? OnnxLayout::kFlat : OnnxLayout::kImage;
  OnnxValue value{kInput, input, tokens ? OnnxLayout::kTokens : numbers};
  Describe(value, *graph_.add_input());
  return value;
}

void GraphWriter::End(OnnxValue scores) {
  onnx::NodeProto& node = *graph_.add_node();
  node.set_name(kScores);
  node.set_op_type("Identity");
  node.add_input(scores.name);
  node.add_output(kScores);
  scores.name = kScores;
  Describe(scores, *graph_.add_output());
}

}  // namespace leeway
