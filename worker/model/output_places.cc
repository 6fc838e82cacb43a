#include "worker/model/output_places.h"

namespace leeway {
namespace {

// Returns true if other nodes also read the value that the output of node `index` may replace.
bool ReadByOthers(const Graph& graph, size_t index) {
  const Node& node = graph.nodes[index];
  if (graph.input(index).readers > 1) return true;
  return node.segment.has_value() && graph.segments[*node.segment].enters(node.inputs[0]);
}

}  // namespace

OutputPlaces PlanPlaces(const Graph& graph) {
  OutputPlaces places{{}, {0}};
  // For each value, true if it is read again and so must not be overwritten.
  std::vector<bool> needed = {true};
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const size_t input = node.inputs[0];
    const bool input_needed = needed[input] || ReadByOthers(graph, i);
    const bool in_place =
        node.is_view() || (node.placement() == Placement::kInPlace && !input_needed);
    const bool reads_output = node.layer != nullptr && node.layer->reads_output();
    places.in_place.push_back(in_place);
    places.home.push_back(in_place ? places.home[input] : i + 1);
    needed.push_back((in_place && input_needed) || reads_output);
  }
  return places;
}

}  // namespace leeway
