#include "worker/model/custom_loss.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/plugins/guarded.h"
#include "common/status.h"
#include "worker/compute/score_rank.h"
#include "worker/model/label_checks.h"

namespace leeway {
namespace {

void CountRight(const plugin::Scores& scores, LossSum& sum) {
  for (size_t i = 0; i < scores.rows; ++i) {
    const auto label = static_cast<size_t>(scores.labels[i]);
    const size_t rank = ScoreRank(scores.units, scores.scores + i * scores.units, label);
    sum.correct += rank == 0;
    sum.in_top5 += rank < 5;
  }
}

class CustomLoss final : public Loss {
 public:
  CustomLoss(std::string name, plugin::Labels labels, std::unique_ptr<const plugin::Loss> loss)
      : who_(absl::StrCat("loss '", name, "'")),
        classes_(labels == plugin::Labels::kClasses),
        loss_(std::move(loss)) {}

  bool is_regression() const override { return !classes_; }
  bool needs_host_memory() const override { return true; }

  absl::Status CheckOutput(const ImageShape& output, const LabelKind& labels) const override {
    RETURN_IF_ERROR(classes_ ? CheckPositions(output, labels, who_)
                             : CheckOneScore(output, labels.each, who_));
    return Call([&] { loss_->CheckOutput(output.channels, classes_ ? labels.classes : 0); });
  }

  absl::Status CheckLabels(std::span<const float> labels, uint32_t units) const override {
    RETURN_IF_ERROR(classes_ ? CheckClasses(labels, units) : CheckNumbers(labels));
    return Call([&] { loss_->CheckLabels(labels, units); });
  }

  absl::Status Compute(Backend& backend, size_t rows, uint32_t units, const float* scores,
                       const float* labels, LossSum* sum, float* dscores) const override {
    const plugin::Scores given{rows, units, scores, labels};
    LossSum result;
    RETURN_IF_ERROR(Call([&] { result.loss = loss_->Compute(given, dscores); }));
    if (classes_) CountRight(given, result);
    *sum = result;
    return absl::OkStatus();
  }

 private:
  template <typename Work>
  absl::Status Call(Work&& work) const {
    return Annotate(Guarded(work), absl::StrCat("the plugin's ", who_));
  }

  // The name of the loss in messages.
  const std::string who_;
  const bool classes_;
  const std::unique_ptr<const plugin::Loss> loss_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Loss>> MakeCustomLoss(const v1::Custom& custom,
                                                     const Plugins& plugins) {
  ASSIGN_OR_RETURN(const auto chosen, plugins.Loss(custom));
  std::unique_ptr<const plugin::Loss> loss;
  absl::Status made = Guarded([&] { loss = chosen.spec->make(chosen.options); });
  if (made.ok() && loss == nullptr) {
    made = absl::FailedPreconditionError("the plugin's `make` returned no loss");
  }
  if (!made.ok()) {
    return AtKey(Annotate(made, absl::StrCat("the plugin's loss '", custom.name(), "'")), "name");
  }
  return std::make_unique<CustomLoss>(custom.name(), chosen.spec->labels, std::move(loss));
}

}  // namespace leeway
