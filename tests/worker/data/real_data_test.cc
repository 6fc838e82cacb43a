// Reads the published data sets.
#include <chrono>
#include <cmath>
#include <iostream>

#include "tests/worker/data/data_test_util.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/data/sources/training_data.h"

namespace leeway::real_data {
namespace {

v1::TrainingJob Job(const std::string& source, const std::string& rest = "") {
  return FromText("data { batch_size: 128 train { " + source + " } test { " + source +
                  " } } workers { count: 1 } " + rest);
}

std::unique_ptr<Dataset> Read(const std::string& data_dir, const v1::TrainingJob& job) {
  absl::StatusOr<std::unique_ptr<Dataset>> dataset = OpenTestData(job, data_dir);
  INFO(dataset.status().ToString());
  REQUIRE(dataset.ok());
  return std::move(*dataset);
}

std::vector<float> FirstLabels(const Dataset& dataset, size_t count) {
  return {dataset.labels().begin(), dataset.labels().begin() + count};
}

constexpr char kMnist[] = R"(idx { images: "mnist/train-images-idx3-ubyte.gz"
                                   labels: "mnist/train-labels-idx1-ubyte.gz" })";

TEST_CASE("MNIST has 60000 images of 28x28, one byte a pixel, labels 5, 0, 4, 1, ...") {
  const auto data = SharedData();
  const auto mnist = Read(data, Job(kMnist));
  CHECK(mnist->size() == 60000);
  CHECK(mnist->shape() == ImageShape{28, 28, 1});
  CHECK(mnist->classes() == 10);
  CHECK(mnist->bytes() == 60000 * 784);
  CHECK(FirstLabels(*mnist, 4) == std::vector<float>{5, 0, 4, 1});
  // The published mean of the pixels.
  double sum = 0;
  Batch batch;
  REQUIRE(mnist->CopyBatch(0, 60000, batch).ok());
  for (float x : batch.features) sum += x;
  CHECK(std::abs(sum / (60000.0 * 784) - 0.1307) < 1e-4);
}

TEST_CASE("CIFAR-10 starts with labels 6, 9, 9, 4, 1, 1") {
  const auto data = SharedData();
  const auto cifar = Read(data, Job(R"(cifar10 { files: "cifar10/data_batch_1.first4000.bin.gz"
                                                  files: "cifar10/test_batch.first1000.bin.gz" })"));
  CHECK(cifar->size() == 5000);
  CHECK(cifar->shape() == ImageShape{32, 32, 3});
  CHECK(cifar->classes() == 10);
  CHECK(FirstLabels(*cifar, 6) == std::vector<float>{6, 9, 9, 4, 1, 1});
  // The first pixel of the frog: red, green and blue.
  Batch frog;
  REQUIRE(cifar->CopyBatch(0, 1, frog).ok());
  CHECK(frog.features[0] == Approx(59 / 255.0));
  CHECK(frog.features[1] == Approx(62 / 255.0));
  CHECK(frog.features[2] == Approx(63 / 255.0));
}

TEST_CASE("Optdigits has 3823 and 1797 images of 8x8") {
  const auto data = SharedData();
  const auto train =
      Read(data, Job(R"(csv { files: "optdigits/optdigits.tra" shape: [8, 8, 1] })"));
  CHECK(train->size() == 3823);
  CHECK(train->shape() == ImageShape{8, 8, 1});
  CHECK(train->classes() == 10);
  CHECK(Read(data, Job(R"(csv { files: "optdigits/optdigits.tes" shape: [8, 8, 1] })"))->size() ==
        1797);
}

TEST_CASE("a9a has 32561 rows of 123 features, 7841 of them positive") {
  const auto data = SharedData();
  const auto a9a = Read(data, Job(R"(libsvm { files: "libsvm/a9a.gz" features: 123 })",
                                  "model { loss: LOSS_LOGISTIC }"));
  CHECK(a9a->size() == 32561);
  CHECK(a9a->shape() == ImageShape{1, 1, 123});
  double positive = 0;
  for (float label : a9a->labels()) positive += label;
  CHECK(positive == 7841);
  CHECK(Read(data, Job(R"(libsvm { files: "libsvm/a9a.t.gz" features: 123 })",
                       "model { loss: LOSS_LOGISTIC }"))
            ->size() == 16281);
}

TEST_CASE(
    "The four hospitals of Heart Disease have 303, 294, 123 and 200 patients, a file a worker") {
  const auto data = SharedData();
  const v1::TrainingJob job = FromText(R"(
      model { loss: LOSS_LOGISTIC } workers { count: 4 }
      data { batch_size: 16 partition { by_file {} } holdout: 0.25
             train { csv { missing: "?" label_above: 0 files: "heart-disease/processed.cleveland.data"
                           files: "heart-disease/processed.hungarian.data"
                           files: "heart-disease/processed.switzerland.data"
                           files: "heart-disease/processed.va.data" } } })");
  const size_t patients[] = {303, 294, 123, 200};
  const size_t held[] = {76, 74, 31, 50};
  for (uint32_t rank = 0; rank < 4; ++rank) {
    absl::StatusOr<std::unique_ptr<TrainingData>> hospital = TrainingData::Open(job, data, rank);
    INFO(hospital.status().ToString());
    REQUIRE(hospital.ok());
    CHECK((*hospital)->examples() == patients[rank] - held[rank]);
    CHECK((*hospital)->shape() == ImageShape{1, 1, 13});
  }
  CHECK(Read(data, job)->size() == 76 + 74 + 31 + 50);
}

// Not part of a test run: worker_data_test "[.benchmark]".
TEST_CASE("How long a batch of 128 takes to assemble", "[.benchmark]") {
  const auto data = SharedData();
  const auto time = [&](const std::string& name, const v1::TrainingJob& job) {
    const auto training = *TrainingData::Open(job, data, 0);
    Batch batch;
    const uint64_t steps = training->steps_per_epoch();
    for (uint64_t s = 0; s < steps; ++s) REQUIRE(training->Load(s, steps, batch).ok());
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t s = 0; s < steps - 1; ++s) REQUIRE(training->Load(s, steps, batch).ok());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    std::cout << name << ": " << took.count() / static_cast<double>(steps - 1) << " us a batch\n";
    const auto cold = std::chrono::steady_clock::now();
    REQUIRE(training->Load(steps, steps, batch).ok());
    std::cout << name << ": "
              << std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - cold)
                     .count()
              << " ms for the first batch of an epoch\n";
  };
  time("mnist", Job(kMnist));
  v1::TrainingJob normalized = Job(kMnist);
  normalized.mutable_data()->mutable_normalize()->add_mean(0.1307);
  normalized.mutable_data()->mutable_normalize()->add_std(0.3081);
  time("mnist normalised", normalized);
  v1::TrainingJob cifar = Job(R"(cifar10 { files: "cifar10/data_batch_1.first4000.bin.gz" })");
  *cifar.mutable_data()->mutable_normalize() =
      FromText<v1::Normalize>("mean: [0.49, 0.48, 0.45] std: [0.25, 0.24, 0.26]");
  time("cifar10 a channel", cifar);
  *cifar.mutable_data()->mutable_augment() = FromText<v1::Augment>("flip: true crop_padding: 4");
  time("cifar10 augmented", cifar);
}

}  // namespace
}  // namespace leeway::real_data
