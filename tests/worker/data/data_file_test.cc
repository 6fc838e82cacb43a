#include "worker/data/data_file.h"

#include <algorithm>

#include <sys/stat.h>

#include "tests/worker/data/data_test_util.h"
#include "worker/data/gunzip.h"
#include "worker/data/known_files.h"
#include "worker/data/sources/job_files.h"

namespace leeway::data_file {
namespace {

using absl::StatusCode;

FileBytes Noise(size_t size) {
  FileBytes bytes(size);
  uint32_t state = 1;
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

FileBytes Concatenate(const FileBytes& a, const FileBytes& b) {
  FileBytes both(a.size() + b.size());
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), both.begin()));
  return both;
}

absl::StatusOr<FileBytes> Gunzip(const FileBytes& packed, const std::string& path,
                                 uint64_t max_bytes) {
  GunzipStream stream(std::make_unique<MemoryStream>(packed), path, max_bytes);
  absl::StatusOr<FileBytes> first = ReadAll(stream);
  if (!first.ok()) return first;
  CHECK(stream.Rewind().ok());
  absl::StatusOr<FileBytes> second = ReadAll(stream);
  CHECK((second.ok() && *second == *first));
  return second;
}

TEST_CASE("A file is read as it is, or unpacked if its content is gzip, whatever its name") {
  DataFolder folder;
  const FileBytes content = Noise(100000);
  folder.Write("plain.gz", content);
  folder.Write("sub/packed.bin", Gzip(content));
  for (const char* name : {"plain.gz", "sub/packed.bin"}) {
    absl::StatusOr<DataFile> file = OpenDataFile(folder.path(), name);
    REQUIRE(file.ok());
    for (int time = 0; time < 2; ++time) {
      CHECK(ReadAll(*file->bytes).value() == content);
      CHECK(file->bytes->Rewind().ok());
    }
    CHECK(file->path == folder.path() + "/" + name);
  }
}

TEST_CASE("All members of a gzip file are unpacked") {
  const FileBytes a = Noise(5000), b = Noise(70000);
  const FileBytes packed = Concatenate(Gzip(a), Gzip(b));
  absl::StatusOr<FileBytes> unpacked = Gunzip(packed, "f", 1 << 20);
  REQUIRE(unpacked.ok());
  CHECK(*unpacked == Concatenate(a, b));
}

TEST_CASE("Zeros that fill a gzip file up are no member, and other bytes are an error") {
  const FileBytes content = Noise(5000);
  // The last size is more than one read takes.
  for (const size_t zeros : {1, 511, 200000}) {
    const FileBytes padded = Concatenate(Gzip(content), FileBytes(zeros, 0));
    const absl::StatusOr<FileBytes> unpacked = Gunzip(padded, "f", 1 << 20);
    REQUIRE(unpacked.ok());
    CHECK(*unpacked == content);
    CHECK(*Gunzip(Concatenate(padded, Gzip(content)), "f", 1 << 20) ==
          Concatenate(content, content));
    RequireError(Gunzip(Concatenate(padded, FileBytes(20, 7)), "f", 1 << 20), StatusCode::kDataLoss,
                 {"f: byte "});
  }
}

TEST_CASE("Every truncation of a gzip file is an error that names the file and the byte") {
  const FileBytes packed = Gzip(Noise(300));
  for (size_t size = 2; size < packed.size(); ++size) {
    const FileBytes part(packed.begin(), packed.begin() + size);
    RequireError(Gunzip(part, "data/f.gz", 1 << 20), StatusCode::kDataLoss, {"data/f.gz: byte "});
  }
}

TEST_CASE("Every flipped byte of a gzip file is an error or leaves the content as it was") {
  const FileBytes content = Noise(300);
  const FileBytes packed = Gzip(content);
  for (size_t at = 0; at < packed.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      FileBytes damaged = packed;
      damaged[at] ^= static_cast<uint8_t>(1 << bit);
      absl::StatusOr<FileBytes> unpacked = Gunzip(damaged, "f", 1 << 20);
      if (unpacked.ok()) CHECK(*unpacked == content);  // time, system, ... of the header
    }
  }
}

TEST_CASE("A gzip file that unpacks to more than the limit is refused at the limit") {
  const FileBytes packed = Gzip(FileBytes(10'000'000, 7));
  CHECK(packed.size() < 20000);
  CHECK(Gunzip(packed, "bomb", 10'000'000).ok());
  RequireError(Gunzip(packed, "bomb", 9'999'999), StatusCode::kResourceExhausted,
               {"bomb", "9999999"});
  RequireError(Gunzip(packed, "bomb", 10), StatusCode::kResourceExhausted, {"bomb"});
}

TEST_CASE("A name that leaves the data folder is refused") {
  DataFolder folder;
  folder.Write("data/in", "1");
  folder.Write("out", "1");
  const std::string data = folder.path() + "/data";
  CHECK(OpenDataFile(data, "in").ok());
  CHECK(OpenDataFile(data + "/", "in").ok());
  for (const std::string name : {"../out", "a/../../out", "..", "x/..", ""}) {
    RequireError(OpenDataFile(data, name), StatusCode::kInvalidArgument, {"'" + name + "'"});
  }
  RequireError(OpenDataFile(data, std::string("in\0x", 4)), StatusCode::kInvalidArgument,
               {"zero byte"});
}

TEST_CASE("A file by its absolute path is read, and a worker may be kept to its data folder") {
  DataFolder folder;
  folder.Write("data/in", "1");
  folder.Write("out", "1");
  const std::string data = folder.path() + "/data", out = folder.path() + "/out";
  CHECK(OpenDataFile(data, out).value().path == out);
  const auto check = [&](const std::string& file, const std::string& initial) {
    v1::TrainingJob job;
    job.mutable_data()->mutable_train()->mutable_csv()->add_files(file);
    job.mutable_model()->set_initial(initial);
    return std::string(CheckInDataFolder(job, data).message());
  };
  CHECK(check("in", "weights").empty());
  CHECK(check(data + "/in", data + "/sub/../weights").empty());
  for (const std::string& outside : {out, data + "/../out", data + "2/in"}) {
    for (const std::string& said : {check(outside, "weights"), check("in", outside)}) {
      CHECK(said.find(outside) != std::string::npos);
      CHECK(said.find("--absolute-paths") != std::string::npos);
    }
  }
}

TEST_CASE("What is no file with content is refused") {
  DataFolder folder;
  folder.Write("empty", "");
  folder.Write("empty.gz", Gzip({}));
  folder.Write("folder/x", "1");
  RequireError(OpenDataFile(folder.path(), "empty"), StatusCode::kInvalidArgument,
               {"/empty: ", "empty"});
  RequireError(OpenDataFile(folder.path(), "empty.gz"), StatusCode::kInvalidArgument, {"empty"});
  RequireError(OpenDataFile(folder.path(), "folder"), StatusCode::kInvalidArgument,
               {"not a regular file"});
  CHECK_FALSE(OpenDataFile(folder.path(), "folder/x/y").ok());
  REQUIRE(mkfifo((folder.path() + "/pipe").c_str(), 0600) == 0);
  RequireError(OpenDataFile(folder.path(), "pipe"), StatusCode::kInvalidArgument,
               {"not a regular file"});
}

TEST_CASE("An absent file says where it was looked for and what to fetch") {
  DataFolder folder;
  RequireError(OpenDataFile(folder.path(), "mnist/train-images-idx3-ubyte.gz"),
               StatusCode::kNotFound,
               {folder.path() + "/mnist/train-images-idx3-ubyte.gz", "https://",
                "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", "--data DIR",
                "LEEWAY_DATA"});
  RequireError(OpenDataFile(folder.path(), "mine.csv"), StatusCode::kNotFound,
               {folder.path() + "/mine.csv", "--data DIR", "LEEWAY_DATA"});
  CHECK(HowToFetch("mine.csv").empty());
  CHECK(HowToFetch("fashion-mnist/train-images-idx3-ubyte.gz").empty());
  CHECK_FALSE(HowToFetch("below/mnist/train-images-idx3-ubyte.gz").empty());
  CHECK(HowToFetch("cifar10/data_batch_1.bin") ==
        "it is CIFAR-10: fetch https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz "
        "(the archive (MD5 c32a1d4ab5d03f1284b67883e8d87530) contains it)");
}

}  // namespace
}  // namespace leeway::data_file
