// A table of text.
#pragma once

#include <string>
#include <vector>

namespace leeway {

class Table {
 public:
  // The first `left` columns are aligned to the left, the others to the right.
  Table(std::vector<std::string> header, size_t left);
  // As many cells as the header has.
  void Add(std::vector<std::string> row);
  // Two spaces before each line, a line end after each.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  const size_t left_;
};

}  // namespace leeway
