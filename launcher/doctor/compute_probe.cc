#include "launcher/doctor/compute_probe.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "bench/base/bench_process.h"
#include "bench/base/statistics.h"
#include "common/buffer.h"
#include "common/process/process_usage.h"
#include "common/status.h"
#include "launcher/doctor/step_model.h"
#include "worker/data/sources/training_data.h"
#include "worker/device/make_backend.h"
#include "worker/model/model.h"

namespace leeway {
namespace {

// A worker's compute, without anything else.
class Probe {
 public:
  absl::Status Open(const v1::TrainingJob& job, const std::string& data_dir, uint32_t rank) {
    seed_ = job.metadata().seed();
    rank_ = rank;
    ASSIGN_OR_RETURN(data_, TrainingData::Open(job, data_dir, rank));
    ASSIGN_OR_RETURN(backend_, MakeBackend(job.workers(), rank));
    ASSIGN_OR_RETURN(
        model_, Model::Build(job.model(), data_->shape(), data_->classes(), *backend_,
                             data_->dataset().labels_each(), job.data().augment().mixup() > 0));
    weights_ = FloatBuffer(model_->schema().total());
    contribution_ = FloatBuffer(model_->schema().total());
    model_->Initialize(seed_, weights_.span());
    return absl::OkStatus();
  }

  absl::StatusOr<Json> Run(Duration lasting) {
    const uint64_t epoch = std::max<uint64_t>(data_->steps_per_epoch(), 1);
    const Time began = std::chrono::steady_clock::now();
    uint64_t steps = 0;
    Time now = began;
    while (now - began < lasting) {
      RETURN_IF_ERROR(data_->Load(step_, epoch, batch_));
      const Model::Draw draw{.seed = seed_, .step = step_, .rank = rank_};
      RETURN_IF_ERROR(model_->Train(batch_, weights_.span(), draw, contribution_.span()).status());
      ++step_;
      ++steps;
      now = std::chrono::steady_clock::now();
    }
    return Json{{"steps", steps}, {"seconds", Seconds(now - began)}};
  }

  Json Hello() const {
    const v1::ModelSchema& schema = model_->schema();
    return {{"schema", absl::BytesToHexString(schema.SerializeAsString())},
            {"first_layer", FirstLayer(schema)},
            {"steps_per_epoch", data_->steps_per_epoch()}};
  }

 private:
  // Returns the number of elements before the first tensor of another layer. Names are
  // "layer/tensor".
  static uint64_t FirstLayer(const v1::ModelSchema& schema) {
    if (schema.tensors().empty()) return schema.total();
    const auto layer_of = [](const std::string& name) { return name.substr(0, name.rfind('/')); };
    const std::string first = layer_of(schema.tensors(0).name());
    for (const v1::TensorSpec& tensor : schema.tensors()) {
      if (layer_of(tensor.name()) != first) return tensor.offset();
    }
    return schema.total();
  }

  uint64_t seed_ = 0;
  uint32_t rank_ = 0;
  uint64_t step_ = 0;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  FloatBuffer weights_;
  FloatBuffer contribution_;
  Batch batch_;
};

absl::StatusOr<BenchService> ProbeService(const v1::TrainingJob& job, const std::string& data_dir,
                                          uint32_t rank) {
  auto probe = std::make_shared<Probe>();
  RETURN_IF_ERROR(probe->Open(job, data_dir, rank));
  return BenchService{.hello = probe->Hello(), .handle = [probe](const Json& request) {
                        return probe->Run(FromSeconds(request.value("round", 0.0)));
                      }};
}

}  // namespace

absl::StatusOr<ComputeFigures> MeasureCompute(const v1::TrainingJob& job,
                                              const std::string& data_dir, uint32_t workers,
                                              uint64_t memory_bytes, double seconds) {
  ComputeFigures figures;
  std::vector<std::unique_ptr<BenchProcess>> probes;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    ASSIGN_OR_RETURN(auto probe, BenchProcess::Start(absl::StrCat("worker ", rank), [&] {
                       return ProbeService(job, data_dir, rank);
                     }));
    probes.push_back(std::move(probe));
    if (rank > 0) continue;
    figures.schema.ParseFromString(absl::HexStringToBytes(probes[0]->hello().value("schema", "")));
    workers = ProcessesToMeasure(workers, figures.schema.total() * sizeof(float), memory_bytes);
  }
  figures.workers = workers;
  figures.first_layer_parameters = probes[0]->hello().value("first_layer", uint64_t{0});
  // The first round is a warm-up.
  for (const double lasting : {seconds / 4, seconds}) {
    std::vector<double> before;
    for (auto& probe : probes) {
      before.push_back(ProcessCpuSeconds(probe->pid()));
      RETURN_IF_ERROR(probe->Send({{"round", lasting}}));
    }
    std::vector<double> step;
    std::vector<double> cpu;
    for (size_t i = 0; i < probes.size(); ++i) {
      ASSIGN_OR_RETURN(const Json answer, probes[i]->Receive());
      const auto steps = static_cast<double>(answer.value("steps", uint64_t{1}));
      step.push_back(answer.value("seconds", 0.0) / steps);
      cpu.push_back((ProcessCpuSeconds(probes[i]->pid()) - before[i]) / steps);
      figures.steps_per_epoch = std::max(figures.steps_per_epoch,
                                         probes[i]->hello().value("steps_per_epoch", uint64_t{0}));
    }
    figures.step_seconds = Median(step);
    figures.step_cpu_seconds = Median(cpu);
  }
  return figures;
}

}  // namespace leeway
