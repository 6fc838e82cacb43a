// Writes a first model for data, as the `model` part of a job.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/statistics.h"
#include "worker/data/shape.h"

namespace leeway {

// Has convolutions if the images are large enough, and dense layers otherwise. It gives one score
// for each class, or a single one for labels -1 and 1 and for numbers.
std::string ModelYaml(const ImageShape& shape, const LabelStatistics& labels);

// Describes a small transformer.
std::string TextModelYaml(uint64_t vocabulary);

}  // namespace leeway
