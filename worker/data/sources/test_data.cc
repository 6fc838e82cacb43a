#include "worker/data/sources/test_data.h"

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/examples.h"
#include "worker/data/shape.h"
#include "worker/data/sources/source.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<Dataset>> OpenTestData(const v1::TrainingJob& job,
                                                      const std::string& data_dir) {
  const auto every_file = [](size_t) { return true; };
  const v1::Data& data = job.data();
  if (data.has_test()) return ReadSource(job, data.test(), data_dir, Part::kAll, every_file);
  if (!data.has_holdout()) return nullptr;
  return ReadSource(job, data.train(), data_dir, Part::kHoldout, every_file);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenTestDataOf(const v1::TrainingJob& job,
                                                        const std::string& data_dir,
                                                        const Dataset& trained) {
  ASSIGN_OR_RETURN(std::unique_ptr<Dataset> test, OpenTestData(job, data_dir));
  if (test == nullptr) return test;
  const ImageShape& shape = trained.shape();
  if (test->shape() == shape) {
    RETURN_IF_ERROR(AtKey(CheckSameColumns(test->columns(), trained.columns()), "data.test"));
    return test;
  }
  const auto words = [](const ImageShape& s) {
    return absl::StrCat(s.height, " x ", s.width, " x ", s.channels);
  };
  return AtKey(
      absl::InvalidArgumentError(absl::StrCat("its examples are ", words(test->shape()),
                                              ", but those of data.train are ", words(shape))),
      job.data().has_test() ? "data.test" : "data.holdout");
}

}  // namespace leeway
