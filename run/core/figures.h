// The figures of a step: what a worker reports about the clocks that it has completed
// (v1::StepMetrics). To add a figure, add a field to that message and a line to the table in
// figures.cc. The code then checks the figure, merges it, writes it to metrics.jsonl, reads it back
// and adds it up for each worker. If WorkerStatus has a field of this name, `leeway status` shows
// it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <variant>

#include "absl/strings/string_view.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// How the figures of consecutive clocks are merged into one figure.
enum class Merge {
  kSum,
  kLargest,
  kNewest,
  // The newest value that is not 0.
  kNewestKnown,
  // The mean, weighted by examples, over the clocks that have the figure.
  kMean,
};

struct Figure {
  // The limit of a figure that may have any value.
  static constexpr double kAny = std::numeric_limits<double>::infinity();

  template <typename Number>
  struct Field {
    Number (v1::StepMetrics::*get)() const;
    void (v1::StepMetrics::*set)(Number);
  };

  // The name of the figure's field, which is also its key in metrics.jsonl.
  const char* name;
  std::variant<Field<uint64_t>, Field<double>> field;
  Merge merge;
  // The largest value that a worker can have measured. The smallest one is 0.
  double most = kAny;
  // The name of another figure, or empty. If the other figure is 0, this figure is not logged.
  absl::string_view logged_with = {};
  // Returns whether a message has the figure. If null, every message has it.
  bool (v1::StepMetrics::*told)() const = nullptr;

  bool IsCount() const { return std::holds_alternative<Field<uint64_t>>(field); }
  bool IsTold(const v1::StepMetrics& metrics) const;
  bool IsLogged(const v1::StepMetrics& metrics) const;
  uint64_t Count(const v1::StepMetrics& metrics) const;
  double Real(const v1::StepMetrics& metrics) const;
  void Set(uint64_t count, v1::StepMetrics& metrics) const;
  void Set(double real, v1::StepMetrics& metrics) const;
  // Copies the figure to the field of the same name in `status`, if there is one.
  void Show(const v1::StepMetrics& metrics, v1::WorkerStatus& status) const;
};

// Returns all figures, in the order of their keys in metrics.jsonl.
std::span<const Figure> StepFigures();
const Figure& StepFigure(absl::string_view name);

// A figure that an evaluation may have in addition to its loss (v1::EvaluationMetrics). To add a
// figure, add a field to that message and a line to the table in figures.cc. The code then checks
// the figure, writes it to metrics.jsonl and summary.json, reads it back, and shows it to people.
struct TestFigure {
  // The name of the figure's field, which is also its key in the files.
  const char* name;
  // The name for people, on a page and in a line.
  const char* title;
  const char* short_title;
  // Whether the figure is a share, from 0 to 1.
  bool share;
  double least;
  double most;
  bool (v1::EvaluationMetrics::*has)() const;
  double (v1::EvaluationMetrics::*get)() const;
  void (v1::EvaluationMetrics::*set)(double);

  std::optional<double> In(const v1::EvaluationMetrics& metrics) const;
};
std::span<const TestFigure> TestFigures();

// Merges `more` into `record`. The clocks of `more` come after those of `record`.
void MergeMetrics(const v1::StepMetrics& more, v1::StepMetrics& record);

// Returns the seconds that the steps took: data, compute and wait.
double StepSeconds(const v1::StepMetrics& metrics);
// Returns the share of the exchange time that was hidden behind computation, 0..1. Returns nothing
// if no exchange took any time.
std::optional<double> HiddenShare(const v1::StepMetrics& metrics);

}  // namespace leeway
