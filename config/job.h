// The job: one YAML file, read strictly into a v1::TrainingJob. Open this header first; the schema,
// its defaults and its bounds are proto/leeway/v1/job.proto.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "config/overrides.h"
#include "config/yaml_tree.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Reads a job: defaults < file < overrides.environment < overrides.sets. What comes back is valid
// (config/validate.h) and resolved (config/resolve.h). INVALID_ARGUMENT lists what is wrong, a line
// for each: "job.yaml:17:5: consistency.stalenes: unknown key; did you mean 'staleness'?".
// NOT_FOUND, RESOURCE_EXHAUSTED (more than 1 MiB)
// or another code if the file cannot be read.
absl::StatusOr<v1::TrainingJob> LoadJob(const std::string& path, const JobOverrides& overrides);

// Where the keys of a job came from: lines of its file, and overrides.
class JobPlaces {
 public:
  explicit JobPlaces(YamlNode root) : root_(std::move(root)) {}
  // An error about a key of the job (common/job_key.h) with the key's place before it:
  // "job.yaml:31:42: data.train.label_column: ...". Any other status as it is.
  absl::Status Place(const absl::Status& status) const;

 private:
  YamlNode root_;
};

struct PlacedJob {
  v1::TrainingJob job;
  JobPlaces places;
};
// As LoadJob.
absl::StatusOr<PlacedJob> LoadPlacedJob(const std::string& path, const JobOverrides& overrides);
// The same for a text; `file_name` is for the messages.
absl::StatusOr<PlacedJob> ParsePlacedJob(std::string_view yaml, std::string_view file_name,
                                         const JobOverrides& overrides);
absl::StatusOr<v1::TrainingJob> ParseJob(std::string_view yaml, std::string_view file_name,
                                         const JobOverrides& overrides);

// The job as YAML. A resolved job reads back as the same job.
std::string ToYaml(const v1::TrainingJob& job);

// A digest that names the job, in hexadecimal digits. Every process gets the same one for the same
// job.
std::string JobSha256(const v1::TrainingJob& job);

}  // namespace leeway
