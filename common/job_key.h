// Attaches a key of the job, such as data.train.files.0, to an error about that key. The code that
// finds an error knows the key. The code that has read the job's file knows the line of each key
// (config/job.h, JobPlaces).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Returns the error with `key` attached and before the message: "label_column: <message>". A second
// call puts its key before the first one: AtKey(AtKey(error, "label_column"), "data.train") has the
// key data.train.label_column. If `status` is OK, returns OK.
absl::Status AtKey(const absl::Status& status, absl::string_view key);

// Returns the key that AtKey attached, or an empty string if the status has no key.
std::string KeyOf(const absl::Status& status);

// Returns the message without the key that AtKey put before it.
std::string MessageWithoutKey(const absl::Status& status);

}  // namespace leeway
