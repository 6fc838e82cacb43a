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

  // The column's name in errors: "column 3", or "column 3 (height)".
  std::string place;
  Role role = Role::kFeature;
  // The strings that the column may have, each with its number. Empty if the column's values are
  // numbers.
  std::map<std::string, uint32_t, std::less<>> categories = {};
  bool one_hot = false;

  // Returns the number of features into which the column is converted.
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
  // The names of the features, such as "height" and "sex=female". Empty if the table has no names.
  std::vector<std::string> names;
};

// Plans the columns. `first` holds the values of the first line, which are the names of the columns
// if options.has_label(). Returns INVALID_ARGUMENT for a key of `options` that does not fit
// (common/job_key.h). The message begins with `place`, which says where the first line is.
absl::StatusOr<CsvColumns> PlanCsvColumns(const v1::Csv& options,
                                          const std::vector<std::string>& first,
                                          const std::string& place);

}  // namespace leeway
