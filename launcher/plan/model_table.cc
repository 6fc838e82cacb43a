#include "launcher/plan/model_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/text/format.h"
#include "common/text/table.h"
#include "config/model/layer_tree.h"
#include "worker/model/memory_plan.h"

namespace leeway {
namespace {

std::string OutputText(const ImageShape& shape) {
  if (shape.flat()) return absl::StrCat(shape.channels);
  return absl::StrCat(shape.height, " x ", shape.width, " x ", shape.channels);
}

uint64_t ParametersOf(const Node& node) {
  uint64_t parameters = 0;
  if (node.layer == nullptr) return 0;
  for (const TensorPlan& tensor : node.layer->tensors()) parameters += tensor.elements();
  return parameters;
}

// The table's cell for a number that is 0 or that a layer does not have.
constexpr char kNone[] = "-";

std::string NumberOrNone(uint64_t number) { return number == 0 ? kNone : Thousands(number); }

std::string Millions(double flops) { return flops == 0 ? kNone : Fixed(flops / 1e6, 3); }

std::string Memory(uint64_t floats) { return floats == 0 ? kNone : Bytes(floats * sizeof(float)); }

}  // namespace

std::string ModelTable(const v1::Model& config, const Model& model, size_t batch) {
  const Graph& graph = model.graph();
  const std::vector<PlacedLayer> layers = FlattenLayers(config);
  const MemoryPlan memory = model.PlanMemory(batch, false);
  Table table({"layer", "kind", "output", "parameters", "MFLOPs", "activations"}, 3);
  uint64_t kept = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    table.Add({node.name, LayerType(*layers[i].layer), OutputText(graph.output(i).shape),
               NumberOrNone(ParametersOf(node)),
               node.layer == nullptr ? kNone : Millions(node.layer->flops()),
               Memory(memory.layers[i])});
    kept += memory.layers[i];
  }
  const v1::ModelSchema& schema = model.schema();
  const Model::Flops& flops = model.flops();
  table.Add({"all", Counted(graph.nodes.size(), "layer"), "", Thousands(schema.total()),
             Fixed(flops.forward / 1e6, 3), Bytes(kept * sizeof(float))});
  return absl::StrCat(
      table.ToString(), "\nParameters: ", Thousands(schema.trained()), " trained, ",
      Thousands(schema.total() - schema.trained()), " averaged; ",
      Bytes(schema.total() * sizeof(float)),
      "\nMFLOPs of an example: ", Fixed(flops.forward / 1e6, 3), " forward, ",
      Fixed(flops.backward / 1e6, 3), " backward\nMemory of a batch of ", Counted(batch, "example"),
      ": ", Bytes(kept * sizeof(float)), " activations, ",
      memory.recomputed == 0 ? "" : Bytes(memory.recomputed * sizeof(float)) + " for recompute, ",
      Bytes(memory.gradients * sizeof(float)), " their gradients, ",
      Bytes(memory.scratch * sizeof(float)), " scratch\n");
}

}  // namespace leeway
