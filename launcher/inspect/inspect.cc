#include "launcher/inspect/inspect.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/status.h"
#include "common/text/format.h"
#include "launcher/inspect/guess_source.h"
#include "launcher/inspect/model_yaml.h"
#include "launcher/inspect/source_yaml.h"
#include "launcher/inspect/statistics.h"
#include "worker/data/sources/source.h"
#include "worker/data/sources/test_data.h"

namespace leeway {
namespace {

constexpr size_t kShownClasses = 20;
// If there are more columns than this, single columns are not printed.
constexpr size_t kShownColumns = 16;
// If there are more columns than this, all columns are normalised together.
constexpr size_t kNormalizedColumns = 512;
constexpr float kPixelMax = 255;
constexpr size_t kSampledPictures = 300;

// Makes a job that has the source as data, and accepts any labels.
v1::TrainingJob JobOf(const v1::Source& source) {
  v1::TrainingJob job;
  job.mutable_model()->set_loss(v1::LOSS_SQUARED);
  *job.mutable_data()->mutable_train() = source;
  *job.mutable_data()->mutable_test() = source;
  return job;
}

std::string LossFor(const LabelStatistics& labels) {
  if (labels.least == -1) return "logistic, which needs -1 and 1";
  if (labels.counts.size() <= kShownClasses) return "softmax_cross_entropy";
  return "softmax_cross_entropy if they are classes, squared if they are amounts";
}

std::string DescribeLabels(const LabelStatistics& labels) {
  const bool signs = labels.least == -1 && labels.largest == 1 && labels.counts[1] == 0;
  if (labels.counts.empty() || (labels.least < 0 && !signs)) {
    return absl::StrFormat("Labels: numbers from %g to %g (loss: squared)\n", labels.least,
                           labels.largest);
  }
  std::string text =
      absl::StrFormat("Labels: %g to %g (loss: %s)", labels.least, labels.largest, LossFor(labels));
  if (labels.counts.size() <= kShownClasses) {
    absl::StrAppend(&text, "; examples of each: ", absl::StrJoin(labels.counts, ", "));
  }
  return text + "\n";
}

// Returns the mean and the standard deviation of all values together. All columns must have the
// same number of values.
ValueStatistics OfAll(const ValueStatistics& values) {
  double mean = 0, square = 0;
  for (const double each : values.mean) mean += each;
  mean /= static_cast<double>(values.mean.size());
  for (size_t i = 0; i < values.mean.size(); ++i) {
    square += values.deviation[i] * values.deviation[i] + std::pow(values.mean[i] - mean, 2);
  }
  return {{mean}, {std::sqrt(square / static_cast<double>(values.mean.size()))}, values.missing};
}

std::string DescribeValues(const ValueStatistics& values) {
  const auto list = [](const std::vector<double>& numbers) {
    return absl::StrJoin(numbers, ", ", [](std::string* out, double number) {
      absl::StrAppendFormat(out, "%.4g", number);
    });
  };
  const bool few = values.mean.size() <= kShownColumns;
  const ValueStatistics shown = few ? values : OfAll(values);
  return absl::StrCat(few ? "Mean: " : "Mean of all values: ", list(shown.mean),
                      "\nDeviation: ", list(shown.deviation),
                      "\nMissing values: ", Thousands(values.missing), "\n");
}

std::string DescribeColumns(const std::vector<std::string>& columns) {
  if (columns.empty()) return "";
  const size_t shown = std::min(kShownColumns, columns.size());
  return absl::StrCat(
      "Features: ",
      absl::StrJoin(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(shown), ", ",
                    [](std::string* out, const std::string& name) { *out += Printable(name); }),
      shown < columns.size() ? absl::StrCat(" and ", columns.size() - shown, " more") : "", "\n");
}

// Returns true if all values look like pixels. Then all columns get the same normalisation.
bool Alike(const Examples& examples) {
  const auto* floats = std::get_if<std::vector<float>>(&examples.values);
  return floats == nullptr || std::all_of(floats->begin(), floats->end(), [](float value) {
           return std::isnan(value) ||
                  (value >= 0 && value <= kPixelMax && value == std::floor(value));
         });
}

// Returns the mean and deviation by which the printed part of the job normalises. Empty if it does
// not normalise.
ValueStatistics Normalization(const GuessedSource& guessed, const Examples& examples,
                              const ValueStatistics& values) {
  // Most sparse features are 0, and should stay 0.
  if (guessed.source.has_libsvm()) return {};
  const bool many = examples.shape.flat() && values.mean.size() > kShownColumns;
  if (many && guessed.source.csv().categories().empty() && Alike(examples)) return OfAll(values);
  if (values.mean.size() > kNormalizedColumns) return {};
  ValueStatistics each = values;
  for (size_t i = 0; i < guessed.table.one_hot.size(); ++i) {
    if (!guessed.table.one_hot[i]) continue;
    each.mean[i] = 0;
    each.deviation[i] = 1;
  }
  return each;
}

absl::StatusOr<Inspection> InspectExamples(const GuessedSource& guessed,
                                           const std::string& data_dir) {
  const v1::TrainingJob job = JobOf(guessed.source);
  ASSIGN_OR_RETURN(const Examples examples, ReadExamples(job, job.data().train(), data_dir));
  ValueStatistics values = StatisticsOf(examples);
  if (guessed.source.has_csv()) values.missing = guessed.table.missing;
  const LabelStatistics labels = StatisticsOf(examples.labels);
  Inspection inspection;
  inspection.summary =
      absl::StrCat(Thousands(examples.size()), " examples of ", DescribeShape(examples.shape), "\n",
                   DescribeColumns(examples.columns), guessed.table.left_out,
                   guessed.table.left_out.empty() ? "" : "\n", guessed.table.label,
                   DescribeLabels(labels), DescribeValues(values));
  inspection.data = DataYaml(guessed, Normalization(guessed, examples, values), examples.size());
  inspection.model = ModelYaml(examples.shape, labels);
  return inspection;
}

absl::StatusOr<ValueStatistics> Sample(const Dataset& pictures) {
  ValueSums sums(pictures.shape().channels);
  Batch batch;
  const size_t every = std::max<size_t>(pictures.size() / kSampledPictures, 1);
  for (size_t i = 0; i < pictures.size(); i += every) {
    RETURN_IF_ERROR(pictures.CopyBatch(i, 1, batch));
    sums.Add(batch.features);
  }
  return sums.Statistics();
}

absl::StatusOr<Inspection> InspectPictures(const GuessedSource& guessed,
                                           const std::string& data_dir) {
  const v1::Source& source = guessed.source;
  ASSIGN_OR_RETURN(const auto pictures, OpenTestData(JobOf(source), data_dir));
  ASSIGN_OR_RETURN(const ValueStatistics values, Sample(*pictures));
  const LabelStatistics labels = StatisticsOf(pictures->labels());
  Inspection inspection;
  inspection.summary = absl::StrCat(
      Thousands(pictures->size()), " pictures, which become examples of ",
      DescribeShape(pictures->shape()), "\n", DescribeLabels(labels), DescribeValues(values));
  inspection.data = DataYaml(guessed, values, pictures->size());
  inspection.model = ModelYaml(pictures->shape(), labels);
  return inspection;
}

absl::StatusOr<Inspection> InspectText(const GuessedSource& guessed, const std::string& data_dir) {
  const v1::Source& source = guessed.source;
  v1::TrainingJob job = JobOf(source);
  job.mutable_model()->set_loss(v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  ASSIGN_OR_RETURN(const auto text, OpenTestData(job, data_dir));
  const bool bytes = source.text().unit() == v1::TEXT_UNIT_BYTES;
  Inspection inspection;
  inspection.summary =
      absl::StrCat(Thousands(text->size()), " windows of ", text->labels_each(),
                   bytes ? " bytes; it is not UTF-8\n"
                         : absl::StrCat(" characters, of which ", text->classes(),
                                        " are different (the embedding's vocabulary)\n"));
  inspection.data = DataYaml(guessed, ValueStatistics(), text->size());
  inspection.model = TextModelYaml(text->classes());
  return inspection;
}

}  // namespace

absl::StatusOr<Inspection> InspectData(const std::string& data_dir,
                                       const std::vector<std::string>& names,
                                       const std::string& label) {
  ASSIGN_OR_RETURN(const GuessedSource guessed, GuessSource(data_dir, names, label));
  absl::StatusOr<Inspection> inspection = guessed.source.has_text() ? InspectText(guessed, data_dir)
                                          : guessed.source.has_image_folder()
                                              ? InspectPictures(guessed, data_dir)
                                              : InspectExamples(guessed, data_dir);
  RETURN_IF_ERROR(inspection.status());
  std::string files;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&files, names[i], ": ", NameOf(guessed.kinds[i]), "\n");
  }
  inspection->summary = files + inspection->summary;
  return inspection;
}

}  // namespace leeway
