// A job's YAML, and overrides of it: every input gives a job or a message. An accepted job is
// valid, and its own YAML reads back as the same job.
#include "config/job.h"
#include "config/validate.h"
#include "tests/fuzz/fuzz_input.h"

namespace leeway::yaml {
namespace {

// The lines after a line "%%" are overrides, one on each line.
constexpr std::string_view kOverrides = "\n%%\n";

void ReadJob(std::string_view text) {
  JobOverrides overrides;
  if (const size_t mark = text.find(kOverrides); mark != std::string_view::npos) {
    std::string_view lines = text.substr(mark + kOverrides.size());
    text = text.substr(0, mark);
    while (!lines.empty()) {
      const size_t end = std::min(lines.find('\n'), lines.size());
      overrides.sets.emplace_back(lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }
  const auto job = ParseJob(text, "job.yaml", overrides);
  if (!job.ok()) {
    Promise(!job.status().message().empty(), "a refused job is told why");
    return;
  }
  PromiseOk(ValidateJob(*job), "a job that is taken is valid");
  const std::string yaml = ToYaml(*job);
  const auto again = ParseJob(yaml, "again.yaml", {});
  PromiseOk(again.status(), "a job's YAML is a job:\n" + yaml);
  Promise(JobSha256(*again) == JobSha256(*job), "a job's YAML is the same job:\n" + yaml);
}

}  // namespace
FUZZ_TARGET(yaml) { ReadJob(ViewOf(input.Rest())); }

}  // namespace leeway::yaml
