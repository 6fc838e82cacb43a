// Formats numbers and strings for people. The comments have examples of results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leeway {

// 1234567 -> "1,234,567".
std::string Thousands(uint64_t number);
// A rate as a whole number: 1234.5 -> "1,234". Returns "-" if the rate is not finite (0/0, 1/0).
std::string Rate(double per_second);
// "12.30"; "1.23e+75" if the number has too many digits, and "-" if it is not finite.
std::string Fixed(double number, int decimals);
// A loss or an error: "0.0312", "1.057e+04" if it has too many digits, "nan", "inf".
std::string LossText(double loss);
// Returns true if the loss is NaN, or so large that training must have diverged.
bool IsDiverged(double loss);
// "0.0312", "1.234e+75 (training has diverged)".
std::string LossInWords(double loss);
// "65.40 %", "65.40 %, top five 96.10 %".
std::string AccuracyInWords(double accuracy, std::optional<double> top5);
// ", MAE 0.3120, R² 0.9750", without an argument that is absent. Empty if both are absent.
std::string RegressionInWords(std::optional<double> mae, std::optional<double> r2);
// ", perplexity 6.23". Empty if the argument is absent.
std::string PerplexityInWords(std::optional<double> perplexity);
// 0.00125 -> "1.25", without the unit.
std::string Milliseconds(double seconds, int decimals);
// "0:07", "12:34", "1:02:03", from rounded seconds.
std::string Clockwise(double seconds);
// "0.8 s" below one minute, and the result of Clockwise from one minute on.
std::string Lasting(double seconds);
// "512 B", "1.50 MiB".
std::string Bytes(uint64_t bytes);
// 0.9712 -> "97.12 %".
std::string Percent(double share);

// Returns the number of columns of a terminal that `text` (UTF-8, without wide characters) fills.
size_t DisplayWidth(std::string_view text);
// Returns `text` in at most `width` columns. If a part is cut off, "…" replaces it.
std::string Truncate(std::string_view text, size_t width);
// Add spaces before (PadLeft) or after (PadRight) the text, up to `width` columns.
std::string PadLeft(std::string_view text, size_t width);
std::string PadRight(std::string_view text, size_t width);

}  // namespace leeway
