// Builds an ONNX graph node by node. The names of operators and attributes are ONNX's
// (github.com/onnx/onnx/blob/main/docs/Operators.md), as of opset 10.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "onnx/onnx.pb.h"
#include "worker/data/shape.h"

namespace leeway {

// The layout of a value's examples in ONNX.
enum class OnnxLayout {
  // [N, features]
  kFlat,
  // [N, channels, height, width]
  kImage,
  // [N, positions, channels], with the pixels row by row. Layers of transformers use this layout.
  kRows,
  // [N, positions] of INT64. Only the input of a model of text has this layout.
  kTokens,
};

// A value of the graph. `shape` is the shape of one example in Leeway.
struct OnnxValue {
  std::string name;
  ImageShape shape;
  OnnxLayout layout = OnnxLayout::kFlat;

  bool flat() const { return layout == OnnxLayout::kFlat; }
  bool image() const { return layout == OnnxLayout::kImage; }
  bool rows() const { return layout == OnnxLayout::kRows; }
  bool tokens() const { return layout == OnnxLayout::kTokens; }
  int64_t positions() const { return int64_t{shape.height} * shape.width; }
};

onnx::AttributeProto IntAttribute(const std::string& name, int64_t value);
onnx::AttributeProto IntsAttribute(const std::string& name, const std::vector<int64_t>& values);
onnx::AttributeProto FloatAttribute(const std::string& name, float value);

class GraphWriter {
 public:
  explicit GraphWriter(onnx::GraphProto& graph) : graph_(graph) {}

  // Begin adds the graph's input, which is tokens or numbers. End adds the graph's output, which is
  // named `scores`.
  OnnxValue Begin(const ImageShape& input, bool tokens);
  void End(OnnxValue scores);

  // Appends a node and returns its name, which is also the name of its output. The name is `name`,
  // or a longer name if `name` is already in use.
  std::string Add(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs,
                  const std::vector<onnx::AttributeProto>& attributes = {});
  // These functions add constants and return their names. A constant without dimensions is a
  // scalar.
  std::string AddFloats(const std::string& name, const std::vector<int64_t>& dims,
                        std::span<const float> values);
  std::string AddFloat(const std::string& name, float value) {
    return AddFloats(name, {}, std::span(&value, 1));
  }
  std::string AddInts(const std::string& name, const std::vector<int64_t>& values);
  std::string AddInt(const std::string& name, int64_t value);
  // Reshapes `x` to these dimensions. 0 stands for the same dimension of the input, and -1 for the
  // dimension that holds the remaining elements.
  std::string Reshape(const std::string& name, const std::string& x,
                      const std::vector<int64_t>& dims);
  // Returns what `add` returns for this name. Calls `add` only once for a name, because several
  // layers read the same constants.
  std::string Shared(const std::string& name, const std::function<std::string()>& add);

  // These functions convert a value to another layout. `name` is the name of the node that they add
  // to the graph. In a flat value the features of an image are ordered channel by channel. A flat
  // value is an image of one pixel, or one row. The value must not be tokens.
  OnnxValue Flat(const std::string& name, const OnnxValue& value);
  OnnxValue Image(const std::string& name, const OnnxValue& value);
  OnnxValue Rows(const std::string& name, const OnnxValue& value);

 private:
  static constexpr char kInput[] = "input";
  static constexpr char kScores[] = "scores";

  std::string Fresh(std::string name);
  std::string AddInt64(const std::string& name, std::span<const int64_t> values, bool scalar);

  onnx::GraphProto& graph_;
  std::set<std::string> taken_ = {kInput, kScores};
  std::map<std::string, std::string> shared_;
};

}  // namespace leeway
