// Counts the packed words of a row whose bits answer a question with yes. Questions about numbers become questions
// about integers before they come here.
#include <cstring>

#include "host/kernels/families.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <class Word>
struct Vector {
  typedef Word Lanes __attribute__((vector_size(vector_nbytes)));
  static constexpr std::int64_t size = vector_nbytes / static_cast<std::int64_t>(sizeof(Word));
};

// Of a vector, the lanes that answer yes become -1. A narrow word wraps, where arithmetic would make it an int.
template <class Word>
struct Matches {
  using Lanes = typename Vector<Word>::Lanes;
  Word mask;
  Word pattern;

  Lanes lanes(Lanes words) const noexcept { return Lanes((words & mask) == pattern); }
  bool word(Word word) const noexcept { return (word & mask) == pattern; }
};

template <class Word>
struct Beyond {
  using Lanes = typename Vector<Word>::Lanes;
  Word low;
  Word span;

  Lanes lanes(Lanes words) const noexcept { return Lanes(words - low > span); }
  bool word(Word word) const noexcept { return static_cast<Word>(word - low) > span; }
};

// Sign and magnitude are brought to the order of two's complement first.
template <class Word>
struct BeyondInMagnitude {
  using Lanes = typename Vector<Word>::Lanes;
  static constexpr auto largest = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1U);
  Beyond<Word> beyond;

  Lanes lanes(Lanes words) const noexcept { return beyond.lanes(words ^ (Lanes(words > largest) & largest)); }
  bool word(Word word) const noexcept { return beyond.word(word > largest ? static_cast<Word>(word ^ largest) : word); }
};

template <class Lanes>
inline Lanes load(const std::byte* from) noexcept {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

template <class Word, class Question>
std::int64_t count_words(const std::byte* from, std::int64_t count, const Question& question) noexcept {
  using Lanes = typename Vector<Word>::Lanes;
  constexpr std::int64_t at_once = 4 * Vector<Word>::size;
  constexpr std::int64_t most_rounds = 255;  // until a lane of bytes could overflow
  std::int64_t found = 0;
  for (std::int64_t left = count / at_once; left > 0;) {
    const std::int64_t rounds = left < most_rounds ? left : most_rounds;
    Lanes hits[4] = {};
    for (std::int64_t round = 0; round < rounds; ++round, from += 4 * vector_nbytes) {
      for (int k = 0; k < 4; ++k) hits[k] -= question.lanes(load<Lanes>(from + k * vector_nbytes));
    }
    for (const Lanes& lanes : hits) {
      for (std::int64_t lane = 0; lane < Vector<Word>::size; ++lane) found += static_cast<std::int64_t>(lanes[lane]);
    }
    left -= rounds;
  }
  for (std::int64_t left = count % at_once; left > 0; --left, from += sizeof(Word)) {
    Word word;
    std::memcpy(&word, from, sizeof(word));
    found += question.word(word) ? 1 : 0;
  }
  return found;
}

template <class Word>
std::int64_t count_matches(const std::byte* from, std::int64_t count, std::uint64_t mask,
                           std::uint64_t pattern) noexcept {
  return count_words<Word>(from, count, Matches<Word>{static_cast<Word>(mask), static_cast<Word>(pattern)});
}

template <class Word>
std::int64_t count_beyond(const std::byte* from, std::int64_t count, std::uint64_t low, std::uint64_t span) noexcept {
  return count_words<Word>(from, count, Beyond<Word>{static_cast<Word>(low), static_cast<Word>(span)});
}

template <class Word>
std::int64_t count_beyond_in_magnitude(const std::byte* from, std::int64_t count, std::uint64_t low,
                                       std::uint64_t span) noexcept {
  const Beyond<Word> beyond{static_cast<Word>(low), static_cast<Word>(span)};
  return count_words<Word>(from, count, BeyondInMagnitude<Word>{beyond});
}

}  // namespace

const std::array<CountWords, 4> matches{count_matches<std::uint8_t>, count_matches<std::uint16_t>,
                                        count_matches<std::uint32_t>, count_matches<std::uint64_t>};
const std::array<CountWords, 4> beyond{count_beyond<std::uint8_t>, count_beyond<std::uint16_t>,
                                       count_beyond<std::uint32_t>, count_beyond<std::uint64_t>};
const std::array<CountWords, 4> beyond_in_magnitude{
    count_beyond_in_magnitude<std::uint8_t>, count_beyond_in_magnitude<std::uint16_t>,
    count_beyond_in_magnitude<std::uint32_t>, count_beyond_in_magnitude<std::uint64_t>};

std::int64_t sum_marks(const std::byte* from, std::int64_t count, const std::uint8_t* marks) noexcept {
  std::int64_t sums[4] = {};
  std::int64_t at = 0;
  for (; at + 4 <= count; at += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += marks[static_cast<std::uint8_t>(from[at + k])];
  }
  for (; at < count; ++at) sums[0] += marks[static_cast<std::uint8_t>(from[at])];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace ferry::inline FERRY_LEVEL
