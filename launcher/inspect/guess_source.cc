#include "launcher/inspect/guess_source.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "launcher/inspect/array_pairs.h"
#include "launcher/inspect/table_guess.h"
#include "worker/data/data_file.h"
#include "worker/data/numpy/npy_header.h"
#include "worker/data/numpy/zip_member.h"
#include "worker/data/pictures/picture.h"
#include "worker/data/pictures/picture_index.h"
#include "worker/data/text.h"
#include "worker/data/text/utf8.h"

namespace leeway {
namespace {

using Names = std::vector<std::string>;

constexpr uint32_t kContext = 256;
// The largest side to which pictures are scaled: the usual input size of models for large pictures.
constexpr uint32_t kSideMax = 224;
constexpr size_t kMeasuredPictures = 50;

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::StatusOr<NamedArray> ArrayOf(const std::string& name, absl::StatusOr<DataFile> file) {
  RETURN_IF_ERROR(file.status());
  ASSIGN_OR_RETURN(const NpyHeader header, ReadNpyHeader(*file));
  return NamedArray{name, header.shape};
}

// Sets the source for training and, if there are arrays for it, the source for evaluation. `set`
// fills in one source.
absl::Status SetPairs(const std::vector<NamedArray>& arrays, const std::string& place,
                      absl::FunctionRef<void(const ArrayPair&, v1::Numpy&)> set,
                      GuessedSource& guessed) {
  const absl::StatusOr<ArrayPairs> pairs = PairArrays(arrays);
  if (!pairs.ok()) return Annotate(pairs.status(), place);
  set(pairs->train, *guessed.source.mutable_numpy());
  if (pairs->test.has_value()) set(*pairs->test, *guessed.test.emplace().mutable_numpy());
  return absl::OkStatus();
}

absl::Status SetNpy(const std::string& data_dir, const Names& names, GuessedSource& guessed) {
  std::vector<NamedArray> arrays;
  for (const std::string& name : names) {
    const std::string stem = std::filesystem::path(name).stem().string();
    ASSIGN_OR_RETURN(NamedArray array, ArrayOf(stem, OpenDataFile(data_dir, name)));
    arrays.push_back(std::move(array));
  }
  return SetPairs(
      arrays, absl::StrJoin(names, ", "),
      [&](const ArrayPair& pair, v1::Numpy& numpy) {
        numpy.set_features(names[pair.features]);
        numpy.set_labels(names[pair.labels]);
      },
      guessed);
}

absl::Status SetNpz(const std::string& data_dir, const std::string& name, GuessedSource& guessed) {
  ASSIGN_OR_RETURN(const Names members, ZipNames(data_dir, name));
  std::vector<NamedArray> arrays;
  for (const std::string& member : members) {
    if (!absl::EndsWith(member, ".npy")) continue;
    ASSIGN_OR_RETURN(NamedArray array, ArrayOf(member.substr(0, member.size() - 4),
                                               OpenZipMember(data_dir, name, member)));
    arrays.push_back(std::move(array));
  }
  return SetPairs(
      arrays, name,
      [&](const ArrayPair& pair, v1::Numpy& numpy) {
        numpy.set_features(name);
        numpy.set_features_array(arrays[pair.features].name);
        numpy.set_labels(name);
        numpy.set_labels_array(arrays[pair.labels].name);
      },
      guessed);
}

absl::Status SetIdx(const GuessedSource& guessed, const Names& names, v1::Idx& idx) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (guessed.kinds[i] == FileKind::kIdxLabels) {
      idx.set_labels(names[i]);
    } else {
      idx.set_images(names[i]);
    }
  }
  if (names.size() == 2 && idx.has_labels() && idx.has_images()) return absl::OkStatus();
  return Bad(absl::StrCat(absl::StrJoin(names, ", "),
                          ": IDX data are a file of images and a file of labels; name both"));
}

absl::Status SetCsv(const std::string& data_dir, const Names& names, const std::string& label,
                    GuessedSource& guessed) {
  ASSIGN_OR_RETURN(const std::string head, HeadOfFile(data_dir, names[0]));
  const TableForm form = GuessTable(head).value_or(TableForm());
  ASSIGN_OR_RETURN(const TableFacts facts, ReadTableFacts(data_dir, names, form));
  absl::StatusOr<TableChoice> choice = ChooseColumns(facts, label);
  if (!choice.ok()) return Annotate(choice.status(), names[0]);
  guessed.table = *std::move(choice);
  v1::Csv& csv = *guessed.source.mutable_csv();
  csv = guessed.table.csv;
  for (const std::string& name : names) csv.add_files(name);
  return absl::OkStatus();
}

// Sets the number of features to the largest index in the lines.
absl::Status SetLibsvm(const std::string& data_dir, const Names& names, v1::Libsvm& libsvm) {
  uint32_t largest = 1;
  for (const std::string& name : names) {
    libsvm.add_files(name);
    ASSIGN_OR_RETURN(DataFile file, OpenDataFile(data_dir, name));
    Lines lines(*file.bytes, file.path);
    absl::string_view line;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, lines.Next(line));
      if (!more) break;
      for (const absl::string_view part : absl::StrSplit(line, ' ', absl::SkipWhitespace())) {
        uint32_t index = 0;
        const absl::string_view number = part.substr(0, part.find(':'));
        const bool pair = number.size() < part.size() && absl::SimpleAtoi(number, &index);
        if (pair) largest = std::max(largest, index);
      }
    }
  }
  libsvm.set_features(largest);
  return absl::OkStatus();
}

absl::Status SetText(const std::string& data_dir, const Names& names, v1::Text& text) {
  uint64_t shortest = ~uint64_t{0};
  for (const std::string& name : names) {
    text.add_files(name);
    ASSIGN_OR_RETURN(const MappedFile file, MapDataFile(data_dir, name));
    shortest = std::min<uint64_t>(shortest, file.content.bytes().size());
    if (!CheckUtf8(file.path, file.content.bytes()).ok()) text.set_unit(v1::TEXT_UNIT_BYTES);
  }
  // The context is short enough that a held-out tenth of the text still has a window.
  text.set_context(static_cast<uint32_t>(std::clamp<uint64_t>(shortest / 40, 1, kContext)));
  return absl::OkStatus();
}

absl::Status SetPictures(const std::string& data_dir, const std::string& folder,
                         v1::ImageFolder& pictures) {
  ASSIGN_OR_RETURN(const Names classes, ClassFolders(data_dir, folder));
  ASSIGN_OR_RETURN(const PictureIndex index,
                   IndexPictures(data_dir, folder, classes, v1::LOSS_SQUARED));
  uint32_t side = kSideMax;
  const size_t every = std::max<size_t>(index.files.size() / kMeasuredPictures, 1);
  for (size_t i = 0; i < index.files.size(); i += every) {
    ASSIGN_OR_RETURN(const MappedFile file, ReadPicture(data_dir, index.files[i]));
    ASSIGN_OR_RETURN(const Picture picture,
                     DecodePicture(file.path, file.content.bytes(), kSideMax, kSideMax));
    side = std::min({side, picture.height, picture.width});
  }
  pictures.set_folder(folder);
  pictures.set_height(side);
  pictures.set_width(side);
  return absl::OkStatus();
}

absl::Status SetSource(const std::string& data_dir, const Names& names, const std::string& label,
                       GuessedSource& guessed) {
  v1::Source& source = guessed.source;
  switch (guessed.kinds[0]) {
    case FileKind::kIdxImages:
    case FileKind::kIdxLabels:
      return SetIdx(guessed, names, *source.mutable_idx());
    case FileKind::kNpy:
      return SetNpy(data_dir, names, guessed);
    case FileKind::kNpz:
      return SetNpz(data_dir, names[0], guessed);
    case FileKind::kCsv:
      return SetCsv(data_dir, names, label, guessed);
    case FileKind::kLibsvm:
      return SetLibsvm(data_dir, names, *source.mutable_libsvm());
    case FileKind::kText:
      return SetText(data_dir, names, *source.mutable_text());
    case FileKind::kPictures:
      return SetPictures(data_dir, names[0], *source.mutable_image_folder());
    case FileKind::kCifar10:
      for (const std::string& name : names) source.mutable_cifar10()->add_files(name);
      return absl::OkStatus();
    case FileKind::kCifar100:
      for (const std::string& name : names) source.mutable_cifar100()->add_files(name);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

bool GoTogether(FileKind a, FileKind b) {
  const auto is_idx = [](FileKind kind) {
    return kind == FileKind::kIdxImages || kind == FileKind::kIdxLabels;
  };
  if (is_idx(a) && is_idx(b)) return true;
  return a == b && a != FileKind::kNpz && a != FileKind::kPictures;
}

}  // namespace

absl::StatusOr<GuessedSource> GuessSource(const std::string& data_dir, const Names& names,
                                          const std::string& label) {
  GuessedSource guessed;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const FileKind kind, KindOfFile(data_dir, name));
    if (!guessed.kinds.empty() && !GoTogether(guessed.kinds[0], kind)) {
      return Bad(absl::StrCat(names[0], " is ", NameOf(guessed.kinds[0]), " and ", name, " is ",
                              NameOf(kind), ": one source has files of one kind"));
    }
    guessed.kinds.push_back(kind);
  }
  if (!label.empty() && guessed.kinds[0] != FileKind::kCsv) {
    return Bad(
        absl::StrCat("--label is for tables, but ", names[0], " is ", NameOf(guessed.kinds[0])));
  }
  RETURN_IF_ERROR(SetSource(data_dir, names, label, guessed));
  return guessed;
}

}  // namespace leeway
