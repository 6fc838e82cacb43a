// The `data` part of a job as YAML.
#pragma once

#include <cstdint>
#include <string>

#include "launcher/inspect/guess_source.h"
#include "launcher/inspect/statistics.h"

namespace leeway {

// With what there is to evaluate on, else a tenth held out, a batch size that is not too large for
// `examples`, and a normalisation by `values` unless they are empty.
std::string DataYaml(const GuessedSource& guessed, const ValueStatistics& values,
                     uint64_t examples);

}  // namespace leeway
