// What is wrong with a job, and where it says so.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// A text that YAML was read from: the job file, or one override.
struct Source {
  // As it begins an error: job.yaml, or --set a.b=c, or LEEWAY__A__B.
  std::string name;
  bool is_override = false;
  // Of an override: the path of the key that it sets.
  std::string path;
};

// A place in a source; line and column count from 1 and are 0 in overrides.
struct Origin {
  std::shared_ptr<const Source> source;
  int line = 0;
  int column = 0;
};

// "job.yaml:17:5: consistency.stalenes: <message>"; an override's own path is not repeated:
// "--set consistency.stalenes=3: <message>".
std::string Describe(const Origin& origin, std::string_view path, std::string_view message);

// Collects what is wrong, so that a user sees all of it at once.
class Problems {
 public:
  // At most one is kept for a path.
  void Add(const Origin& origin, const std::string& path, std::string_view message);
  // One whose line is already written.
  void AddLine(const Origin& origin, const std::string& line);
  // Something at this path, around it or inside it was already found wrong.
  bool Covers(const std::string& path) const;
  bool empty() const { return found_.empty(); }
  // INVALID_ARGUMENT, a line for each in the order of the file; OK if there are none.
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
