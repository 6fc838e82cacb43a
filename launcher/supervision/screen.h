// A block of lines at the bottom of a terminal, redrawn in place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/supervision/live_view.h"

namespace leeway {

// Columns of the terminal; 80 if it does not say.
size_t TerminalColumns(int fd);

// Not thread-safe. Restores the terminal when destroyed.
class Screen {
 public:
  explicit Screen(int fd);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Columns and rows now; 80 x 24 if the terminal does not say.
  size_t width() const;
  size_t height() const;

  // Replaces the block. Writes only the lines that differ.
  void Draw(const std::vector<ViewLine>& lines);
  // A line that stays, above the block.
  void Print(std::string_view line);
  // Forgets what was drawn, after the terminal's size changed.
  void Invalidate();

 private:
  void Write(const std::string& text);

  const int fd_;
  std::vector<ViewLine> drawn_;
};

// The bytes that turn the block `before`, with the cursor on the line below it, into `after`.
std::string RedrawBytes(const std::vector<ViewLine>& before, const std::vector<ViewLine>& after);

}  // namespace leeway
