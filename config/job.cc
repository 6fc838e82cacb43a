#include "config/job.h"

#include <memory>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "common/files/files.h"
#include "common/files/sha256.h"
#include "common/job_key.h"
#include "common/status.h"
#include "config/decode.h"
#include "config/problems.h"
#include "config/resolve.h"
#include "config/rules.h"
#include "config/validate.h"
#include "config/yaml_tree.h"

namespace leeway {
namespace {

// Adds the faults that are not a consequence of problems found earlier.
void AddFaults(const std::vector<Fault>& faults, const YamlNode& root, Problems& problems) {
  for (const Fault& fault : faults) {
    std::string path = fault.path;
    const Origin origin = Locate(root, path);
    if (!problems.Covers(fault.path) && !problems.Covers(path)) {
      problems.Add(origin, path, fault.message);
    }
  }
}

}  // namespace

absl::StatusOr<v1::TrainingJob> LoadJob(const std::string& path, const JobOverrides& overrides) {
  ASSIGN_OR_RETURN(PlacedJob placed, LoadPlacedJob(path, overrides));
  return std::move(placed.job);
}

absl::StatusOr<PlacedJob> LoadPlacedJob(const std::string& path, const JobOverrides& overrides) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kYamlBytesMax));
  return ParsePlacedJob(text, path, overrides);
}

absl::StatusOr<PlacedJob> ParsePlacedJob(std::string_view yaml, std::string_view file_name,
                                         const JobOverrides& overrides) {
  const auto source = std::make_shared<const Source>(Source{std::string(file_name), false, ""});
  ASSIGN_OR_RETURN(YamlNode root, ReadYaml(yaml, source));
  if (root.kind != YamlNode::Kind::kMap) {
    return absl::InvalidArgumentError(
        Describe(root.origin, "",
                 root.kind == YamlNode::Kind::kNull
                     ? "the file is empty; a job has at least model, data, update and stop"
                     : "a job must be a map of keys, with at least model, data, update and stop"));
  }
  Problems problems;
  ApplyOverrides(overrides, root, problems);
  v1::TrainingJob job;
  Decode(root, "", job, problems);
  AddFaults(FindFieldFaults(job), root, problems);
  RETURN_IF_ERROR(problems.ToStatus());
  RETURN_IF_ERROR(ResolveJob(job));
  AddFaults(FindJobFaults(job), root, problems);
  RETURN_IF_ERROR(problems.ToStatus());
  return PlacedJob{std::move(job), JobPlaces(std::move(root))};
}

absl::StatusOr<v1::TrainingJob> ParseJob(std::string_view yaml, std::string_view file_name,
                                         const JobOverrides& overrides) {
  ASSIGN_OR_RETURN(PlacedJob placed, ParsePlacedJob(yaml, file_name, overrides));
  return std::move(placed.job);
}

absl::Status JobPlaces::Place(const absl::Status& status) const {
  std::string path = KeyOf(status);
  if (path.empty()) return status;
  const Origin origin = Locate(root_, path);
  return absl::Status(status.code(), Describe(origin, path, MessageWithoutKey(status)));
}

std::string JobSha256(const v1::TrainingJob& job) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    job.SerializeToCodedStream(&coded);
  }
  return HexSha256(bytes);
}

}  // namespace leeway
