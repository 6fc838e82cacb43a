// Where the data sets that the shipped jobs name come from, for the error of an absent file.
#pragma once

#include <string>

namespace leeway {

// What to fetch for a file of the data folder named `name` (such as
// mnist/train-labels-idx1-ubyte.gz), from where and with which checksum; empty for a file that is
// not known. Thread-safe.
std::string HowToFetch(const std::string& name);

}  // namespace leeway
