// How the messages of job.proto appear in YAML: their keys, types and values, from the descriptors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "leeway/v1/options.pb.h"

namespace leeway {

// Return a field's rules (RulesOf) and its key (KeyOf).
const v1::FieldRules& RulesOf(const google::protobuf::FieldDescriptor& field);
std::string KeyOf(const google::protobuf::FieldDescriptor& field);

// Returns the oneof whose member the key `type` selects. Returns nullptr for a message without such
// a oneof.
const google::protobuf::OneofDescriptor* TypeOf(const google::protobuf::Descriptor& message);
bool IsTypeMember(const google::protobuf::FieldDescriptor& field);

// Returns the fields that are keys of the message's own map, which are all fields except the
// members of `type`.
std::vector<const google::protobuf::FieldDescriptor*> OwnFields(
    const google::protobuf::Descriptor& message);
const google::protobuf::FieldDescriptor* FindOwn(const google::protobuf::Descriptor& message,
                                                 std::string_view key);
// Returns the member of `type` with this name. Returns nullptr if no member has this name.
const google::protobuf::FieldDescriptor* FindMember(const google::protobuf::OneofDescriptor& type,
                                                    std::string_view name);
// Finds a field by its key in any case: a field of the message, or of any member of `type`.
const google::protobuf::FieldDescriptor* FindAnyCase(const google::protobuf::Descriptor& message,
                                                     std::string_view key);

// Returns an enum value as in YAML: sync for CONSISTENCY_MODE_SYNC.
std::string TextOf(const google::protobuf::EnumValueDescriptor& value);
std::vector<std::string> TextsOf(const google::protobuf::EnumDescriptor& type);
std::vector<std::string> TypeNames(const google::protobuf::OneofDescriptor& type);

}  // namespace leeway
