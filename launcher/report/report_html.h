// report.html: a run on one page, for a person to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/outcome/history.h"
#include "server/outcome/summary.h"

namespace leeway {

struct ReportInput {
  RunSummary summary;
  RunHistory history;
  // The line below the title: "bounded staleness 3, gradient exchange, sgd".
  std::string algorithm;
  struct Checkpoint {
    uint64_t clock = 0;
    uint64_t bytes = 0;
    // Relative to the run folder.
    std::string path;
  };
  std::vector<Checkpoint> checkpoints;
  std::string job_yaml;
  // The picture that CurvesSvg draws.
  std::string curves_svg;
};

// The whole page, for light and dark colour schemes. It has no script, and fetches nothing.
std::string ReportHtml(const ReportInput& input);

}  // namespace leeway
