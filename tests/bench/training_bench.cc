// Training throughput of one worker's arithmetic, beside the rate of Eigen's matrix product in the
// same run.
//
//   training_bench [--rounds 15] [--seconds 0.1] [--threads 1] [--batch N] [--update]
//                  [--model NAME]... [--json]
//
// Rounds are interleaved (a product, then a few steps of each model), so that a machine that is
// slower for a while is slower for all; medians of the rounds are printed. The share is of
// matrix-product operations only: bias, activations, pooling and loss count as time, not as work.
// With --update a step ends with that of SGD with momentum, as a worker's own step does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <Eigen/Core>
#include <nlohmann/json.hpp>

#include "bench/base/statistics.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/philox.h"
#include "config/model/named_models.h"
#include "worker/device/make_backend.h"
#include "worker/model/model.h"
#include "worker/training/local_optimizer.h"

namespace leeway {
namespace {

struct Options {
  int rounds = 15;
  // How long each model trains in each round, at least.
  double seconds = 0.1;
  uint32_t threads = 1;
  // 0: the model's own batch size.
  size_t batch = 0;
  bool update = false;
  // Empty: the small models.
  std::vector<std::string> models;
  bool json = false;
};

struct Subject {
  std::string name;
  std::string about;
  size_t batch = 0;
  v1::Model model;
  ImageShape image = {28, 28, 1};
  // Only measured if it is asked for.
  bool is_large = false;
  // Above 0, an example is a sequence of tokens with one label each; 0: it is a picture of one of
  // ten classes.
  uint32_t vocabulary = 0;

  uint32_t classes() const { return vocabulary > 0 ? vocabulary : 10; }
  size_t labels() const { return vocabulary > 0 ? image.elements() : 1; }
};

void AddDense(v1::Model& model, uint32_t units) {
  model.add_layers()->mutable_dense()->set_units(units);
}

void AddConvolution(v1::Model& model, uint32_t filters) {
  v1::Conv2d* conv = model.add_layers()->mutable_conv2d();
  conv->set_filters(filters);
  conv->set_kernel(5);
  model.add_layers()->mutable_relu();
  model.add_layers()->mutable_max_pool();
}

v1::Model Mlp(uint32_t first, uint32_t second) {
  v1::Model model;
  model.set_loss(v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  for (const uint32_t units : {first, second}) {
    AddDense(model, units);
    model.add_layers()->mutable_relu();
  }
  AddDense(model, 10);
  return model;
}

v1::Model Cnn(uint32_t hidden) {
  v1::Model model;
  model.set_loss(v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  AddConvolution(model, 16);
  AddConvolution(model, 32);
  if (hidden > 0) {
    AddDense(model, hidden);
    model.add_layers()->mutable_relu();
  }
  AddDense(model, 10);
  return model;
}

// A layer that is a model by name.
v1::Model Named(v1::Layer layer) {
  v1::Model model;
  model.set_loss(v1::LOSS_SOFTMAX_CROSS_ENTROPY);
  *model.add_layers() = std::move(layer);
  ExpandNamedModels(model);
  return model;
}

// All but the first two are also in PyTorch (peers/torch_steps.py).
std::vector<Subject> Subjects() {
  v1::Layer lenet, resnet20, mobilenet_v2, gpt;
  gpt.mutable_gpt()->set_vocabulary(65);
  lenet.mutable_lenet();
  resnet20.mutable_resnet20();
  mobilenet_v2.mutable_mobilenet_v2();
  return {
      {"mlp", "784-256-128-10", 128, Mlp(256, 128)},
      {"cnn", "28x28, 16 and 32 5x5 filters, 10", 128, Cnn(0)},
      {"mlp-512", "784-512-256-10", 128, Mlp(512, 256)},
      {"cnn-128", "28x28, 16 and 32 5x5 filters, 128, 10", 64, Cnn(128)},
      {"lenet", "LeNet-5, 28x28", 64, Named(lenet)},
      {"resnet20", "ResNet-20, 32x32x3", 64, Named(resnet20), {32, 32, 3}, true},
      {"mobilenet_v2", "MobileNetV2, 32x32x3", 64, Named(mobilenet_v2), {32, 32, 3}, true},
      {"gpt", "GPT, 4 layers of 128, 64 of 65 characters", 16, Named(gpt), {64, 1, 1}, true, 65}};
}

// Returns the seconds of one call: the mean over as many calls as fill `budget` seconds.
double Time(double budget, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  int calls = 0;
  double seconds = 0;
  do {
    call();
    ++calls;
    seconds = Seconds(Clock::now() - start);
  } while (seconds < budget);
  return seconds / calls;
}

// One model that is ready to take steps.
class Runner {
 public:
  static absl::StatusOr<std::unique_ptr<Runner>> Make(const Subject& subject, Backend& backend) {
    absl::StatusOr<std::unique_ptr<Model>> model =
        Model::Build(subject.model, subject.image, subject.classes(), backend, subject.labels());
    if (!model.ok()) return model.status();
    v1::TrainingJob job;
    v1::Update& sgd = *job.mutable_exchange()->mutable_delta()->mutable_optimizer();
    sgd.mutable_sgd()->set_momentum(0.9);
    sgd.set_learning_rate(0.001);
    auto optimizer = LocalOptimizer::Make(job, (*model)->schema(), {});
    if (!optimizer.ok()) return optimizer.status();
    return std::unique_ptr<Runner>(new Runner(subject, *std::move(model), *std::move(optimizer)));
  }

  absl::Status Step(bool update) {
    const absl::Status trained =
        model_->Train(batch_, weights_.span(), {.step = step_++}, contribution_.span()).status();
    if (!update || !trained.ok()) return trained;
    VectorUpdate step =
        optimizer_.UpdateOf(step_, step_, contribution_.span(), averages_, weights_.span());
    for (FloatBuffer& slot : slots_) step.slots.push_back(slot.data());
    float finite = 1;
    model_->backend().Update(step, &finite);
    if (finite == 1) return absl::OkStatus();
    return absl::InternalError("training came to values that are not finite");
  }

  const Subject& subject() const { return subject_; }
  double flops() const { return model_->flops().forward + model_->flops().backward; }
  uint64_t parameters() const { return model_->schema().total(); }

  // By round: the seconds of a step.
  std::vector<double> seconds;
  std::vector<double> shares;

 private:
  Runner(const Subject& subject, std::unique_ptr<Model> model, LocalOptimizer optimizer)
      : subject_(subject),
        model_(std::move(model)),
        optimizer_(std::move(optimizer)),
        averages_(LocalAverages(model_->schema(), std::numeric_limits<double>::infinity())),
        weights_(model_->schema().total()),
        contribution_(model_->schema().total()) {
    RandomStream random(1, RandomPurpose::kGenerate);
    batch_.size = subject_.batch;
    batch_.features.resize(batch_.size * subject_.image.elements());
    for (size_t slot = 0; slot < optimizer_.slots().size(); ++slot) {
      slots_.emplace_back(model_->schema().total());
    }
    batch_.labels.resize(batch_.size * subject_.labels());
    const auto draw = [&] { return static_cast<float>(random.Below(subject_.classes())); };
    for (float& value : batch_.features) {
      value = subject_.vocabulary > 0 ? draw() : static_cast<float>(random.Uniform());
    }
    for (float& label : batch_.labels) label = draw();
    model_->Initialize(1, weights_.span());
  }

  Subject subject_;
  std::unique_ptr<Model> model_;
  const LocalOptimizer optimizer_;
  const std::vector<LocalAverage> averages_;
  std::vector<FloatBuffer> slots_;
  Batch batch_;
  FloatBuffer weights_;
  FloatBuffer contribution_;
  uint64_t step_ = 0;
};

// The speed of Eigen's own product of 128 x 784 by 784 x 512 on one thread, in operations a second.
class Product {
 public:
  double Measure() {
    return 2.0 * 128 * 784 * 512 / Time(0.05, [this] { c_.noalias() = a_ * b_; });
  }

 private:
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix a_ = Matrix::Random(128, 784);
  Matrix b_ = Matrix::Random(784, 512);
  Matrix c_ = Matrix::Zero(128, 512);
};

absl::Status Measure(const Options& options, std::vector<std::unique_ptr<Runner>>& runners,
                     std::vector<double>& product_rates) {
  Product product;
  absl::Status status;
  // The first round warms up and is not counted.
  for (int round = 0; round <= options.rounds && status.ok(); ++round) {
    for (auto& runner : runners) {
      const double before = product.Measure();
      const double seconds =
          Time(options.seconds, [&] { status.Update(runner->Step(options.update)); });
      const double rate = (before + product.Measure()) / 2;
      if (round == 0) continue;
      product_rates.push_back(rate);
      runner->seconds.push_back(seconds);
      runner->shares.push_back(runner->flops() * runner->subject().batch / seconds / rate);
    }
  }
  return status;
}

nlohmann::json Report(const Options& options, const std::vector<std::unique_ptr<Runner>>& runners,
                      const std::vector<double>& product_rates) {
  nlohmann::json report = {{"threads", options.threads},
                           {"rounds", options.rounds},
                           {"eigen_gemm_gflops", Median(product_rates) / 1e9}};
  for (const auto& runner : runners) {
    const double per_second = runner->subject().batch / Median(runner->seconds);
    report["models"].push_back({{"name", runner->subject().name},
                                {"about", runner->subject().about},
                                {"parameters", runner->parameters()},
                                {"batch", runner->subject().batch},
                                {"samples_per_second", per_second},
                                {"flops_per_sample", runner->flops()},
                                {"gflops", per_second * runner->flops() / 1e9},
                                {"share_of_gemm", Median(runner->shares)}});
  }
  return report;
}

void Print(const nlohmann::json& report) {
  std::printf("Eigen's product 128x784x512, one thread: %.1f GFLOP/s\n\n",
              report["eigen_gemm_gflops"].get<double>());
  std::printf("%-12s %6s %10s %14s %9s %8s\n", "model", "batch", "samples/s", "MFLOP/sample",
              "GFLOP/s", "share");
  for (const auto& model : report["models"]) {
    std::printf(
        "%-12s %6d %10.0f %14.3f %9.1f %7.0f%%  %s\n", model["name"].get<std::string>().c_str(),
        model["batch"].get<int>(), model["samples_per_second"].get<double>(),
        model["flops_per_sample"].get<double>() / 1e6, model["gflops"].get<double>(),
        100 * model["share_of_gemm"].get<double>(), model["about"].get<std::string>().c_str());
  }
}

absl::Status Run(const Options& options) {
  v1::Workers workers;
  workers.set_threads(options.threads);
  absl::StatusOr<std::unique_ptr<Backend>> backend = MakeCpuBackend(workers);
  if (!backend.ok()) return backend.status();
  std::vector<std::unique_ptr<Runner>> runners;
  for (Subject& subject : Subjects()) {
    const auto& wanted = options.models;
    const bool named = std::count(wanted.begin(), wanted.end(), subject.name) > 0;
    if (wanted.empty() ? subject.is_large : !named) continue;
    if (options.batch > 0) subject.batch = options.batch;
    absl::StatusOr<std::unique_ptr<Runner>> runner = Runner::Make(subject, **backend);
    if (!runner.ok()) return runner.status();
    runners.push_back(*std::move(runner));
  }
  std::vector<double> product_rates;
  absl::Status status = Measure(options, runners, product_rates);
  if (!status.ok()) return status;
  const nlohmann::json report = Report(options, runners, product_rates);
  if (options.json) {
    std::cout << report.dump(2) << "\n";
  } else {
    Print(report);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  leeway::Options options;
  CLI::App app("Training throughput of one worker's arithmetic");
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 10000));
  app.add_option("--seconds", options.seconds, "Of each model in each round, at least")
      ->check(CLI::Range(0.0, 600.0));
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  app.add_option("--batch", options.batch, "Examples a step, for every model")
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--update", options.update, "SGD with momentum after each gradient");
  app.add_option("--model", options.models, "Which ones")
      ->check(CLI::IsMember(
          {"mlp", "cnn", "mlp-512", "cnn-128", "lenet", "resnet20", "mobilenet_v2", "gpt"}));
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = leeway::Run(options);
  if (status.ok()) return 0;
  std::cerr << "training_bench: " << status << "\n";
  return 1;
}
