#include "config/scalar.h"

#include <limits>

#include "tests/catch.h"

namespace leeway::scalar {
namespace {

TEST_CASE("numbers are decimal and nothing else") {
  for (const char* text : {"0", "-0", "+3", "10", "0.5", ".5", "5.", "-1.25e-3", "1E6", "1e+10"}) {
    INFO(text);
    CHECK(IsNumber(text));
  }
  for (const char* text :
       {"",     "-",    ".",   "e3",  "010", "00",  "-01",   "0x1f", "0o7", "0b1", "1_000", "1,5",
        ".nan", ".inf", "nan", "inf", "1e",  "1e+", "1.2.3", " 1",   "1 ",  "--1", "1f"}) {
    INFO(text);
    CHECK_FALSE(IsNumber(text));
    CHECK_FALSE(ParseNumber(text).ok());
  }
  CHECK(IsWholeNumber("-12"));
  CHECK_FALSE(IsWholeNumber("1.0"));
  CHECK_FALSE(IsWholeNumber("1e3"));
  CHECK_FALSE(ParseNumber("1e309").ok());
}

TEST_CASE("only true and false are booleans") {
  CHECK(*ParseBool("true"));
  CHECK_FALSE(*ParseBool("false"));
  for (const char* text : {"yes", "no", "on", "off", "True", "FALSE", "y", "n", "1", "0", ""}) {
    CHECK_FALSE(ParseBool(text).ok());
  }
}

TEST_CASE("numbers are written shortly and read back to the same bits") {
  CHECK(FormatNumber(0.1) == "0.1");
  CHECK(FormatNumber(1e-4) == "0.0001");
  CHECK(FormatNumber(1e-10) == "1e-10");
  CHECK(FormatNumber(67108864) == "67108864");
  CHECK(FormatNumber(-2) == "-2");
  for (const double value :
       {1.0 / 3, 1e22, 4.9e-324, std::numeric_limits<double>::max(), 0.1 + 0.2}) {
    CHECK(*ParseNumber(FormatNumber(value)) == value);
  }
}

}  // namespace
}  // namespace leeway::scalar
