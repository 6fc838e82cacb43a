#include "run/stored_job.h"

#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"

namespace leeway {

absl::StatusOr<PlacedJob> LoadStoredJob(const std::string& location,
                                        const JobOverrides& overrides) {
  if (!IsObjectLocation(location)) return LoadPlacedJob(location, overrides);
  ASSIGN_OR_RETURN(const std::string text, ReadStored(location, kYamlBytesMax));
  return ParsePlacedJob(text, location, overrides);
}

}  // namespace leeway
