#include "worker/data/text/read_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/counted.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/labels.h"
#include "worker/data/text/text_dataset.h"
#include "worker/data/text/tokenizer.h"

namespace leeway {
namespace {

// The first layer of the model that is not just a container of layers, and the layer's key.
struct FirstLayer {
  const v1::Layer* layer = nullptr;
  std::string key;
};

FirstLayer FirstOf(const google::protobuf::RepeatedPtrField<v1::Layer>& layers, std::string key) {
  if (layers.empty()) return {};
  const v1::Layer& layer = layers[0];
  absl::StrAppend(&key, ".0");
  if (layer.has_sequence()) return FirstOf(layer.sequence().layers(), key + ".sequence.layers");
  if (layer.has_repeat()) return FirstOf(layer.repeat().layers(), key + ".repeat.layers");
  if (layer.has_recompute()) {
    return FirstOf(layer.recompute().layers(), key + ".recompute.layers");
  }
  return {&layer, key};
}

// Returns an error if the first or the last layer shows that the model does not know all tokens.
absl::Status CheckVocabulary(const v1::TrainingJob& job, uint32_t vocabulary) {
  const auto refuse = [&](const std::string& key, uint32_t has) {
    return AtKey(absl::InvalidArgumentError(absl::StrCat("the text has a vocabulary of ",
                                                         Counted(vocabulary, "token"), "; ", has,
                                                         " is too small: set it to ", vocabulary)),
                 key);
  };
  const FirstLayer first = FirstOf(job.model().layers(), "model.layers");
  if (first.layer != nullptr && first.layer->has_embedding() &&
      first.layer->embedding().vocabulary() < vocabulary) {
    return refuse(first.key + ".embedding.vocabulary", first.layer->embedding().vocabulary());
  }
  const LabelRule rule = LabelRule::OfJob(job);
  if (rule.classes > 0 && rule.classes < vocabulary) {
    return refuse(absl::StrCat("model.layers.", rule.layer, ".dense.units"), rule.classes);
  }
  return absl::OkStatus();
}

TextPart SelectPart(const v1::TrainingJob& job, Part part, std::string path, Tokens tokens) {
  const size_t count = tokens.size();
  TextPart all{std::move(path), std::make_shared<const Tokens>(std::move(tokens)), 0, count};
  if (part == Part::kAll) return all;
  const double share = std::clamp(job.data().holdout(), 0.0, 1.0);
  const auto held = static_cast<size_t>(std::round(share * static_cast<double>(count)));
  all.first = part == Part::kHoldout ? count - held : 0;
  all.count = part == Part::kHoldout ? held : count - held;
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ReadText(const v1::TrainingJob& job, const v1::Text& text,
                                                  const std::string& key,
                                                  const std::string& data_dir, Part part,
                                                  const std::function<bool(size_t)>& wants_file) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(job, data_dir));
  RETURN_IF_ERROR(CheckVocabulary(job, tokenizer->vocabulary()));
  std::vector<TextPart> parts;
  for (int i = 0; i < text.files_size(); ++i) {
    if (!wants_file(static_cast<size_t>(i))) continue;
    const auto at_file = [&](const absl::Status& status) {
      return AtKey(AtKey(status, absl::StrCat("files.", i)), key);
    };
    absl::StatusOr<MappedFile> file = MapDataFile(data_dir, text.files(i));
    if (!file.ok()) return at_file(file.status());
    std::string path = file->path;
    absl::StatusOr<Tokens> tokens = tokenizer->Encode(*std::move(file));
    if (!tokens.ok()) return at_file(tokens.status());
    parts.push_back(SelectPart(job, part, std::move(path), *std::move(tokens)));
  }
  const bool drawn = key == "data.train" && part != Part::kHoldout && text.random_start();
  auto dataset =
      TextDataset::Create(std::move(parts), text.context(), tokenizer->vocabulary(),
                          drawn ? TextDataset::Windows::kDrawn : TextDataset::Windows::kInPlace);
  if (!dataset.ok()) return AtKey(dataset.status(), part == Part::kHoldout ? "data.holdout" : key);
  return dataset;
}

}  // namespace leeway
