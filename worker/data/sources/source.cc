#include "worker/data/sources/source.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job_key.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "worker/data/cifar.h"
#include "worker/data/csv.h"
#include "worker/data/data_file.h"
#include "worker/data/data_folder.h"
#include "worker/data/generator.h"
#include "worker/data/holdout.h"
#include "worker/data/idx.h"
#include "worker/data/libsvm.h"
#include "worker/data/memory_dataset.h"
#include "worker/data/numpy/npy_files.h"
#include "worker/data/pictures/read_pictures.h"
#include "worker/data/sources/job_files.h"
#include "worker/data/text/read_text.h"

namespace leeway {
namespace {

// Returns the name of file `index` in errors.
std::string FileName(const v1::Source& source, size_t index) {
  const int i = static_cast<int>(index);
  switch (source.type_case()) {
    case v1::Source::kIdx:
      return source.idx().images();
    case v1::Source::kCifar10:
      return source.cifar10().files(i);
    case v1::Source::kCifar100:
      return source.cifar100().files(i);
    case v1::Source::kNumpy:
      return source.numpy().features();
    case v1::Source::kCsv:
      return source.csv().files(i);
    case v1::Source::kLibsvm:
      return source.libsvm().files(i);
    default:
      break;
  }
  return "data generator";
}

// Returns the key of file `index` within the source's map. Empty if the source does not read files.
std::string FileKey(const v1::Source& source, size_t index) {
  if (source.has_idx()) return "images";
  if (source.has_numpy()) return "features";
  return source.has_generator() ? "" : absl::StrCat("files.", index);
}

std::string SourceKey(const v1::TrainingJob& job, const v1::Source& source) {
  return &source == &job.data().test() ? "data.test" : "data.train";
}

absl::StatusOr<Examples> ReadIdx(const v1::Idx& idx, const std::string& data_dir,
                                 const LabelRule& rule) {
  absl::StatusOr<DataFile> images = OpenDataFile(data_dir, idx.images());
  if (!images.ok()) return AtKey(images.status(), "images");
  absl::StatusOr<DataFile> labels = OpenDataFile(data_dir, idx.labels());
  if (!labels.ok()) return AtKey(labels.status(), "labels");
  return ParseIdx(*std::move(images), *std::move(labels), rule);
}

absl::StatusOr<Examples> ReadOne(const v1::TrainingJob& job, const v1::Source& source,
                                 const std::string& data_dir, size_t index) {
  const LabelRule rule = LabelRule::OfJob(job);
  if (source.has_idx()) return ReadIdx(source.idx(), data_dir, rule);
  if (source.has_numpy()) return ReadNumpy(source.numpy(), data_dir, rule);
  if (source.has_generator()) return Generate(source.generator(), job.metadata().seed(), rule);
  ASSIGN_OR_RETURN(DataFile file, OpenDataFile(data_dir, FileName(source, index)));
  if (source.has_cifar10()) return ParseCifar10(std::move(file), rule);
  if (source.has_cifar100()) {
    return ParseCifar100(std::move(file), source.cifar100().labels(), rule);
  }
  if (source.has_csv()) return ParseCsv(std::move(file), source.csv(), rule);
  return ParseLibsvm(std::move(file), source.libsvm(), rule);
}

// Adds to `status` the key of the source and the key of file `index`. If the status already has a
// key, adds only the key of the source.
absl::Status AtFile(const v1::TrainingJob& job, const v1::Source& source, size_t index,
                    absl::Status status) {
  const std::string file = FileKey(source, index);
  if (KeyOf(status).empty() && !file.empty()) status = AtKey(status, file);
  return AtKey(status, SourceKey(job, source));
}

uint32_t CountClasses(const Examples& examples, v1::Loss loss) {
  const float largest = *std::max_element(examples.labels.begin(), examples.labels.end());
  return ClassesOf(loss, static_cast<uint32_t>(largest) + 1);
}

// Removes the examples of file `index` that are not in `part`.
void KeepPart(const v1::TrainingJob& job, size_t index, Part part, Examples& examples) {
  if (part == Part::kAll) return;
  std::vector<bool> rows =
      HeldOut(job.metadata().seed(), index, examples.size(), job.data().holdout());
  if (part == Part::kWithoutHoldout) rows.flip();
  examples.Keep(rows);
}

absl::StatusOr<std::unique_ptr<Dataset>> ReadFiles(const v1::TrainingJob& job,
                                                   const v1::Source& source,
                                                   const std::string& data_dir, Part part,
                                                   const std::function<bool(size_t)>& wants_file) {
  Examples all;
  uint32_t classes = 0;
  for (size_t i = 0; i < FileCount(source); ++i) {
    if (!wants_file(i)) continue;
    absl::StatusOr<Examples> examples = ReadOne(job, source, data_dir, i);
    if (!examples.ok()) return AtFile(job, source, i, examples.status());
    classes = std::max(classes, CountClasses(*examples, LabelLoss(job.model())));
    KeepPart(job, i, part, *examples);
    RETURN_IF_ERROR(AtFile(job, source, i, all.Append(*std::move(examples), FileName(source, i))));
  }
  if (part == Part::kHoldout && all.size() == 0) {
    return NothingHeldOut(job.data().holdout());
  }
  return MemoryDataset::Create(std::move(all), classes, job.data().normalize());
}

// Returns the files that will be read, in order.
std::vector<std::string> WantedFiles(const v1::Source& source,
                                     const std::function<bool(size_t)>& wants_file) {
  // Returns no files for pictures, because they are read one by one. For a text, returns all files,
  // because the vocabulary may need them.
  if (source.has_image_folder()) return {};
  std::vector<std::string> files = FilesOf(source);
  if (source.has_text() || files.size() != FileCount(source)) return files;
  std::vector<std::string> wanted;
  for (size_t i = 0; i < files.size(); ++i) {
    if (wants_file(i)) wanted.push_back(std::move(files[i]));
  }
  return wanted;
}

absl::StatusOr<std::unique_ptr<Dataset>> ReadByKind(const v1::TrainingJob& job,
                                                    const v1::Source& source,
                                                    const std::string& data_dir, Part part,
                                                    const std::function<bool(size_t)>& wants_file) {
  if (source.has_text()) {
    return ReadText(job, source.text(), SourceKey(job, source), data_dir, part, wants_file);
  }
  if (source.has_image_folder()) {
    return ReadPictures(job, source.image_folder(), SourceKey(job, source), data_dir, part);
  }
  return ReadFiles(job, source, data_dir, part, wants_file);
}

}  // namespace

size_t FileCount(const v1::Source& source) {
  switch (source.type_case()) {
    case v1::Source::kIdx:
    case v1::Source::kGenerator:
    case v1::Source::kNumpy:
    case v1::Source::kImageFolder:
      return 1;
    case v1::Source::kCifar10:
      return static_cast<size_t>(source.cifar10().files_size());
    case v1::Source::kCifar100:
      return static_cast<size_t>(source.cifar100().files_size());
    case v1::Source::kCsv:
      return static_cast<size_t>(source.csv().files_size());
    case v1::Source::kLibsvm:
      return static_cast<size_t>(source.libsvm().files_size());
    case v1::Source::kText:
      return static_cast<size_t>(source.text().files_size());
    default:
      break;
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<Dataset>> ReadSource(const v1::TrainingJob& job,
                                                    const v1::Source& source,
                                                    const std::string& data_dir, Part part,
                                                    const std::function<bool(size_t)>& wants_file) {
  try {
    const std::vector<std::string> files = WantedFiles(source, wants_file);
    RETURN_IF_ERROR(AtKey(CheckRoomForData(data_dir, files), SourceKey(job, source)));
    DataAhead ahead(data_dir);
    for (const std::string& file : files) ahead.WillNeed(file);
    return ReadByKind(job, source, data_dir, part, wants_file);
  } catch (const std::bad_alloc&) {
    return AtKey(
        absl::ResourceExhaustedError("the examples do not fit into the memory of this process"),
        SourceKey(job, source));
  }
}

absl::StatusOr<Examples> ReadExamples(const v1::TrainingJob& job, const v1::Source& source,
                                      const std::string& data_dir) {
  if (source.has_text() || source.has_image_folder()) {
    return AtKey(absl::InvalidArgumentError("its examples are not held in memory"),
                 SourceKey(job, source));
  }
  Examples all;
  for (size_t i = 0; i < FileCount(source); ++i) {
    absl::StatusOr<Examples> examples = ReadOne(job, source, data_dir, i);
    if (!examples.ok()) return AtFile(job, source, i, examples.status());
    RETURN_IF_ERROR(AtFile(job, source, i, all.Append(*std::move(examples), FileName(source, i))));
  }
  return all;
}

}  // namespace leeway
