// Turns the status of a training job into the lines that a person sees. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// One line, no wider than requested.
struct ViewLine {
  enum class Style { kPlain, kTitle, kHeader, kBar, kWarning };
  std::string text;
  Style style = Style::kPlain;
  friend bool operator==(const ViewLine&, const ViewLine&) = default;
};

// Facts for the view that only the launcher knows.
struct ViewContext {
  // The number of restarts, by rank.
  std::vector<uint32_t> restarts;
  std::optional<double> eta_seconds;
  // A notice such as "stopping; Ctrl-C again kills".
  std::string notice;
};

// Returns the state's name, such as "running" or "finished".
std::string StateName(v1::JobState state);

// Returns the lines of the view. `width` and `height` are the terminal's columns and rows. One line
// sums up the workers that do not fit. On a wide terminal, a worker's line also shows which share
// of its time it waits, and which share of the exchange its compute hides.
std::vector<ViewLine> RenderLiveView(const v1::JobStatus& status, const ViewContext& context,
                                     size_t width, size_t height);

// Returns a bar of `width` columns.
std::string ProgressBar(double share, size_t width);

// Returns the same figures in one line, for a log.
std::string RenderLogLine(const v1::JobStatus& status, const ViewContext& context);

}  // namespace leeway
