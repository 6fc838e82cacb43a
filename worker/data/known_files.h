// The sources of the data sets that the shipped jobs name, for the error about an absent file.
#pragma once

#include <string>

namespace leeway {

// Returns a text for the file `name` of the data folder (such as mnist/train-labels-idx1-ubyte.gz):
// which data set to fetch, from where, and its checksum. Empty for an unknown file. Thread-safe.
std::string HowToFetch(const std::string& name);

}  // namespace leeway
