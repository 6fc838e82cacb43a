#include "launcher/plan/run_model.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "launcher/plan/data_files.h"
#include "worker/data/examples.h"
#include "worker/data/sources/training_data.h"
#include "worker/device/make_backend.h"

namespace leeway {
namespace {

// The number of classes of the data. Any number will do, because training has checked the labels.
constexpr uint32_t kAnyClasses = 1;

// Returns the number of labels of an example. A text has one label at each position.
size_t LabelsOfExample(const v1::Data& data) {
  return data.train().has_text() ? data.train().text().context() : 1;
}

}  // namespace

absl::StatusOr<ImageShape> ExampleShape(const v1::TrainingJob& job,
                                        const std::vector<uint32_t>& given,
                                        const std::string& data) {
  if (!given.empty()) return MakeShape(given);
  if (job.data().train().has_generator()) {
    const auto& shape = job.data().train().generator().shape();
    return MakeShape({shape.data(), static_cast<size_t>(shape.size())});
  }
  ASSIGN_OR_RETURN(const std::string folder, FindDataFolder(data, "", job));
  const auto opened = TrainingData::Open(job, folder, 0);
  RETURN_IF_ERROR(
      Annotate(opened.status(), "looking up the shape of an example (--shape gives it instead)"));
  return (*opened)->shape();
}

absl::StatusOr<BuiltModel> BuildModel(const v1::TrainingJob& job, const ImageShape& shape,
                                      uint64_t parameters) {
  BuiltModel built;
  ASSIGN_OR_RETURN(built.backend, MakeCpuBackend(job.workers()));
  ASSIGN_OR_RETURN(built.model, Model::Build(job.model(), shape, kAnyClasses, *built.backend,
                                             LabelsOfExample(job.data())));
  if (built.model->schema().total() == parameters) return built;
  return absl::FailedPreconditionError(
      absl::StrCat("for examples of ", DescribeShape(shape), " the job's model has ",
                   built.model->schema().total(), " parameters, but there are ", parameters,
                   " weights: the model was trained on examples of another shape; give that shape "
                   "with --shape"));
}

}  // namespace leeway
