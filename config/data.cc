#include "config/data.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/counted.h"
#include "config/external.h"

namespace leeway {
namespace {

// The largest number of elements of one example.
constexpr uint64_t kExampleElementsMax = 100'000'000;

using Faults = std::vector<Fault>;

// ---- single messages

void CheckPath(const std::string& file, const std::string& path, Faults& faults) {
  const std::vector<std::string> parts = absl::StrSplit(file, '/');
  const bool leaves = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (file.empty()) {
    faults.push_back({path, "must not be empty"});
  } else if (file[0] != '/' && leaves) {
    faults.push_back(
        {path, absl::StrCat("must stay below the data folder, or be absolute; it is ", file)});
  }
}

template <typename Strings>
void CheckFileList(const Strings& files, const std::string& path, Faults& faults) {
  for (int i = 0; i < files.size(); ++i) {
    CheckPath(files[i], absl::StrCat(path, ".files.", i), faults);
  }
}

template <typename Sizes>
void CheckShape(const Sizes& shape, const std::string& path, Faults& faults) {
  double elements = 1;
  for (const uint32_t size : shape) elements *= size;
  if (elements > kExampleElementsMax) {
    faults.push_back({absl::StrCat(path, ".shape"),
                      absl::StrCat("an example has at most ", kExampleElementsMax, " values")});
  }
}

bool Has(const google::protobuf::RepeatedPtrField<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

void CheckCategories(const v1::Csv& csv, const std::string& path, Faults& faults) {
  for (int i = 0; i < csv.categories_size(); ++i) {
    std::set<std::string> seen;
    const auto& values = csv.categories(i).values();
    for (int k = 0; k < values.size(); ++k) {
      const std::string place = absl::StrCat(path, ".categories.", i, ".values.", k);
      if (!seen.insert(values[k]).second) faults.push_back({place, "is listed twice"});
      if (Has(csv.missing(), values[k])) faults.push_back({place, "is also listed in missing"});
    }
  }
}

void CheckCsv(const v1::Csv& csv, const std::string& path, Faults& faults) {
  CheckFileList(csv.files(), path, faults);
  CheckShape(csv.shape(), path, faults);
  const std::string& separator = csv.separator();
  if (separator.size() != 1 || absl::ascii_isalnum(separator[0]) ||
      absl::StrContains("+-.\"\r\n", separator)) {
    faults.push_back(
        {absl::StrCat(path, ".separator"),
         "must be one character that numbers do not contain, such as ',' ';' or \"\\t\""});
  }
  if (csv.shape_size() != 0 && csv.shape_size() != 3) {
    faults.push_back({absl::StrCat(path, ".shape"), "needs [height, width, channels]"});
  }
  if (csv.has_label() && csv.label_column() != -1) {
    faults.push_back(
        {absl::StrCat(path, ".label_column"), "does not go with 'label'; give one of the two"});
  }
  CheckCategories(csv, path, faults);
}

void CheckText(const v1::Text& text, const std::string& path, Faults& faults) {
  CheckFileList(text.files(), path, faults);
  const std::string vocabulary = absl::StrCat(path, ".vocabulary");
  if (text.has_vocabulary()) CheckPath(text.vocabulary(), vocabulary, faults);
  if (text.has_vocabulary() && text.unit() == v1::TEXT_UNIT_BYTES) {
    faults.push_back(
        {vocabulary,
         "goes with unit characters or bpe only: with unit bytes the vocabulary is the 256 bytes"});
  }
}

void CheckSource(const v1::Source& source, const std::string& path, Faults& faults) {
  switch (source.type_case()) {
    case v1::Source::kIdx:
      CheckPath(source.idx().images(), absl::StrCat(path, ".images"), faults);
      CheckPath(source.idx().labels(), absl::StrCat(path, ".labels"), faults);
      break;
    case v1::Source::kCifar10:
      CheckFileList(source.cifar10().files(), path, faults);
      break;
    case v1::Source::kCifar100:
      CheckFileList(source.cifar100().files(), path, faults);
      break;
    case v1::Source::kNumpy:
      CheckPath(source.numpy().features(), absl::StrCat(path, ".features"), faults);
      CheckPath(source.numpy().labels(), absl::StrCat(path, ".labels"), faults);
      break;
    case v1::Source::kImageFolder:
      CheckPath(source.image_folder().folder(), absl::StrCat(path, ".folder"), faults);
      break;
    case v1::Source::kLibsvm:
      CheckFileList(source.libsvm().files(), path, faults);
      break;
    case v1::Source::kCsv:
      CheckCsv(source.csv(), path, faults);
      break;
    case v1::Source::kGenerator: {
      CheckShape(source.generator().shape(), path, faults);
      if (source.generator().shape_size() == 2) {
        faults.push_back(
            {absl::StrCat(path, ".shape"), "needs [features] or [height, width, channels]"});
      }
      break;
    }
    case v1::Source::kText:
      CheckText(source.text(), path, faults);
      break;
    default:
      break;
  }
}

void CheckNormalize(const v1::Normalize& normalize, Faults& faults) {
  const int means = normalize.mean_size(), stds = normalize.std_size();
  if (means > 1 && stds > 1 && means != stds) {
    faults.push_back(
        {"data.normalize.std", absl::StrCat("has ", stds, " values, but mean has ", means)});
  }
}

// ---- whether parts are compatible

// Returns true if the source may have images. For NumPy arrays the result is always true, because
// only the data can show whether they are images.
bool HasImages(const v1::Source& source) {
  return source.has_idx() || source.has_cifar10() || source.has_cifar100() ||
         source.has_image_folder() || source.has_numpy() || source.csv().shape_size() == 3 ||
         source.generator().shape_size() == 3;
}

int FilesOf(const v1::Source& source) {
  return source.cifar10().files_size() + source.cifar100().files_size() +
         source.csv().files_size() + source.libsvm().files_size() + source.text().files_size();
}

void CheckByFile(const v1::TrainingJob& job, Faults& faults) {
  if (!job.data().partition().has_by_file()) return;
  const v1::Source& train = job.data().train();
  const uint32_t workers = job.workers().count();
  if (FilesOf(train) == 0) {
    faults.push_back({"data.partition.type",
                      "by_file needs a source with a list of files: cifar10, "
                      "cifar100, csv, libsvm or text"});
  } else if (static_cast<uint32_t>(FilesOf(train)) < workers) {
    faults.push_back({"data.partition.type",
                      absl::StrCat("by_file needs a file for each worker: the job has ",
                                   Counted(workers, "worker"), ", but data.train.files has ",
                                   Counted(FilesOf(train), "file"))});
  }
}

void CheckAugment(const v1::Data& data, Faults& faults) {
  const v1::Augment& augment = data.augment();
  if (augment.mixup() > 0 && data.batch_size() < 2) {
    faults.push_back(
        {"data.augment.mixup",
         "mixes the examples of a batch with each other: needs a data.batch_size of at "
         "least 2"});
  }
  const bool augments = augment.flip() || augment.crop_padding() > 0 || augment.cutout() > 0;
  if (augments && !HasImages(data.train())) {
    faults.push_back(
        {"data.augment",
         "only images can be flipped and cropped; data.train has no images (a csv source "
         "needs a shape of [height, width, channels])"});
  }
}

// Adds a fault unless the test table has the same categories as the training table.
void CheckTestTable(const v1::Data& data, Faults& faults) {
  if (!data.train().has_csv() || !data.test().has_csv()) return;
  const auto &train = data.train().csv().categories(), &test = data.test().csv().categories();
  const auto same = [](const v1::Categories& a, const v1::Categories& b) {
    return a.SerializeAsString() == b.SerializeAsString();
  };
  if (std::equal(train.begin(), train.end(), test.begin(), test.end(), same)) return;
  faults.push_back({"data.test.categories", "must be the same as in data.train, or left out"});
}

bool SameVocabulary(const v1::Text& train, const v1::Text& test) {
  return !test.has_vocabulary() || test.vocabulary() == train.vocabulary();
}

// Adds a fault unless the test text has the same unit, context and vocabulary as the training text.
void CheckTestText(const v1::Data& data, Faults& faults) {
  const v1::Text &train = data.train().text(), &test = data.test().text();
  if (data.train().has_text() != data.test().has_text()) {
    faults.push_back({"data.test.type", "data.train and data.test must both be text, or neither"});
  } else if (test.unit() != train.unit()) {
    faults.push_back({"data.test.unit", "must be the same as in data.train"});
  } else if (test.context() != train.context()) {
    faults.push_back(
        {"data.test.context",
         absl::StrCat("must be the same as in data.train, which is ", train.context())});
  } else if (!SameVocabulary(train, test)) {
    faults.push_back({"data.test.vocabulary", "must be the same as in data.train, or left out"});
  }
}

void CheckText(const v1::TrainingJob& job, Faults& faults) {
  const v1::Data& data = job.data();
  if (data.has_test()) CheckTestText(data, faults);
  if (!data.train().has_text()) return;
  const v1::Text& text = data.train().text();
  if (text.unit() == v1::TEXT_UNIT_BPE && !text.has_vocabulary()) {
    faults.push_back({"data.train.vocabulary",
                      "required key is missing with unit bpe: name a folder with vocab.json and "
                      "merges.txt, or a tokenizer.json"});
  }
  if (data.has_normalize()) {
    faults.push_back({"data.normalize",
                      "tokens are numbers of a vocabulary and cannot be normalized; remove it"});
  }
  if (data.augment().mixup() > 0) {
    faults.push_back({"data.augment.mixup",
                      "tokens are numbers of a vocabulary and cannot be mixed; remove it"});
  }
  if (job.model().loss() != v1::LOSS_SOFTMAX_CROSS_ENTROPY) {
    faults.push_back({"model.loss", "a text has tokens as labels: set softmax_cross_entropy"});
  }
  if (data.partition().has_stratified() || data.partition().has_label_skew()) {
    faults.push_back(
        {"data.partition.type",
         "needs one class for each example, and a text has no classes: use iid or by_file"});
  }
}

}  // namespace

void CheckDataFields(const v1::Data& data, Faults& faults) {
  CheckSource(data.train(), "data.train", faults);
  CheckSource(data.test(), "data.test", faults);
  CheckNormalize(data.normalize(), faults);
}

void CheckData(const v1::TrainingJob& job, Faults& faults) {
  if (IsExternal(job)) return;
  const v1::Data& data = job.data();
  if (data.has_test() && data.has_holdout()) {
    faults.push_back({"data.holdout", "does not go with data.test; give one of the two"});
  }
  CheckAugment(data, faults);
  CheckByFile(job, faults);
  CheckText(job, faults);
  CheckTestTable(data, faults);
  if (job.evaluation().has_every() && !data.has_test() && !data.has_holdout()) {
    faults.push_back(
        {"evaluation.every", "nothing to evaluate on: give data.test or data.holdout"});
  }
}

}  // namespace leeway
