// What a question is: something small that a program can do to a driver, and what is expected to happen.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ferry::litmus {

class Lab;

enum class Basis : unsigned char {
  documented,  // cuda.h or the programming guide says so
  assumed,     // the project relies on it, or the fake driver does it; nobody promised it
  open,        // the project relies on nothing; the answer is worth knowing
};

struct Question {
  const char* name;
  const char* rule;  // in words, what an answer tells
  Basis basis;
  std::vector<std::string> expected;  // any of them; none where every answer is good
  std::string (*ask)(Lab& lab);
  // The answer shows that work of two streams overlaps, which a driver may but need not let it.
  bool overlaps = false;
  // Asked in a process of its own: it may leave a context that is good for nothing.
  bool alone = false;
};

struct Topic {
  const char* name;
  std::span<const Question> questions;
};

// Thrown by a question that this machine or driver gives no means to ask, e.g. with one device only.
struct NotAsked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown where what prepares a question fails: an answer that differs from every expected one.
struct Unprepared : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[nodiscard]] std::span<const Question> loader_questions();
[[nodiscard]] std::span<const Question> error_questions();
[[nodiscard]] std::span<const Question> context_questions();
[[nodiscard]] std::span<const Question> reset_questions();
[[nodiscard]] std::span<const Question> stream_questions();
[[nodiscard]] std::span<const Question> event_questions();
[[nodiscard]] std::span<const Question> event_context_questions();
[[nodiscard]] std::span<const Question> legacy_questions();
[[nodiscard]] std::span<const Question> copy_questions();
[[nodiscard]] std::span<const Question> pageable_questions();
[[nodiscard]] std::span<const Question> registration_questions();
[[nodiscard]] std::span<const Question> mapping_questions();
[[nodiscard]] std::span<const Question> pointer_questions();
[[nodiscard]] std::span<const Question> freeing_questions();
[[nodiscard]] std::span<const Question> capture_questions();
[[nodiscard]] std::span<const Question> capture_conflict_questions();
[[nodiscard]] std::span<const Question> capture_join_questions();
[[nodiscard]] std::span<const Question> graph_questions();
[[nodiscard]] std::span<const Question> launch_questions();

// All of them, in the order in which they are asked.
[[nodiscard]] std::vector<Topic> all_topics();

}  // namespace ferry::litmus
