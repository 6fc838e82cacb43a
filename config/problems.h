// The mistakes in a job, and where they are.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// A source of YAML: the job file, or one override.
struct Source {
  // The name at the start of an error: job.yaml, or --set a.b=c, or LEEWAY__A__B.
  std::string name;
  bool is_override = false;
  // For an override: the path of the key that it sets.
  std::string path;
};

// A place in a source. Line and column count from 1, and are 0 in overrides.
struct Origin {
  std::shared_ptr<const Source> source;
  int line = 0;
  int column = 0;
};

// Returns "job.yaml:17:5: consistency.stalenes: <message>". Does not repeat an override's own path:
// "--set consistency.stalenes=3: <message>".
std::string Describe(const Origin& origin, std::string_view path, std::string_view message);

// Collects the mistakes, so that a user sees all of them at once.
class Problems {
 public:
  // Adds a mistake. At most one is kept for each path.
  void Add(const Origin& origin, const std::string& path, std::string_view message);
  // Adds a mistake whose line is already written.
  void AddLine(const Origin& origin, const std::string& line);
  // Returns true if a mistake was already found at this path, above it or below it.
  bool Covers(const std::string& path) const;
  bool empty() const { return found_.empty(); }
  // Returns INVALID_ARGUMENT with one line for each mistake, in the order of the file. Returns OK
  // if there are no mistakes.
  absl::Status ToStatus() const;

 private:
  struct Problem {
    Origin origin;
    std::string text;
  };
  std::vector<Problem> found_;
  std::set<std::string> paths_;
};

}  // namespace leeway
