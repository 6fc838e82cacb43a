// Edits of the sample job, and the messages that they give.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "config/job.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"

namespace leeway::testing {

// An edit of the sample job, and the whole message that it gives.
struct BadJob {
  std::string from;
  std::string to;
  std::string error;
};

inline std::string ErrorOf(const std::string& yaml) {
  const absl::StatusOr<v1::TrainingJob> job = ParseJob(yaml, "job.yaml", {});
  if (job.ok()) return "no error";
  CHECK(job.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(job.status().message());
}

inline void CheckAll(const std::vector<BadJob>& jobs) {
  for (const BadJob& job : jobs) {
    INFO("edit: " << job.from << " -> " << job.to);
    CHECK(ErrorOf(Sample(job.from, job.to)) == job.error);
  }
}

}  // namespace leeway::testing
