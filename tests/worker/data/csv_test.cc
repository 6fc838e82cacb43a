#include "worker/data/csv.h"

#include <cmath>

#include "tests/worker/data/data_test_util.h"

namespace leeway::csv {
namespace {

using absl::StatusCode;
constexpr v1::Loss kSoftmax = v1::LOSS_SOFTMAX_CROSS_ENTROPY;

absl::StatusOr<Examples> Parse(const std::string& text, const std::string& options = "",
                               v1::Loss loss = kSoftmax) {
  return ParseCsv(TextFile("f.csv", text), FromText<v1::Csv>(options), loss);
}

std::vector<float> Floats(const Examples& examples) {
  return std::get<std::vector<float>>(examples.values);
}

void RequireBad(const std::string& text, const std::vector<std::string>& parts,
                const std::string& options = "", v1::Loss loss = kSoftmax) {
  INFO(text);
  RequireError(Parse(text, options, loss), StatusCode::kInvalidArgument, parts);
}

TEST_CASE("CSV lines become features and a label") {
  absl::StatusOr<Examples> examples = Parse("1,2.5,0\n\r\n -3 ,+4e1,2\r\n5,6,1");
  REQUIRE(examples.ok());
  CHECK(examples->shape == ImageShape{1, 1, 2});
  CHECK(Floats(*examples) == std::vector<float>{1, 2.5, -3, 40, 5, 6});
  CHECK(examples->labels == std::vector<float>{0, 2, 1});
}

TEST_CASE("The label may be any column, counted from either end") {
  CHECK(Parse("7,1,2\n", "label_column: 0")->labels == std::vector<float>{7});
  CHECK(Floats(*Parse("7,1,2\n", "label_column: 0")) == std::vector<float>{1, 2});
  CHECK(Floats(*Parse("1,7,2\n", "label_column: -2")) == std::vector<float>{1, 2});
  RequireBad("1,2,3\n", {"f.csv:1", "label_column: ", "column 3 does not exist", "3 columns"},
             "label_column: 3");
  RequireBad("1,2,3\n", {"f.csv:1", "label_column: ", "column -4 does not exist"},
             "label_column: -4");
}

TEST_CASE("CSV options: separator, lines to skip, threshold of the label, shape") {
  CHECK(Floats(*Parse("a\tb\tc\n1\t2\t0\n", "separator: '\\t' skip_lines: 1")) ==
        std::vector<float>{1, 2});
  CHECK(Parse("1,0\n1,1\n1,2.5\n", "label_above: 1")->labels == std::vector<float>{0, 0, 1});
  CHECK(Parse("1,2,3,4,5,6,0\n", "shape: [2, 3, 1]")->shape == ImageShape{2, 3, 1});
  CHECK(Parse("1,2,3,4,5,6,0\n", "shape: [2, 3]")->shape == ImageShape{2, 3, 1});
  CHECK(Parse("\xef\xbb\xbf"
              "1,0\n")
            ->size() == 1);
  RequireBad("1,2,0\n", {"separator: "}, "separator: '::'");
  RequireBad("1,2,0\n", {"separator: "}, "separator: ''");
  RequireBad("1,2,0\n", {"f.csv:1", "2 features", "8x8x1"}, "shape: [8, 8, 1]");
  RequireBad("1,2,0\n", {"shape"}, "shape: [65536, 65536, 65536]");
  RequireBad("1;2;0\n", {"f.csv:1", "separator"});
}

TEST_CASE("A missing value is NaN until normalisation, a missing label is an error") {
  absl::StatusOr<Examples> examples = Parse("1,?,0\n ?,2,1\n", "missing: '?'");
  REQUIRE(examples.ok());
  CHECK(std::isnan(Floats(*examples)[1]));
  CHECK(std::isnan(Floats(*examples)[2]));
  CHECK(Floats(*examples)[3] == 2);
  CHECK(std::isnan(Floats(*Parse("1,,0\n", "missing: ''"))[1]));
  RequireBad("1,2,0\n1,2,?\n", {"f.csv:2: column 2", "label is missing"}, "missing: '?'");
  RequireBad("1,?,0\n", {"f.csv:1: column 1", "'?' is not a finite number"});
}

TEST_CASE("A CSV value that is no finite number names file, line and column") {
  RequireBad("1,2,0\n1,abc,0\n", {"f.csv:2: column 1: 'abc' is not a finite number"});
  for (const char* text :
       {"nan", "inf", "-inf", "1e39", "1e999", "0x10", "1 2", "--1", "1e", "\"1\"2", "\"1"}) {
    RequireBad(std::string("1,2,0\n1,") + text + ",0\n", {"f.csv:2: column 1"});
  }
  RequireBad("1,,0\n", {"f.csv:1: column 1: an empty value"});
  RequireBad("1," + std::string(100000, 'x') + ",0\n", {"xxx...'"});
  RequireBad(std::string("1,\0\x1b,0\n", 8), {"f.csv:1: column 1", "\\000\\033"});
}

TEST_CASE("CSV lines of another length than the first are errors") {
  RequireBad("1,2,0\n\n1,2\n", {"f.csv:3: this line has 2 columns, but the first line has 3"});
  RequireBad("1,2,0\n1,2,3,0\n", {"f.csv:2: this line has 4 columns, but the first line has 3"});
  RequireBad("1,2,0\n1,2,0,\n", {"f.csv:2: this line has 4 columns"});
}

TEST_CASE("A CSV file without examples is an error") {
  RequireBad("", {"f.csv", "no examples"});
  RequireBad("\n \n\r\n", {"f.csv", "no examples"});
  RequireBad("1,2\n", {"f.csv", "no examples"}, "skip_lines: 1");
}

TEST_CASE("A table with names takes label, columns to ignore and categories by name") {
  const std::string text =
      "\xef\xbb\xbf,id,size,\"kind, of wood\",price\n"
      "0,a17,1.5,\"oak\",10\n"
      "1,b 2,2.5, pine ,20\n";
  const std::string options =
      "label: 'price' ignore: ['', 'id'] "
      "categories: {column: 'kind, of wood' values: ['elm', 'oak', 'pine']}";
  const auto table = Parse(text, options, v1::LOSS_SQUARED);
  INFO(table.status().ToString());
  REQUIRE(table.ok());
  CHECK(table->shape == ImageShape{1, 1, 4});
  CHECK(Floats(*table) == std::vector<float>{1.5, 0, 1, 0, 2.5, 0, 0, 1});
  CHECK(table->labels == std::vector<float>{10, 20});
  CHECK(table->columns == std::vector<std::string>{"size", "kind, of wood=elm", "kind, of wood=oak",
                                                   "kind, of wood=pine"});
  // The same values as numbers.
  const auto numbered =
      Parse(text, options.substr(0, options.size() - 1) + " encoding: CATEGORY_ENCODING_NUMBER}",
            v1::LOSS_SQUARED);
  REQUIRE(numbered.ok());
  CHECK(Floats(*numbered) == std::vector<float>{1.5, 1, 2.5, 2});
  CHECK(numbered->columns == std::vector<std::string>{"size", "kind, of wood"});
}

TEST_CASE("A table without names takes them by number, and the label's texts are classes") {
  const std::string text = "5,setosa,x\n6,virginica,y\n\n7,\"setosa\",\"z \"\"q\"\"\"\n";
  const auto table = Parse(text,
                           "label_column: 1 ignore: '-1' "
                           "categories: {column: '1' values: ['setosa', 'virginica']}");
  INFO(table.status().ToString());
  REQUIRE(table.ok());
  CHECK(Floats(*table) == std::vector<float>{5, 6, 7});
  CHECK(table->labels == std::vector<float>{0, 1, 0});
  CHECK(table->columns.empty());
  CHECK(Floats(*Parse(text,
                      "label_column: 0 categories: {column: '2' values: ['x', 'y', 'z \"q\"']} "
                      "ignore: '1'")) == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
}

TEST_CASE("What of a table's columns does not fit is named with line, key and remedy") {
  const std::string text = "a,b,c\n1,2,0\n";
  RequireBad(text, {"label: f.csv:1: no column is called 'd'", "'a', 'b', 'c'", "label_column"},
             "label: 'd'");
  RequireBad(text, {"ignore.1: f.csv:1: no column is called 'x'"}, "label: 'c' ignore: ['a', 'x']");
  RequireBad(text, {"ignore.0: f.csv:1: column 2 ('c') is the label"}, "label: 'c' ignore: 'c'");
  RequireBad(text, {"ignore.1: f.csv:1: column 0 ('a') is named twice"},
             "label: 'c' ignore: ['a', 'a']");
  RequireBad(text, {"ignore: f.csv:1: all columns but the label are left out"},
             "label: 'c' ignore: ['a', 'b']");
  RequireBad(text, {"categories.0.column: f.csv:1: column 0 ('a') is ignored"},
             "label: 'c' ignore: 'a' categories: {column: 'a' values: '1'}");
  RequireBad("1,2,0\n", {"ignore.0: f.csv:1", "'a' is not the number of a column", "label: NAME"},
             "ignore: 'a'");
  RequireBad("1,2,0\n", {"ignore.0: f.csv:1", "column 3 does not exist"}, "ignore: '3'");
  RequireBad(",b,c\n1,2,0\n", {"ignore: f.csv:1: column 0 has no name", "pandas", "[\"\"]"},
             "label: 'c'");
  RequireBad("a,a,c\n1,2,0\n", {"label: f.csv:1: columns 0 and 1 are both called 'a'"},
             "label: 'c'");
  RequireBad("a,b,c\n1,2,0\n", {"f.csv:1: column 0: 'a' is not", "give label: NAME"});
  RequireBad("a,b,c\n", {"f.csv: has no examples"}, "label: 'c'");
  RequireBad("1,x,no\n", {"label_above"},
             "label_above: 1 categories: {column: '2' values: 'no'} ignore: '1'");
}

TEST_CASE("A value that a table's column does not take is named with its column and a remedy") {
  const std::string names = "size,kind,price\n";
  const std::string options = "label: 'price' categories: {column: 'kind' values: ['oak', 'pine']}";
  RequireBad(names + "1,oak,1\n2,elm,1\n",
             {"f.csv:3: column 1 ('kind'): 'elm' is not one of the column's categories",
              "add it to categories"},
             options);
  RequireBad(names + "1,oak,1\n,oak,1\n",
             {"f.csv:3: column 0 ('size'): an empty value", "missing: ''"}, options);
  RequireBad(names + "NA,oak,1\n",
             {"f.csv:2: column 0 ('size'): 'NA' is not a finite number", "missing: 'NA'"}, options);
  RequireBad(names + "\"1,5\",oak,1\n", {"f.csv:2: column 0", "with a point"}, options);
  RequireBad(names + "big,oak,1\n", {"f.csv:2: column 0", "categories or ignore"}, options);
  RequireBad(names + "1,\"oak,1\n", {"f.csv:2: column 1: the quotes", "do not end in this line"},
             options);
  RequireBad(names + "1,\"oak\"s,1\n", {"f.csv:2: column 1: 's' follows a closing quote"}, options);
  RequireBad(names + "1,oak,NA\n", {"f.csv:2: column 2 ('price'): the label is missing"},
             options + " missing: ['', 'NA']");
  const auto missing = Parse(names + "NA,oak,1\n1,,0\n", options + " missing: ['', 'NA']");
  REQUIRE(missing.ok());
  CHECK(std::isnan(Floats(*missing)[0]));
  CHECK(Floats(*missing)[1] == 1);
  // The value is missing.
  CHECK(std::isnan(Floats(*missing)[4]));
  CHECK(std::isnan(Floats(*missing)[5]));
}

TEST_CASE("Files of one source have the same columns, and the same pair of labels") {
  const auto read = [](const std::string& text, v1::Loss loss = v1::LOSS_LOGISTIC) {
    return *Parse(text, text[0] == 'a' || text[0] == 'b' ? "label: 'c'" : "", loss);
  };
  Examples all = read("a,b,c\n1,2,0\n");
  CHECK(Contains(all.Append(read("b,a,c\n1,2,0\n"), "g.csv"),
                 "g.csv: its feature 0 is 'b', but the training data has 'a'"));
  CHECK(
      Contains(all.Append(read("a,b,c\n1,2,-1\n"), "g.csv"),
               "g.csv: the labels are -1 and 1, but the labels of the earlier files are 0 and 1"));
  CHECK(all.Append(read("a,b,c\n1,2,1\n"), "g.csv").ok());
  CHECK(all.Append(read("1,2,0\n"), "g.csv").ok());
  CHECK(all.size() == 3);
}

TEST_CASE("Each loss takes its own labels") {
  RequireBad("1,-1\n", {"f.csv:1: column 1", "label -1", "softmax"});
  RequireBad("1,0\n1,1.5\n", {"f.csv:2: column 1", "label 1.5"});
  RequireBad("1,1e9\n", {"f.csv:1: column 1"});
  RequireBad("1,nan\n", {"f.csv:1: column 1"});
  RequireBad("1,nan\n", {"f.csv:1: column 1"}, "label_above: 0");
  CHECK(Parse("1,-1\n1,1\n1,-1\n", "", v1::LOSS_LOGISTIC)->labels == std::vector<float>{0, 1, 0});
  RequireBad("1,-1\n1,1\n1,0\n",
             {"f.csv:3: column 1: label 0", "logistic accepts 0 and 1, or -1 and 1"}, "",
             v1::LOSS_LOGISTIC);
  RequireBad("1,0\n1,-1\n", {"f.csv:2: column 1: label -1"}, "", v1::LOSS_LOGISTIC);
  RequireBad("1,2\n", {"f.csv:1: column 1", "label 2", "logistic"}, "", v1::LOSS_LOGISTIC);
  CHECK(Parse("1,-2.5\n", "", v1::LOSS_SQUARED)->labels == std::vector<float>{-2.5});
  RequireBad("1,1e300\n", {"f.csv:1: column 1", "squared"}, "", v1::LOSS_SQUARED);
}

TEST_CASE("Every truncation and every flipped bit of a CSV file is read or refused, never worse") {
  const std::string text = "5.1,3.5,1.4,0\n4.9,?,\"1.4\",1\n6.3,3.3,6e0,2\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    absl::StatusOr<Examples> examples = Parse(text.substr(0, size), "missing: '?'");
    if (examples.ok())
      CHECK(Floats(*examples).size() == examples->size() * examples->shape.elements());
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      absl::StatusOr<Examples> examples = Parse(damaged, "missing: '?'");
      if (examples.ok()) {
        CHECK(Floats(*examples).size() == examples->size() * examples->shape.elements());
      } else {
        CHECK(Contains(examples.status(), "f.csv"));
      }
    }
  }
}

}  // namespace
}  // namespace leeway::csv
