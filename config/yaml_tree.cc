#include "config/yaml_tree.h"

#include <exception>
#include <optional>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/yaml_mistake.h"

namespace leeway {
namespace {

// Thrown to stop yaml-cpp's parser. It never leaves ReadYaml.
struct Refused {
  YAML::Mark mark;
  std::string message;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  // `text` is the text that the parser reads.
  TreeBuilder(std::string_view text, std::shared_ptr<const Source> source)
      : text_(text), source_(std::move(source)) {
    root_.origin = {source_, 0, 0};
  }

  YamlNode TakeRoot() { return std::move(root_); }

  // Returns the innermost bracket that is still open: '{' or '['.
  std::optional<OpenBracket> InnermostBracket() const {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      const size_t begin = static_cast<size_t>(frame->begin.pos);
      if (begin >= text_.size() || (text_[begin] != '{' && text_[begin] != '[')) continue;
      return OpenBracket{text_[begin], frame->begin.line, frame->begin.column};
    }
    return std::nullopt;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refused{mark, "the file has more than one YAML document; keep one"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckPlain(mark, "?", anchor);
    Put(Make(YamlNode::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{mark, "aliases (*name) are not allowed; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckPlain(mark, tag, anchor);
    if (value.find('\0') != std::string::npos) throw Refused{mark, "a text contains a NUL byte"};
    YamlNode node = Make(YamlNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    if (node.quoted) CheckQuotes(mark);
    Put(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  // A list or map that is not complete yet.
  struct Frame {
    YamlNode node;
    YAML::Mark begin;
    YamlEntry entry;
    bool has_key = false;
  };

  static void CheckPlain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) throw Refused{mark, "anchors (&name) are not allowed; write the value out"};
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{mark, "tags (!name) are not allowed; leave the tag out"};
    }
  }

  // Checks that a quoted text is closed, because yaml-cpp accepts the end of the text as the
  // closing quote. Also refuses the tag !, which yaml-cpp reports like a quoted text.
  void CheckQuotes(const YAML::Mark& mark) const {
    const size_t begin = static_cast<size_t>(mark.pos);
    const char quote = begin < text_.size() ? text_[begin] : '\0';
    if (quote == '|' || quote == '>') return;
    if (quote != '"' && quote != '\'')
      throw Refused{mark, "tags (!) are not allowed; leave the tag out"};
    for (size_t i = begin + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        // Two single quotes stand for a single quote within the text.
        if (quote == '"' || i + 1 == text_.size() || text_[i + 1] != quote) return;
        ++i;
      }
    }
    throw Refused{mark, "the quote that opens here is never closed"};
  }

  Origin At(const YAML::Mark& mark) const {
    return source_->is_override ? Origin{source_, 0, 0}
                                : Origin{source_, mark.line + 1, mark.column + 1};
  }

  YamlNode Make(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode node;
    node.kind = kind;
    node.origin = At(mark);
    mark_ = mark;
    return node;
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    CheckPlain(mark, tag, anchor);
    if (frames_.size() >= kYamlDepthMax) {
      throw Refused{mark, absl::StrCat("nested deeper than ", kYamlDepthMax, " levels")};
    }
    frames_.push_back({Make(kind, mark), mark, {}, false});
  }

  void Close() {
    YamlNode node = std::move(frames_.back().node);
    frames_.pop_back();
    Put(std::move(node));
  }

  void Put(YamlNode node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      if (node.kind != YamlNode::Kind::kScalar) throw Refused{mark_, "a key must be a plain word"};
      frame.entry = {std::move(node.text), node.origin, {}};
      frame.has_key = true;
    } else {
      frame.entry.value = std::move(node);
      // If a value is absent, yaml-cpp reports an arbitrary place for it, so the key's place is
      // used.
      if (frame.entry.value.kind == YamlNode::Kind::kNull) {
        frame.entry.value.origin = frame.entry.origin;
      }
      frame.node.entries.push_back(std::move(frame.entry));
      frame.has_key = false;
    }
  }

  const std::string_view text_;
  const std::shared_ptr<const Source> source_;
  YamlNode root_;
  std::vector<Frame> frames_;
  int documents_ = 0;
  mutable YAML::Mark mark_;
};

Origin PlaceOf(const std::shared_ptr<const Source>& source, int line, int column) {
  return source->is_override ? Origin{source, 0, 0} : Origin{source, line + 1, column + 1};
}

// Returns the number of bytes of the UTF-8 character that begins at `position`, or 0 if none begins
// there (RFC 3629, section 4).
size_t CharacterAt(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) -> unsigned {
    return position + i < text.size() ? static_cast<unsigned char>(text[position + i]) : 0;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    return first == 0xED && byte(1) > 0x9F ? 0 : 3;
  }
  if (first < 0xF0 || first > 0xF4 || !follows(1) || !follows(2) || !follows(3)) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  return first == 0xF4 && byte(1) > 0x8F ? 0 : 4;
}

// Checks that the source is text, because yaml-cpp stops or guesses if it is not.
absl::Status CheckBytes(std::string_view text, const std::shared_ptr<const Source>& source) {
  const auto refuse = [&](const Origin& origin, absl::string_view message) {
    return absl::InvalidArgumentError(Describe(origin, "", std::string(message)));
  };
  if (text.size() > kYamlBytesMax) {
    return refuse({source, 0, 0}, absl::StrCat("has ", text.size(),
                                               " bytes; a job may have at most ", kYamlBytesMax));
  }
  int line = 0, column = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterAt(text, i);
    if (length == 0) return refuse(PlaceOf(source, line, column), "this byte is not UTF-8");
    if (text[i] == '\0') return refuse(PlaceOf(source, line, column), "this is a NUL byte");
    column = text[i] == '\n' ? 0 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
    i += length;
  }
  return absl::OkStatus();
}

// Returns the place to report for a map without a required key. It is where the map begins, or the
// override that set the `type` or `mode` for which the key is required.
Origin CauseOfGap(const YamlNode& map, const Origin& around) {
  for (const char* deciding : {"type", "mode"}) {
    const YamlEntry* entry = map.Find(deciding);
    if (entry != nullptr && entry->origin.source->is_override) return entry->origin;
  }
  return around;
}

}  // namespace

const YamlEntry* YamlNode::Find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

YamlEntry* YamlNode::Find(std::string_view key) {
  return const_cast<YamlEntry*>(std::as_const(*this).Find(key));
}

void YamlNode::Erase(std::string_view key) {
  std::erase_if(entries, [&](const YamlEntry& entry) { return entry.key == key; });
}

absl::StatusOr<YamlNode> ReadYaml(std::string_view text, std::shared_ptr<const Source> source) {
  RETURN_IF_ERROR(CheckBytes(text, source));
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  const auto refuse = [&](int line, int column, const std::string& message) {
    const Origin origin = line < 0 ? Origin{source, 0, 0} : PlaceOf(source, line, column);
    return absl::InvalidArgumentError(Describe(origin, "", message));
  };
  TreeBuilder builder(text, source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return refuse(refused.mark.line, refused.mark.column, refused.message);
  } catch (const YAML::Exception& error) {
    const YamlMistake cause =
        CauseOf({error.mark.line, error.mark.column, error.msg}, text, builder.InnermostBracket());
    return refuse(cause.line, cause.column, absl::StrCat("not YAML: ", cause.message));
  } catch (const std::exception& error) {
    return refuse(-1, 0, absl::StrCat("not YAML: ", error.what()));
  }
  return builder.TakeRoot();
}

Origin Locate(const YamlNode& root, std::string& path) {
  const YamlNode* node = &root;
  Origin around = root.origin;
  size_t begin = 0;
  while (begin < path.size()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string step = path.substr(begin, end - begin);
    size_t index = 0;
    if (const YamlEntry* entry = node->Find(step); entry != nullptr) {
      around = entry->origin;
      node = &entry->value;
    } else if (absl::SimpleAtoi(step, &index) && index < node->items.size()) {
      node = &node->items[index];
      around = node->origin;
    } else {
      if (node->kind == YamlNode::Kind::kScalar) path.resize(begin == 0 ? 0 : begin - 1);
      return node->kind == YamlNode::Kind::kScalar ? node->origin : CauseOfGap(*node, around);
    }
    begin = end + 1;
  }
  return node->origin;
}

}  // namespace leeway
