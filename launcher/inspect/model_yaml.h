// Writes the `model` part of a job with a first model that fits given data.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/statistics.h"
#include "worker/data/shape.h"

namespace leeway {

// Returns a model with convolutions if the images are large enough, and with dense layers
// otherwise. The model has one output for each class. If the labels are -1 and 1, or numbers, it
// has a single output.
std::string ModelYaml(const ImageShape& shape, const LabelStatistics& labels);

// Returns a small transformer for text.
std::string TextModelYaml(uint64_t vocabulary);

}  // namespace leeway
