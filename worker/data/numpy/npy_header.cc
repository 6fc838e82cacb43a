#include "worker/data/numpy/npy_header.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/status.h"
#include "worker/data/text.h"

namespace leeway {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
// The largest size of a header in bytes. By default NumPy does not read longer headers either.
constexpr uint32_t kMaxHeader = 1 << 16;
constexpr size_t kMaxDimensions = 4;

absl::Status BadHeader(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// Reads the Python literals of a header from left to right.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Take(std::string_view word) {
    SkipSpace();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool TakeString(std::string& value) {
    SkipSpace();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return false;
    const size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  // Reads a number. Python 2 wrote an L after the digits.
  bool TakeNumber(uint64_t& value) {
    SkipSpace();
    const size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
    if (!absl::SimpleAtoi(View(text_.substr(0, digits)), &value)) return false;
    text_.remove_prefix(digits);
    Take('L');
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return text_.empty();
  }

 private:
  void SkipSpace() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  std::string_view text_;
};

absl::Status SetType(const std::string& type, NpyHeader& header) {
  const auto refuse = [&](absl::string_view why) {
    return BadHeader(absl::StrCat("elements of type ", Quote(type), why));
  };
  if (type.find('O') != std::string::npos) {
    return refuse(
        " are Python objects, which are pickled and could run code: they are not read; "
        "save numbers, with allow_pickle=False");
  }
  const size_t order = type.find_first_not_of("<>|=");
  uint32_t bytes = 0;
  const bool known = order == 1 && type.size() == 3 && absl::SimpleAtoi(type.substr(2), &bytes);
  const char kind = known ? type[1] : '?';
  const bool whole =
      (kind == 'u' || kind == 'i') && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  const bool floating = kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8);
  if (!whole && !floating && !(kind == 'b' && bytes == 1)) {
    return refuse(
        ": only bool, whole numbers of 1 to 8 bytes and float16, float32 and float64 "
        "are supported; convert the array with astype");
  }
  header.kind = kind;
  header.bytes = bytes;
  header.big_endian = type[0] == '>';
  return absl::OkStatus();
}

bool TakeShape(Literals& literals, std::vector<uint64_t>& shape) {
  if (!literals.Take('(')) return false;
  while (!literals.Take(')')) {
    uint64_t side = 0;
    if (shape.size() == kMaxDimensions || !literals.TakeNumber(side)) return false;
    shape.push_back(side);
    if (literals.Take(')')) return shape.size() > 1;
    if (!literals.Take(',')) return false;
  }
  return true;
}

absl::Status SetValue(const std::string& key, Literals& literals, NpyHeader& header) {
  if (key == "descr") {
    std::string type;
    if (literals.TakeString(type)) return SetType(type, header);
    return BadHeader("its elements have several fields; save one array of numbers for each");
  }
  if (key == "fortran_order") {
    if (literals.Take("False")) return absl::OkStatus();
    return BadHeader("its elements are in Fortran order; save numpy.ascontiguousarray(array)");
  }
  if (key != "shape") return BadHeader(absl::StrCat("its header has the unknown key ", Quote(key)));
  if (TakeShape(literals, header.shape)) return absl::OkStatus();
  return BadHeader(absl::StrCat("its shape is not a list of at most ", kMaxDimensions, " numbers"));
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text) {
  const absl::Status damaged =
      BadHeader("its header is not a dictionary of descr, fortran_order and shape");
  NpyHeader header;
  Literals literals(text);
  std::vector<std::string> keys;
  if (!literals.Take('{')) return damaged;
  while (!literals.Take('}')) {
    std::string key;
    if (!literals.TakeString(key) || !literals.Take(':')) return damaged;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return damaged;
    keys.push_back(key);
    RETURN_IF_ERROR(SetValue(key, literals, header));
    if (literals.Take('}')) break;
    if (!literals.Take(',')) return damaged;
  }
  if (keys.size() != 3 || !literals.AtEnd()) return damaged;
  return header;
}

absl::StatusOr<NpyHeader> ReadNpyHeader(DataFile& file) {
  const auto bad = [&](size_t byte, absl::string_view what) {
    return BadHeader(absl::StrCat(file.path, ": byte ", byte, ": ", what));
  };
  // The first bytes hold the magic string, two bytes of version, and two or four bytes of length.
  uint8_t start[12];
  ASSIGN_OR_RETURN(size_t count, file.bytes->Read(std::span(start).first(8)));
  const std::string_view magic(reinterpret_cast<const char*>(start), std::min<size_t>(count, 6));
  if (magic != kNpyMagic) return bad(0, "not an .npy file: it does not begin with \\x93NUMPY");
  if (count < 8) return bad(count, "the file ends within its header");
  const uint8_t version = start[6];
  if (version < 1 || version > 3 || start[7] != 0) {
    return bad(
        6, absl::StrCat("version ", version, ".", start[7], "; versions 1.0 to 3.0 are supported"));
  }
  const size_t digits = version == 1 ? 2 : 4;
  ASSIGN_OR_RETURN(count, file.bytes->Read(std::span(start).subspan(8, digits)));
  if (count < digits) return bad(8 + count, "the file ends within its header");
  uint32_t length = 0;
  for (size_t i = 0; i < digits; ++i) length |= uint32_t{start[8 + i]} << 8 * i;
  if (length > kMaxHeader) {
    return bad(
        8, absl::StrCat("a header of ", length, " bytes; at most ", kMaxHeader, " are supported"));
  }
  std::string text(length, '\0');
  ASSIGN_OR_RETURN(count, file.bytes->Read({reinterpret_cast<uint8_t*>(text.data()), length}));
  if (count < length) return bad(8 + digits + count, "the file ends within its header");
  absl::StatusOr<NpyHeader> header = ParseNpyDictionary(text);
  if (!header.ok()) return bad(8 + digits, header.status().message());
  header->size = 8 + digits + length;
  return header;
}

}  // namespace leeway
