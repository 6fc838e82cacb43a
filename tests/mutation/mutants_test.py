#!/usr/bin/python3
"""Tests what is mutated, and what is not."""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants  # noqa: E402

TEXT = """#include "a/b.h"
// if (a < b) it is a comment + no code
namespace leeway {

uint32_t Book::Count(const std::vector<uint32_t>& all) const {
  if (all.size() < limit_ && !open_) return 0;
  std::vector<uint32_t> kept = Kept(all);
  kept.push_back(1);
  const auto& [first, last] = std::pair(1, 2);
  return std::min(first, last);
}

void Book::Forget() { kept_.clear(); }

}  // namespace leeway
"""
WANTED = {
    "if (all.size() <= limit_ && !open_) return 0;", "if (all.size() >= limit_ && !open_) return 0;",
    "if (all.size() < limit_ || !open_) return 0;", "if (all.size() < limit_ && open_) return 0;",
    "if (!(all.size() < limit_ && !open_)) return 0;", "if (false && (all.size() < limit_ && !open_)) return 0;",
    "if (all.size() < limit_ && !open_) return 1;", ";", "kept.push_back(2);",
    "const auto& [first, last] = std::pair(2, 2);", "const auto& [first, last] = std::pair(1, 3);",
    "return std::max(first, last);", "void Book::Forget() { ; }", "void Book::Forget() { return; kept_.clear(); }",
    "uint32_t Book::Count(const std::vector<uint32_t>& all) const { return {};",
}


def main():
    made = mutants.mutants_of("book.cc", TEXT)
    after = {m.after for m in made}
    for text in sorted(after ^ WANTED):
        print(("missing: " if text in WANTED else "too much: ") + text)
    functions = {m.function for m in made}
    if functions != {"Book::Count", "Book::Forget"}:
        print(f"functions: {functions}")
        return 1
    wrong = [m for m in made if m.apply(TEXT) == TEXT]
    return 1 if wrong or after != WANTED else 0


if __name__ == "__main__":
    sys.exit(main())
