// Each codec's rate on one thread, in GB of float32 a second of CPU time, beside a copy of the same
// floats.
//
//   codec_bench [--rounds 15] [--block 1M] [--json FILE]
//
// Blocks are encoded with error feedback, and decoded into floats. Rounds are interleaved, medians
// are printed.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/base/bench_options.h"
#include "bench/base/statistics.h"
#include "common/buffer.h"
#include "common/codec/codec.h"
#include "common/codec/encoded.h"
#include "common/files/files.h"
#include "common/philox.h"
#include "common/status.h"

namespace leeway {
namespace {

// How many floats one measurement covers: as many blocks as have these floats, at least one.
constexpr size_t kFloats = 1 << 21;

struct Flags {
  int rounds = 15;
  std::string block = "1M";
  std::string json;
};

struct Subject {
  std::string name;
  std::unique_ptr<const Codec> codec;
  std::vector<uint8_t> bytes;
  size_t size = 0;
  FloatBuffer residual;
  std::vector<double> encode, check, decode;
};

// Returns this thread's CPU time, without that of other work on the machine.
double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns GB of float32 a second of CPU time, for work on `count` floats.
template <typename Work>
double GigabytesPerSecond(size_t count, const Work& work) {
  const size_t repeats = std::max<size_t>(kFloats / count, 1);
  const double begin = CpuSeconds();
  for (size_t i = 0; i < repeats; ++i) work();
  return 1e-9 * static_cast<double>(repeats * count * sizeof(float)) / (CpuSeconds() - begin);
}

void Round(const FloatBuffer& values, FloatBuffer& decoded, Subject& subject) {
  const size_t count = values.size();
  subject.encode.push_back(GigabytesPerSecond(count, [&] {
    subject.size = subject.codec->Encode(values.span(), subject.residual.span(), subject.bytes);
  }));
  const std::span<const uint8_t> bytes(subject.bytes.data(), subject.size);
  const auto open = [&] {
    return EncodedValues::Open(subject.codec->encoding(), nullptr, {bytes}, count).value();
  };
  subject.check.push_back(GigabytesPerSecond(count, [&] { open(); }));
  const auto opened = open();
  subject.decode.push_back(GigabytesPerSecond(count, [&] { opened->Read(0, decoded.span()); }));
}

std::vector<Subject> Subjects(size_t count) {
  std::vector<Subject> subjects;
  const auto add = [&](const char* name, auto choose) {
    v1::Codec config;
    choose(config);
    Subject subject;
    subject.name = name;
    subject.codec = MakeCodec(config).value();
    subject.bytes.resize(subject.codec->MaxBytes(count));
    subject.residual = FloatBuffer(count);
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

nlohmann::json RowOf(const Subject& subject, size_t count) {
  return {{"codec", subject.name},
          {"encode_gigabytes_per_second", Median(subject.encode)},
          {"check_gigabytes_per_second", Median(subject.check)},
          {"decode_gigabytes_per_second", Median(subject.decode)},
          {"size", static_cast<double>(subject.size) / static_cast<double>(count * sizeof(float))}};
}

absl::Status Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const uint64_t bytes, ParseBlockBytes(flags.block));
  const size_t count = bytes / sizeof(float);
  FloatBuffer values(count), decoded(count);
  RandomStream random(1, RandomPurpose::kGenerate);
  for (float& value : values.span()) value = static_cast<float>(1e-3 * random.Normal());
  std::vector<Subject> subjects = Subjects(count);
  std::vector<double> copy;
  for (int round = 0; round < flags.rounds; ++round) {
    copy.push_back(GigabytesPerSecond(
        count, [&] { std::memcpy(decoded.data(), values.data(), count * sizeof(float)); }));
    for (Subject& subject : subjects) Round(values, decoded, subject);
  }
  std::printf("%-12s %8s %8s %8s %8s\n", "GB/s", "encode", "check", "decode", "size");
  std::printf("%-12s %8.1f\n", "memcpy", Median(copy));
  nlohmann::json rows = nlohmann::json::array();
  for (const Subject& subject : subjects) {
    const nlohmann::json& row = rows.emplace_back(RowOf(subject, count));
    std::printf("%-12s %8.1f %8.1f %8.1f %8.4f\n", subject.name.c_str(), Median(subject.encode),
                Median(subject.check), Median(subject.decode), row["size"].get<double>());
  }
  if (flags.json.empty()) return absl::OkStatus();
  const nlohmann::json document = {
      {"block_bytes", bytes}, {"memcpy_gigabytes_per_second", Median(copy)}, {"codecs", rows}};
  return WriteFileAtomically(flags.json, document.dump(2) + "\n");
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) {
  leeway::Flags flags;
  CLI::App app("Each codec's rate on one thread", "codec_bench");
  app.add_option("--rounds", flags.rounds)->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_option("--block", flags.block, "Bytes, as in 64K")->capture_default_str();
  app.add_option("--json", flags.json, "File to write");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = leeway::Run(flags);
  if (!status.ok()) std::fprintf(stderr, "codec_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
