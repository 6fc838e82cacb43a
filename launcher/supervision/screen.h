// A block of lines at the bottom of a terminal, redrawn in place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/supervision/live_view.h"

namespace leeway {

// Returns the terminal's columns, or 80 if the terminal does not report them.
size_t TerminalColumns(int fd);

// Not thread-safe. Restores the terminal when destroyed.
class Screen {
 public:
  explicit Screen(int fd);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Return the terminal's current columns and rows, or 80 x 24 if it does not report them.
  size_t width() const;
  size_t height() const;

  // Replaces the block. Writes only the lines that have changed.
  void Draw(const std::vector<ViewLine>& lines);
  // Prints a permanent line above the block.
  void Print(std::string_view line);
  // Erases the block and forgets it, so that the next Draw writes all lines. Call this after the
  // terminal's size has changed.
  void Invalidate();

 private:
  void Write(const std::string& text);

  const int fd_;
  std::vector<ViewLine> drawn_;
};

// Returns the bytes that turn the block `before` into `after`. The cursor is on the line below the
// block.
std::string RedrawBytes(const std::vector<ViewLine>& before, const std::vector<ViewLine>& after);

}  // namespace leeway
