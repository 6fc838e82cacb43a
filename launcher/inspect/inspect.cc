#include "launcher/inspect/inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/base/format.h"
#include "common/counted.h"
#include "common/status.h"
#include "launcher/inspect/guess_source.h"
#include "launcher/inspect/source_yaml.h"
#include "launcher/inspect/statistics.h"
#include "worker/data/sources/source.h"
#include "worker/data/sources/test_data.h"

namespace leeway {
namespace {

constexpr size_t kShownClasses = 20;
// More columns are not printed one by one, nor normalised each by itself.
constexpr size_t kShownColumns = 64;
constexpr size_t kSampledPictures = 300;

// A job that has the source as data, and takes any label.
v1::TrainingJob JobOf(const v1::Source& source) {
  v1::TrainingJob job;
  job.mutable_model()->set_loss(v1::LOSS_SQUARED);
  *job.mutable_data()->mutable_train() = source;
  *job.mutable_data()->mutable_test() = source;
  return job;
}

std::string DescribeLabels(const LabelStatistics& labels) {
  if (labels.counts.empty()) {
    return absl::StrFormat("Labels: numbers from %g to %g (loss: squared)\n", labels.least,
                           labels.largest);
  }
  const bool signs = labels.least == -1;
  std::string text =
      absl::StrFormat("Labels: %g to %g (loss: %s)", labels.least, labels.largest,
                      signs ? "logistic, which takes -1 and 1" : "softmax_cross_entropy");
  if (labels.counts.size() <= kShownClasses) {
    absl::StrAppend(&text, "; examples of each: ", absl::StrJoin(labels.counts, ", "));
  }
  return text + "\n";
}

std::string DescribeValues(const ValueStatistics& values) {
  std::string text;
  if (values.mean.size() <= kShownColumns) {
    const auto list = [](const std::vector<double>& numbers) {
      return absl::StrJoin(numbers, ", ", [](std::string* out, double number) {
        absl::StrAppendFormat(out, "%.4g", number);
      });
    };
    text = absl::StrCat("Mean: ", list(values.mean), "\nDeviation: ", list(values.deviation), "\n");
  }
  return absl::StrCat(text, "Missing values: ", Thousands(values.missing), "\n");
}

absl::StatusOr<Inspection> InspectExamples(const v1::Source& source, const std::string& data_dir) {
  const v1::TrainingJob job = JobOf(source);
  ASSIGN_OR_RETURN(const Examples examples, ReadExamples(job, job.data().train(), data_dir));
  const ValueStatistics values = StatisticsOf(examples);
  const LabelStatistics labels = StatisticsOf(examples.labels);
  Inspection inspection;
  inspection.summary =
      absl::StrCat(Thousands(examples.size()), " examples of ", DescribeShape(examples.shape), "\n",
                   DescribeLabels(labels), DescribeValues(values));
  const bool few = values.mean.size() <= kShownColumns;
  // Of sparse features most are 0 and should stay that.
  const bool scales = few && !source.has_libsvm();
  inspection.data = DataYaml(source, scales ? values : ValueStatistics(), examples.size());
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

absl::StatusOr<Inspection> InspectPictures(const v1::Source& source, const std::string& data_dir) {
  ASSIGN_OR_RETURN(const auto pictures, OpenTestData(JobOf(source), data_dir));
  ASSIGN_OR_RETURN(const ValueStatistics values, Sample(*pictures));
  Inspection inspection;
  inspection.summary =
      absl::StrCat(Thousands(pictures->size()), " pictures, which become examples of ",
                   DescribeShape(pictures->shape()), "\n",
                   DescribeLabels(StatisticsOf(pictures->labels())), DescribeValues(values));
  inspection.data = DataYaml(source, values, pictures->size());
  return inspection;
}

absl::StatusOr<Inspection> InspectText(const v1::Source& source, const std::string& data_dir) {
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
  inspection.data = DataYaml(source, ValueStatistics(), text->size());
  return inspection;
}

}  // namespace

absl::StatusOr<Inspection> InspectData(const std::string& data_dir,
                                       const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const GuessedSource guessed, GuessSource(data_dir, names));
  absl::StatusOr<Inspection> inspection =
      guessed.source.has_text()           ? InspectText(guessed.source, data_dir)
      : guessed.source.has_image_folder() ? InspectPictures(guessed.source, data_dir)
                                          : InspectExamples(guessed.source, data_dir);
  RETURN_IF_ERROR(inspection.status());
  std::string files;
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&files, names[i], ": ", NameOf(guessed.kinds[i]), "\n");
  }
  inspection->summary = files + inspection->summary;
  return inspection;
}

}  // namespace leeway
