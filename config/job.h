// The job: one YAML file, which is read strictly into a v1::TrainingJob. Open this header first.
// The schema, its defaults and its bounds are in proto/leeway/v1/job.proto.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "config/overrides.h"
#include "config/yaml_tree.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Reads a job. Later sources override earlier ones: defaults, the file, overrides.environment,
// overrides.sets. The result is valid (config/validate.h) and resolved (config/resolve.h). Returns
// INVALID_ARGUMENT if the job has mistakes. The message has one line for each: "job.yaml:17:5:
// consistency.stalenes: unknown key; did you mean 'staleness'?". Returns NOT_FOUND,
// RESOURCE_EXHAUSTED (more than 1 MiB) or another code if the file cannot be read.
absl::StatusOr<v1::TrainingJob> LoadJob(const std::string& path, const JobOverrides& overrides);

// Knows where each key of a job was set: in a line of its file, or by an override.
class JobPlaces {
 public:
  explicit JobPlaces(YamlNode root) : root_(std::move(root)) {}
  // Puts the place of a key before an error about that key (common/job_key.h): "job.yaml:31:42:
  // data.train.label_column: ...". Returns any other status unchanged.
  absl::Status Place(const absl::Status& status) const;

 private:
  YamlNode root_;
};

struct PlacedJob {
  v1::TrainingJob job;
  JobPlaces places;
};
// Reads a job as LoadJob does, and keeps its places.
absl::StatusOr<PlacedJob> LoadPlacedJob(const std::string& path, const JobOverrides& overrides);
// Both functions read a job from a string. Messages use `file_name` as the file's name.
absl::StatusOr<PlacedJob> ParsePlacedJob(std::string_view yaml, std::string_view file_name,
                                         const JobOverrides& overrides);
absl::StatusOr<v1::TrainingJob> ParseJob(std::string_view yaml, std::string_view file_name,
                                         const JobOverrides& overrides);

// Writes the job as YAML. If a resolved job is written and read again, the result is the same job.
std::string ToYaml(const v1::TrainingJob& job);

// Returns a digest that identifies the job, in hexadecimal digits. Every process computes the same
// digest for the same job.
std::string JobSha256(const v1::TrainingJob& job);

}  // namespace leeway
