#include "common/update/formula.h"

namespace leeway {

UpdateFormula UpdateRule::formula(const UpdateStep&) const { return {}; }

}  // namespace leeway
