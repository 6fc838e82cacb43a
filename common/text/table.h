// A table of strings, for a terminal.
#pragma once

#include <string>
#include <vector>

namespace leeway {

class Table {
 public:
  // The first `left` columns are aligned to the left, and all other columns to the right.
  Table(std::vector<std::string> header, size_t left);
  // Adds a row with as many cells as the header has.
  void Add(std::vector<std::string> row);
  // Returns the table. Each line begins with two spaces and ends with a line end.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  const size_t left_;
};

}  // namespace leeway
