// Writes metrics.jsonl as one file in a folder, by appending.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/descriptor.h"
#include "common/files/open_folder.h"
#include "run/metrics_log.h"

namespace leeway {

// Not thread-safe.
class MetricsFile final : public MetricsLog {
 public:
  // Opens `path`, a regular file, for appending, and creates it if it does not exist. Removes an
  // incomplete last line, which a crash may have left.
  static absl::StatusOr<std::unique_ptr<MetricsLog>> Open(const std::string& path);

  // Writes the lines to the file, but perhaps not yet to the disk. After an error some of the lines
  // may be in the file, but each of them is whole. If the file was removed but its folder exists,
  // creates the file again.
  absl::Status Append(const std::string& lines) override;
  absl::Status Tick() override { return absl::OkStatus(); }
  // Does nothing, because readers already find every line in the file. A power cut may still lose
  // the last lines.
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
