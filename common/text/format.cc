#include "common/text/format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace leeway {
namespace {

constexpr double kManyDigits = 1e15;
constexpr double kLongLoss = 1e4;
// A larger loss means that training has diverged. Even the squared errors of a regression on prices
// in yen are below this number.
constexpr double kDivergedLoss = 1e15;

// Returns whether the byte begins a character of UTF-8. The other bytes of a character are
// 10xxxxxx.
bool StartsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

std::string Thousands(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, 1, ',');
  return digits;
}

std::string Rate(double per_second) {
  if (!(per_second >= 0 && per_second < 1e18)) return "-";
  return Thousands(static_cast<uint64_t>(per_second));
}

std::string Milliseconds(double seconds, int decimals) { return Fixed(1e3 * seconds, decimals); }

std::string Fixed(double number, int decimals) {
  if (!std::isfinite(number)) return "-";
  if (std::abs(number) < kManyDigits) return absl::StrFormat("%.*f", decimals, number);
  return absl::StrFormat("%.*e", decimals, number);
}

std::string LossText(double loss) {
  if (std::abs(loss) < kLongLoss) return absl::StrFormat("%.4f", loss);
  return absl::StrFormat("%.3e", loss);
}

bool IsDiverged(double loss) { return !(std::abs(loss) < kDivergedLoss); }

std::string LossInWords(double loss) {
  return absl::StrCat(LossText(loss), IsDiverged(loss) ? " (training has diverged)" : "");
}

std::string AccuracyInWords(double accuracy, std::optional<double> top5) {
  return absl::StrCat(Percent(accuracy), top5.has_value() ? ", top five " + Percent(*top5) : "");
}

std::string RegressionInWords(std::optional<double> mae, std::optional<double> r2) {
  return absl::StrCat(mae.has_value() ? ", MAE " + LossText(*mae) : "",
                      r2.has_value() ? ", R² " + LossText(*r2) : "");
}

std::string PerplexityInWords(std::optional<double> perplexity) {
  return perplexity.has_value() ? absl::StrFormat(", perplexity %.2f", *perplexity) : "";
}

std::string Clockwise(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const auto all = static_cast<uint64_t>(std::llround(seconds));
  const uint64_t hours = all / 3600, minutes = all / 60 % 60;
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, minutes, all % 60);
  return absl::StrFormat("%d:%02d", minutes, all % 60);
}

std::string Lasting(double seconds) {
  return seconds >= 0 && seconds < 59.95 ? Fixed(seconds, 1) + " s" : Clockwise(seconds);
}

std::string Bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%d B", bytes);
  return absl::StrFormat("%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, kUnits[unit]);
}

std::string Percent(double share) {
  return std::isfinite(share) ? absl::StrFormat("%.2f %%", 100 * share) : "-";
}

size_t DisplayWidth(std::string_view text) {
  return std::count_if(text.begin(), text.end(), StartsCharacter);
}

std::string Truncate(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t end = 0;
  for (size_t columns = 0; end < text.size(); ++end) {
    if (StartsCharacter(text[end]) && columns++ == width - 1) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string PadLeft(std::string_view text, size_t width) {
  const size_t columns = DisplayWidth(text);
  return std::string(columns < width ? width - columns : 0, ' ').append(text);
}

std::string PadRight(std::string_view text, size_t width) {
  const size_t columns = DisplayWidth(text);
  return std::string(text).append(columns < width ? width - columns : 0, ' ');
}

}  // namespace leeway
