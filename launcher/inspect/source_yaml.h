// The `data` part of a job as YAML.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/statistics.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// With a tenth held out, a batch size that is not too large for `examples`, and a normalisation by
// `values` unless they are empty.
std::string DataYaml(const v1::Source& source, const ValueStatistics& values, uint64_t examples);

}  // namespace leeway
