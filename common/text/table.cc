#include "common/text/table.h"

#include <algorithm>
#include <utility>

#include "common/text/format.h"

namespace leeway {

Table::Table(std::vector<std::string> header, size_t left) : left_(left) {
  rows_.push_back(std::move(header));
}

void Table::Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string Table::ToString() const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += "  ";
      text += i < left_ ? PadRight(row[i], widths[i]) : PadLeft(row[i], widths[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace leeway
