#include "launcher/report/markup.h"

namespace leeway {

std::string EscapeMarkup(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool allowed = byte >= 0x20 || c == '\n' || c == '\t';
        escaped += allowed ? c : '?';
      }
    }
  }
  return escaped;
}

}  // namespace leeway
