// Puts an ONNX graph together, node by node. Names of operators and attributes are ONNX's
// (github.com/onnx/onnx/blob/main/docs/Operators.md), as of opset 10.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "onnx/onnx.pb.h"
#include "worker/data/shape.h"

namespace leeway {

// A value of the graph. `shape` is that of one example in Leeway; the ONNX tensor is [N, channels,
// height, width], or [N, channels] unless it is an image there.
struct OnnxValue {
  std::string name;
  ImageShape shape;
  bool image = false;
};

onnx::AttributeProto IntAttribute(const std::string& name, int64_t value);
onnx::AttributeProto IntsAttribute(const std::string& name, const std::vector<int64_t>& values);
onnx::AttributeProto FloatAttribute(const std::string& name, float value);

class GraphWriter {
 public:
  explicit GraphWriter(onnx::GraphProto& graph) : graph_(graph) {}

  // The graph's input, and its output, which is `scores`.
  OnnxValue Begin(const ImageShape& input);
  void End(OnnxValue scores);

  // Appends a node; the name of its output, which is also its own: `name`, or a longer one if that
  // is taken.
  std::string Add(const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs,
                  const std::vector<onnx::AttributeProto>& attributes = {});
  // Constants; the name. One of no dimensions is a scalar.
  std::string AddFloats(const std::string& name, const std::vector<int64_t>& dims,
                        std::span<const float> values);
  std::string AddFloat(const std::string& name, float value) {
    return AddFloats(name, {}, std::span(&value, 1));
  }
  std::string AddInts(const std::string& name, const std::vector<int64_t>& values);

  // The same value as [N, features], the channels of an image before its pixels.
  OnnxValue Flat(const std::string& name, const OnnxValue& value);
  // A flat value as an image of one pixel; an image as it is.
  OnnxValue Image(const std::string& name, const OnnxValue& value);

 private:
  static constexpr char kInput[] = "input";
  static constexpr char kScores[] = "scores";

  std::string Fresh(std::string name);

  onnx::GraphProto& graph_;
  std::set<std::string> taken_ = {kInput, kScores};
};

}  // namespace leeway
