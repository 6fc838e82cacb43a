// What the tests of worker/data share: folders, files, gzip, jobs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>
#include <unistd.h>
#include <zlib.h>

#include "leeway/v1/job.pb.h"
#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "tests/worker/data/memory_stream.h"
#include "worker/data/data_file.h"

namespace leeway {

using FileBytes = std::vector<uint8_t>;

// A data folder.
class DataFolder : public TempFolder {
 public:
  void Write(const std::string& name, const FileBytes& bytes) const {
    const std::filesystem::path file = std::filesystem::path(path()) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void Write(const std::string& name, const std::string& text) const {
    Write(name, FileBytes(text.begin(), text.end()));
  }
};

inline FileBytes Gzip(const FileBytes& bytes) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  FileBytes out(deflateBound(&z, bytes.size()) + 32);
  z.next_in = const_cast<Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline DataFile File(const std::string& name, const FileBytes& bytes) {
  return {name, std::make_unique<MemoryStream>(bytes)};
}
inline DataFile TextFile(const std::string& name, const std::string& text) {
  return File(name, FileBytes(text.begin(), text.end()));
}

// The bytes of an IDX file: its magic number, dimensions and elements.
inline FileBytes IdxBytes(const std::vector<uint32_t>& dimensions, const FileBytes& elements) {
  FileBytes out = {0, 0, 8, static_cast<uint8_t>(dimensions.size())};
  for (uint32_t d : dimensions) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(d >> shift));
  }
  out.insert(out.end(), elements.begin(), elements.end());
  return out;
}

template <typename Message = v1::TrainingJob>
Message FromText(const std::string& text) {
  Message message;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// The folder of data sets beside the repository. The test is skipped if they are absent.
inline std::string SharedData() {
  const std::string path = std::string(LEEWAY_SOURCE_DIR) + "/../shared/data";
  if (!std::filesystem::is_directory(path)) SKIP("no data sets in " + path);
  return path;
}

inline bool Contains(const absl::Status& status, const std::string& part) {
  return std::string(status.message()).find(part) != std::string::npos;
}

// Checks that `result` is an error of this code whose message has all `parts`.
template <typename Result>
void RequireError(const Result& result, absl::StatusCode code,
                  const std::vector<std::string>& parts) {
  REQUIRE_FALSE(result.ok());
  INFO(result.status().ToString());
  CHECK(result.status().code() == code);
  for (const std::string& part : parts) {
    INFO("expected: " + part);
    CHECK(Contains(result.status(), part));
  }
}

}  // namespace leeway
