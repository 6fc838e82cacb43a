// Converts percentiles to and from the JSON of every benchmark: {"p50", "p90", "p99", "max"}.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/base/statistics.h"

namespace leeway {

inline void to_json(nlohmann::json& json, const Percentiles& p) {
  json = {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"max", p.max}};
}

// Reads absent values as 0.
inline void from_json(const nlohmann::json& json, Percentiles& p) {
  if (!json.is_object()) return;
  p = {.p50 = json.value("p50", 0.0),
       .p90 = json.value("p90", 0.0),
       .p99 = json.value("p99", 0.0),
       .max = json.value("max", 0.0)};
}

}  // namespace leeway
