#include "worker/data/labels.h"

#include "tests/catch.h"

namespace leeway::labels {
namespace {

TEST_CASE("a class that the model has no score for is refused") {
  const LabelRule rule(v1::LOSS_SOFTMAX_CROSS_ENTROPY, 10);
  CHECK(CheckLabel(9, rule).value() == 9.0f);
  CHECK(CheckLabel(10, rule).status().message() ==
        "label 10: model.layers.0.dense.units is 10, which gives scores for the classes 0 to 9");
}

TEST_CASE("the number of classes is that of the last layer, where it is dense") {
  v1::TrainingJob job;
  job.mutable_model()->set_loss(v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  CHECK(LabelRule::OfJob(job).classes == 0);
  job.mutable_model()->add_layers()->mutable_dense()->set_units(7);
  CHECK(LabelRule::OfJob(job).classes == 7);
  job.mutable_model()->add_layers()->mutable_dense()->set_units(9);
  CHECK(LabelRule::OfJob(job).classes == 9);
  CHECK(LabelRule::OfJob(job).layer == 1);
  job.mutable_model()->add_layers()->mutable_relu();
  CHECK(LabelRule::OfJob(job).classes == 0);
  job.mutable_model()->set_loss(v1::LOSS_LOGISTIC);
  CHECK(LabelRule::OfJob(job).classes == 0);
}

TEST_CASE("with logistic, -1 and 0 in one file are three labels, and refused") {
  for (const int first : {-1, 0}) {
    LabelReader labels(v1::LOSS_LOGISTIC);
    CHECK(labels.Read(1).value() == 1);
    CHECK_FALSE(labels.negative().has_value());
    CHECK(labels.Read(first).value() == 0);
    CHECK(labels.negative() == first);
    CHECK(labels.Read(1).value() == 1);
    CHECK_THAT(std::string(labels.Read(-1 - first).status().message()),
               Catch::StartsWith("label " + std::to_string(-1 - first) +
                                 ": logistic accepts 0 and 1, or -1 and 1"));
  }
  LabelReader classes(v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  CHECK(classes.Read(0).ok());
  CHECK_FALSE(classes.negative().has_value());
  LabelReader numbers(v1::LOSS_SQUARED);
  CHECK(numbers.Read(0).ok());
  CHECK(numbers.Read(-1).value() == -1);
}

}  // namespace
}  // namespace leeway::labels
