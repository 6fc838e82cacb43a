// What reading a file costs in memory: a child process reads the file and reports its largest size.
#include <functional>

#include <sys/resource.h>
#include <sys/wait.h>

#include "absl/base/config.h"
#include "tests/skip.h"
#include "tests/worker/data/data_test_util.h"
#include "worker/data/cifar.h"
#include "worker/data/csv.h"
#include "worker/data/idx.h"
#include "worker/data/libsvm.h"

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
// By default AddressSanitizer keeps a quarter of a gigabyte of freed memory, which is not a cost of
// reading.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=8"; }
#endif

namespace leeway::memory {
namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kBomb = 512 * kMiB;
// What a parser may use beyond the examples: the longest allowed line, twice while its buffer
// grows, and what sanitizers keep.
constexpr size_t kLine = 160 * kMiB;
constexpr size_t kAllowance = 48 * kMiB;
constexpr v1::Loss kLoss = v1::LOSS_SOFTMAX_CROSS_ENTROPY;

FileBytes Join(std::initializer_list<FileBytes> parts) {
  FileBytes all;
  for (const FileBytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
FileBytes TextBytes(const std::string& text) { return {text.begin(), text.end()}; }

// Gzip members that repeat `piece`, at least `total` bytes together.
FileBytes PackedMany(FileBytes piece, size_t total) {
  const FileBytes once = piece;
  while (piece.size() < 4 * kMiB) piece.insert(piece.end(), once.begin(), once.end());
  const FileBytes member = Gzip(piece);
  FileBytes all;
  for (size_t done = 0; done < total; done += piece.size())
    all.insert(all.end(), member.begin(), member.end());
  return all;
}

size_t PeakBytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

struct Cost {
  // Memory beyond what the process had before.
  size_t bytes = 0;
  absl::StatusCode code;
  std::string message;
};

// Reads in a child process whose memory nothing else has touched.
Cost CostOf(const std::function<absl::StatusOr<Examples>()>& read) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const size_t before = PeakBytes();
    const absl::StatusOr<Examples> examples = read();
    const uint64_t cost = PeakBytes() - before;
    const int code = static_cast<int>(examples.status().code());
    const std::string text(examples.status().message());
    const bool written = write(ends[1], &cost, sizeof cost) > 0 &&
                         write(ends[1], &code, sizeof code) > 0 &&
                         write(ends[1], text.data(), text.size()) >= 0;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Cost cost;
  uint64_t bytes = 0;
  int code = 0;
  CHECK(::read(ends[0], &bytes, sizeof bytes) == sizeof bytes);
  CHECK(::read(ends[0], &code, sizeof code) == sizeof code);
  char text[4096];
  const ssize_t size = ::read(ends[0], text, sizeof text);
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  cost.bytes = bytes;
  cost.code = static_cast<absl::StatusCode>(code);
  cost.message.assign(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return cost;
}

// One way to read the files of `folder`: "f", and "labels" where a format has them.
struct Format {
  const char* name;
  std::function<absl::StatusOr<Examples>(const std::string& folder)> read;
};

std::vector<Format> Formats() {
  const auto open = [](const std::string& folder, const char* name) {
    return OpenDataFile(folder, name);
  };
  const auto one = [open](auto parse) {
    return [=](const std::string& folder) -> absl::StatusOr<Examples> {
      absl::StatusOr<DataFile> file = open(folder, "f");
      if (!file.ok()) return file.status();
      return parse(*std::move(file));
    };
  };
  const auto idx = [open](const std::string& folder) -> absl::StatusOr<Examples> {
    absl::StatusOr<DataFile> images = open(folder, "f"), labels = open(folder, "labels");
    if (!images.ok()) return images.status();
    if (!labels.ok()) return labels.status();
    return ParseIdx(*std::move(images), *std::move(labels), kLoss);
  };
  return {{"idx", idx},
          {"cifar10", one([](DataFile f) { return ParseCifar10(std::move(f), kLoss); })},
          {"csv", one([](DataFile f) { return ParseCsv(std::move(f), v1::Csv(), kLoss); })},
          {"libsvm", one([](DataFile f) {
             return ParseLibsvm(std::move(f), FromText<v1::Libsvm>("features: 8"), kLoss);
           })}};
}

void RequireSmallAndRefused(const std::string& folder, const Format& format, size_t allowed) {
  INFO(format.name);
  const Cost cost = CostOf([&] { return format.read(folder); });
  INFO(cost.bytes / kMiB << " MiB, " << cost.message);
  CHECK(cost.code != absl::StatusCode::kOk);
  CHECK(Contains(absl::UnknownError(cost.message), folder + "/"));
  CHECK(cost.bytes < allowed);
}

TEST_CASE("Files that unpack to half a gigabyte and hold no examples cost no format its memory") {
  DataFolder folder;
  folder.Write("labels", IdxBytes({2}, {7, 0}));
  const FileBytes kinds[] = {FileBytes(4096, 0), FileBytes(4096, '7'), TextBytes("1 1:1,2 x\n")};
  for (const FileBytes& kind : kinds) {
    folder.Write("f", Join({PackedMany(kind, kBomb), Gzip(FileBytes(1, 1))}));
    for (const Format& format : Formats()) {
      INFO("a file of byte " << int{kind[0]});
      RequireSmallAndRefused(folder.path(), format, kLine + kAllowance);
    }
  }
}

TEST_CASE("An IDX header is believed no further than what follows it") {
  DataFolder folder;
  const Format idx = Formats()[0];
  const FileBytes zeros = PackedMany(FileBytes(4096), kBomb);
  const FileBytes labels = IdxBytes({2}, {7, 0});
  const auto refused = [&](const FileBytes& images, const FileBytes& labels) {
    folder.Write("f", images);
    folder.Write("labels", labels);
    RequireSmallAndRefused(folder.path(), idx, kAllowance);
  };
  refused(Join({Gzip(IdxBytes({2, 2, 3}, FileBytes(12))), zeros}),
          labels);                                                 // more than is promised
  refused(IdxBytes({2, 4000, 4000, 250}, FileBytes(12)), labels);  // 8 GB, and 12 bytes
  refused(Gzip(IdxBytes({2, 4000, 4000, 250}, FileBytes(12))), labels);
  refused(Join({Gzip(IdxBytes({1u << 30, 1, 1}, {})), zeros}), labels);  // labels of two
  refused(Join({Gzip(IdxBytes({1u << 30, 1, 1}, {})), zeros}), IdxBytes({1u << 30}, FileBytes(12)));
  refused(IdxBytes({2, 2, 3}, FileBytes(12)), Join({Gzip(labels), zeros}));
}

TEST_CASE("Each format holds its examples once") {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  SKIP("its shadow is larger than the examples");
#endif
  DataFolder folder;
  constexpr size_t kData = 128 * kMiB;
  FileBytes record(3073, 5);
  std::string line;
  for (int i = 0; i < 8; ++i) line += "0.25,";
  const uint32_t images = kData / 1024;
  folder.Write("labels", IdxBytes({images}, FileBytes(images, 3)));
  const FileBytes files[] = {
      Join({Gzip(IdxBytes({images, 32, 32}, {})), PackedMany(FileBytes(1024, 9), kData)}),
      PackedMany(record, kData), PackedMany(TextBytes(line + "1\n"), kData * (5 * 8 + 2) / 32),
      PackedMany(TextBytes("1 1:2.5 8:7\n"), kData * 12 / 32)};
  for (size_t i = 0; i < 4; ++i) {
    const Format format = Formats()[i];
    INFO(format.name);
    folder.Write("f", files[i]);
    const Cost cost = CostOf([&] { return format.read(folder.path()); });
    INFO(cost.bytes / kMiB << " MiB for " << kData / kMiB << " MiB, " << cost.message);
    CHECK(cost.code == absl::StatusCode::kOk);
    CHECK(cost.bytes < kData + kData / 8 + kAllowance);  // labels are floats, too
  }
}

}  // namespace
}  // namespace leeway::memory
