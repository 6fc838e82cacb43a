// What becomes of each column of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct CsvColumn {
  enum class Role { kFeature, kLabel, kIgnored };

  // For errors: "column 3", or "column 3 (height)".
  std::string place;
  Role role = Role::kFeature;
  // Its texts, with their numbers. Empty: its values are numbers.
  std::map<std::string, uint32_t, std::less<>> categories = {};
  bool one_hot = false;

  // Features that it becomes.
  size_t features() const {
    if (role != Role::kFeature) return 0;
    return one_hot ? categories.size() : 1;
  }
};

struct CsvColumns {
  std::vector<CsvColumn> columns;
  // Index of the label's.
  size_t label = 0;
  // Of all columns together.
  size_t features = 0;
  // Their names, where the table has names: "height", "sex=female".
  std::vector<std::string> names;
};

// `first` holds the values of the first line, which are the names of the columns if
// options.has_label(). INVALID_ARGUMENT at the key of `options` that does not fit
// (common/job_key.h), with `place`, that line's, before the message.
absl::StatusOr<CsvColumns> PlanCsvColumns(const v1::Csv& options,
                                          const std::vector<std::string>& first,
                                          const std::string& place);

}  // namespace leeway
