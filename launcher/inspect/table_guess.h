// How a file of numbers is written: a guess by its first lines.
#pragma once

#include <optional>
#include <string_view>

#include "leeway/v1/job.pb.h"

namespace leeway {

// The separator, lines to skip, the text of missing values and the column of labels: the last one,
// or the first if only that has few whole numbers. Nothing if the lines are no numbers, or a line
// has one column.
std::optional<v1::Csv> GuessTable(std::string_view head);

}  // namespace leeway
