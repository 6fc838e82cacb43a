#include "common/text/format.h"

#include <cmath>

#include "tests/catch.h"

namespace leeway::format {

TEST_CASE("Numbers are grouped by thousands") {
  CHECK(Thousands(0) == "0");
  CHECK(Thousands(999) == "999");
  CHECK(Thousands(1000) == "1,000");
  CHECK(Thousands(1234567) == "1,234,567");
}

TEST_CASE("Durations read like a clock") {
  CHECK(Clockwise(0) == "0:00");
  CHECK(Clockwise(59.6) == "1:00");
  CHECK(Clockwise(3599) == "59:59");
  CHECK(Clockwise(3723) == "1:02:03");
  CHECK(Clockwise(std::nan("")) == "-");
  CHECK(Clockwise(-1) == "-");
  CHECK(Lasting(0.83) == "0.8 s");
  CHECK(Lasting(59.99) == "1:00");
  CHECK(Lasting(61) == "1:01");
  CHECK(Lasting(std::nan("")) == "-");
}

TEST_CASE("Bytes and shares carry their unit, and what is no number shows as a dash") {
  CHECK(Bytes(512) == "512 B");
  CHECK(Bytes(1536) == "1.50 KiB");
  CHECK(Bytes(200ull << 20) == "200 MiB");
  CHECK(Percent(0.97123) == "97.12 %");
  CHECK(Fixed(0.12345, 3) == "0.123");
  CHECK(Fixed(std::nan(""), 3) == "-");
}

TEST_CASE("No number bursts its place, and a loss that has diverged is called so") {
  for (const double number : {1e15, -1e75, 1e300, 1.7e308}) {
    CHECK(Fixed(number, 4).size() <= 12);
    CHECK(LossText(number).size() <= 10);
    CHECK(LossInWords(number).ends_with(" (training has diverged)"));
  }
  CHECK(LossText(0.03125) == "0.0312");
  CHECK(LossText(10571.25) == "1.057e+04");
  CHECK(LossInWords(10571.25) == "1.057e+04");
  CHECK(LossInWords(INFINITY) == "inf (training has diverged)");
  CHECK(LossInWords(NAN) == "nan (training has diverged)");
  CHECK(RegressionInWords(0.5, std::nullopt) == ", MAE 0.5000");
  CHECK(RegressionInWords(0.5, -3e20) == ", MAE 0.5000, R² -3.000e+20");
  CHECK(RegressionInWords(std::nullopt, std::nullopt).empty());
}

TEST_CASE("Truncation counts characters, not bytes, and never cuts one in two") {
  CHECK(DisplayWidth("a·b█") == 4);
  CHECK(Truncate("hello", 5) == "hello");
  CHECK(Truncate("hello!", 5) == "hell…");
  CHECK(Truncate("███", 2) == "█…");
  CHECK(Truncate("abc", 1) == "…");
  CHECK(Truncate("abc", 0).empty());
  CHECK(PadLeft("·", 3) == "  ·");
  CHECK(PadRight("abcd", 3) == "abcd");
}

TEST_CASE("Rates that are no number are a dash") {
  CHECK(Rate(1234.9) == "1,234");
  CHECK(Rate(0) == "0");
  for (const double none : {0.0 / 0.0, 1.0 / 0.0, -1.0, 1e300}) CHECK(Rate(none) == "-");
  CHECK(Milliseconds(0.00125, 2) == "1.25");
}

}  // namespace leeway::format
