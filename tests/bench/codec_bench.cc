// Each codec's rate on one thread, in GB of float32 a second of CPU time, beside a copy of the same
// floats.
//
//   codec_bench [rounds = 15]
//
// Blocks of 1 MiB, encoded with error feedback, decoded into floats. Rounds are interleaved,
// medians are printed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "common/buffer.h"
#include "common/codec/codec.h"
#include "common/codec/encoded.h"
#include "common/philox.h"

namespace leeway {
namespace {

constexpr size_t kCount = 262144;
constexpr int kRepeats = 8;

struct Subject {
  std::string name;
  std::unique_ptr<const Codec> codec;
  std::vector<uint8_t> bytes;
  size_t size = 0;
  FloatBuffer residual;
  std::vector<double> encode, check, decode;
};

// Of this thread: what others do on the machine stays out.
double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Work>
double GigabytesPerSecond(const Work& work) {
  const double begin = CpuSeconds();
  for (int i = 0; i < kRepeats; ++i) work();
  return kRepeats * kCount * sizeof(float) / (CpuSeconds() - begin) / 1e9;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Round(const FloatBuffer& values, FloatBuffer& decoded, Subject& subject) {
  subject.encode.push_back(GigabytesPerSecond([&] {
    subject.size = subject.codec->Encode(values.span(), subject.residual.span(), subject.bytes);
  }));
  const std::span<const uint8_t> bytes(subject.bytes.data(), subject.size);
  const auto open = [&] {
    return EncodedValues::Open(subject.codec->encoding(), nullptr, {bytes}, kCount).value();
  };
  subject.check.push_back(GigabytesPerSecond([&] { open(); }));
  const auto opened = open();
  subject.decode.push_back(GigabytesPerSecond([&] { opened->Read(0, decoded.span()); }));
}

std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  const auto add = [&](const char* name, auto choose) {
    v1::Codec config;
    choose(config);
    Subject subject;
    subject.name = name;
    subject.codec = MakeCodec(config).value();
    subject.bytes.resize(subject.codec->MaxBytes(kCount));
    subject.residual = FloatBuffer(kCount);
    subjects.push_back(std::move(subject));
  };
  add("none", [](v1::Codec& c) { c.mutable_none(); });
  add("bf16", [](v1::Codec& c) { c.mutable_bf16(); });
  add("fp16", [](v1::Codec& c) { c.mutable_fp16(); });
  add("int8", [](v1::Codec& c) { c.mutable_int8(); });
  add("sign", [](v1::Codec& c) { c.mutable_sign(); });
  add("top_k 0.001", [](v1::Codec& c) { c.mutable_top_k()->set_share(0.001); });
  add("top_k 0.01", [](v1::Codec& c) { c.mutable_top_k()->set_share(0.01); });
  add("top_k 0.1", [](v1::Codec& c) { c.mutable_top_k()->set_share(0.1); });
  add("top_k 1", [](v1::Codec& c) { c.mutable_top_k()->set_share(1); });
  return subjects;
}

void Run(int rounds) {
  FloatBuffer values(kCount), decoded(kCount);
  RandomStream random(1, RandomPurpose::kGenerate);
  for (float& value : values.span()) value = static_cast<float>(1e-3 * random.Normal());
  std::vector<Subject> subjects = Subjects();
  std::vector<double> copy;
  for (int round = 0; round < rounds; ++round) {
    copy.push_back(GigabytesPerSecond(
        [&] { std::memcpy(decoded.data(), values.data(), kCount * sizeof(float)); }));
    for (Subject& subject : subjects) Round(values, decoded, subject);
  }
  std::printf("%-12s %8s %8s %8s %8s\n", "GB/s", "encode", "check", "decode", "size");
  std::printf("%-12s %8.1f\n", "memcpy", Median(copy));
  for (const Subject& subject : subjects) {
    std::printf("%-12s %8.1f %8.1f %8.1f %8.4f\n", subject.name.c_str(), Median(subject.encode),
                Median(subject.check), Median(subject.decode),
                static_cast<double>(subject.size) / (kCount * sizeof(float)));
  }
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  leeway::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15);
  return 0;
}
