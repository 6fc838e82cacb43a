// The key of the job that an error is about, such as data.train.files.0. Whoever finds the error
// knows the key; whoever read the job's file knows the line (config/job.h, JobPlaces).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// The error with its key, which begins the message: "label_column: <message>". The key of an error
// that has one grows: AtKey(AtKey(error, "label_column"), "data.train") is about
// data.train.label_column. OK stays OK.
absl::Status AtKey(const absl::Status& status, absl::string_view key);

// Of AtKey; empty if there is none.
std::string KeyOf(const absl::Status& status);

// The message without the key before it.
std::string MessageWithoutKey(const absl::Status& status);

}  // namespace leeway
