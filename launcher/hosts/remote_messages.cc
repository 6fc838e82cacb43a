#include "launcher/hosts/remote_messages.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {
namespace {

using Json = nlohmann::json;

// `leeway remote` begins each of its lines with this mark, because a login shell may write lines of
// its own.
constexpr char kMark[] = "leeway-remote ";

std::string MessageLine(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status NoMessage(const std::string& line) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a message of Leeway: ", Printable(line, 200)));
}

// Returns the string at `key`, or an empty string if the value has another type or is missing.
std::string MessageText(const Json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int> Number(const Json& document, const char* key) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int>();
}

std::vector<std::string> Texts(const Json& document, const char* key) {
  std::vector<std::string> texts;
  const auto found = document.find(key);
  if (found == document.end() || !found->is_array()) return texts;
  for (const Json& each : *found) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

Environment Pairs(const Json& document, const char* key) {
  Environment pairs;
  const auto found = document.find(key);
  if (found == document.end() || !found->is_object()) return pairs;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) pairs.emplace_back(name, value.get<std::string>());
  }
  return pairs;
}

Json Object(const Environment& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

absl::StatusOr<Json> Parse(const std::string& line) {
  Json document = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return NoMessage(line);
  return document;
}

}  // namespace

std::string RequestLine(const RemoteRequest& request) {
  return MessageLine({{"version", request.version},
                      {"program", request.program},
                      {"command", request.command},
                      {"name", request.name},
                      {"arguments", request.arguments},
                      {"environment", Object(request.environment)},
                      {"keys", Object(request.keys)},
                      {"folder", request.folder},
                      {"shared_file", request.shared_file},
                      {"shared_content", request.shared_content},
                      {"file_mask", request.file_mask},
                      {"announces_ready", request.announces_ready}});
}

std::string SignalLine(int signal) { return MessageLine({{"signal", signal}}); }

std::string NewsLine(const RemoteNews& news) {
  Json document = Json::object();
  if (news.hello.has_value()) {
    document["hello"] = {{"version", news.hello->version},
                         {"address", news.hello->address},
                         {"missing_programs", news.hello->missing_programs}};
  }
  if (news.pid.has_value()) document["pid"] = *news.pid;
  if (news.ready.has_value()) document["ready"] = *news.ready;
  if (news.exit.has_value()) document[news.exit->signaled ? "signal" : "exit"] = news.exit->code;
  return kMark + MessageLine(document);
}

absl::StatusOr<RemoteRequest> ParseRequest(const std::string& line) {
  const absl::StatusOr<Json> document = Parse(line);
  if (!document.ok()) return document.status();
  RemoteRequest request;
  request.version = MessageText(*document, "version");
  request.program = MessageText(*document, "program");
  request.command = Texts(*document, "command");
  request.name = MessageText(*document, "name");
  request.arguments = Texts(*document, "arguments");
  request.environment = Pairs(*document, "environment");
  request.keys = Pairs(*document, "keys");
  request.folder = MessageText(*document, "folder");
  request.shared_file = MessageText(*document, "shared_file");
  request.shared_content = MessageText(*document, "shared_content");
  request.file_mask = Number(*document, "file_mask").value_or(request.file_mask) & 0777;
  const auto announces = document->find("announces_ready");
  request.announces_ready = announces != document->end() && *announces == true;
  return request;
}

absl::StatusOr<int> ParseSignal(const std::string& line) {
  const absl::StatusOr<Json> document = Parse(line);
  if (!document.ok()) return document.status();
  const std::optional<int> signal = Number(*document, "signal");
  if (!signal.has_value() || *signal <= 0 || *signal > 64) return NoMessage(line);
  return *signal;
}

absl::StatusOr<std::optional<RemoteNews>> ParseNews(const std::string& line) {
  // A login shell may have printed a line without a line end.
  const size_t mark = line.find(kMark);
  if (mark == std::string::npos) return std::nullopt;
  const absl::StatusOr<Json> document = Parse(line.substr(mark + sizeof(kMark) - 1));
  if (!document.ok()) return document.status();
  RemoteNews news;
  if (const auto hello = document->find("hello"); hello != document->end() && hello->is_object()) {
    news.hello = {.version = Printable(MessageText(*hello, "version"), kWordBytesMax),
                  .address = Printable(MessageText(*hello, "address"), kWordBytesMax),
                  .missing_programs = Texts(*hello, "missing_programs")};
  }
  news.pid = Number(*document, "pid");
  if (document->contains("ready"))
    news.ready = Printable(MessageText(*document, "ready"), kWordBytesMax);
  if (const std::optional<int> code = Number(*document, "exit")) news.exit = {false, *code};
  if (const std::optional<int> signal = Number(*document, "signal")) news.exit = {true, *signal};
  return news;
}

std::optional<std::string> LineBuffer::Next() {
  const size_t end = text_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

}  // namespace leeway
