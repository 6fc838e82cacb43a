#include "worker/data/pictures/read_pictures.h"

#include <utility>
#include <vector>

#include "common/job_key.h"
#include "common/plugins/label_loss.h"
#include "common/status.h"
#include "worker/data/data_folder.h"
#include "worker/data/holdout.h"
#include "worker/data/labels.h"
#include "worker/data/pictures/picture_dataset.h"
#include "worker/data/pictures/picture_index.h"

namespace leeway {
namespace {

void Keep(const std::vector<bool>& rows, PictureIndex& index) {
  PictureIndex kept;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i]) continue;
    kept.files.push_back(std::move(index.files[i]));
    kept.labels.push_back(index.labels[i]);
  }
  index = std::move(kept);
}

absl::StatusOr<PictureIndex> Index(const v1::TrainingJob& job, const v1::ImageFolder& pictures,
                                   const std::vector<std::string>& classes,
                                   const std::string& data_dir, Part part) {
  ASSIGN_OR_RETURN(PictureIndex index,
                   IndexPictures(data_dir, pictures.folder(), classes, LabelRule::OfJob(job)));
  if (part == Part::kAll) return index;
  std::vector<bool> rows =
      HeldOut(job.metadata().seed(), 0, index.files.size(), job.data().holdout());
  if (part == Part::kWithoutHoldout) rows.flip();
  Keep(rows, index);
  return index;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> ReadPictures(const v1::TrainingJob& job,
                                                      const v1::ImageFolder& pictures,
                                                      const std::string& key,
                                                      const std::string& data_dir, Part part) {
  const v1::Source& train = job.data().train();
  const bool trains = train.has_image_folder();
  const std::string& folder = trains ? train.image_folder().folder() : pictures.folder();
  const auto classes = ClassFolders(data_dir, folder);
  if (!classes.ok()) {
    return AtKey(AtKey(classes.status(), "folder"), trains ? "data.train" : key);
  }
  auto index = Index(job, pictures, *classes, data_dir, part);
  if (!index.ok()) return AtKey(AtKey(index.status(), "folder"), key);
  if (part == Part::kHoldout && index->files.empty()) {
    return NothingHeldOut(job.data().holdout());
  }
  const absl::Status room = CheckRoomForData(data_dir, index->files);
  if (!room.ok()) return AtKey(AtKey(room, "folder"), key);
  const uint32_t count = ClassesOf(LabelLoss(job.model()), static_cast<uint32_t>(classes->size()));
  return PictureDataset::Create(data_dir, *std::move(index), pictures, count,
                                job.data().normalize());
}

}  // namespace leeway
