// Makes variants of a message with each of its fields missing or absurd, by reflection: a new field
// is covered automatically.
#pragma once

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

namespace leeway::testing {

struct Absurd {
  // Names the change: "placement.shards[0].owner = 4294967295".
  std::string name;
  std::shared_ptr<google::protobuf::Message> message;
};

class AbsurdMaker {
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;
  // Returns the message to change, which is somewhere within the whole.
  using Within = std::function<Message*(Message*)>;
  using Change = std::function<void(Message*, const google::protobuf::Reflection&)>;

 public:
  explicit AbsurdMaker(const Message& whole) : whole_(whole) {}

  std::vector<Absurd> Make() {
    Visit(whole_, "", [](Message* message) { return message; });
    return std::move(made_);
  }

 private:
  static constexpr size_t kLong = 1 << 20;
  static constexpr int kMany = 1000;

  void Visit(const Message& at, const std::string& prefix, const Within& within) {
    if (++depth_ <= 4) {
      for (int i = 0; i < at.GetDescriptor()->field_count(); ++i) {
        const Field* field = at.GetDescriptor()->field(i);
        const std::string name = prefix + field->name();
        if (field->is_repeated()) {
          Repeated(at, field, name, within);
        } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
          Nested(at, field, name, within);
        } else {
          Add(name + " missing", within,
              [=](Message* m, const auto& r) { r.ClearField(m, field); });
          Scalars(field, [&](const std::string& value, const Change& set) {
            Add(name + " = " + value, within, set);
          });
        }
      }
    }
    --depth_;
  }

  void Nested(const Message& at, const Field* field, const std::string& name,
              const Within& within) {
    if (at.GetReflection()->HasField(at, field)) {
      Add(name + " missing", within, [=](Message* m, const auto& r) { r.ClearField(m, field); });
    } else {
      Add(name + " empty", within, [=](Message* m, const auto& r) { r.MutableMessage(m, field); });
    }
    Visit(at.GetReflection()->GetMessage(at, field), name + ".", [=](Message* whole) {
      Message* m = within(whole);
      return m->GetReflection()->MutableMessage(m, field);
    });
  }

  void Repeated(const Message& at, const Field* field, const std::string& name,
                const Within& within) {
    const int size = at.GetReflection()->FieldSize(at, field);
    Add(name + " missing", within, [=](Message* m, const auto& r) { r.ClearField(m, field); });
    Add(name + " one short", within, [=](Message* m, const auto& r) {
      if (r.FieldSize(*m, field) > 0) r.RemoveLast(m, field);
    });
    Add(name + " too many", within, [=](Message* m, const auto& r) {
      for (int i = 0; i < kMany; ++i) AddDefault(m, r, field);
    });
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (size == 0) return;
      Visit(at.GetReflection()->GetRepeatedMessage(at, field, 0), name + "[0].",
            [=](Message* whole) {
              Message* m = within(whole);
              return m->GetReflection()->MutableRepeatedMessage(m, field, 0);
            });
      return;
    }
    Scalars(field, [&](const std::string& value, const Change& add) {
      Add(name + "[0] = " + value, within, [=](Message* m, const auto& r) {
        r.ClearField(m, field);
        add(m, r);
        for (int i = 1; i < size; ++i) AddDefault(m, r, field);
      });
    });
  }

  void Add(const std::string& name, const Within& within, const Change& change) {
    std::shared_ptr<Message> message(whole_.New());
    message->CopyFrom(whole_);
    Message* at = within(message.get());
    change(at, *at->GetReflection());
    // Skips a variant that is equal to the valid message.
    if (message->SerializeAsString() == whole_.SerializeAsString()) return;
    made_.push_back({name, std::move(message)});
  }

  static void AddDefault(Message* m, const google::protobuf::Reflection& r, const Field* field) {
    switch (field->cpp_type()) {
      case Field::CPPTYPE_MESSAGE:
        r.AddMessage(m, field);
        break;
      case Field::CPPTYPE_STRING:
        r.AddString(m, field, "");
        break;
      case Field::CPPTYPE_UINT32:
        r.AddUInt32(m, field, 0);
        break;
      case Field::CPPTYPE_UINT64:
        r.AddUInt64(m, field, 0);
        break;
      default:
        break;
    }
  }

  template <typename Value, typename Set, typename More>
  static Change Put(const Field* field, Value value, Set set, More more) {
    return [=](Message* m, const google::protobuf::Reflection& r) {
      if (field->is_repeated()) {
        (r.*more)(m, field, value);
      } else {
        (r.*set)(m, field, value);
      }
    };
  }

  void Strings(const Field* field,
               const std::function<void(const std::string&, const Change&)>& use) {
    using R = google::protobuf::Reflection;
    for (const std::string& v : {std::string(), std::string("\x1b[2J\r\n\x07x"),
                                 std::string("../x/../evil"), std::string(kLong, 'x')}) {
      use(v.size() < 20 ? "'" + v + "'" : "long",
          Put(field, v,
              static_cast<void (R::*)(Message*, const Field*, std::string) const>(&R::SetString),
              static_cast<void (R::*)(Message*, const Field*, std::string) const>(&R::AddString)));
    }
  }

  void Scalars(const Field* field,
               const std::function<void(const std::string&, const Change&)>& use) {
    using R = google::protobuf::Reflection;
    switch (field->cpp_type()) {
      case Field::CPPTYPE_UINT32:
        for (const uint32_t v : {0u, 77u, 1u << 31, std::numeric_limits<uint32_t>::max()}) {
          use(std::to_string(v), Put(field, v, &R::SetUInt32, &R::AddUInt32));
        }
        break;
      case Field::CPPTYPE_UINT64:
        for (const uint64_t v : {uint64_t{0}, uint64_t{1} << 41, uint64_t{1} << 63,
                                 std::numeric_limits<uint64_t>::max()}) {
          use(std::to_string(v), Put(field, v, &R::SetUInt64, &R::AddUInt64));
        }
        break;
      case Field::CPPTYPE_INT32:
        for (const int32_t v : {-1, std::numeric_limits<int32_t>::max()}) {
          use(std::to_string(v), Put(field, v, &R::SetInt32, &R::AddInt32));
        }
        break;
      case Field::CPPTYPE_DOUBLE:
        for (const double v : {0.0, -1.0, 7.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
          use(std::to_string(v), Put(field, v, &R::SetDouble, &R::AddDouble));
        }
        break;
      case Field::CPPTYPE_BOOL:
        for (const bool v : {false, true}) {
          use(std::to_string(v), Put(field, v, &R::SetBool, &R::AddBool));
        }
        break;
      case Field::CPPTYPE_ENUM:
        for (const int v : {-1, 9999}) {
          use(std::to_string(v), Put(field, v, &R::SetEnumValue, &R::AddEnumValue));
        }
        break;
      case Field::CPPTYPE_STRING:
        Strings(field, use);
        break;
      default:
        break;
    }
  }

  const Message& whole_;
  std::vector<Absurd> made_;
  int depth_ = 0;
};

inline std::vector<Absurd> Absurdities(const google::protobuf::Message& valid) {
  return AbsurdMaker(valid).Make();
}

// Whether a terminal can show the text of a refusal: it is short, and has no control characters.
inline bool IsShowable(const std::string& text) {
  return text.size() < 1100 && std::ranges::none_of(text, [](unsigned char c) {
           return std::iscntrl(c) && c != '\n' && c != '\t';
         });
}

}  // namespace leeway::testing
