#include "config/overrides.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <google/protobuf/descriptor.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "config/schema.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;

namespace {

constexpr std::string_view kPrefix = "LEEWAY__";
// The largest length of an override's name in a message. A longer name is cut.
constexpr size_t kShownNameMax = 100;

// One override, split into its parts.
struct Change {
  std::shared_ptr<const Source> source;
  std::vector<std::string> keys;
  YamlNode value;
};

std::string Shown(std::string_view text) {
  std::string name = absl::Utf8SafeCEscape(std::string(text.substr(0, kShownNameMax)));
  if (text.size() > kShownNameMax) name += "...";
  return name;
}

// Returns the field of `type` for the next key of a path. Returns nullptr for list indices and
// unknown keys.
const FieldDescriptor* FieldAt(const Descriptor* type, const std::string& key) {
  return type == nullptr ? nullptr : FindAnyCase(*type, key);
}

// Returns the schema of the keys within a field. Returns nullptr for a map of numbers, which has no
// schema.
const Descriptor* MessageOf(const FieldDescriptor* field) {
  return field == nullptr || field->is_map() ? nullptr : field->message_type();
}

// Converts the keys of a variable to the case of the schema. Unknown keys stay as they are, so that
// the strict reading reports them.
std::vector<std::string> CanonicalKeys(std::vector<std::string> keys) {
  const Descriptor* type = v1::TrainingJob::descriptor();
  for (std::string& key : keys) {
    size_t index = 0;
    if (absl::SimpleAtoi(key, &index)) continue;
    const FieldDescriptor* field = FieldAt(type, key);
    key = field == nullptr ? absl::AsciiStrToLower(key) : KeyOf(*field);
    type = MessageOf(field);
  }
  return keys;
}

// Applies one change to the tree, step by step.
class Setter {
 public:
  Setter(const Change& change, YamlNode& root)
      : change_(change), node_(&root), type_(v1::TrainingJob::descriptor()) {}

  // Returns the mistake in the change, or an empty string.
  std::string Apply() {
    for (size_t i = 0; i < change_.keys.size(); ++i) {
      const std::string error = Step(change_.keys[i]);
      if (!error.empty()) return error;
      walked_.push_back(change_.keys[i]);
    }
    *node_ = change_.value;
    return "";
  }

  // Removes the key, so that its default holds. The job need not have the key. Returns the mistake
  // in the change, or an empty string.
  std::string Remove() {
    YamlNode* node = node_;
    for (const std::string& key : change_.keys) {
      const bool is_last = walked_.size() + 1 == change_.keys.size();
      if (node != nullptr && node->kind == YamlNode::Kind::kList) {
        if (is_last) return "an element of a list cannot be removed; set the whole list";
        node_ = node;
        if (std::string error = StepIntoList(key); !error.empty()) return error;
        node = node_;
      } else {
        const FieldDescriptor* field = FieldAt(type_, key);
        const bool known = field != nullptr && KeyOf(*field) == key;
        if (type_ != nullptr && !known) return "unknown key, so it cannot be removed";
        type_ = MessageOf(field);
        if (is_last && node != nullptr) node->Erase(key);
        YamlEntry* entry = node == nullptr ? nullptr : node->Find(key);
        node = entry == nullptr ? nullptr : &entry->value;
      }
      walked_.push_back(key);
    }
    return "";
  }

 private:
  std::string Step(const std::string& key) {
    if (node_->kind == YamlNode::Kind::kList) return StepIntoList(key);
    if (node_->kind == YamlNode::Kind::kScalar) {
      return absl::StrCat("'", absl::StrJoin(walked_, "."), "' is a single value and has no '", key,
                          "'");
    }
    if (node_->kind == YamlNode::Kind::kNull) {
      node_->kind = YamlNode::Kind::kMap;
      node_->origin = {change_.source, 0, 0};
    }
    const FieldDescriptor* field = FieldAt(type_, key);
    if (field != nullptr) RemoveSiblings(*field);
    YamlEntry* entry = node_->Find(key);
    if (entry == nullptr) {
      node_->entries.push_back({key, {change_.source, 0, 0}, {}});
      entry = &node_->entries.back();
    }
    const bool is_last = walked_.size() + 1 == change_.keys.size();
    if (is_last) entry->origin = {change_.source, 0, 0};
    node_ = &entry->value;
    type_ = MessageOf(field);
    return "";
  }

  std::string StepIntoList(const std::string& key) {
    size_t index = 0;
    if (!absl::SimpleAtoi(key, &index) || index >= node_->items.size()) {
      return absl::StrCat("'", absl::StrJoin(walked_, "."), "' is a list of ", node_->items.size(),
                          " and has no element '", key, "'");
    }
    node_ = &node_->items[index];
    return "";
  }

  // Removes the other members of the field's oneof, so that setting clocks to 100 turns {epochs: 5}
  // into {clocks: 100}.
  void RemoveSiblings(const FieldDescriptor& field) {
    const OneofDescriptor* choice = field.containing_oneof();
    for (int i = 0; choice != nullptr && i < choice->field_count(); ++i) {
      if (choice->field(i) == &field) continue;
      node_->Erase(KeyOf(*choice->field(i)));
    }
  }

  const Change& change_;
  YamlNode* node_;
  // The type of the message at the node. nullptr if it is not known.
  const Descriptor* type_;
  std::vector<std::string> walked_;
};

void ApplyOne(const std::string& name, std::vector<std::string> keys, std::string_view yaml,
              bool removes, YamlNode& root, Problems& problems) {
  Change change;
  change.source = std::make_shared<const Source>(Source{name, true, absl::StrJoin(keys, ".")});
  change.keys = std::move(keys);
  const Origin origin{change.source, 0, 0};
  if (std::any_of(change.keys.begin(), change.keys.end(),
                  [](const std::string& key) { return key.empty(); })) {
    problems.AddLine(origin, Describe(origin, change.source->path, "names an empty key"));
    return;
  }
  absl::StatusOr<YamlNode> value = ReadYaml(yaml, change.source);
  if (!value.ok()) {
    problems.AddLine(origin, std::string(value.status().message()));
    return;
  }
  change.value = std::move(*value);
  Setter setter(change, root);
  const std::string error = removes ? setter.Remove() : setter.Apply();
  if (!error.empty()) problems.AddLine(origin, Describe(origin, change.source->path, error));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> EnvironmentOverrides() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = text.find('=');
    if (text.substr(0, kPrefix.size()) != kPrefix || equals == std::string_view::npos) continue;
    found.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  std::sort(found.begin(), found.end());
  return found;
}

void ApplyOverrides(const JobOverrides& overrides, YamlNode& root, Problems& problems) {
  for (const auto& [name, value] : overrides.environment) {
    const std::string keys = name.substr(std::min(kPrefix.size(), name.size()));
    // An empty variable is an error, because it is usually a mistake.
    ApplyOne(Shown(name), CanonicalKeys(absl::StrSplit(keys, "__")), value, false, root, problems);
  }
  for (const std::string& set : overrides.sets) {
    const std::string name = absl::StrCat("--set ", Shown(set));
    const size_t equals = set.find('=');
    if (equals == std::string::npos) {
      problems.AddLine({}, absl::StrCat(name, ": needs the form key=value, such as stop.epochs=3"));
      continue;
    }
    ApplyOne(name, absl::StrSplit(set.substr(0, equals), '.'),
             std::string_view(set).substr(equals + 1), equals + 1 == set.size(), root, problems);
  }
}

}  // namespace leeway
