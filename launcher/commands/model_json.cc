#include "launcher/commands/model_json.h"

#include <iostream>

namespace leeway {

void AddJsonOption(CLI::App& command, std::string& json) {
  command.add_option("--json", json, "Also write the result to this file, as JSON for scripts")
      ->type_name("FILE");
}

nlohmann::ordered_json ModelJson(const TrainedModel& model) {
  return {{"checkpoint", model.folder},
          {"clock", model.manifest.clock()},
          {"parameters", model.manifest.schema().total()},
          {"passed_over", model.passed_over}};
}

void WarnOfOlderModel(const TrainedModel& model) {
  for (const std::string& damaged : model.passed_over) std::cerr << "leeway: " << damaged << "\n";
  if (model.passed_over.empty()) return;
  std::cerr << "leeway: this is an older model, at clock " << model.manifest.clock()
            << "; with --checkpoint CLOCK, a damaged checkpoint is an error instead\n";
}

}  // namespace leeway
