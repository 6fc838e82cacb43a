// How fast a device computes each kernel and product, beside its own limits, measured in the same
// run: copies within its memory for what moves bytes, a large product for what multiplies.
//
//   device_bench [--device cuda:0] [--seconds 0.3] [--small]
//
// On a CPU (--device cpu) it shows that the program runs; its limits are one thread's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/text/format.h"
#include "common/text/table.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/device/link_rates.h"
#include "worker/device/make_backend.h"

namespace leeway {
namespace {

constexpr int kSkipped = 77;

const std::map<std::string, v1::Precision> kPrecisions = {{"fp32", v1::PRECISION_FP32},
                                                          {"tf32", v1::PRECISION_TF32},
                                                          {"bf16", v1::PRECISION_BF16},
                                                          {"fp16", v1::PRECISION_FP16}};

struct Flags {
  std::string device = "cuda:0";
  v1::Precision precision = v1::PRECISION_FP32;
  double seconds = 0.3;
  bool small = false;
};

// A kernel, and the least that it has to do.
struct Subject {
  std::string name;
  std::function<void()> run;
  // Bytes of device memory that are read and written; 0: the work is products.
  double bytes = 0;
  double flops = 0;
};

class Bench {
 public:
  Bench(Backend& backend, double seconds) : backend_(backend), seconds_(seconds) {}

  // Returns the average seconds of one run. The runs are queued one behind the other and awaited
  // together.
  double SecondsOf(const std::function<void()>& run) {
    run();
    Await();
    double took = 0;
    for (size_t count = 1; took < seconds_; count *= 2) {
      const auto began = std::chrono::steady_clock::now();
      for (size_t i = 0; i < count; ++i) run();
      Await();
      const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - began;
      took = lasted.count();
      if (took >= seconds_) return took / static_cast<double>(count);
      if (!backend_.status().ok()) return 0;
    }
    return took;
  }

 private:
  void Await() { (void)backend_.Await(backend_.Record(Stream::kCompute)); }

  Backend& backend_;
  const double seconds_;
};

// Device memory, which all subjects share.
struct Memory {
  static constexpr size_t kVectors = 6;
  size_t count;
  std::vector<DeviceMemory> vectors;
  float* operator[](size_t i) { return vectors[i].get(); }
};

absl::StatusOr<Memory> MakeMemory(Backend& backend, size_t count) {
  Memory memory{count, {}};
  for (size_t i = 0; i < Memory::kVectors; ++i) {
    auto vector = backend.Allocate(count);
    if (!vector.ok()) return vector.status();
    backend.Fill(count, 0.5f, vector->get());
    memory.vectors.push_back(*std::move(vector));
  }
  return memory;
}

// n: the number of elements of a vector.
std::vector<Subject> Elementwise(Backend& b, Memory& m) {
  const size_t n = m.count;
  const double pass = static_cast<double>(n) * sizeof(float);
  const size_t columns = 1024;
  const size_t rows = n / columns;
  return {
      {"Fill 1 element", [&b, &m] { b.Fill(1, 0.5f, m[0]); }, sizeof(float)},
      {"Fill", [&b, &m, n] { b.Fill(n, 0.5f, m[0]); }, pass},
      {"Multiply", [&b, &m, n] { b.Multiply(n, m[0], m[1], m[2]); }, 3 * pass},
      {"AddDifference", [&b, &m, n] { b.AddDifference(n, 0.1f, m[0], m[1], m[2], m[2]); },
       4 * pass},
      {"ReluForward", [&b, &m, n] { b.ActivationForward(Activation::kRelu, n, m[0], m[1]); },
       2 * pass},
      {"ReluBackward",
       [&b, &m, n] { b.ActivationBackward(Activation::kRelu, n, m[0], m[1], m[2]); }, 3 * pass},
      {"GeluForward", [&b, &m, n] { b.ActivationForward(Activation::kGelu, n, m[0], m[1]); },
       2 * pass},
      {"GeluBackward",
       [&b, &m, n] { b.ActivationBackward(Activation::kGelu, n, m[0], m[1], m[2]); }, 3 * pass},
      {"DropoutForward",
       [&b, &m, n] {
         b.DropoutForward(n, 0.3f, {1, 2}, m[0], m[1], m[2]);
       },
       3 * pass},
      {"AddRows", [&b, &m, rows, columns] { b.AddRows(rows, columns, m[1], m[0]); }, 2 * pass},
      {"SumRows", [&b, &m, rows, columns] { b.SumRows(rows, columns, m[0], m[1]); }, pass},
  };
}

// Each reads the values, reads and writes the residual, and writes the encoded bytes.
std::vector<Subject> Encodings(Backend& b, Memory& m) {
  const size_t n = m.count;
  std::vector<Subject> subjects;
  for (const auto& [name, format] :
       {std::pair("Encode bf16", GroupFormat::kBf16), std::pair("Encode fp16", GroupFormat::kFp16),
        std::pair("Encode int8", GroupFormat::kInt8),
        std::pair("Encode sign", GroupFormat::kSign)}) {
    const double moved = 3 * static_cast<double>(n) * sizeof(float) +
                         static_cast<double>(CodecOf(format).MaxBytes(n));
    subjects.push_back(
        {name, [&b, &m, n, format = format] { b.Encode(format, n, m[0], m[1], m[2]); }, moved});
  }
  return subjects;
}

std::vector<Subject> Layers(Backend& b, Memory& m) {
  const size_t columns = 64;
  const size_t rows = m.count / columns;
  const double pass = static_cast<double>(rows * columns) * sizeof(float);
  const BatchNormOptions norm{rows, columns, 1e-5f};
  const size_t classes = 1000;
  const size_t batch = m.count / classes;
  const PoolShape pool{{32, 32, 64}, 2, 2};
  const size_t images = std::max<size_t>(m.count / pool.input.elements(), 1);
  const double image = static_cast<double>(images * pool.input.elements()) * sizeof(float);
  auto* const sum = reinterpret_cast<LossSum*>(m[5]);
  return {
      {"BatchNormForward",
       [&b, &m, norm, columns] {
         b.BatchNormForward(norm, {m[2], m[2], m[2], m[2]}, m[0], m[3], m[4], m[4] + columns, m[1]);
       },
       2 * pass},
      {"BatchNormBackward",
       [&b, &m, norm, columns] {
         b.BatchNormBackward(norm, m[2], m[0], m[3], m[1], m[4], m[4] + columns, m[5]);
       },
       3 * pass},
      {"MaxPoolForward",
       [&b, &m, pool, images] { b.MaxPoolForward(pool, images, m[0], m[1], m[2]); }, 1.5 * image},
      {"MaxPoolBackward",
       [&b, &m, pool, images] { b.MaxPoolBackward(pool, images, m[1], m[2], m[3]); }, 1.5 * image},
      {"SoftmaxCrossEntropy",
       [&b, &m, sum, batch, classes] {
         b.SoftmaxCrossEntropy({batch, classes}, m[0], m[1], sum, m[2]);
       },
       2 * static_cast<double>(batch * classes) * sizeof(float)},
  };
}

std::vector<Subject> Products(Backend& b, Memory& m, bool small) {
  const size_t batch = small ? 16 : 512;
  const size_t units = small ? 128 : 4096;
  const double dense = 2.0 * static_cast<double>(batch) * static_cast<double>(units * units);
  return {
      {"Gemm y = x W",
       [=, &b, &m] {
         b.Gemm({batch, units, units}, Op::kAsIs, m[0], Op::kAsIs, m[1], false, m[2]);
       },
       0, dense},
      {"Gemm dx = dy W'",
       [=, &b, &m] {
         b.Gemm({batch, units, units}, Op::kAsIs, m[0], Op::kTransposed, m[1], false, m[2]);
       },
       0, dense},
      {"Gemm dW = x' dy",
       [=, &b, &m] {
         b.Gemm({units, units, batch}, Op::kTransposed, m[0], Op::kAsIs, m[2], false, m[1]);
       },
       0, dense},
  };
}

// One convolution of each kind: as in LeNets on MNIST, as in ResNets on CIFAR-10, and a pointwise
// one.
std::vector<Subject> Convolutions(Backend& b, Memory& m, bool small) {
  const std::vector<std::pair<Conv2dShape, size_t>> kinds = {
      {{{28, 28, 1}, 16, 5, 1, 0}, 512},  {{{12, 12, 16}, 32, 5, 1, 0}, 512},
      {{{32, 32, 3}, 16, 3, 1, 1}, 128},  {{{32, 32, 16}, 16, 3, 1, 1}, 128},
      {{{16, 16, 32}, 32, 3, 1, 1}, 128}, {{{8, 8, 64}, 64, 3, 1, 1}, 128},
      {{{32, 32, 64}, 64, 3, 1, 1}, 128}, {{{16, 16, 128}, 128, 3, 1, 1}, 128},
      {{{4, 4, 512}, 512, 3, 1, 1}, 128}, {{{16, 16, 96}, 24, 1, 1, 0}, 128}};
  std::vector<Subject> subjects;
  for (auto [shape, batch] : kinds) {
    const size_t images = small ? 2 : batch;
    if (small) {
      shape.input.channels = std::min(shape.input.channels, 8u);
      shape.filters = std::min(shape.filters, 8u);
    }
    const double each =
        2.0 * static_cast<double>(images * shape.output().elements() * shape.patch());
    const std::string name =
        absl::StrCat(shape.input.height, "x", shape.input.width, "x", shape.input.channels, ", ",
                     shape.filters, " of ", shape.kernel, "x", shape.kernel);
    const auto backward = [&b, &m, shape = shape, images](float* dx) {
      b.Conv2dBackward(shape, images, m[0], m[1], m[4], m[3], m[2], nullptr, dx);
    };
    subjects.push_back({name + ", y",
                        [&b, &m, shape = shape, images] {
                          b.Conv2dForward(shape, images, m[0], m[1], nullptr, m[3], m[4]);
                        },
                        0, each});
    subjects.push_back({name + ", dW", [backward] { backward(nullptr); }, 0, each});
    subjects.push_back({name + ", dW, dx", [backward, &m] { backward(m[5]); }, 0, 2 * each});
  }
  return subjects;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

// Prints each subject's rate beside the limits.
void Measure(Bench& bench, const std::vector<Subject>& subjects, double bandwidth, double peak,
             Table& table) {
  for (const Subject& subject : subjects) {
    const double seconds = bench.SecondsOf(subject.run);
    const bool moves = subject.bytes > 0;
    const double rate = (moves ? subject.bytes : subject.flops) / seconds;
    const std::string giga = Fixed(rate / 1e9, 1);
    table.Add({subject.name, Milliseconds(seconds, 3), moves ? giga : "", moves ? "" : giga,
               Percent(rate / (moves ? bandwidth : peak))});
  }
}

int Run(const Flags& flags) {
  v1::Workers workers;
  workers.set_device(flags.device);
  workers.set_precision(flags.precision);
  auto chosen = ChooseBackend(workers, 0, {});
  if (absl::IsFailedPrecondition(chosen.status()) || absl::IsNotFound(chosen.status())) {
    std::printf("SKIPPED: %s\n", std::string(chosen.status().message()).c_str());
    return kSkipped;
  }
  if (!chosen.ok()) return Fail(chosen.status());
  Backend& backend = *chosen->backend;
  // 256 MiB for each vector.
  auto memory = MakeMemory(backend, flags.small ? size_t{1} << 18 : size_t{1} << 26);
  if (!memory.ok()) return Fail(memory.status());
  Memory& m = *memory;
  Bench bench(backend, flags.seconds);
  const size_t side = flags.small ? 256 : 8192;
  const double copied = 2.0 * static_cast<double>(m.count) * sizeof(float);
  const double bandwidth = copied / bench.SecondsOf([&] { backend.Copy(m.count, m[0], m[1]); });
  const double cube = static_cast<double>(side) * static_cast<double>(side * side);
  const double peak = 2.0 * cube / bench.SecondsOf([&] {
    backend.Gemm({side, side, side}, Op::kAsIs, m[0], Op::kAsIs, m[1], false, m[2]);
  });
  std::printf("%s\n", chosen->note.c_str());
  if (const auto link = MeasureLinkRates(backend); link.ok()) {
    std::printf("Link: %s GB/s up, %s down, %s both ways at once\n",
                Fixed(link->up / 1e9, 1).c_str(), Fixed(link->down / 1e9, 1).c_str(),
                Fixed(link->both / 1e9, 1).c_str());
  }
  std::printf("Limits: %s GB/s of copies, %s GFLOP/s of products of %zu x %zu\n",
              Fixed(bandwidth / 1e9, 1).c_str(), Fixed(peak / 1e9, 1).c_str(), side, side);
  Table table({"kernel", "ms", "GB/s", "GFLOP/s", "of its limit"}, 1);
  Measure(bench, Elementwise(backend, m), bandwidth, peak, table);
  Measure(bench, Encodings(backend, m), bandwidth, peak, table);
  Measure(bench, Layers(backend, m), bandwidth, peak, table);
  Measure(bench, Products(backend, m, flags.small), bandwidth, peak, table);
  Measure(bench, Convolutions(backend, m, flags.small), bandwidth, peak, table);
  std::printf("%s", table.ToString().c_str());
  return backend.status().ok() ? 0 : Fail(backend.status());
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  CLI::App app("Kernels of a device beside its limits");
  leeway::Flags flags;
  app.add_option("--device", flags.device, "As workers.device")->capture_default_str();
  app.add_option("--precision", flags.precision, "As workers.precision")
      ->transform(CLI::CheckedTransformer(leeway::kPrecisions));
  app.add_option("--seconds", flags.seconds, "Of each measurement")->capture_default_str();
  app.add_flag("--small", flags.small, "Small sizes, which say nothing of the device");
  CLI11_PARSE(app, argc, argv);
  return leeway::Run(flags);
}
