// How each column of a table is used.
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
  // The number of each text that the column may have. Empty: the column's values are numbers.
  std::map<std::string, uint32_t, std::less<>> categories = {};
  bool one_hot = false;

  // The number of features that the column becomes.
  size_t features() const {
    if (role != Role::kFeature) return 0;
    return one_hot ? categories.size() : 1;
  }
};

struct CsvColumns {
  std::vector<CsvColumn> columns;
  // The index of the label's column.
  size_t label = 0;
  // The number of features of all columns together.
  size_t features = 0;
  // The names of the features, where the table has names: "height", "sex=female".
  std::vector<std::string> names;
};

// `first` holds the values of the first line. They are the names of the columns if
// options.has_label(). INVALID_ARGUMENT at the key of `options` that does not fit
// (common/job_key.h); its message begins with `place`, the place of the first line.
absl::StatusOr<CsvColumns> PlanCsvColumns(const v1::Csv& options,
                                          const std::vector<std::string>& first,
                                          const std::string& place);

}  // namespace leeway
