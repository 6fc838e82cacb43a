// metrics.jsonl as a file in a folder, which is appended to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/descriptor.h"
#include "common/files/open_folder.h"
#include "server/coordinator/metrics_log.h"

namespace leeway {

// Not thread-safe.
class MetricsFile final : public MetricsLog {
 public:
  // Appends to `path`, a regular file, and makes it if it does not exist. Removes a last line that
  // a crash cut short.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& path);

  // On return the lines are in the file, but perhaps not yet on the disk. After an error some of
  // them may be, but none in part. If only the file was removed, it is made anew.
  absl::Status Append(const std::string& lines) override;
  absl::Status Tick() override { return absl::OkStatus(); }
  // Whoever reads the file finds all of it; a power cut may lose its end.
  absl::Status Keep() override { return absl::OkStatus(); }

 private:
  MetricsFile(std::string path, OpenFolder folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  absl::Status OpenFile();
  absl::Status Error(const char* doing) const;

  const std::string path_;
  const OpenFolder folder_;
  std::optional<Descriptor> file_;
};

}  // namespace leeway
