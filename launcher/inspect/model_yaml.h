// A first model for data, as the `model` part of a job.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/statistics.h"
#include "worker/data/shape.h"

namespace leeway {

// Convolutions for images that are large enough, else dense layers; one score for each class, or a
// single one for -1 and 1 and for numbers.
std::string ModelYaml(const ImageShape& shape, const LabelStatistics& labels);

// A small transformer.
std::string TextModelYaml(uint64_t vocabulary);

}  // namespace leeway
