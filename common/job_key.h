// The key of the job that an error is about, such as data.train.files.0. The code that finds an
// error knows the key; the code that read the job's file knows the line (config/job.h, JobPlaces).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Returns the error with its key, which begins the message: "label_column: <message>". A second
// call prepends to the key: AtKey(AtKey(error, "label_column"), "data.train") is about
// data.train.label_column. OK stays OK.
absl::Status AtKey(const absl::Status& status, absl::string_view key);

// Returns the key that AtKey set; empty if none was set.
std::string KeyOf(const absl::Status& status);

// Returns the message without the key at its beginning.
std::string MessageWithoutKey(const absl::Status& status);

}  // namespace leeway
