#include "launcher/supervision/screen.h"

#include <cerrno>

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// ANSI control sequences.
constexpr char kHideCursor[] = "\033[?25l";
constexpr char kShowCursor[] = "\033[?25h";
constexpr char kClearToLineEnd[] = "\033[K";
constexpr char kClearBelow[] = "\033[J";
constexpr char kPlain[] = "\033[0m";

std::string CursorUp(size_t lines) {
  return lines == 0 ? "\r" : absl::StrCat("\r\033[", lines, "A");
}

const char* Code(ViewLine::Style style) {
  switch (style) {
    case ViewLine::Style::kTitle:
      return "\033[1m";
    case ViewLine::Style::kHeader:
      return "\033[2m";
    case ViewLine::Style::kBar:
      return "\033[36m";
    case ViewLine::Style::kWarning:
      return "\033[33m";
    case ViewLine::Style::kPlain:
      break;
  }
  return "";
}

winsize Size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    size.ws_col = 80;
    size.ws_row = 24;
  }
  return size;
}

}  // namespace

std::string RedrawBytes(const std::vector<ViewLine>& before, const std::vector<ViewLine>& after) {
  if (before == after) return "";
  std::string bytes = CursorUp(before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    if (i >= before.size() || before[i] != after[i]) {
      absl::StrAppend(&bytes, Code(after[i].style), after[i].text, kPlain, kClearToLineEnd);
    }
    bytes += "\r\n";
  }
  if (before.size() > after.size()) bytes += kClearBelow;
  return bytes;
}

size_t TerminalColumns(int fd) { return Size(fd).ws_col; }

Screen::Screen(int fd) : fd_(fd) { Write(kHideCursor); }
Screen::~Screen() { Write(kShowCursor); }

size_t Screen::width() const { return TerminalColumns(fd_); }
size_t Screen::height() const { return Size(fd_).ws_row; }

void Screen::Draw(const std::vector<ViewLine>& lines) {
  Write(RedrawBytes(drawn_, lines));
  drawn_ = lines;
}

void Screen::Print(std::string_view line) {
  std::string bytes = absl::StrCat(CursorUp(drawn_.size()), kClearBelow,
                                   absl::string_view(line.data(), line.size()), "\r\n");
  absl::StrAppend(&bytes, RedrawBytes({}, drawn_));
  Write(bytes);
}

void Screen::Invalidate() {
  Write(absl::StrCat(CursorUp(drawn_.size()), kClearBelow));
  drawn_.clear();
}

void Screen::Write(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return;  // The terminal is gone; training goes on.
    if (wrote > 0) done += wrote;
  }
}

}  // namespace leeway
