#include "common/log.h"

#include <iterator>
#include <memory>
#include <string_view>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/printable.h"

namespace leeway {
namespace {

// The most bytes of a message that a log line shows. All messages of this build are shorter.
constexpr size_t kLineBytesMax = 8192;

// Writes the level in capitals, padded to five characters.
class LevelFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    static constexpr std::string_view kNames[] = {"TRACE", "DEBUG", "INFO ", "WARN ",
                                                  "ERROR", "FATAL", "OFF  "};
    const auto level = static_cast<size_t>(message.level);
    const std::string_view name = level < std::size(kNames) ? kNames[level] : "?    ";
    out.append(name.data(), name.data() + name.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<LevelFlag>();
  }
};

// Writes the message so that it is harmless to a terminal that shows the log.
class Text : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text =
        Printable({message.payload.data(), message.payload.size()}, kLineBytesMax);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Text>(); }
};

std::unique_ptr<spdlog::formatter> MakeFormatter(const std::string& role) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<LevelFlag>('*');
  formatter->add_flag<Text>('&');
  const std::string escaped = absl::StrReplaceAll(role, {{"%", "%%"}});
  formatter->set_pattern(absl::StrCat("%Y-%m-%dT%H:%M:%S.%eZ %* ", escaped, ": %&"));
  return formatter;
}

}  // namespace

absl::Status SetUpLog(const LogOptions& options) {
  try {
    std::shared_ptr<spdlog::sinks::sink> sink;
    if (options.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
    }
    auto logger = std::make_shared<spdlog::logger>("leeway", std::move(sink));
    logger->set_formatter(MakeFormatter(options.role));
    logger->set_level(options.verbose ? spdlog::level::debug : spdlog::level::info);
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& error) {
    return absl::UnavailableError(
        absl::StrCat("opening the log file ", options.file, ": ", error.what()));
  }
  return absl::OkStatus();
}

void SetLogRole(const std::string& role) {
  spdlog::default_logger()->set_formatter(MakeFormatter(role));
}

}  // namespace leeway
